/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs.c [SECONDS [SEED]]: eight threads of a verbs program do at random what
 * libibverbs allows from any thread, to objects that they share and to private
 * ones: post, poll, wait for events and acknowledge them, query, modify,
 * destroy, register, open the device once more, and fork. What threads.c is for
 * nic/, this is for verbs/, as programs see it.
 *
 * Of the shared pairs of QPs a pair is made anew only while nobody uses it (a
 * lock here), everything else happens at once. The last pair is wild: it is
 * also reset and connected anew while others post to it. Of the rest every
 * request is counted: it completes once, at the latest when its QP went to ERR.
 * Besides that the sanitizers judge.
 *
 * The CQs of side 1 are polled with ibv_start_poll(), the one of its wild QP is
 * for a single thread, so there is a lock here. An event of side 0 is waited
 * for by nobody, of side 1 by a thread; another thread acknowledges what others
 * fetched, so that destroying has to wait.
 */
#include "verbs.h"

enum {
	THREADS = 8,
	OPENS = 15, /* of the device, by each thread, before all else */
};

struct world world;
struct done done;

static pthread_barrier_t all_here;
static bool stop;

struct place place_of(int side, uint32_t *seed)
{
	const uint32_t i = rnd(seed, KEYS);

	return (struct place){
		(uintptr_t)world.memory[side] + i * REGION,
		__atomic_load_n(&world.keys[side][i], __ATOMIC_RELAXED)};
}

/* --- memory and queries ----------------------------------------------------- */

static void do_dereg(uint32_t *seed)
{
	const uint32_t side = rnd(seed, SIDES), i = rnd(seed, KEYS);
	struct ibv_mr *mr = __atomic_exchange_n(&world.mrs[side][i], NULL,
						__ATOMIC_ACQ_REL);
	uint8_t *at = world.memory[side] + i * REGION;

	if (!mr)
		return;
	if (rnd(seed, 3) == 0) {
		REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
				     0, RIGHTS) == 0);
	} else {
		REQUIRE(ibv_dereg_mr(mr) == 0);
		if (rnd(seed, 2))
			REQUIRE(mmap(at, REGION, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				     -1, 0) == at);
		mr = region_reg(world.pd, at);
	}
	__atomic_store_n(&world.keys[side][i], mr->rkey, __ATOMIC_RELAXED);
	__atomic_store_n(&world.mrs[side][i], mr, __ATOMIC_RELEASE);
	DID(deregs);
}

static void do_drop_pages(uint32_t *seed)
{
	const struct place p = place_of((int)rnd(seed, SIDES), seed);

	REQUIRE(madvise((void *)p.addr, REGION, MADV_DONTNEED) == 0);
}

/* The key may be of a region that is no more. */
static void do_advise(uint32_t *seed)
{
	static const enum ibv_advise_mr_advice advice[] = {
		IBV_ADVISE_MR_ADVICE_PREFETCH,
		IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
	};
	const struct place p = place_of((int)rnd(seed, SIDES), seed);
	struct ibv_sge sge = {p.addr + rnd(seed, REGION / 2),
			      rnd(seed, REGION / 2), p.key};
	const int err = ibv_advise_mr(
		world.pd, advice[rnd(seed, ARRAY_SIZE(advice))],
		rnd(seed, 2) ? IBV_ADVISE_MR_FLAG_FLUSH : 0, &sge, 1);

	REQUIRE(!err || err == EINVAL || err == EFAULT);
	if (!err)
		DID(advised);
}

static void do_resize(uint32_t *seed)
{
	struct ibv_cq *cq = world.cqs[rnd(seed, SIDES)][0];

	REQUIRE(ibv_resize_cq(cq, CQ_MIN + (int)rnd(seed, CQ_MIN)) == 0);
	DID(resized);
}

static void do_query(uint32_t *seed)
{
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_gid_entry gids[64];
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	struct ibv_device **list;
	struct ibv_ah *made;
	int n;

	(void)seed;
	REQUIRE(ibv_query_device(world.ctx, &dev) == 0 && dev.max_qp > PAIRS);
	REQUIRE(ibv_query_device_ex(world.ctx, NULL, &ex) == 0);
	REQUIRE(ibv_query_port(world.ctx, 1, &port) == 0);
	REQUIRE(port.state == IBV_PORT_ACTIVE);
	n = (int)ibv_query_gid_table(world.ctx, gids, ARRAY_SIZE(gids), 0);
	REQUIRE(n > 0 && n <= port.gid_tbl_len);
	REQUIRE(ibv_query_gid(world.ctx, 1, 0, &ah.grh.dgid) == 0);
	made = ibv_create_ah(world.pd, &ah);
	REQUIRE(made && ibv_destroy_ah(made) == 0);
	list = ibv_get_device_list(&n);
	REQUIRE(list && n == 1 &&
		ibv_get_device_guid(list[0]) == dev.node_guid);
	ibv_free_device_list(list);
	DID(queried);
}

/* --- the whole ------------------------------------------------------------- */

static const struct action actions[] = {
	{do_post, 4000},  {do_poll, 6000}, {do_arm, 300},   {do_event, 300},
	{do_async, 100},  {do_modify, 40}, {do_remake, 5},  {do_dereg, 4},
	{do_private, 10}, {do_short, 50},  {do_advise, 40}, {do_drop_pages, 40},
	{do_resize, 10},  {do_query, 10},  {do_fork, 3},
};

static void *worker(void *arg)
{
	act(actions, ARRAY_SIZE(actions), (uint32_t)(uintptr_t)arg, &stop);
	return NULL;
}

/* The first to open the device makes the NIC, the last to close it ends it. */
static void *opener(void *arg)
{
	for (int i = 0; i < OPENS; i++) {
		pthread_barrier_wait(&all_here);
		REQUIRE(ibv_close_device(device_open()) == 0);
	}
	return arg;
}

static struct ibv_cq_ex *make_ex_cq(int entries, int flags,
				    struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)entries,
		.cq_context = channel,
		.channel = channel,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = (uint32_t)flags,
	};

	return ibv_create_cq_ex(world.ctx, &attr);
}

static void make_cqs(void)
{
	for (int i = 0; i < SIDES; i++) {
		world.channels[i] = ibv_create_comp_channel(world.ctx);
		REQUIRE(world.channels[i]);
	}
	REQUIRE(fcntl(world.channels[0]->fd, F_SETFL, O_NONBLOCK) == 0);
	world.cqs[0][0] = ibv_create_cq(world.ctx, CQ_MIN, world.channels[0],
					world.channels[0], 0);
	world.cqs[0][1] = ibv_create_cq(world.ctx, WILD_CQ, NULL, NULL, 0);
	world.ex_cqs[0] = make_ex_cq(CQ_MIN, 0, world.channels[1]);
	world.ex_cqs[1] = make_ex_cq(WILD_CQ,
				     IBV_CREATE_CQ_ATTR_SINGLE_THREADED, NULL);
	REQUIRE(world.ex_cqs[0] && world.ex_cqs[1]);
	for (int i = 0; i < 2; i++) {
		world.cqs[1][i] = ibv_cq_ex_to_cq(world.ex_cqs[i]);
		REQUIRE(world.cqs[0][i]);
	}
}

static void world_open(void)
{
	world.ctx = device_open();
	REQUIRE(fcntl(world.ctx->async_fd, F_SETFL, O_NONBLOCK) == 0);
	world.pd = ibv_alloc_pd(world.ctx);
	REQUIRE(world.pd);
	make_cqs();
	for (int i = 0; i < SIDES; i++) {
		world.memory[i] = fixture_map(KEYS * REGION);
		for (int k = 0; k < KEYS; k++) {
			world.mrs[i][k] = region_reg(
				world.pd, world.memory[i] + k * REGION);
			world.keys[i][k] = world.mrs[i][k]->rkey;
		}
	}
	pairs_open();
}

static void world_close(void)
{
	pairs_close();
	for (int i = 0; i < SIDES; i++) {
		for (int k = 0; k < KEYS; k++)
			REQUIRE(ibv_dereg_mr(world.mrs[i][k]) == 0);
		for (int k = 0; k < 2; k++)
			REQUIRE(ibv_destroy_cq(world.cqs[i][k]) == 0);
		REQUIRE(ibv_destroy_comp_channel(world.channels[i]) == 0);
	}
	REQUIRE(ibv_dealloc_pd(world.pd) == 0);
	REQUIRE(ibv_close_device(world.ctx) == 0);
}

/* Did all that can happen? What others have to be in the midst of comes when it comes. */
static bool all_happened(void)
{
	const unsigned long *n = &done.posted;
	const size_t num = sizeof(done) / sizeof(*n);

	for (size_t i = 0; i < num; i++)
		if (!__atomic_load_n(&n[i], __ATOMIC_RELAXED))
			return false;
	return true;
}

/* Eight threads that do this at once, until all of them are done. */
static void run_threads(void *(*run)(void *arg), long seed, long seconds)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run,
			       (void *)(seed * 7919 + i * 104729 + 1));
	sleep((unsigned)seconds);
	while (seconds && !all_happened())
		usleep(10000);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const long seconds = fixture_arg(argc, argv, 1, 5);
	const long seed = fixture_arg(argc, argv, 2, 1);

	setenv("NOPIN_ADDR", "lo", 1);
	alarm((unsigned)seconds + 200);
	pthread_barrier_init(&all_here, NULL, THREADS);
	run_threads(opener, seed, 0);
	stop = false;
	world_open();
	events_open();
	waiter_start();
	run_threads(worker, seed, seconds);
	pairs_drain();
	waiter_end();
	world_close();
	events_close();
	printf("%lu posts (%lu aborted), %lu polled (%lu not successes), "
	       "%lu events, %lu asyncs, %lu acked by another, %lu queried, "
	       "%lu modified, %lu remade, %lu drained, %lu resized, "
	       "%lu deregs, %lu advised, %lu private (%lu busy), %lu short, "
	       "%lu forks\n",
	       done.posted, done.aborted, done.polled, done.failed, done.events,
	       done.asyncs, done.acked, done.queried, done.modified,
	       done.remade, done.drained, done.resized, done.deregs,
	       done.advised, done.privates, done.busy, done.shorts, done.forks);
	REQUIRE(done.polled > done.failed && done.aborted && done.events);
	REQUIRE(done.asyncs && done.acked && done.queried && done.modified);
	REQUIRE(done.remade && done.drained > WILD && done.resized);
	REQUIRE(done.deregs && done.advised && done.privates && done.busy);
	REQUIRE(done.shorts && done.forks);
	return 0;
}
