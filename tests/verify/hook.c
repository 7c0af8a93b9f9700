// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* hook.c: what programs call instead of libibverbs. One lock for all; the
 * programs that this is made for have one thread.
 */
#include "verify.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
/* The header makes macros of these. */
#undef ibv_reg_mr

enum { DRAIN_SECONDS = 60, BATCH = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_context_ops real;
static struct ibv_qp_ex real_ex;

/* What wr_*() has been told of the request that is being built. */
static struct request building;

struct ibv_mr *real_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   int access)
{
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int);

	*(void **)&reg = dlsym(RTLD_NEXT, "ibv_reg_mr");
	return reg(pd, addr, length, access);
}

int real_dereg_mr(struct ibv_mr *mr)
{
	return REAL(ibv_dereg_mr)(mr);
}

/* --- requests as ibv_post_send() and ibv_post_recv() have them ----------------- */

static enum kind kind_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return KIND_SEND;
	case IBV_WR_RDMA_WRITE:
		return KIND_WRITE;
	case IBV_WR_RDMA_READ:
		return KIND_READ;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return KIND_ATOMIC;
	default:
		report_problem("an operation that the verifier does not know");
		return KIND_FLUSH;
	}
}

static bool one_piece(int num_sge)
{
	if (num_sge != 1)
		report_problem("a request of other than one piece");
	return num_sge == 1;
}

static struct request from_send_wr(const struct ibv_send_wr *wr)
{
	struct request req = {
		.kind = kind_of(wr->opcode),
		.signaled = wr->send_flags & IBV_SEND_SIGNALED,
		.memory = (uint8_t *)(uintptr_t)wr->sg_list->addr,
		.length = wr->sg_list->length,
	};

	if (req.kind == KIND_ATOMIC) {
		req.remote = wr->wr.atomic.remote_addr;
		req.rkey = wr->wr.atomic.rkey;
		req.compare_add = wr->wr.atomic.compare_add;
		req.swap = wr->wr.atomic.swap;
		req.is_swap = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	} else if (req.kind != KIND_SEND) {
		req.remote = wr->wr.rdma.remote_addr;
		req.rkey = wr->wr.rdma.rkey;
	}
	return req;
}

static int post_one_send(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct track *t = track_of(qp->qp_num);
	struct ibv_send_wr copy = *wr, *bad;
	struct request req;
	struct ibv_sge sge;
	int err;

	copy.next = NULL;
	if (!t || !one_piece(wr->num_sge))
		return real.post_send(qp, &copy, &bad);
	sge = wr->sg_list[0];
	req = from_send_wr(wr);
	track_post(t, &req, &sge);
	copy.sg_list = &sge;
	if (req.kind == KIND_WRITE) {
		copy.wr.rdma.remote_addr = req.remote;
		copy.wr.rdma.rkey = req.rkey;
	}
	err = real.post_send(qp, &copy, &bad);
	if (err)
		track_abort(t, false);
	return err;
}

static int hook_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			  struct ibv_send_wr **bad)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	for (; wr && !err; wr = wr->next) {
		err = post_one_send(qp, wr);
		if (err)
			*bad = wr;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int post_one_recv(struct ibv_qp *qp, const struct ibv_recv_wr *wr)
{
	struct track *t = track_of(qp->qp_num);
	struct ibv_recv_wr copy = *wr, *bad;
	struct request req;
	struct ibv_sge sge;
	int err;

	copy.next = NULL;
	if (!t || !one_piece(wr->num_sge))
		return real.post_recv(qp, &copy, &bad);
	sge = wr->sg_list[0];
	req = (struct request){.kind = KIND_RECV,
			       .signaled = true,
			       .memory = (uint8_t *)(uintptr_t)sge.addr,
			       .length = sge.length};
	track_post(t, &req, &sge);
	copy.sg_list = &sge;
	err = real.post_recv(qp, &copy, &bad);
	if (err)
		track_abort(t, true);
	return err;
}

static int hook_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	for (; wr && !err; wr = wr->next) {
		err = post_one_recv(qp, wr);
		if (err)
			*bad = wr;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int hook_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	int n;

	pthread_mutex_lock(&lock);
	n = real.poll_cq(cq, num, wc);
	for (int i = 0; i < n; i++)
		track_done(&wc[i]);
	pthread_mutex_unlock(&lock);
	return n;
}

/* --- requests as ibv_wr_*() builds them ---------------------------------------- */

static void hook_wr_start(struct ibv_qp_ex *qp)
{
	pthread_mutex_lock(&lock);
	real_ex.wr_start(qp);
}

/* The piece of memory comes last, and so is where the request is complete. */
static void begin(struct ibv_qp_ex *qp, enum kind kind, uint32_t rkey,
		  uint64_t remote)
{
	building = (struct request){.kind = kind,
				    .signaled = qp->wr_flags &
						IBV_SEND_SIGNALED,
				    .rkey = rkey,
				    .remote = remote};
}

/* The place may have to be told before the piece is known to have a box: so
 * WRITEs are told to the library only in end().
 */
static void end(struct ibv_qp_ex *qp, struct ibv_sge *sge)
{
	struct track *t = track_of(qp->qp_base.qp_num);

	building.memory = (uint8_t *)(uintptr_t)sge->addr;
	building.length = sge->length;
	if (t)
		track_post(t, &building, sge);
	if (building.kind == KIND_WRITE)
		real_ex.wr_rdma_write(qp, building.rkey, building.remote);
}

static void hook_wr_send(struct ibv_qp_ex *qp)
{
	begin(qp, KIND_SEND, 0, 0);
	real_ex.wr_send(qp);
}

static void hook_wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey,
			       uint64_t remote)
{
	begin(qp, KIND_WRITE, rkey, remote);
}

static void hook_wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t remote)
{
	begin(qp, KIND_READ, rkey, remote);
	real_ex.wr_rdma_read(qp, rkey, remote);
}

static void hook_wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				     uint64_t remote, uint64_t add)
{
	begin(qp, KIND_ATOMIC, rkey, remote);
	building.compare_add = add;
	real_ex.wr_atomic_fetch_add(qp, rkey, remote, add);
}

static void hook_wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
				   uint64_t remote, uint64_t compare,
				   uint64_t swap)
{
	begin(qp, KIND_ATOMIC, rkey, remote);
	building.compare_add = compare;
	building.swap = swap;
	building.is_swap = true;
	real_ex.wr_atomic_cmp_swp(qp, rkey, remote, compare, swap);
}

static void hook_wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr,
			    uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	end(qp, &sge);
	real_ex.wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
}

static void hook_wr_set_inline_data(struct ibv_qp_ex *qp, void *addr,
				    size_t length)
{
	struct ibv_sge sge = {.addr = (uintptr_t)addr,
			      .length = (uint32_t)length};

	end(qp, &sge);
	real_ex.wr_set_inline_data(qp, (void *)(uintptr_t)sge.addr, length);
}

static int hook_wr_complete(struct ibv_qp_ex *qp)
{
	const int err = real_ex.wr_complete(qp);

	if (err)
		report_problem("wr_complete() failed");
	pthread_mutex_unlock(&lock);
	return err;
}

/** ibv_qp_to_qp_ex() - With our functions in it. */
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = REAL(ibv_qp_to_qp_ex)(qp);

	if (!ex || !share_on())
		return ex;
	pthread_mutex_lock(&lock);
	if (ex->wr_start != hook_wr_start)
		real_ex = *ex;
	ex->wr_start = hook_wr_start;
	ex->wr_send = hook_wr_send;
	ex->wr_rdma_write = hook_wr_rdma_write;
	ex->wr_rdma_read = hook_wr_rdma_read;
	ex->wr_atomic_fetch_add = hook_wr_atomic_fetch_add;
	ex->wr_atomic_cmp_swp = hook_wr_atomic_cmp_swp;
	ex->wr_set_sge = hook_wr_set_sge;
	ex->wr_set_inline_data = hook_wr_set_inline_data;
	ex->wr_complete = hook_wr_complete;
	pthread_mutex_unlock(&lock);
	return ex;
}

/* --- objects ---------------------------------------------------------------- */

/** ibv_open_device() - With our functions in the context. */
struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = REAL(ibv_open_device)(device);

	if (!context || !share_on())
		return context;
	pthread_mutex_lock(&lock);
	if (context->ops.post_send != hook_post_send)
		real = context->ops;
	context->ops.post_send = hook_post_send;
	context->ops.post_recv = hook_post_recv;
	context->ops.poll_cq = hook_poll_cq;
	pthread_mutex_unlock(&lock);
	return context;
}

static struct ibv_mr *registered(struct ibv_mr *mr, int access)
{
	if (mr && share_on()) {
		pthread_mutex_lock(&lock);
		share_region(mr, access);
		pthread_mutex_unlock(&lock);
	}
	return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	return registered(real_reg_mr(pd, addr, length, access), access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	return registered(
		REAL(ibv_reg_mr_iova2)(pd, addr, length, iova, access),
		(int)access);
}

/** ibv_modify_qp() - Where a QP becomes one that we follow. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct track *t;

	if (share_on() && mask & IBV_QP_STATE) {
		pthread_mutex_lock(&lock);
		t = track_of(qp->qp_num);
		if (attr->qp_state == IBV_QPS_INIT && !t)
			t = track_add(qp);
		if (attr->qp_state == IBV_QPS_RTR && t) {
			t->peer_qpn = attr->dest_qp_num;
			share_publish(qp->pd);
		}
		pthread_mutex_unlock(&lock);
	}
	return REAL(ibv_modify_qp)(qp, attr, mask);
}

/* --- the end ---------------------------------------------------------------- */

/* A WRITE of nothing completes when all before it has. Return: was it taken? */
static bool flush(struct track *t)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED};
	struct request req = {.kind = KIND_FLUSH, .signaled = true};
	struct ibv_sge none = {.length = 0};
	struct ibv_send_wr *bad;

	track_post(t, &req, &none);
	if (real.post_send(t->qp, &wr, &bad) == 0)
		return true;
	track_abort(t, false);
	return false;
}

/* Some programs stop while requests are under way, some of them unsignaled. */
static void drain(struct track *t, time_t deadline)
{
	struct ibv_wc wc[BATCH];
	bool flushed = false;
	int n;

	while (!track_drained(t)) {
		if (!flushed && track_needs_flush(t))
			flushed = flush(t);
		n = real.poll_cq(t->qp->send_cq, BATCH, wc);
		for (int i = 0; i < n; i++)
			track_done(&wc[i]);
		if (time(NULL) > deadline) {
			report_problem("requests did not complete");
			return;
		}
	}
}

/** ibv_destroy_qp() - The first call is the end of the test. */
int ibv_destroy_qp(struct ibv_qp *qp)
{
	static bool is_over;

	if (share_on() && !is_over) {
		is_over = true;
		pthread_mutex_lock(&lock);
		for (struct track *t = NULL; (t = track_next(t));)
			drain(t, time(NULL) + DRAIN_SECONDS);
		share_meet();
		share_compare();
		pthread_mutex_unlock(&lock);
	}
	return REAL(ibv_destroy_qp)(qp);
}

/** ibv_dealloc_pd() - It must be empty. */
int ibv_dealloc_pd(struct ibv_pd *pd)
{
	pthread_mutex_lock(&lock);
	track_close(pd);
	share_close(pd);
	pthread_mutex_unlock(&lock);
	return REAL(ibv_dealloc_pd)(pd);
}
