/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* standby.c: the thread that stands in for the background thread while that is blocked in
 * a move, because a page was not there against all expectation, or in a fault
 * of its own, as while the program forks (design D7: one thread and one QP,
 * not the NIC).
 *
 * Theory of operation. The background thread says when it begins to work and
 * when it ends. While it works now and then, a second thread looks every
 * TICK_NS; if it has been at the same thing for STUCK_NS the second thread takes
 * turns until it is back; at once if the background thread says that it is about
 * to do something else (busy_call()). When nothing happened for QUIET_TICKS it sleeps until
 * the background thread works again and wakes it, so an idle NIC costs nothing.
 */
#include "nic/standby.h"
#include "base/check.h"
#include "nic/busy.h"
#include "nic/device.h"
#include "nic/follow.h"
#include "nic/progress.h"
#include "nic/step.h"
#include "nic/turn.h"
#include "os/run.h"
#include "os/wait.h"

enum {
	TICK_NS = 300 * 1000,
	STUCK_NS = 500 * 1000, /* more than WORK_ROUNDS steps take */
	QUIET_TICKS = 50,
};

static bool stopping(const struct nic *nic)
{
	return __atomic_load_n(&nic->bg.stop, __ATOMIC_ACQUIRE);
}

/* Its sleeps are short, so nobody kicks it: what is due wakes the background thread, which
 * may be back and asleep by then. */
static void stand_in(struct nic *nic, uint64_t since)
{
	while (busy_since(nic) == since && !stopping(nic)) {
		enum os_wait_for what;
		uint64_t until = turn_run(nic, NULL, &what);

		until = net_turn(nic, until);
		/* It may come back without a kick for us. */
		os_wait(nic->os, what, MIN(until, os_now(nic->os) + TICK_NS),
			-1);
		progress_closed(nic);
	}
	/* a kick that was for it may have ended a sleep of ours */
	os_kick(nic->os);
}

static void doze(struct nic *nic, bool quiet)
{
	uint64_t until = os_now(nic->os) + TICK_NS;

	if (quiet) {
		__atomic_store_n(&nic->bg.standby_asleep, true,
				 __ATOMIC_SEQ_CST);
		if (!busy_since(nic) && !stopping(nic))
			until += SLEEP_MAX_NS;
	}
	os_doze(nic->os, nic->bg.standby_fd, until);
	__atomic_store_n(&nic->bg.standby_asleep, false, __ATOMIC_RELAXED);
}

static void standby(void *arg)
{
	unsigned quiet = 0;
	struct nic *nic = arg;

	while (!stopping(nic)) {
		uint64_t since = busy_since(nic);

		if (since && os_now(nic->os) > since + STUCK_NS)
			stand_in(nic, since);
		quiet = since ? 0 : quiet + 1;
		doze(nic, quiet > QUIET_TICKS);
	}
}

int standby_start(struct nic *nic)
{
	int err;

	nic->bg.standby_fd = os_event_own();
	if (nic->bg.standby_fd < 0)
		return nic->bg.standby_fd;
	err = os_thread_start(nic->os, &nic->bg.standby, "nopin-standby",
			      standby, nic);
	if (err)
		os_event_close(nic->bg.standby_fd);
	return err;
}

void standby_stop(struct nic *nic)
{
	if (!nic->bg.standby)
		return;
	os_event_set(nic->bg.standby_fd);
	os_thread_join(nic->bg.standby);
	nic->bg.standby = NULL;
	os_event_close(nic->bg.standby_fd);
}
