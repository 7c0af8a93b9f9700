/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closed.c: it is noted by the thread that meets it: a receive or a send that fails, or a
 * sleep that ends. */
#include "nic/closed.h"
#include "nic/handoff.h"
#include "os/wait.h"

void closed_note(struct nic *nic)
{
	if (__atomic_exchange_n(&nic->closed, true, __ATOMIC_RELAXED))
		return;
	handoff_leave(&nic->engine);
	os_kick(nic->os);
}
