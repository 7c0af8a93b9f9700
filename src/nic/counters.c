/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counters.c: a copy of the counters, for the API edge and the control socket. */
#include "base/counters.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/nic.h"
#include "nic/progress.h"

void nic_counters(struct nic *nic, struct counters *out)
{
	*out = (struct counters){{0}};
	if (nic_child(nic))
		return;
	nic_lock(nic);
	counters_copy(out, &nic->cnt);
	nic_unlock(nic);
}
