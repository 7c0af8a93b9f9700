/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* child.c: in a child of the process that opened the NIC the verbs that change
 * or move something answer ENODEV for what is the parent's and touch nothing, also
 * when the child has a NIC of its own; the parent then destroys everything as if
 * there had been no child.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

static void check(bool ok, int line, const char *what)
{
	if (ok)
		return;
	printf("line %d: %s: %s\n", line, what, strerror(errno));
	failures++;
}

#define CHECK(cond)	     check(cond, __LINE__, #cond)
#define RETURNS(call, value) (errno = 0, CHECK((call) == (value)))
#define NULL_OF(call)	     (errno = 0, CHECK(!(call) && errno == ENODEV))
#define MINUS_1_OF(call)     (errno = 0, CHECK((call) == -1 && errno == ENODEV))

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static char buf[64];

static struct ibv_qp_init_attr init_attr(void)
{
	return (struct ibv_qp_init_attr){.send_cq = cq,
					 .recv_cq = cq,
					 .cap = {4, 4, 1, 1, 0},
					 .qp_type = IBV_QPT_RC};
}

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init;

	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	channel = ibv_create_comp_channel(ctx);
	cq = ibv_create_cq(ctx, 8, NULL, channel, 0);
	init = init_attr();
	qp = ibv_create_qp(pd, &init);
	CHECK(mr && qp);
}

static void use_in_child(void)
{
	struct ibv_qp_init_attr init = init_attr();
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_send_wr swr = {.opcode = IBV_WR_SEND}, *bad_swr;
	struct ibv_recv_wr rwr = {0}, *bad_rwr;
	struct ibv_sge sge = {(uintptr_t)buf, sizeof(buf), mr->lkey};
	struct ibv_async_event event;
	struct ibv_cq *event_cq;
	void *event_context;
	struct ibv_wc wc;

	RETURNS(ibv_poll_cq(cq, 1, &wc), -ENODEV);
	RETURNS(ibv_req_notify_cq(cq, 0), ENODEV);
	RETURNS(ibv_post_send(qp, &swr, &bad_swr), ENODEV);
	RETURNS(ibv_post_recv(qp, &rwr, &bad_rwr), ENODEV);
	RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), ENODEV);
	RETURNS(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), ENODEV);
	RETURNS(ibv_resize_cq(cq, 16), ENODEV);
	RETURNS(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
		ENODEV);
	MINUS_1_OF(ibv_get_cq_event(channel, &event_cq, &event_context));
	MINUS_1_OF(ibv_get_async_event(ctx, &event));
	NULL_OF(ibv_reg_mr(pd, buf, sizeof(buf), 0));
	NULL_OF(ibv_alloc_pd(ctx));
	NULL_OF(ibv_create_comp_channel(ctx));
	NULL_OF(ibv_create_cq(ctx, 8, NULL, NULL, 0));
	NULL_OF(ibv_create_qp(pd, &init));
}

static void destroy_all(int result)
{
	RETURNS(ibv_destroy_qp(qp), result);
	RETURNS(ibv_destroy_cq(cq), result);
	RETURNS(ibv_destroy_comp_channel(channel), result);
	RETURNS(ibv_dereg_mr(mr), result);
	RETURNS(ibv_dealloc_pd(pd), result);
	RETURNS(ibv_close_device(ctx), result);
}

int main(void)
{
	int status;
	pid_t pid;

	open_all();
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct ibv_context *own;

		use_in_child();
		own = ibv_open_device(ctx->device);
		CHECK(own);
		use_in_child();
		destroy_all(ENODEV);
		RETURNS(ibv_close_device(own), 0);
		fflush(stdout);
		_exit(failures != 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	destroy_all(0);
	return failures != 0;
}
