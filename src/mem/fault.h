/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.h: a fault, from its first miss to its end. */
#ifndef NOPIN_MEM_FAULT_H
#define NOPIN_MEM_FAULT_H

#include "base/account.h"

#include <stdbool.h>

struct mem;
struct mr;
struct waiter;

/*
 * waiter.fault. OPEN: begun, no pager has answered; left by fault_answered().
 * Both end in NO, by fault_end() or fault_give_up().
 */
enum fault_state { FAULT_NO, FAULT_OPEN, FAULT_ANSWERED };

void fault_begin(struct mem *m, struct waiter *w, uint32_t key, bool merged,
		 bool replaced, uint64_t now_ns);
void fault_answered(struct mem *m, struct waiter *w, enum account_item what,
		    uint64_t service_ns);
void fault_end(struct mem *m, struct waiter *w, uint64_t now_ns);
void fault_give_up(struct mem *m, struct waiter *w);
void fault_cheap(struct mem *m, struct waiter *w, const struct mr *mr,
		 unsigned inlined, unsigned dropped);
void fault_cheap_end(struct mem *m, struct account **owner, const struct mr *mr,
		     uint64_t ns);
void mr_account_gone(struct mem *m, struct mr *mr);

#endif
