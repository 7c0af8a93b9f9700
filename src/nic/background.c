/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* background.c: the thread of the NIC that works when no thread of the program does. */
#include "nic/background.h"
#include "nic/arbiter.h"
#include "nic/busy.h"
#include "nic/ctl.h"
#include "nic/device.h"
#include "nic/follow.h"
#include "nic/holder.h"
#include "nic/standby.h"
#include "nic/step.h"
#include "nic/turn.h"
#include "os/run.h"
#include "os/wait.h"

static void background(void *arg)
{
	struct nic *nic = arg;

	while (!__atomic_load_n(&nic->bg.stop, __ATOMIC_ACQUIRE)) {
		enum os_wait_for what;
		uint64_t until;

		until = turn_run(nic, &nic->steps.v[BACKGROUND_STEP], &what);
		busy_mark(nic, false);
		until = arbiter_turn(nic, until);
		until = roce_turn(nic, until);
		until = net_turn(nic, until);
		turn_sleep(nic, until, what);
		ctl_serve(nic);
	}
}

int background_start(struct nic *nic)
{
	int err;

	if (nic->cfg.manual)
		return 0;
	err = standby_start(nic);
	if (err)
		return err;
	err = os_thread_start(nic->os, &nic->bg.thread, "nopin-bg", background,
			      nic);
	if (err)
		background_stop(nic);
	return err;
}

void background_stop(struct nic *nic)
{
	__atomic_store_n(&nic->bg.stop, true, __ATOMIC_RELEASE);
	if (nic->bg.thread) {
		os_kick(nic->os);
		os_thread_join(nic->bg.thread);
		nic->bg.thread = NULL;
	}
	standby_stop(nic);
}
