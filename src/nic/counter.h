/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counter.h: event counters, and what waits for them. */
#ifndef NOPIN_NIC_COUNTER_H
#define NOPIN_NIC_COUNTER_H

#include "base/base.h"

struct eventcount;
struct nic_counter;

/** counter_raised() - Engine lock held: wake who waits for its value. */
void counter_raised(struct eventcount *e);

/** counter_raise() - Engine lock held: as if a peer had, and all that follows. */
void counter_raise(struct nic_counter *c);

#endif
