/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usage.h: faults and sleeps of the threads that run the engine, if they are accounted. */
#ifndef NOPIN_NIC_USAGE_H
#define NOPIN_NIC_USAGE_H

#include "base/counters.h"
#include "nic/device.h"
#include "os/copy.h"

/** accounted() - Are faults to be counted as @whose, engine_majflt or own_majflt? */
static inline bool accounted(const struct nic *nic, enum counter whose)
{
	return whose == CNT_own_majflt ? nic->cfg.account_own
				       : nic->cfg.account;
}

/**
 * usage_begin(), usage_end() - Count major faults between the two as @whose, and minor
 * ones of moves as engine_minflt, if they are accounted.
 * @slept:	NULL, or set to whether the thread did
 * Return: how many major ones.
 */
struct os_usage usage_begin(const struct nic *nic, enum counter whose);
uint64_t usage_end(struct nic *nic, enum counter whose, struct os_usage before,
		   bool *slept);

#endif
