/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* turn.c: one turn of the background thread, or of the thread that stands in for it.
 * It sleeps on the sockets; while a thread of the program polls it sleeps on a timer
 * instead, so that packets do not wake it for nothing.
 */
#include "nic/turn.h"
#include "base/check.h"
#include "base/strategy.h"
#include "nic/busy.h"
#include "nic/device.h"
#include "nic/due.h"
#include "nic/errors.h"
#include "nic/handoff.h"
#include "nic/progress.h"
#include "nic/step.h"
#include "nic/token.h"
#include "os/run.h"
#include "os/wait.h"

enum { TURN_ROUNDS = 1024 }; /* bursts that it takes at once */

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

uint64_t turn_run(struct nic *nic, struct step *step, enum os_wait_for *what)
{
	uint64_t now = os_now(nic->os), deadline;
	int empty = 0, rounds = 0;

	if (progress_looked_after(nic, now)) {
		*what = OS_WAIT_TIMER;
		if (progress_due(nic))
			turn_work(nic, step, false);
		return now + POLLED_RECENTLY_NS;
	}
	/* a socket that is never empty keeps it from nothing else */
	while (empty < 2 && rounds++ < TURN_ROUNDS) {
		now = os_now(nic->os);
		turn_begins(nic, step);
		if (token_held(__atomic_load_n(&nic->token, __ATOMIC_RELAXED),
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
	/* whoever has the engine may sleep in a fault: spinning wakes nobody */
	*what = OS_WAIT_TIMER;
	return now + POLLED_RECENTLY_NS;
}

void turn_sleep(struct nic *nic, uint64_t until, enum os_wait_for what)
{
	until = MIN(until, os_now(nic->os) + SLEEP_MAX_NS);
	/* Either we see a deadline that was set meanwhile, or whoever sets it
	 * sees until when we sleep, and kicks. */
	__atomic_store_n(&nic->bg_until, until, __ATOMIC_SEQ_CST);
	if (what == OS_WAIT_PACKETS &&
	    __atomic_load_n(&nic->deadline, __ATOMIC_SEQ_CST) < until)
		return;
	os_wait(nic->os, what, until, -1);
	progress_closed(nic);
}
