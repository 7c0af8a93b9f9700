/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs_private.c: objects that are not shared, destroyed with requests on their
 * way, in any order that works; and a child, which has none.
 */
#include "verbs.h"

#include <sched.h>
#include <sys/wait.h>

/**
 * struct private - @ctx: its own, or the shared one
 * @channel:	of cq[0]; may be one that is shared, too
 */
struct private
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[SIDES];
	struct ibv_qp *qp[SIDES];
	struct ibv_mr *mr[SIDES];
	uint8_t *mem;
};

static void private_open(struct private *p, bool own, uint32_t *seed)
{
	p->ctx = own ? device_open() : world.ctx;
	p->pd = ibv_alloc_pd(p->ctx);
	p->channel = !own && rnd(seed, 2) ? world.channels[0]
					  : ibv_create_comp_channel(p->ctx);
	REQUIRE(p->pd && p->channel);
	if (p->channel != world.channels[0])
		REQUIRE(fcntl(p->channel->fd, F_SETFL, O_NONBLOCK) == 0);
	p->mem = fixture_map(REGION);
	for (int i = 0; i < SIDES; i++) {
		p->cq[i] = ibv_create_cq(p->ctx, 4 * DEPTH, p->channel,
					 i ? NULL : p->channel, 0);
		REQUIRE(p->cq[i]);
		p->qp[i] = qp_make(p->pd, p->cq[i], rnd(seed, 2));
		p->mr[i] = region_reg(p->pd, p->mem);
	}
	for (int i = 0; i < SIDES; i++)
		REQUIRE(qp_connect(p->qp[i], p->qp[!i]->qp_num, 0xfffff0) == 0);
}

static void private_use(struct private *p, uint32_t *seed)
{
	struct ibv_wc wc;

	REQUIRE(ibv_req_notify_cq(p->cq[0], 0) == 0);
	for (uint32_t n = rnd(seed, 60); n; n--) {
		const int i = (int)rnd(seed, SIDES);
		struct place from = {(uintptr_t)p->mem, p->mr[i]->lkey};
		struct place to = {(uintptr_t)p->mem, p->mr[!i]->rkey};
		struct request r;

		request_random(&r, n, from, to, seed);
		if (rnd(seed, 3))
			requests_post(p->qp[i], &r, 1);
		else
			receives_post(p->qp[i], n, from, 1);
		if (rnd(seed, 2))
			REQUIRE(ibv_poll_cq(p->cq[!i], 1, &wc) >= 0);
		event_get(p->channel, seed);
	}
}

static void try_again(int err)
{
	REQUIRE(err == EBUSY);
	DID(busy);
	sched_yield();
}

/* What the QPs use. Each goes as soon as nothing uses it any more. */
static void *bury(void *arg)
{
	struct private *p = arg;
	int err;

	for (int i = 0; i < SIDES; i++)
		while ((err = ibv_destroy_cq(p->cq[i])))
			try_again(err);
	while (p->channel != world.channels[0] &&
	       (err = ibv_destroy_comp_channel(p->channel)))
		try_again(err);
	while ((err = ibv_dealloc_pd(p->pd)))
		try_again(err);
	return NULL;
}

static void destroy_rest(struct private *p, bool regions_first)
{
	for (int i = 0; i < SIDES && regions_first; i++)
		REQUIRE(ibv_dereg_mr(p->mr[i]) == 0);
	for (int i = 0; i < SIDES; i++)
		REQUIRE(ibv_destroy_qp(p->qp[i]) == 0);
	for (int i = 0; i < SIDES && !regions_first; i++)
		REQUIRE(ibv_dereg_mr(p->mr[i]) == 0);
}

/* Some programs close the device first, which takes everything down. */
void do_private(uint32_t *seed)
{
	const bool own = rnd(seed, 2), close_first = own && rnd(seed, 2);
	const bool regions_first = rnd(seed, 2), at_once = rnd(seed, 2);
	/* with ThreadSanitizer others' memory would come there */
	const bool unmap_first = fixture_place(1) && rnd(seed, 2);
	pthread_t thread;
	struct private p;

	private_open(&p, own, seed);
	private_use(&p, seed);
	if (unmap_first)
		REQUIRE(munmap(p.mem, REGION) == 0);
	if (close_first)
		REQUIRE(ibv_close_device(p.ctx) == 0);
	if (at_once)
		REQUIRE(!pthread_create(&thread, NULL, bury, &p));
	destroy_rest(&p, regions_first);
	if (at_once)
		pthread_join(thread, NULL);
	else
		bury(&p);
	if (own && !close_first)
		REQUIRE(ibv_close_device(p.ctx) == 0);
	if (!unmap_first)
		REQUIRE(munmap(p.mem, REGION) == 0);
	DID(privates);
}

/* An event whose CQ may be gone before anybody fetches it from the shared channel,
 * and another in its place. */
void do_short(uint32_t *seed)
{
	struct ibv_comp_channel *channel = world.channels[0];
	struct ibv_cq *cq = ibv_create_cq(world.ctx, 1, channel, channel, 0);
	struct ibv_qp *qp;

	REQUIRE(cq);
	qp = qp_make(world.pd, cq, false);
	REQUIRE(qp_connect(qp, qp->qp_num, 1) == 0);
	REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
	REQUIRE(receives_post(qp, 0, place_of(0, seed), 1) == 1);
	REQUIRE(qp_set_state(qp, IBV_QPS_ERR) == 0);
	if (rnd(seed, 2))
		do_event(seed);
	REQUIRE(ibv_destroy_qp(qp) == 0);
	REQUIRE(ibv_destroy_cq(cq) == 0);
	DID(shorts);
}

/* --- fork -------------------------------------------------------------------- */

/* Return: errno of a function that returns a pointer, or 0 */
static int null_err(const void *p)
{
	return p ? 0 : errno;
}

static void child_refused(struct ibv_qp *qp, struct ibv_mr *mr)
{
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_qp_init_attr init;
	struct ibv_async_event event;
	struct ibv_qp_attr attr;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *cookie;

	for (int i = 0; i < SIDES; i++) {
		REQUIRE(ibv_poll_cq(world.cqs[i][0], 1, &wc) == -ENODEV);
		REQUIRE(ibv_req_notify_cq(world.cqs[i][0], 0) == ENODEV);
		REQUIRE(ibv_start_poll(world.ex_cqs[i], &poll) == ENODEV);
		REQUIRE(ibv_destroy_cq(world.cqs[i][0]) == ENODEV);
		REQUIRE(ibv_get_cq_event(world.channels[i], &cq, &cookie) ==
			-1);
		REQUIRE(errno == ENODEV);
		REQUIRE(ibv_destroy_comp_channel(world.channels[i]) != 0);
	}
	REQUIRE(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == ENODEV);
	REQUIRE(qp_set_state(qp, IBV_QPS_ERR) == ENODEV);
	REQUIRE(ibv_destroy_qp(qp) == ENODEV);
	REQUIRE(ibv_dereg_mr(mr) == ENODEV);
	REQUIRE(ibv_dealloc_pd(world.pd) == ENODEV);
	REQUIRE(ibv_get_async_event(world.ctx, &event) == -1);
	REQUIRE(ibv_close_device(world.ctx) == ENODEV);
}

static void child_makes_nothing_of_these(void)
{
	struct ibv_context *ctx = world.ctx;

	REQUIRE(null_err(ibv_alloc_pd(ctx)) == ENODEV);
	REQUIRE(null_err(ibv_create_comp_channel(ctx)) == ENODEV);
	REQUIRE(null_err(ibv_create_cq(ctx, 1, NULL, NULL, 0)) == ENODEV);
	REQUIRE(null_err(qp_try(world.pd, world.cqs[0][0], false)) == ENODEV);
	REQUIRE(null_err(ibv_reg_mr(world.pd, world.memory[0], 1, RIGHTS)) ==
		ENODEV);
	/* and has a NIC of its own, but under ThreadSanitizer, which lets no child of a
	 * process with threads have any */
#ifndef __SANITIZE_THREAD__
	ctx = ibv_open_device(ctx->device);
	REQUIRE(ctx);
	REQUIRE(ibv_close_device(ctx) == 0);
#endif
}

static void child_posts_nothing(struct ibv_qp *qp, struct place at)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	uint32_t seed = 1;
	struct request r;

	request_random(&r, 0, at, at, &seed);
	REQUIRE(requests_post(qp, &r, 1) == 0);
	REQUIRE(receives_post(qp, 0, at, 1) == 0);
	REQUIRE(!ex || requests_build(ex, &r, 1, false) == 0);
}

/* GCC 12's AddressSanitizer lets a child begin with a lock of its allocator that
 * another thread held: there no child may allocate. */
#ifdef __SANITIZE_ADDRESS__
enum { MAY_ALLOCATE = 0 };
#else
enum { MAY_ALLOCATE = 1 };
#endif

/* Every verb answers, whatever the other threads were doing. */
void do_fork(uint32_t *seed)
{
	const int pair = (int)rnd(seed, PAIRS);
	const struct place at = place_of(0, seed);
	struct ibv_qp *qp = pair_hold(pair, (int)rnd(seed, SIDES));
	struct ibv_mr *mr = region_reg(world.pd, world.memory[0]);
	pid_t pid = fork();
	int status;

	REQUIRE(pid >= 0);
	if (pid == 0) {
		alarm(60);
		child_posts_nothing(qp, at);
		child_refused(qp, mr);
		if (MAY_ALLOCATE)
			child_makes_nothing_of_these();
		_exit(0);
	}
	pair_release(pair);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (status)
		fprintf(stderr, "child: status %x\n", status);
	REQUIRE(status == 0);
	REQUIRE(ibv_dereg_mr(mr) == 0);
	DID(forks);
}
