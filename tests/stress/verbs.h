/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs.h: what the files of stress-verbs share: see verbs.c. */
#ifndef NOPIN_TESTS_STRESS_VERBS_H
#define NOPIN_TESTS_STRESS_VERBS_H

#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

enum {
	PAIRS = 4,
	WILD = PAIRS - 1,
	KEYS = 8, /* regions of each side */
	CQ_MIN = PAIRS * 4 * DEPTH,
	WILD_CQ = 1 << 16,
};

/**
 * struct world - What is shared by all.
 * @cqs:	[][1]: of the wild pair
 * @ex_cqs:	those of side 1
 * @mrs:	NULL: somebody is changing it
 * @keys:	of the latest there
 */
struct world {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channels[SIDES];
	struct ibv_cq *cqs[SIDES][2];
	struct ibv_cq_ex *ex_cqs[2];
	uint8_t *memory[SIDES];
	struct ibv_mr *mrs[SIDES][KEYS];
	uint32_t keys[SIDES][KEYS];
};
extern struct world world;

/** struct done - How often, so that a test that does nothing is noticed. */
struct done {
	unsigned long posted, aborted, polled, failed, events, asyncs, acked;
	unsigned long queried, modified, remade, drained, resized, deregs;
	unsigned long advised, privates, busy, shorts, forks;
};
extern struct done done;

#define DID(what) __atomic_fetch_add(&done.what, 1, __ATOMIC_RELAXED)

/** place_of() - One of the shared regions. */
struct place place_of(int side, uint32_t *seed);

/* --- verbs_pairs.c ------------------------------------------------------------ */

void pairs_open(void);
/** pairs_drain() - Every request of all but the wild pair completes. */
void pairs_drain(void);
/** pairs_close() - After pairs_drain(). */
void pairs_close(void);
/** pairs_last() - One more completion for who waits for events. */
void pairs_last(void);
/** pair_hold() - Return: a QP that stays until pair_release(). */
struct ibv_qp *pair_hold(int pair, int side);
void pair_release(int pair);
/** take() - Poll. @wild: the CQ of the wild pair. Return: how many came */
int take(int side, int n, bool wild);

void do_post(uint32_t *seed);
void do_poll(uint32_t *seed);
void do_modify(uint32_t *seed);
void do_remake(uint32_t *seed);

/* --- verbs_events.c ----------------------------------------------------------- */

/** events_open() - And start the thread that acknowledges. */
void events_open(void);
/** events_close() - Nothing is left to be acknowledged. */
void events_close(void);
/** event_get() - If there is one. The CQs' cookie is their channel. */
void event_get(struct ibv_comp_channel *channel, uint32_t *seed);
/** waiter_start(), waiter_end() - A thread that waits for events of side 1. */
void waiter_start(void);
void waiter_end(void);

void do_event(uint32_t *seed);
void do_async(uint32_t *seed);
void do_arm(uint32_t *seed);

/* --- verbs_private.c ---------------------------------------------------------- */

void do_private(uint32_t *seed);
void do_short(uint32_t *seed);
void do_fork(uint32_t *seed);

#endif
