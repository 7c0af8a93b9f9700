/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* state.h: a NIC's memory, all of it. */
#ifndef NOPIN_MEM_STATE_H
#define NOPIN_MEM_STATE_H

#include "base/account.h"
#include "base/counters.h"
#include "base/list.h"
#include "mem/cheap.h"
#include "mem/doubts.h"
#include "mem/eventcounts.h"
#include "mem/key_table.h"
#include "mem/mem.h"
#include "mem/regions.h"
#include "mem/share.h"
#include "mem/slots.h"
#include "mem/table.h"
#include "mem/tickets.h"
#include "mem/watch.h"

/**
 * struct mem - @holds: not yet released, all regions together.
 * @moving:	struct holds with holds
 * @moving_wait, @moved: waiters for such; for some that ended since
 * @suspend_wait: waiters for regions to be resumed; then they are @moved
 * @user_only:	a bit for each hash of a stretch of memory (user_only.c)
 */
struct mem {
	struct mem_config cfg;
	struct counters *cnt;
	struct key_table keys;
	struct eventcounts counts;
	struct regions mrs;
	struct pds pds;
	struct spt spt;
	struct watch watch;
	struct cheap cheap, plain;
	struct tickets tickets;
	struct share own; /* of the NIC itself */
	struct pool pool;
	unsigned inline_budget;
	uint64_t holds;
	struct list moving, moving_wait, moved, suspend_wait;
	struct {
		struct account all, no_owner, no_mr;
	} account;
	struct doubts doubts;
	uint64_t user_only[16];
};

#endif
