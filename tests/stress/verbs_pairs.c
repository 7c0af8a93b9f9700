/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs_pairs.c: the shared pairs of QPs: posting, polling, modifying, and making
 * them anew; and that every request completes once.
 */
#include "verbs.h"

#include <time.h>

enum { PATIENCE_S = 60 };

/**
 * struct pair - @lock: write: nobody uses it
 * @generation:	how often it was made
 * @out:	generation << 32 | requests posted and not yet found completed;
 *		of each side's sends and receives
 * @broken:	a request failed, so by and by somebody makes it anew
 */
struct pair {
	pthread_rwlock_t lock;
	uint32_t generation;
	struct ibv_qp *qp[SIDES];
	uint64_t out[SIDES][2];
	bool broken;
};

static struct pair pairs[PAIRS];
static pthread_mutex_t wild_poll = PTHREAD_MUTEX_INITIALIZER;

static long now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static uint64_t id_of(const struct pair *p, int side, bool recv)
{
	return (uint64_t)p->generation << 16 | (uint64_t)(p - pairs) << 2 |
	       (uint64_t)side << 1 | recv;
}

/* Nothing to be counted if the pair was made anew since. Return: false: there
 * would be more than @max out. */
static bool count(uint64_t id, int n, uint32_t max)
{
	uint64_t *out = &pairs[(id & 0xffff) >> 2].out[id >> 1 & 1][id & 1];
	uint64_t was = __atomic_load_n(out, __ATOMIC_RELAXED);

	do {
		if (was >> 32 != id >> 16)
			return true;
		REQUIRE(n > 0 || (uint32_t)was >= (uint32_t)-n);
		if (n > 0 && (uint32_t)was + (uint32_t)n > max)
			return false;
	} while (!__atomic_compare_exchange_n(
		out, &was, was + (uint64_t)(int64_t)n, true, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED));
	return true;
}

static void found(uint64_t id, enum ibv_wc_status status, bool wild)
{
	const uint64_t i = (id & 0xffff) >> 2;

	DID(polled);
	REQUIRE(i < PAIRS && wild == (i == WILD));
	if (status != IBV_WC_SUCCESS) {
		DID(failed);
		__atomic_store_n(&pairs[i].broken, true, __ATOMIC_RELAXED);
	}
	if (!wild)
		count(id, -1, 0);
}

static int take_array(struct ibv_cq *cq, int n, bool wild)
{
	struct ibv_wc wc[8];
	const int got = ibv_poll_cq(cq, n, wc);

	REQUIRE(got >= 0 && got <= n);
	for (int i = 0; i < got; i++)
		found(wc[i].wr_id, wc[i].status, wild);
	return got;
}

static int take_iterated(struct ibv_cq_ex *cq, int n, bool wild)
{
	struct ibv_poll_cq_attr attr = {0};
	int err = ibv_start_poll(cq, &attr), got = 0;

	while (!err) {
		if (cq->status == IBV_WC_SUCCESS &&
		    ibv_wc_read_opcode(cq) == IBV_WC_RECV)
			REQUIRE(ibv_wc_read_byte_len(cq) < MAX_LEN);
		found(cq->wr_id, cq->status, wild);
		if (++got == n)
			break;
		err = ibv_next_poll(cq);
	}
	REQUIRE(!err || err == ENOENT);
	if (got)
		ibv_end_poll(cq);
	return got;
}

int take(int side, int n, bool wild)
{
	int got;

	if (side == 0)
		return take_array(world.cqs[0][wild], n, wild);
	if (!wild)
		return take_iterated(world.ex_cqs[0], n, false);
	pthread_mutex_lock(&wild_poll);
	got = take_iterated(world.ex_cqs[1], n, true);
	pthread_mutex_unlock(&wild_poll);
	return got;
}

void do_poll(uint32_t *seed)
{
	const bool wild = rnd(seed, 4) == 0;

	take((int)rnd(seed, SIDES), 1 + (int)rnd(seed, 8), wild);
}

/* Lock held for writing. Everything that was posted completes once both are in
 * error. */
static void drain(struct pair *p)
{
	const long end = now_s() + PATIENCE_S;

	for (int i = 0; i < SIDES; i++)
		REQUIRE(qp_set_state(p->qp[i], IBV_QPS_ERR) == 0);
	for (int i = 0; i < SIDES * 2; i++) {
		uint64_t *out = &p->out[i / 2][i % 2];

		while ((uint32_t)__atomic_load_n(out, __ATOMIC_RELAXED)) {
			take(i / 2, 8, false);
			if (now_s() <= end)
				continue;
			fprintf(stderr, "pair %d side %d: %u %s left\n",
				(int)(p - pairs), i / 2, (uint32_t)*out,
				i % 2 ? "receives" : "sends");
			_exit(1);
		}
	}
	DID(drained);
}

/* Lock held for writing. In a new life nothing of the old one is taken for
 * valid, so the PSNs are far from it. */
static void pair_connect(struct pair *p)
{
	const uint32_t psn = p->generation * 0x345678 & 0xffffff;

	for (int i = 0; i < SIDES; i++)
		REQUIRE(qp_connect(p->qp[i], p->qp[!i]->qp_num, psn) == 0);
}

static void pair_renew(struct pair *p)
{
	p->generation++;
	__atomic_store_n(&p->broken, false, __ATOMIC_RELAXED);
	for (int i = 0; i < SIDES * 2; i++)
		__atomic_store_n(&p->out[i / 2][i % 2],
				 (uint64_t)p->generation << 32,
				 __ATOMIC_RELAXED);
}

static void pair_open(struct pair *p)
{
	for (int i = 0; i < SIDES; i++)
		p->qp[i] = qp_make(world.pd, world.cqs[i][p == &pairs[WILD]],
				   (p - pairs) & 1);
}

/* Destroyed and created, or reset with or without requests in flight. */
static void remake(struct pair *p, uint32_t *seed)
{
	const uint32_t how = rnd(seed, 4), first = rnd(seed, SIDES);

	pthread_rwlock_wrlock(&p->lock);
	if (how < 2 && p != &pairs[WILD])
		drain(p);
	pair_renew(p);
	for (uint32_t i = 0; i < SIDES; i++) {
		struct ibv_qp *qp = p->qp[i ^ first];

		if (how & 1)
			REQUIRE(ibv_destroy_qp(qp) == 0);
		else
			REQUIRE(qp_set_state(qp, IBV_QPS_RESET) == 0);
	}
	if (how & 1)
		pair_open(p);
	pair_connect(p);
	DID(remade);
	pthread_rwlock_unlock(&p->lock);
}

/* Lock held. */
static void post_some(struct pair *p, int side, uint32_t *seed)
{
	const int n = 1 + (int)rnd(seed, BATCH), recv = rnd(seed, 5) < 2;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->qp[side]);
	const uint64_t id = id_of(p, side, recv);
	const bool give_up = rnd(seed, 30) == 0;
	struct request r[BATCH];
	int posted;

	if (p != &pairs[WILD] && !count(id, n, DEPTH))
		return;
	for (int i = 0; i < n; i++)
		request_random(&r[i], id, place_of(side, seed),
			       place_of(!side, seed), seed);
	if (recv)
		posted = receives_post(p->qp[side], id, place_of(side, seed),
				       n);
	else if (ex && rnd(seed, 4))
		posted = requests_build(ex, r, n, give_up);
	else
		posted = requests_post(p->qp[side], r, n);
	if (posted)
		DID(posted);
	else if (give_up)
		DID(aborted);
	if (p == &pairs[WILD])
		return;
	REQUIRE(posted == n || (posted == 0 && give_up));
	if (!posted)
		count(id, -n, 0);
}

void do_post(uint32_t *seed)
{
	struct pair *p = &pairs[rnd(seed, PAIRS)];

	if (__atomic_load_n(&p->broken, __ATOMIC_RELAXED) && !rnd(seed, 8))
		remake(p, seed);
	pthread_rwlock_rdlock(&p->lock);
	post_some(p, (int)rnd(seed, SIDES), seed);
	pthread_rwlock_unlock(&p->lock);
}

void do_modify(uint32_t *seed)
{
	struct pair *p = &pairs[rnd(seed, 4) ? WILD : (int)rnd(seed, PAIRS)];
	const int side = (int)rnd(seed, SIDES);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	pthread_rwlock_rdlock(&p->lock);
	REQUIRE(ibv_query_qp(p->qp[side], &attr, IBV_QP_STATE, &init) == 0);
	REQUIRE(init.send_cq == world.cqs[side][p == &pairs[WILD]]);
	if (rnd(seed, p == &pairs[WILD] ? 8 : 40) == 0)
		REQUIRE(qp_set_state(p->qp[side], IBV_QPS_ERR) == 0);
	if (p == &pairs[WILD] && qp_set_state(p->qp[side], IBV_QPS_RESET) == 0)
		qp_connect(p->qp[side], p->qp[!side]->qp_num, p->generation);
	DID(modified);
	pthread_rwlock_unlock(&p->lock);
}

void do_remake(uint32_t *seed)
{
	remake(&pairs[rnd(seed, PAIRS)], seed);
}

/* --- for the others ---------------------------------------------------------- */

void pairs_open(void)
{
	for (int i = 0; i < PAIRS; i++) {
		pthread_rwlock_init(&pairs[i].lock, NULL);
		pair_open(&pairs[i]);
		pair_renew(&pairs[i]);
		pair_connect(&pairs[i]);
	}
}

void pairs_drain(void)
{
	for (int i = 0; i < WILD; i++)
		drain(&pairs[i]);
}

void pairs_last(void)
{
	const uint64_t id = id_of(&pairs[0], 1, true);

	count(id, 1, DEPTH);
	receives_post(pairs[0].qp[1], id, (struct place){0, 0}, 1);
}

void pairs_close(void)
{
	for (int i = 0; i < PAIRS; i++)
		for (int k = 0; k < SIDES; k++)
			REQUIRE(ibv_destroy_qp(pairs[i].qp[k]) == 0);
}

struct ibv_qp *pair_hold(int pair, int side)
{
	pthread_rwlock_rdlock(&pairs[pair].lock);
	return pairs[pair].qp[side];
}

void pair_release(int pair)
{
	pthread_rwlock_unlock(&pairs[pair].lock);
}
