/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usage.c: what a step met: faults of its thread, and whether it slept. */
#include "nic/usage.h"
#include "base/counters.h"
#include "nic/device.h"
#include "os/copy.h"

struct os_usage usage_begin(const struct nic *nic, enum counter whose)
{
	return accounted(nic, whose) ? os_usage()
				     : (struct os_usage){.majflt = 0};
}

uint64_t usage_end(struct nic *nic, enum counter whose, struct os_usage before,
		   bool *slept)
{
	const struct os_usage now = usage_begin(nic, whose);
	const uint64_t minor = now.minflt - before.minflt,
		       major = now.majflt - before.majflt;

	if (major)
		count_atomic(&nic->cnt, whose, major);
	if (minor && whose == CNT_engine_majflt)
		count_atomic(&nic->cnt, CNT_engine_minflt, minor);
	if (slept)
		*slept = now.sleeps != before.sleeps;
	return major;
}
