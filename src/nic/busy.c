/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* busy.c: since when the background thread does one thing, for standby.c. */
#include "nic/busy.h"
#include "nic/device.h"
#include "os/run.h"
#include "os/wait.h"

void busy_mark(struct nic *nic, bool works)
{
	uint64_t since = works ? os_now(nic->os) : 0;

	/* Pairs with the order in doze(): either it sees that we work, or we see
	 * that it sleeps. */
	__atomic_store_n(&nic->bg.busy, since, __ATOMIC_SEQ_CST);
	if (works &&
	    __atomic_load_n(&nic->bg.standby_asleep, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&nic->bg.standby_asleep, false,
				 __ATOMIC_RELAXED);
		os_event_set(nic->bg.standby_fd);
	}
}

void busy_call(struct nic *nic)
{
	/* busy since long ago */
	__atomic_store_n(&nic->bg.busy, 1, __ATOMIC_SEQ_CST);
	os_event_set(nic->bg.standby_fd);
}

uint64_t busy_since(const struct nic *nic)
{
	return __atomic_load_n(&nic->bg.busy, __ATOMIC_SEQ_CST);
}
