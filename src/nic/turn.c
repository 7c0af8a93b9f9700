/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* turn.c: one turn of the background thread, or of the thread that stands in for it.
 * It sleeps on the sockets; while a thread of the program polls it sleeps on a timer
 * instead, so that packets do not wake it for nothing.
 */
#include "nic/turn.h"
#include "base/check.h"
#include "base/range.h"
#include "base/strategy.h"
#include "nic/busy.h"
#include "nic/device.h"
#include "nic/due.h"
#include "nic/errors.h"
#include "nic/handoff.h"
#include "nic/progress.h"
#include "nic/sleepers.h"
#include "nic/step.h"
#include "nic/token.h"
#include "os/run.h"
#include "os/wait.h"

enum {
	TURN_ROUNDS = 1024, /* bursts that it takes at once */
	/* Much shorter than a peer's retries take together. */
	LEFT_MAX_NS = 100 * 1000 * 1000,
};

static void turn_begins(struct nic *nic, const struct step *step)
{
	if (step)
		busy_mark(nic, true);
}

static void turn_work(struct nic *nic, struct step *step, bool flush_acks)
{
	turn_begins(nic, step);
	if (!step) {
		progress_run(nic, flush_acks, os_now(nic->os));
		return;
	}
	handoff_leave(&nic->engine);
	progress_run_step(nic, step, flush_acks, os_now(nic->os));
}

/* For how long, in ns, is the NIC left to threads of the program? 0: not at all.
 *
 * One that polls may stop at any time. One that sleeps wakes us when it leaves, so it is
 * looked at more and more seldom. But the kernel lets signals in while it sleeps: a
 * handler may take long, or never come back (siglongjmp()). A packet that is still in a
 * socket was not come for, so none of those that sleep counts until one begins or ends
 * that anew; were it on its way just now, it ends that in a moment. */
static uint64_t left_to_program(struct nic *nic, struct left *last,
				uint64_t now_ns)
{
	const uint32_t blocks = __atomic_load_n(&nic->sleepers.blocks,
						__ATOMIC_RELAXED);
	uint64_t left = POLLED_RECENTLY_NS;

	if (!progress_looked_after(nic, now_ns))
		return 0;
	if (!progress_polled(nic, now_ns) &&
	    blocks == __atomic_load_n(&last->blocks, __ATOMIC_RELAXED)) {
		if (os_has_packet(nic->os)) {
			__atomic_store_n(&nic->sleepers.lapsed, blocks,
					 __ATOMIC_RELAXED);
			return 0;
		}
		left = 2 * __atomic_load_n(&last->ns, __ATOMIC_RELAXED);
		left = MIN(left, LEFT_MAX_NS);
	}
	__atomic_store_n(&last->blocks, blocks, __ATOMIC_RELAXED);
	__atomic_store_n(&last->ns, left, __ATOMIC_RELAXED);
	return left;
}

uint64_t turn_run(struct nic *nic, struct step *step, enum os_wait_for *what)
{
	uint64_t now = os_now(nic->os), deadline;
	const uint64_t left = left_to_program(nic, &nic->bg.left[!step], now);
	int empty = 0, rounds = 0;

	if (left) {
		*what = OS_WAIT_TIMER;
		if (progress_due(nic))
			turn_work(nic, step, false);
		deadline = __atomic_load_n(&nic->deadline, __ATOMIC_RELAXED);
		return MIN(now + left,
			   sat_add(MAX(now, deadline), POLLED_RECENTLY_NS));
	}
	/* a socket that is never empty keeps it from nothing else */
	while (empty < 2 && rounds++ < TURN_ROUNDS) {
		now = os_now(nic->os);
		turn_begins(nic, step);
		if (token_held(
			    __atomic_load_n(&nic->rx.token, __ATOMIC_RELAXED),
			    now)) {
			*what = OS_WAIT_TIMER;
			if (progress_due(nic))
				turn_work(nic, step, false);
			return now + POLLED_RECENTLY_NS;
		}
		if (progress_receive(nic, &now)) {
			empty = 0;
			if (progress_due(nic))
				turn_work(nic, step, false);
		} else {
			empty++;
		}
	}
	errors_take(nic);
	turn_work(nic, step, true);
	*what = OS_WAIT_PACKETS;
	deadline = __atomic_load_n(&nic->deadline, __ATOMIC_RELAXED);
	if (!handoff_left(&nic->engine))
		return deadline;
	if (!(nic->cfg.strategies & STRATEGY_BIT(STRATEGY_BLOCK)))
		return now;
	/* the thread that has the engine may sleep in a fault: spinning does not wake it */
	*what = OS_WAIT_TIMER;
	return now + POLLED_RECENTLY_NS;
}

/* Is what we rely on until then still so? A thread that began or ended a sleep since, and
 * whoever set a timer, saw no sleep of ours to end (due.c). */
static bool left_still(const struct nic *nic, uint64_t until)
{
	const uint64_t now = os_now(nic->os);
	const uint64_t deadline = __atomic_load_n(&nic->deadline,
						  __ATOMIC_SEQ_CST);

	return until <= now + POLLED_RECENTLY_NS ||
	       (progress_looked_after(nic, now) &&
		until <= sat_add(deadline, POLLED_RECENTLY_NS) &&
		__atomic_load_n(&nic->sleepers.blocks, __ATOMIC_SEQ_CST) ==
			__atomic_load_n(&nic->bg.left[0].blocks,
					__ATOMIC_RELAXED));
}

void turn_sleep(struct nic *nic, uint64_t until, enum os_wait_for what)
{
	until = MIN(until, os_now(nic->os) + SLEEP_MAX_NS);
	/* Either we see a deadline that was set meanwhile, or whoever sets it
	 * sees until when we sleep, and kicks. */
	__atomic_store_n(&nic->bg.until, until, __ATOMIC_SEQ_CST);
	if (what == OS_WAIT_PACKETS &&
	    __atomic_load_n(&nic->deadline, __ATOMIC_SEQ_CST) < until)
		return;
	if (what == OS_WAIT_TIMER && !left_still(nic, until))
		return;
	os_wait(nic->os, what, until, -1);
	progress_closed(nic);
}
