/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* due.c: when anything is to be done next, for the threads that sleep or poll. */
#include "nic/due.h"
#include "nic/device.h"
#include "os/wait.h"

void due_set(struct nic *nic, uint64_t at_ns, uint64_t now_ns)
{
	uint64_t until;

	__atomic_store_n(&nic->deadline, at_ns, __ATOMIC_SEQ_CST);
	until = __atomic_load_n(&nic->bg_until, __ATOMIC_SEQ_CST);
	/* While somebody polls it looks every 200 us anyway: no kick for that. */
	if (at_ns >= until || until <= now_ns + POLLED_RECENTLY_NS)
		return;
	__atomic_store_n(&nic->bg_until, at_ns, __ATOMIC_SEQ_CST);
	os_kick(nic->os);
}
