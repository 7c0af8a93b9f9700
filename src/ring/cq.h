/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.h: a completion queue between the engine, which has the engine lock, and the
 * application's threads, which take turns (a lock per queue). The order of publication
 * and the alignment are as in ring/wq.h.
 */
#ifndef NOPIN_RING_CQ_H
#define NOPIN_RING_CQ_H

#include "base/list.h"
#include "ring/cqe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits: a CQ that was armed in both ways is armed for any. */
enum cq_arm { CQ_UNARMED, CQ_ARMED_SOLICITED = 1 << 0, CQ_ARMED_ANY = 1 << 1 };

/**
 * struct cq - A ring of completions.
 * @armed:	enum cq_arm bits, set by the application, cleared by the push
 *		that fires; only by atomic read-modify-writes (cq.c says why)
 * @fired:	engine: a push found the CQ armed; nic/ sends the event after
 *		the step and clears it
 * @link:	engine: on nic/'s list of fired CQs
 */
struct cq {
	struct cqe *ring;
	uint32_t slots; /* power of two, > what was asked for */
	uint32_t limit; /* what the program may have outstanding */
	size_t bytes;
	/* poller */
	uint32_t cons __attribute__((aligned(64)));
	/* engine */
	uint32_t prod __attribute__((aligned(64)));
	bool overflow, fired;
	struct list link;
	/* both */
	uint32_t armed __attribute__((aligned(64)));
};

int cq_init(struct cq *cq, uint32_t entries);
void cq_fini(struct cq *cq);

/** cq_empty() - Is there nothing to take right now? Context: the poller. */
bool cq_empty(const struct cq *cq);

/** cq_take() - Take up to @n completions. Return: how many. Context: the poller. */
unsigned cq_take(struct cq *cq, unsigned n, struct cqe *out);

/**
 * cq_push() - Append a completion. Context: the engine.
 * Return: 0; or -ENOSPC, the CQ then marked overflowed for good: nothing is
 * overwritten, and every later push fails too (IBTA 11.6.3.2: a CQ error).
 */
int cq_push(struct cq *cq, const struct cqe *e);

/** cq_arm() - Ask for an event for the next (solicited) completion. Context: the poller. */
void cq_arm(struct cq *cq, bool solicited_only);

/**
 * cq_swap() - Take over the ring and entries of @other (for a resize); @other
 * gets the old ring, to be freed. Engine and poller kept out.
 */
void cq_swap(struct cq *cq, struct cq *other);

/** cq_forget() - Drop the completions of @qpn. Context: the engine, poller kept out. */
void cq_forget(struct cq *cq, uint32_t qpn);

#endif
