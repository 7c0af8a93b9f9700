/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stint.c: a step of the engine (design D9): plan, move, commit, and how long each
 * sleeps. The lock is held while a step is planned and committed, and not while its
 * bytes move.
 */
#include "nic/stint.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/moves.h"
#include "base/strategy.h"
#include "nic/device.h"
#include "nic/engine.h"
#include "nic/handoff.h"
#include "nic/step.h"
#include "nic/usage.h"
#include "os/copy.h"
#include "os/pages.h"
#include "os/run.h"

#include <errno.h>

struct step *step_get(struct nic *nic)
{
	uint32_t free = __atomic_load_n(&nic->steps.free, __ATOMIC_RELAXED);

	while (free) {
		uint32_t bit = free & -free;

		if (__atomic_compare_exchange_n(
			    &nic->steps.free, &free, free & ~bit, false,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return &nic->steps.v[__builtin_ctz(bit)];
	}
	return NULL;
}

void step_put(struct nic *nic, struct step *s)
{
	__atomic_fetch_or(&nic->steps.free, 1u << s->index, __ATOMIC_RELEASE);
}

/* A plan or commit that sleeps keeps everybody from the engine: a fault on the
 * NIC's own memory, say, while another thread forks. Being preempted is not
 * counted: that is the host's business.
 */
struct stint {
	uint64_t from;
	struct os_usage usage;
};

static struct stint stint_begin(struct nic *nic, enum counter whose)
{
	if (!accounted(nic, whose))
		return (struct stint){.from = 0};
	return (struct stint){os_now(nic->os), usage_begin(nic, whose)};
}

/* Return: its major faults, and in @slept how long it took, or 0 if it did not
 * sleep. */
static uint64_t stint_end(struct nic *nic, enum counter whose, struct stint st,
			  uint64_t *slept)
{
	uint64_t faults;
	bool did;

	*slept = 0;
	if (!accounted(nic, whose))
		return 0;
	faults = usage_end(nic, whose, st.usage, &did);
	if (did)
		*slept = os_now(nic->os) - st.from;
	return faults;
}

/* Of a plan or commit. */
static void stint_own(struct nic *nic, struct stint st)
{
	uint64_t *most = &nic->cnt.v[CNT_step_sleep_max], slept;

	stint_end(nic, CNT_own_majflt, st, &slept);
	if (slept > *most)
		*most = slept;
}

bool step_plan_rx(struct nic *nic, struct step *s, uint64_t now_ns)
{
	struct stint st = stint_begin(nic, CNT_own_majflt);
	bool moves = engine_rx_plan(nic, s, now_ns);

	stint_own(nic, st);
	return moves;
}

bool step_plan(struct nic *nic, struct step *s, bool flush_acks,
	       uint64_t now_ns)
{
	struct stint st = stint_begin(nic, CNT_own_majflt);
	bool moves = engine_plan(nic, s, flush_acks, now_ns);

	stint_own(nic, st);
	return moves;
}

static void commit(struct nic *nic, struct step *s, uint64_t now_ns)
{
	struct stint st = stint_begin(nic, CNT_own_majflt);

	engine_commit(nic, s, now_ns);
	stint_own(nic, st);
}

/* The move that failed. Of a burst that was sent straight from application
 * memory only all together are known. NULL: nothing failed. */
static struct move *failed_moves(struct step *s, unsigned *num)
{
	struct moves *mv = s->kind == STEP_SEND ? &s->burst.gathers
						: &s->run.moves;
	bool one = mv->error == -EFAULT;

	if (!one && (s->kind != STEP_SEND || s->error != -EFAULT))
		return NULL;
	*num = one ? 1 : mv->num;
	return &mv->m[one ? mv->done : 0];
}

/* Memory that only user mode may fault in gives EFAULT to every move. Return:
 * false: it was no fault, or nothing comes. */
static bool touch_failed(struct nic *nic, struct step *s)
{
	unsigned num = 0;
	const struct move *m = failed_moves(s, &num);

	for (unsigned i = 0; i < num; i++)
		if (os_page_now(nic->os, m[i].addr, m[i].len,
				m[i].kind != MOVE_GATHER))
			return false;
	return num > 0;
}

/* Return: how long it took, or 0 if it did not sleep. */
static uint64_t step_move(struct nic *nic, struct step *s)
{
	struct stint st = stint_begin(nic, CNT_engine_majflt);
	uint64_t slept;

	engine_move(nic, s);
	s->majflt = stint_end(nic, CNT_engine_majflt, st, &slept);
	return slept;
}

/* Strategy block, kept to be compared with: the engine sleeps in the fault, as
 * rdma_rxe does. */
static uint64_t move_blocking(struct nic *nic, struct step *s)
{
	uint64_t from = os_now(nic->os), now, slept = 0;

	step_move(nic, s);
	slept += s->majflt;
	for (int i = 0; i < MOVES_MAX && touch_failed(nic, s); i++) {
		step_move(nic, s);
		slept += 1 + s->majflt;
	}
	now = os_now(nic->os);
	if (slept) {
		count_add(&nic->cnt, CNT_fault_block, slept);
		count_add(&nic->cnt, CNT_block_ns, now - from);
	}
	engine_commit(nic, s, now);
	return now;
}

uint64_t step_run(struct nic *nic, struct step *s)
{
	uint64_t *most = &nic->cnt.v[CNT_move_sleep_max], slept, now;

	if (nic->cfg.strategies & STRATEGY_BIT(STRATEGY_BLOCK))
		return move_blocking(nic, s);
	handoff_unlock(&nic->engine);
	slept = step_move(nic, s);
	handoff_lock(&nic->engine);
	*most = MAX(*most, slept);
	now = os_now(nic->os);
	commit(nic, s, now);
	return now;
}
