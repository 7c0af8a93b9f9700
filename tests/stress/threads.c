/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* threads.c [SECONDS [SEED]]: eight threads do at random what threads of a
 * program may do to the objects of two NICs: post, poll, arm, wait for events,
 * modify, destroy, register, deregister, drop and unmap pages, and fork.
 *
 * Of the shared pairs of QPs a pair is destroyed only while nobody uses it (a
 * lock here), everything else happens at once. The last pair is wild: it is
 * also reset and connected anew while others post to it. Of the rest every
 * request is counted: after all QPs went to ERR each must have completed.
 * Private objects are destroyed with requests on their way.
 * Besides that the sanitizers judge.
 */
#include "fixture.h"
#include "nic/completion.h"
#include "nic/memory.h"
#include "nic/pair.h"

#include <fcntl.h>
#include <sys/wait.h>

enum {
	THREADS = 8,
	PAIRS = 4,
	WILD = PAIRS - 1,
	KEYS = 8, /* regions of each NIC */
	REGION = 64 * 1024,
	MAX_LEN = 20000,
	WILD_CQ = 1 << 16,
};

/**
 * struct pair - @lock: write: nobody uses it
 * @generation:	how often it was made
 * @out:	requests posted and not yet found completed, of each side
 * @broken:	a request failed, so by and by somebody makes it anew
 */
struct pair {
	pthread_rwlock_t lock;
	uint32_t generation;
	struct end end[SIDES];
	int out[SIDES];
	bool broken;
};

static struct nic *nics[SIDES];
static uint32_t pds[SIDES];
static struct nic_cq *cqs[SIDES], *wild_cqs[SIDES];
static struct nic_channel *channels[SIDES];
static struct pair pairs[PAIRS];
static uint8_t *memory[SIDES];
static uint32_t keys[SIDES][KEYS]; /* 0: somebody is changing it */
static bool stop, events_end;

/* What was done, so that a test that does nothing is noticed. */
static struct {
	unsigned long posted, polled, failed, events, modified, destroyed;
	unsigned long deregs, privates, forks;
} done;

#define DID(what) __atomic_fetch_add(&done.what, 1, __ATOMIC_RELAXED)

/* --- shared pairs ---------------------------------------------------------- */

static uint64_t id_of(const struct pair *p, int side)
{
	return (uint64_t)p->generation << 16 | (uint64_t)(p - pairs) << 1 |
	       (uint64_t)side;
}

static void found(const struct cqe *e)
{
	struct pair *p = &pairs[(e->wr_id & 0xffff) >> 1];

	DID(polled);
	if (e->status != WC_SUCCESS) {
		DID(failed);
		__atomic_store_n(&p->broken, true, __ATOMIC_RELAXED);
	}
	if (__atomic_load_n(&p->generation, __ATOMIC_RELAXED) == e->wr_id >> 16)
		__atomic_fetch_sub(&p->out[e->wr_id & 1], 1, __ATOMIC_RELAXED);
}

static void do_poll(uint32_t *seed)
{
	const int side = (int)rnd(seed, SIDES);
	struct nic_cq *cq = rnd(seed, 4) ? cqs[side] : wild_cqs[side];
	struct cqe e[8];
	const int n = nic_cq_poll(cq, 1 + rnd(seed, 8), e);

	REQUIRE(n >= 0);
	for (int i = 0; i < n && cq == cqs[side]; i++)
		found(&e[i]);
}

static void pair_open(struct pair *p)
{
	const bool wild = p == &pairs[WILD];

	__atomic_fetch_add(&p->generation, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&p->broken, false, __ATOMIC_RELAXED);
	for (int i = 0; i < SIDES; i++) {
		__atomic_store_n(&p->out[i], 0, __ATOMIC_RELAXED);
		p->end[i] = (struct end){.nic = nics[i],
					 .pd = pds[i],
					 .cq = wild ? wild_cqs[i] : cqs[i]};
		fixture_qp(&p->end[i]);
	}
	for (int i = 0; i < SIDES; i++)
		REQUIRE(fixture_connect(p->end[i].qp, nics[!i], p->end[!i].qpn,
					14) == 0);
}

static void remake(struct pair *p, int first)
{
	pthread_rwlock_wrlock(&p->lock);
	REQUIRE(nic_qp_destroy(p->end[first].qp) == 0);
	REQUIRE(nic_qp_destroy(p->end[!first].qp) == 0);
	pair_open(p);
	DID(destroyed);
	pthread_rwlock_unlock(&p->lock);
}

static struct wqe random_wqe(uint32_t *seed)
{
	static const uint8_t ops[] = {WR_SEND,	    WR_WRITE,	  WR_READ,
				      WR_FETCH_ADD, WR_WRITE_IMM, WR_RECV,
				      WR_RECV,	    WR_RECV};

	return (struct wqe){.op = ops[rnd(seed, ARRAY_SIZE(ops))]};
}

/* Some go out of their region or meet a key that is no more. */
static int post_random(struct nic_qp *qp, int side, uint64_t id, uint32_t *seed)
{
	const uint32_t local = rnd(seed, KEYS), remote = rnd(seed, KEYS);
	struct wqe w = random_wqe(seed);
	uint32_t len = rnd(seed, rnd(seed, 4) ? 300 : MAX_LEN);
	uint32_t at = rnd(seed, REGION - MAX_LEN + (rnd(seed, 50) == 0));

	if (w.op == WR_RECV)
		len = MAX_LEN;
	if (w.op == WR_FETCH_ADD)
		len = 8;
	w.wr_id = id;
	w.raddr = (uintptr_t)memory[!side] + remote * REGION + (at & ~7u);
	w.rkey = __atomic_load_n(&keys[!side][remote], __ATOMIC_RELAXED);
	return fixture_post(
		qp, w, memory[side] + local * REGION + at, len,
		__atomic_load_n(&keys[side][local], __ATOMIC_RELAXED));
}

static void do_post(uint32_t *seed)
{
	struct pair *p = &pairs[rnd(seed, PAIRS)];
	const int side = (int)rnd(seed, SIDES);

	if (__atomic_load_n(&p->broken, __ATOMIC_RELAXED) && !rnd(seed, 50))
		remake(p, side);
	pthread_rwlock_rdlock(&p->lock);
	if (__atomic_add_fetch(&p->out[side], 1, __ATOMIC_RELAXED) > DEPTH &&
	    p != &pairs[WILD])
		__atomic_fetch_sub(&p->out[side], 1, __ATOMIC_RELAXED);
	else if (post_random(p->end[side].qp, side, id_of(p, side), seed) <= 0)
		__atomic_fetch_sub(&p->out[side], 1, __ATOMIC_RELAXED);
	else
		DID(posted);
	pthread_rwlock_unlock(&p->lock);
}

static void do_modify(uint32_t *seed)
{
	struct pair *p = &pairs[rnd(seed, 4) ? WILD : (int)rnd(seed, PAIRS)];
	const int side = (int)rnd(seed, SIDES);
	struct end *e = &p->end[side];
	struct nic_qp_init init;
	struct qp_attr attr;

	pthread_rwlock_rdlock(&p->lock);
	REQUIRE(nic_qp_query(e->qp, &attr, &init) == 0);
	if (rnd(seed, 8) == 0)
		REQUIRE(fixture_state(e->qp, QPS_ERR) == 0);
	if (p == &pairs[WILD] && fixture_state(e->qp, QPS_RESET) == 0)
		fixture_connect(e->qp, nics[!side], p->end[!side].qpn, 14);
	DID(modified);
	pthread_rwlock_unlock(&p->lock);
}

static void do_destroy(uint32_t *seed)
{
	remake(&pairs[rnd(seed, PAIRS)], (int)rnd(seed, SIDES));
}

/* --- memory, events, private objects, fork --------------------------------- */

static void do_dereg(uint32_t *seed)
{
	const uint32_t side = rnd(seed, SIDES), i = rnd(seed, KEYS);
	const uint32_t key = __atomic_exchange_n(&keys[side][i], 0,
						 __ATOMIC_ACQ_REL);
	uint8_t *at = memory[side] + i * REGION;

	if (!key)
		return;
	REQUIRE(nic_mr_dereg(nics[side], key) == 0);
	if (rnd(seed, 2))
		REQUIRE(mmap(at, REGION, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			     0) == at);
	__atomic_store_n(&keys[side][i],
			 fixture_reg(nics[side], pds[side], at, REGION),
			 __ATOMIC_RELEASE);
	DID(deregs);
}

static void do_drop_pages(uint32_t *seed)
{
	uint8_t *at = memory[rnd(seed, SIDES)] + rnd(seed, KEYS) * REGION;

	REQUIRE(madvise(at, REGION, MADV_DONTNEED) == 0);
}

static void do_arm(uint32_t *seed)
{
	REQUIRE(nic_cq_arm(cqs[rnd(seed, SIDES)], rnd(seed, 2)) == 0);
}

/* The channel of side 0 is not waited on. */
static void do_event(uint32_t *seed)
{
	void *cookie;
	const int err = nic_channel_get(channels[0], &cookie);

	(void)seed;
	REQUIRE(err == 0 || err == -EAGAIN);
	if (err == 0)
		DID(events);
}

/* Objects that are not shared go with requests in flight and memory unmapped
 * under them. */
static void do_private(uint32_t *seed)
{
	const bool unmap_first = rnd(seed, 2);
	uint8_t *mem = fixture_map(REGION);
	struct end e[SIDES];
	uint32_t key[SIDES];
	struct cqe c;

	fixture_pair(e, nics, NULL, 14);
	for (int i = 0; i < SIDES; i++)
		key[i] = fixture_reg(nics[i], e[i].pd, mem, REGION);
	for (uint32_t n = rnd(seed, 60); n; n--) {
		const int i = (int)rnd(seed, SIDES);
		struct wqe w = random_wqe(seed);

		w.raddr = (uintptr_t)mem + (rnd(seed, REGION / 2) & ~7u);
		w.rkey = key[!i];
		fixture_post(e[i].qp, w, mem + rnd(seed, REGION / 2),
			     w.op == WR_FETCH_ADD ? 8 : rnd(seed, 9000),
			     key[i]);
		if (rnd(seed, 2))
			REQUIRE(nic_cq_poll(e[!i].cq, 1, &c) >= 0);
	}
	if (unmap_first)
		REQUIRE(munmap(mem, REGION) == 0);
	for (int i = 0; i < SIDES; i++)
		REQUIRE(nic_mr_dereg(nics[i], key[i]) == 0);
	fixture_unpair(e);
	if (!unmap_first)
		REQUIRE(munmap(mem, REGION) == 0);
	DID(privates);
}

static void do_fork(uint32_t *seed)
{
	const int side = (int)rnd(seed, SIDES);
	struct cqe e;
	int status;
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (pid == 0)
		_exit(nic_cq_poll(cqs[side], 1, &e) == -ENODEV ? 0 : 1);
	REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
	DID(forks);
}

static const struct action actions[] = {
	{do_post, 4000},     {do_poll, 6000},  {do_arm, 300},  {do_event, 300},
	{do_modify, 40},     {do_destroy, 10}, {do_dereg, 15}, {do_private, 6},
	{do_drop_pages, 40}, {do_fork, 40},
};

static void *worker(void *arg)
{
	act(actions, ARRAY_SIZE(actions), (uint32_t)(uintptr_t)arg, &stop);
	return NULL;
}

/* Waits for events of side 1, as the thread of a program would. */
static void *waiter_main(void *arg)
{
	struct cqe e;
	void *cookie;

	while (!__atomic_load_n(&events_end, __ATOMIC_RELAXED)) {
		REQUIRE(nic_cq_arm(cqs[1], false) == 0);
		while (nic_cq_poll(cqs[1], 1, &e) == 1)
			found(&e);
		REQUIRE(nic_channel_get(channels[1], &cookie) == 0);
		DID(events);
	}
	return arg;
}

/* --- the whole ------------------------------------------------------------- */

static void world_open(void)
{
	int fd;

	for (int i = 0; i < SIDES; i++) {
		nics[i] = fixture_nic();
		REQUIRE(nic_pd_alloc(nics[i], &pds[i]) == 0);
		REQUIRE(nic_channel_open(nics[i], &channels[i], &fd) == 0);
		if (i == 0)
			REQUIRE(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
		REQUIRE(nic_cq_create(nics[i], NULL, channels[i],
				      PAIRS * 4 * DEPTH, NULL, &cqs[i]) == 0);
		REQUIRE(nic_cq_create(nics[i], NULL, NULL, WILD_CQ, NULL,
				      &wild_cqs[i]) == 0);
		memory[i] = fixture_map(KEYS * REGION);
		for (int k = 0; k < KEYS; k++)
			keys[i][k] = fixture_reg(nics[i], pds[i],
						 memory[i] + k * REGION,
						 REGION);
	}
	for (int i = 0; i < PAIRS; i++) {
		pthread_rwlock_init(&pairs[i].lock, NULL);
		pair_open(&pairs[i]);
	}
}

/* Everything that was posted completes once the QPs are in error. */
static void drain(void)
{
	const uint64_t end = os_now(nics[0]->os) + UINT64_C(20000000000);
	bool left = true;

	for (int i = 0; i < PAIRS; i++)
		for (int k = 0; k < SIDES; k++)
			fixture_state(pairs[i].end[k].qp, QPS_ERR);
	while (left) {
		struct cqe e;

		left = false;
		for (int k = 0; k < SIDES; k++)
			while (nic_cq_poll(cqs[k], 1, &e) == 1)
				found(&e);
		for (int i = 0; i < WILD; i++)
			for (int k = 0; k < SIDES; k++)
				left |= __atomic_load_n(&pairs[i].out[k],
							__ATOMIC_RELAXED) != 0;
		if (left && os_now(nics[0]->os) > end) {
			for (int i = 0; i < WILD; i++)
				fprintf(stderr, "pair %d: %d and %d left\n", i,
					pairs[i].out[0], pairs[i].out[1]);
			_exit(1);
		}
	}
}

/* One more completion, for the thread that waits for events. */
static void wake_waiter(pthread_t waiter)
{
	struct end *e = &pairs[0].end[1];

	__atomic_store_n(&events_end, true, __ATOMIC_RELAXED);
	__atomic_fetch_add(&pairs[0].out[1], 1, __ATOMIC_RELAXED);
	fixture_post(e->qp,
		     (struct wqe){.op = WR_RECV, .wr_id = id_of(&pairs[0], 1)},
		     memory[1], 8, keys[1][0]);
	pthread_join(waiter, NULL);
}

static void world_close(void)
{
	for (int i = 0; i < PAIRS; i++)
		for (int k = 0; k < SIDES; k++)
			REQUIRE(nic_qp_destroy(pairs[i].end[k].qp) == 0);
	for (int i = 0; i < SIDES; i++) {
		for (int k = 0; k < KEYS; k++)
			REQUIRE(nic_mr_dereg(nics[i], keys[i][k]) == 0);
		REQUIRE(nic_cq_destroy(cqs[i]) == 0);
		REQUIRE(nic_cq_destroy(wild_cqs[i]) == 0);
		nic_channel_close(channels[i]);
		REQUIRE(nic_pd_dealloc(nics[i], pds[i]) == 0);
		nic_close(nics[i]);
	}
}

int main(int argc, char **argv)
{
	const long seconds = fixture_arg(argc, argv, 1, 5);
	const long seed = fixture_arg(argc, argv, 2, 1);
	pthread_t threads[THREADS], waiter;

	world_open();
	pthread_create(&waiter, NULL, waiter_main, NULL);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, worker,
			       (void *)(seed * 7919 + i * 104729 + 1));
	sleep((unsigned)seconds);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	drain();
	wake_waiter(waiter);
	world_close();
	printf("%lu posted, %lu polled (%lu not successes), %lu events, "
	       "%lu modified, %lu destroyed, %lu deregs, %lu private, "
	       "%lu forks\n",
	       done.posted, done.polled, done.failed, done.events,
	       done.modified, done.destroyed, done.deregs, done.privates,
	       done.forks);
	REQUIRE(done.polled > done.failed && done.events && done.destroyed);
	REQUIRE(done.deregs && done.privates && done.forks);
	return 0;
}
