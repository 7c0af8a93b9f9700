/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* account.h: what faults cost the NIC, each QP and each region. */
#ifndef NOPIN_MEM_ACCOUNT_H
#define NOPIN_MEM_ACCOUNT_H

#include "base/account.h"
#include "base/strategy.h"

#include <stdbool.h>

struct mem;
struct mr_attr;
struct waiter;

/**
 * mem_account() - Count @n of @i for the NIC, for an owner, and for the region of @key (0:
 * none).
 * @owner:	where it has its account, which is made if there is none; or NULL
 */
void mem_account(struct mem *m, struct account **owner, uint32_t key,
		 enum account_item i, uint64_t n);

/** mem_account_answer() - Count that @s answered the fault that @w waits for. */
void mem_account_answer(struct mem *m, const struct waiter *w, enum strategy s);

/**
 * waiter_fault_ns() - Estimate how long the fault that @w waits for takes: as others
 * of its region did, or as long as it has taken already. 0: unknown.
 */
uint64_t waiter_fault_ns(struct mem *m, const struct waiter *w,
			 uint64_t now_ns);

/** waiter_met() - Take the faults of @w that are over since this was called last. */
struct met waiter_met(struct waiter *w);

/**
 * mem_account_gone() - Add the account of an owner that ceases to exist to that of no
 * owner, and free it. No waiter names @owner.
 */
void mem_account_gone(struct mem *m, struct account **owner);

/**
 * mem_account_copy() - Copy the account of the NIC, and the parts of it that no owner,
 * and no region, that exists answers for.
 */
void mem_account_copy(const struct mem *m, struct account *all,
		      struct account *no_owner, struct account *no_mr);

/**
 * mr_account_next() - Find the next region, with its account. Bounded work.
 * @at:		0 to begin with; moves on
 * @key:	0: none was found yet; go on. Only @out is set then, to nothing
 * Return: false: there are no more.
 */
bool mr_account_next(const struct mem *m, uint32_t *at, uint32_t *key,
		     struct mr_attr *attr, struct account *out);

#endif
