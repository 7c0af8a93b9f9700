/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.h: protection domains and regions. */
#ifndef NOPIN_MEM_MR_H
#define NOPIN_MEM_MR_H

#include "base/strategy.h"
#include "base/verdict.h"

#include <stdbool.h>

struct mem;
struct upcalls;

/* Access rights; the numbers are those of enum ibv_access_flags. */
enum access {
	ACCESS_LOCAL_WRITE = 1 << 0,
	ACCESS_REMOTE_WRITE = 1 << 1,
	ACCESS_REMOTE_READ = 1 << 2,
	ACCESS_REMOTE_ATOMIC = 1 << 3,
	ACCESS_MW_BIND = 1 << 4,
	ACCESS_ZERO_BASED = 1 << 5,
	ACCESS_ON_DEMAND = 1 << 6,
	ACCESS_RELAXED_ORDERING = 1 << 20,
};

/** pd_alloc() - Make a PD without users. Return: its number > 0, or -ENOMEM. */
int pd_alloc(struct mem *m);
/** pd_get() - Count one user more of a PD: a region, a window, a QP or an event counter. */
void pd_get(struct mem *m, uint32_t pd);
/** pd_put() - Count one user less. */
void pd_put(struct mem *m, uint32_t pd);
/** pd_dealloc() - Give the number of a PD back. Return: 0, or -EBUSY while it has users. */
int pd_dealloc(struct mem *m, uint32_t pd);

enum { MR_MAX = 261120, MR_WEIGHT_MAX = 1000, MR_WATCHED_MAX = 4096 };

/**
 * struct mr_attr - A region: [addr, addr + length) reachable at @iova.
 * @fault:	what answers its missing pages; NONE: as the QP or the NIC says
 * @minimum:	entries of the shadow page table that are not replaced if that is
 *		possible, while it has no more of them
 * @weight:	between two old entries the one of less goes, 1..MR_WEIGHT_MAX; 0: 1
 * @upcalls:	queue that is told what becomes of its pages, or NULL
 * @cookie:	comes back with what is told
 */
struct mr_attr {
	uint32_t pd;
	uint64_t addr, iova, length;
	uint32_t access;
	enum strategy fault;
	uint32_t minimum, weight;
	struct upcalls *upcalls;
	void *cookie;
};

/**
 * mr_register() - Register a region; O(1), without minimum, weight and upcalls; touches and
 * checks no page. addr NULL and length UINT64_MAX is the implicit region (iova == address,
 * everything).
 * Return: 0 with @key (L_Key == R_Key); -EINVAL: the range wraps, remote write
 * or atomic without local write, unknown access bits, a weight above its limit;
 * -ENOMEM: there are MR_MAX regions, or with minimum, weight or upcalls
 * MR_WATCHED_MAX such regions, or no memory for another; -ENOSPC: all minimums
 * together would be more than half of the table.
 */
int mr_register(struct mem *m, const struct mr_attr *attr, uint32_t *key);

/**
 * mr_replace() - Register a region as mr_register() does, in place of @old (any; 0: of
 * none), which is about to be freed: its minimum, weight and upcalls are no more, and make
 * room for the new one's. If that is refused, @old is as it was.
 */
int mr_replace(struct mem *m, uint32_t old, const struct mr_attr *attr,
	       uint32_t *key);

/**
 * mr_change() - Give a region that can be accessed another PD and other rights. Its
 * keys stay; what it is of @attr otherwise, too. Accesses from now on are checked
 * by these.
 * Return: 0; -ENOENT: there is none; -EINVAL: rights that make no sense; -EBUSY
 * while moves hold it, which were let in by the old ones.
 */
int mr_change(struct mem *m, uint32_t key, uint32_t pd, uint32_t access);

/**
 * mr_set_fault() - Choose the strategy for missing pages of a region, for accesses from now
 * on. Return: 0, or -ENOENT.
 */
int mr_set_fault(struct mem *m, uint32_t key, enum strategy fault);

/**
 * mr_query() - Tell the attributes of a region, also of one that is revoked but not yet
 * freed. Return: 0, or -ENOENT.
 */
int mr_query(struct mem *m, uint32_t key, struct mr_attr *attr);

/**
 * mr_revoke() - Make a region unreachable from now on, for local and remote users. It still
 * exists until mr_free() finds no move that holds it.
 * Return: 0, or -ENOENT.
 */
int mr_revoke(struct mem *m, uint32_t key);

/**
 * mr_free() - Free a region, which is revoked first if need be; its PD loses a user.
 * Return: 0; -ENOENT; or -EBUSY while moves hold the region, which is revoked then.
 */
int mr_free(struct mem *m, uint32_t key);

/**
 * mr_invalidate() - Revoke a region as SEND_WITH_INV or LOCAL_INV of a QP in @pd asks.
 * Return: V_OK; V_PROT: @pd has no region of @key that can be accessed.
 */
enum verdict mr_invalidate(struct mem *m, uint32_t pd, uint32_t key);

/**
 * mr_idle() - True if no move holds the region of @key, also if there is none (any more).
 * Of a revoked or invalidated region it stays true.
 */
bool mr_idle(struct mem *m, uint32_t key);

#endif
