/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* due.c: when anything is to be done next, for the threads that sleep or poll. */
#include "nic/due.h"
#include "nic/device.h"
#include "os/wait.h"

/* The background thread is to be awake by @at_ns. */
static void due_by(struct nic *nic, uint64_t at_ns, uint64_t now_ns)
{
	const uint64_t until = __atomic_load_n(&nic->bg.until,
					       __ATOMIC_SEQ_CST);

	/* While a thread polls it looks every 200 us anyway: no kick for that. */
	if (at_ns >= until || until <= now_ns + POLLED_RECENTLY_NS)
		return;
	__atomic_store_n(&nic->bg.until, at_ns, __ATOMIC_SEQ_CST);
	os_kick(nic->os);
}

void due_set(struct nic *nic, uint64_t at_ns, uint64_t now_ns)
{
	__atomic_store_n(&nic->deadline, at_ns, __ATOMIC_SEQ_CST);
	due_by(nic, at_ns, now_ns);
}

void due_left(struct nic *nic, uint64_t now_ns)
{
	due_by(nic, now_ns, now_ns);
}
