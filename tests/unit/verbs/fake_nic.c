/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fake_nic.c: see fake_nic.h. Not thread-safe, but for events: those block. */
#include "fake_nic.h"
#include "base/counters.h"
#include "mem/mr.h"
#include "nic/completion.h"
#include "nic/event_counter.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "nic/upcall_queue.h"
#include "ring/cq.h"
#include "ring/wq.h"
#include "verbs/event.h"
#include "verbs/object.h"

#include <errno.h>
#include <stdlib.h>

struct fake fake;

enum { EVENTS_MAX = 16, RING = 64 };

struct nic {
	int unused;
};

static struct nic the_nic;

/* Events wait in here; get blocks while there is none and @blocking. */
struct nic_channel {
	pthread_mutex_t lock;
	void *events[EVENTS_MAX];
	unsigned num;
};

struct nic_async {
	struct nic_event events[EVENTS_MAX];
	unsigned num;
};

struct nic_cq {
	struct cq ring;
	struct nic_channel *channel;
	void *cookie;
	int users;
};

struct nic_qp {
	struct nic_qp_init init;
	struct wq sq, rq;
};

int fake_step(void)
{
	if (fake.fail_in == 0 || --fake.fail_in != 0)
		return 0;
	return fake.error;
}

int fake_reset(void **state)
{
	(void)state;
	fake = (struct fake){
		.present = true,
		.present_error = -ENODEV,
		.gids = 2,
		.mtu = 1024,
		.error = -ENOMEM,
		.keys = 0x100,
	};
	errno = 0;
	return 0;
}

int fake_check(void **state)
{
	(void)state;
	return fake.live || fake.locks ? -1 : 0;
}

/* --- the device ---------------------------------------------------------- */

int nic_get(struct nic **out)
{
	const int rc = fake_step();

	if (!rc) {
		*out = &the_nic;
		fake.live++;
	}
	return rc;
}

void nic_put(struct nic *nic)
{
	CHECK(nic == &the_nic);
	fake.live--;
}

bool nic_of_parent(const struct nic *nic)
{
	CHECK(nic == &the_nic);
	return fake.child;
}

int nic_present(void)
{
	return fake.present ? 0 : fake.present_error;
}

int nic_query(struct nic *nic, struct nic_attr *out)
{
	(void)nic;
	*out = (struct nic_attr){
		.guid = 0x0123456789abcdef,
		.active_mtu = fake.mtu,
		.gids = NIC_GIDS_MAX,
		.netdev = "eth0",
		.active = !fake.down,
	};
	return 0;
}

int nic_gid(struct nic *nic, unsigned index, struct nic_gid *out)
{
	(void)nic;
	if (index >= fake.gids)
		return index < NIC_GIDS_MAX ? -ENODATA : -EINVAL;
	*out = (struct nic_gid){
		.ip.b = {[10] = 0xff, 0xff, 192, 0, 2, (uint8_t)(index + 1)},
		.ifindex = 7,
		.mac = {2, 0, 0, 0, 0, (uint8_t)index},
		.ifname = "eth0",
	};
	return 0;
}

void nic_counters(struct nic *nic, struct counters *out)
{
	(void)nic;
	*out = fake.counters;
}

int nic_path(struct nic *nic, unsigned sgid_index, const struct ipaddr *dgid,
	     struct wqe_to *to)
{
	struct nic_gid gid;
	const int rc = nic_gid(nic, sgid_index, &gid);

	if (rc)
		return rc;
	if (!ipaddr_is_v4(dgid))
		return -EINVAL;
	*to = (struct wqe_to){.dgid = *dgid, .local = gid.ip};
	return 0;
}

/* No test makes one. */
void nic_counter_close(struct nic_counter *c)
{
	(void)c;
	CHECK(false);
}

/* --- events ----------------------------------------------------------------- */

int nic_async_open(struct nic *nic, struct nic_async **out, int *fd)
{
	const int rc = fake_step();

	(void)nic;
	if (rc)
		return rc;
	*out = calloc(1, sizeof(**out));
	*fd = 42;
	fake.live++;
	return 0;
}

void nic_async_close(struct nic_async *a)
{
	free(a);
	fake.live--;
}

int nic_async_get(struct nic_async *a, struct nic_event *ev)
{
	if (!a->num)
		return -EAGAIN;
	*ev = a->events[0];
	memmove(a->events, a->events + 1, sizeof(*ev) * --a->num);
	return 0;
}

int nic_channel_open(struct nic *nic, struct nic_channel **out, int *fd)
{
	const int rc = fake_step();

	(void)nic;
	if (rc)
		return rc;
	*out = calloc(1, sizeof(**out));
	*fd = 43;
	fake.live++;
	return 0;
}

void nic_channel_close(struct nic_channel *ch)
{
	free(ch);
	fake.live--;
}

int nic_upcalls_close(struct nic_upcalls *u)
{
	(void)u;
	return 0;
}

int nic_channel_get(struct nic_channel *ch, void **cq_cookie)
{
	if (!ch->num)
		return -EAGAIN;
	*cq_cookie = ch->events[0];
	memmove(ch->events, ch->events + 1, sizeof(void *) * --ch->num);
	return 0;
}

/* --- completion queues ---------------------------------------------------------- */

int nic_cq_create(struct nic *nic, struct nic_async *async,
		  struct nic_channel *ch, uint32_t entries, void *cookie,
		  struct nic_cq **out)
{
	const int rc = fake_step();
	struct nic_cq *cq;

	(void)nic;
	(void)async;
	if (rc)
		return rc;
	cq = calloc(1, sizeof(*cq));
	CHECK(cq_init(&cq->ring, entries) == 0);
	cq->channel = ch;
	cq->cookie = cookie;
	*out = cq;
	fake.live++;
	return 0;
}

int nic_cq_destroy(struct nic_cq *cq)
{
	if (cq->users)
		return -EBUSY;
	cq_fini(&cq->ring);
	free(cq);
	fake.live--;
	return 0;
}

int nic_cq_resize(struct nic_cq *cq, uint32_t entries, uint32_t asked)
{
	CHECK(asked <= entries);
	(void)cq;
	return fake_step();
}

int nic_cq_poll(struct nic_cq *cq, unsigned n, struct cqe *out)
{
	const int rc = fake_step();

	return rc ? rc : (int)cq_take(&cq->ring, n, out);
}

int nic_cq_arm(struct nic_cq *cq, bool solicited_only)
{
	(void)cq;
	fake.solicited = solicited_only;
	return fake_step();
}

/* --- protection domains and regions ------------------------------------------------ */

int nic_pd_alloc(struct nic *nic, uint32_t *pd)
{
	const int rc = fake_step();

	(void)nic;
	if (rc)
		return rc;
	*pd = ++fake.keys;
	fake.live++;
	return 0;
}

int nic_pd_dealloc(struct nic *nic, uint32_t pd)
{
	const int rc = fake_step();

	(void)nic;
	(void)pd;
	if (!rc)
		fake.live--;
	return rc;
}

int nic_mr_reg(struct nic *nic, const struct mr_attr *attr, uint32_t *key)
{
	const int rc = fake_step();

	(void)nic;
	if (rc)
		return rc;
	fake.mr = *attr;
	*key = ++fake.keys;
	fake.live++;
	return 0;
}

int nic_mr_replace(struct nic *nic, uint32_t old, const struct mr_attr *attr,
		   uint32_t *key)
{
	(void)old;
	return nic_mr_reg(nic, attr, key);
}

int nic_mr_change(struct nic *nic, uint32_t key, uint32_t pd, uint32_t access)
{
	const int rc = fake_step();

	(void)nic;
	(void)key;
	if (rc)
		return rc;
	fake.mr.pd = pd;
	fake.mr.access = access;
	return 0;
}

int nic_mr_dereg(struct nic *nic, uint32_t key)
{
	(void)key;
	return nic_pd_dealloc(nic, 0);
}

int nic_mr_query(struct nic *nic, uint32_t key, struct mr_attr *attr)
{
	(void)nic;
	(void)key;
	*attr = fake.mr;
	return fake_step();
}

int nic_mr_advise(struct nic *nic, uint32_t pd, enum nic_advice advice,
		  bool flush, const struct sge *sge, unsigned n)
{
	(void)nic;
	(void)pd;
	CHECK(fake.num_advised + n <= ARRAY_SIZE(fake.advised));
	memcpy(fake.advised + fake.num_advised, sge, n * sizeof(*sge));
	fake.num_advised += n;
	fake.advice = advice;
	fake.flush = flush;
	return fake_step();
}

/* --- queue pairs ------------------------------------------------------------------------ */

int nic_qp_create(struct nic *nic, struct nic_async *async,
		  struct nic_qp_init *init, struct nic_qp **out, uint32_t *qpn)
{
	const int rc = fake_step();
	struct nic_qp *qp;

	(void)nic;
	(void)async;
	if (rc)
		return rc;
	qp = calloc(1, sizeof(*qp));
	if (init->srq)
		init->max_recv_wr = init->max_recv_sge = 0;
	init->max_message = init->ud ? fake.mtu : NIC_MAX_MESSAGE;
	qp->init = *init;
	CHECK(!wq_init(&qp->sq, init->max_send_wr, init->max_send_sge,
		       init->max_inline));
	CHECK(!wq_init(&qp->rq, init->max_recv_wr, init->max_recv_sge, 0));
	init->send_cq->users++;
	init->recv_cq->users++;
	if (init->srq)
		fake_srq_user(init->srq, 1);
	*qpn = 0x1234;
	*out = qp;
	fake.live++;
	return 0;
}

int nic_qp_destroy(struct nic_qp *qp)
{
	const int rc = fake_step();

	if (rc)
		return rc;
	qp->init.send_cq->users--;
	qp->init.recv_cq->users--;
	if (qp->init.srq)
		fake_srq_user(qp->init.srq, -1);
	wq_fini(&qp->sq);
	wq_fini(&qp->rq);
	free(qp);
	fake.live--;
	return 0;
}

int nic_qp_modify(struct nic_qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	(void)qp;
	fake.attr = *attr;
	fake.mask = mask;
	return fake_step();
}

int nic_qp_query(struct nic_qp *qp, struct qp_attr *attr,
		 struct nic_qp_init *init)
{
	*attr = fake.attr;
	*init = qp->init;
	return fake_step();
}

int nic_send_begin(struct nic_qp *qp)
{
	return nic_send_lock(qp);
}

int nic_send_lock(struct nic_qp *qp)
{
	const int rc = fake_step();

	(void)qp;
	fake.locks += rc == 0;
	return rc;
}

int nic_send_ready(const struct nic_qp *qp)
{
	(void)qp;
	CHECK(fake.locks == 1);
	return fake_step();
}

struct wqe *nic_send_slot(struct nic_qp *qp)
{
	return wq_reserve(&qp->sq);
}

struct wqe *nic_send_slot_ahead(struct nic_qp *qp, uint32_t ahead)
{
	return wq_reserve_ahead(&qp->sq, ahead);
}

void nic_send_publish(struct nic_qp *qp)
{
	CHECK(fake.locks == 1);
	wq_publish(&qp->sq);
}

void nic_send_publish_many(struct nic_qp *qp, uint32_t n)
{
	CHECK(fake.locks == 1);
	wq_publish_many(&qp->sq, n);
}

void nic_send_end(struct nic_qp *qp)
{
	(void)qp;
	fake.locks--;
}

int nic_recv_begin(struct nic_qp *qp)
{
	return nic_send_begin(qp);
}

struct wqe *nic_recv_slot(struct nic_qp *qp)
{
	return wq_reserve(&qp->rq);
}

void nic_recv_publish(struct nic_qp *qp)
{
	CHECK(fake.locks == 1);
	wq_publish(&qp->rq);
}

void nic_recv_end(struct nic_qp *qp)
{
	nic_send_end(qp);
}

const struct nic_qp_init *nic_qp_limits(const struct nic_qp *qp)
{
	return &qp->init;
}

/* --- for the tests -------------------------------------------------------------------------- */

struct ibv_context *fake_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	assert_non_null(list[0]);
	context = ibv_open_device(list[0]);
	assert_non_null(context);
	ibv_free_device_list(list);
	return context;
}

struct wqe *fake_wqe(struct ibv_qp *qp, bool send, unsigned i)
{
	struct nic_qp *nic = vqp_of(qp)->nic;
	struct wq *q = send ? &nic->sq : &nic->rq;

	return i < wq_end(q) ? wq_at(q, i) : NULL;
}

unsigned fake_published(struct ibv_qp *qp)
{
	return wq_end(&vqp_of(qp)->nic->sq);
}

void fake_complete(struct ibv_cq *cq, const struct cqe *cqe)
{
	assert_int_equal(cq_push(&vcq_of(cq)->nic->ring, cqe), 0);
}

void fake_cq_event(struct ibv_cq *cq)
{
	struct nic_cq *nic = vcq_of(cq)->nic;

	nic->channel->events[nic->channel->num++] = nic->cookie;
}

void fake_async(struct ibv_context *context, enum nic_event_type type,
		void *cookie)
{
	struct nic_async *a = vctx_of(context)->async;

	a->events[a->num++] = (struct nic_event){type, cookie};
}

uint32_t fake_next_slot(void)
{
	struct tracked t = {0};

	assert_int_equal(tracked_add(&t), 0);
	tracked_del(&t);
	return (uint32_t)(uintptr_t)t.cookie;
}

void rc_open(struct rc *rc, uint64_t ops, int sig_all)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 2,
			.max_send_sge = 3,
			.max_recv_sge = 2,
			.max_inline_data = 32},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.send_ops_flags = ops,
	};

	rc->context = fake_open();
	rc->pd = attr.pd = ibv_alloc_pd(rc->context);
	rc->cq = ibv_create_cq(rc->context, RING, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = rc->cq;
	if (ops)
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	rc->qp = ibv_create_qp_ex(rc->context, &attr);
	assert_non_null(rc->qp);
}

void rc_close(struct rc *rc)
{
	assert_int_equal(ibv_destroy_qp(rc->qp), 0);
	assert_int_equal(ibv_destroy_cq(rc->cq), 0);
	assert_int_equal(ibv_dealloc_pd(rc->pd), 0);
	assert_int_equal(ibv_close_device(rc->context), 0);
}
