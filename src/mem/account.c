/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* account.c: which waiter met which fault, and how long it took (invariant I6).
 *
 * Theory of operation. A fault begins where an access misses a page (dma.c) and
 * is the waiter's until the access is resolved, misses another page, or is given
 * up: waiters outlive tickets. What a pager said of it is noted when its ticket
 * is answered. A cheap fault is met by a move: it is noted with the hold of that
 * move and ends with it.
 *
 * Everything is counted three times: for the NIC, for the waiter's owner (a QP)
 * and for the region. What no QP or no region that exists answers for is counted
 * for nobody, so that each of the three has the same sums. The account of a QP and of a
 * region is made at its first fault: most have none.
 */
#include "mem/account.h"
#include "base/account.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/strategy.h"
#include "mem/fault.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/regions.h"
#include "mem/state.h"
#include "mem/waiter.h"

/* The account at @place, made if there is none; if @place is NULL, and while there is
 * no memory for one, nobody's. */
static struct account *account_at(struct account **place,
				  struct account *nobodys)
{
	if (!place)
		return nobodys;
	if (!*place)
		*place = heap_alloc_ready(sizeof(**place));
	return *place ? *place : nobodys;
}

/* Add the account of what ceases to exist to nobody's. */
static void account_gone(struct account **place, struct account *nobodys)
{
	if (!*place)
		return;
	account_add(nobodys, *place);
	heap_free(*place);
	*place = NULL;
}

/**
 * struct three - The accounts that something is counted in.
 */
struct three {
	struct account *of[3];
};

static struct three three_of(struct mem *m, struct account **owner,
			     uint32_t key)
{
	struct mr *mr = key ? mr_by_key(m, key) : NULL;

	return (struct three){
		{&m->account.all, account_at(owner, &m->account.no_owner),
		 account_at(mr ? &mr->account : NULL, &m->account.no_mr)}};
}

static void three_count(const struct three *t, enum account_item i, uint64_t n)
{
	for (unsigned k = 0; k < ARRAY_SIZE(t->of); k++)
		t->of[k]->n[i] += n;
}

static void three_delay(const struct three *t, uint64_t ns)
{
	for (unsigned k = 0; k < ARRAY_SIZE(t->of); k++)
		hist_note(&t->of[k]->delay, ns);
}

/**
 * mem_account() - See account.h.
 */
void mem_account(struct mem *m, struct account **owner, uint32_t key,
		 enum account_item i, uint64_t n)
{
	const struct three t = three_of(m, owner, key);

	three_count(&t, i, n);
}

/**
 * mem_account_answer() - See account.h.
 */
void mem_account_answer(struct mem *m, const struct waiter *w, enum strategy s)
{
	const struct three t = three_of(m, w->account, w->key);

	for (unsigned k = 0; k < ARRAY_SIZE(t.of); k++)
		t.of[k]->strategy[s]++;
}

/**
 * fault_end() - End the fault of a waiter, and count how long it took. Its access went on,
 * failed, or met the next missing page.
 * @m:		the NIC's memory
 * @w:		the waiter; nothing happens if it has no fault
 * @now_ns:	now
 */
void fault_end(struct mem *m, struct waiter *w, uint64_t now_ns)
{
	struct three t;
	uint64_t ns;

	if (likely(w->fault == FAULT_NO))
		return;
	ns = now_ns - w->fault_ns;
	t = three_of(m, w->account, w->key);
	three_delay(&t, ns);
	if (w->fault == FAULT_OPEN)
		three_count(&t, ACCT_unanswered, 1);
	met_add(&w->met, (struct met){.ns = MIN(ns, MET_NS_MAX), .faults = 1});
	w->fault = FAULT_NO;
}

/**
 * fault_begin() - Begin a fault of a waiter, after the one before: its access missed a
 * page, and waits for it from now on.
 * @m:		the NIC's memory
 * @w:		the waiter
 * @key:	of the region
 * @merged:	a ticket was out already
 * @replaced:	the table knew of the page once
 * @now_ns:	now
 */
void fault_begin(struct mem *m, struct waiter *w, uint32_t key, bool merged,
		 bool replaced, uint64_t now_ns)
{
	struct three t;

	fault_end(m, w, now_ns);
	w->fault = FAULT_OPEN;
	w->fault_ns = now_ns;
	w->key = key;
	t = three_of(m, w->account, key);
	three_count(&t, ACCT_faults, 1);
	three_count(&t, ACCT_merged, merged);
	three_count(&t, ACCT_table_misses, replaced);
}

/* Kinds of backing differ by orders of magnitude: a few faults tell. */
static void mr_learn(struct mem *m, uint32_t key, uint64_t service_ns)
{
	struct mr *mr = mr_by_key(m, key);

	if (!mr)
		return;
	if (mr->fault_ns)
		service_ns = (3 * (uint64_t)mr->fault_ns + service_ns) / 4;
	mr->fault_ns = (uint32_t)MIN(service_ns, (uint64_t)UINT32_MAX);
}

/**
 * waiter_fault_ns() - See account.h.
 */
uint64_t waiter_fault_ns(struct mem *m, const struct waiter *w, uint64_t now_ns)
{
	const struct mr *mr = mr_by_key(m, w->key);

	return MAX(mr ? mr->fault_ns : 0,
		   w->ticket.v ? waiter_ns(w, now_ns) : 0);
}

/**
 * fault_answered() - Note that a pager answered the fault of a waiter, and count the
 * answer.
 * @m:		the NIC's memory
 * @w:		waited for it; nothing happens unless its fault is FAULT_OPEN
 * @what:	ACCT_minor, ACCT_major or ACCT_access
 * @service_ns:	how long it took the pager
 */
void fault_answered(struct mem *m, struct waiter *w, enum account_item what,
		    uint64_t service_ns)
{
	struct three t;

	if (w->fault != FAULT_OPEN)
		return;
	w->fault = FAULT_ANSWERED;
	mr_learn(m, w->key, service_ns);
	t = three_of(m, w->account, w->key);
	three_count(&t, what, 1);
	for (unsigned k = 0; k < ARRAY_SIZE(t.of); k++)
		hist_note(&t.of[k]->service, service_ns);
}

/**
 * fault_give_up() - End the fault of a waiter that waits no longer.
 * @m:		the NIC's memory
 * @w:		the waiter
 */
void fault_give_up(struct mem *m, struct waiter *w)
{
	struct three t;

	if (likely(w->fault == FAULT_NO))
		return;
	t = three_of(m, w->account, w->key);
	three_count(&t, ACCT_given_up, 1);
	if (w->fault == FAULT_OPEN)
		three_count(&t, ACCT_unanswered, 1);
	w->fault = FAULT_NO;
}

/**
 * fault_cheap() - Count the cheap fault of a move that is about to meet missing pages.
 * @m:		the NIC's memory
 * @w:		waiter of the access, or NULL
 * @mr:		region
 * @inlined, @dropped: how many it takes the fault of, and how many it drops
 */
void fault_cheap(struct mem *m, struct waiter *w, const struct mr *mr,
		 unsigned inlined, unsigned dropped)
{
	const struct three t = three_of(m, w ? w->account : NULL, mr->row->key);

	three_count(&t, ACCT_faults, 1);
	three_count(&t, ACCT_cheap, 1);
	for (unsigned k = 0; k < ARRAY_SIZE(t.of); k++) {
		t.of[k]->strategy[STRATEGY_INLINE] += inlined;
		t.of[k]->strategy[STRATEGY_OVERWRITE] += dropped;
	}
	if (w)
		met_add(&w->met, (struct met){.faults = 1});
}

/**
 * fault_cheap_end() - Count how long the move with cheap faults took.
 * @m:		the NIC's memory
 * @owner:	waiter.account then
 * @mr:		region
 * @ns:		since it was planned
 */
void fault_cheap_end(struct mem *m, struct account **owner, const struct mr *mr,
		     uint64_t ns)
{
	const struct three t = three_of(m, owner, mr->row->key);

	three_delay(&t, ns);
}

/**
 * waiter_met() - See account.h.
 */
struct met waiter_met(struct waiter *w)
{
	const struct met met = w->met;

	w->met = (struct met){.ns = 0};
	return met;
}

/**
 * mem_account_gone() - See account.h.
 */
void mem_account_gone(struct mem *m, struct account **owner)
{
	account_gone(owner, &m->account.no_owner);
}

/**
 * mr_account_gone() - Add the account of a region that ceases to exist to that of no
 * region, and free it.
 * @m:		the NIC's memory
 * @mr:		the region
 */
void mr_account_gone(struct mem *m, struct mr *mr)
{
	account_gone(&mr->account, &m->account.no_mr);
}

/**
 * mem_account_copy() - See account.h.
 */
void mem_account_copy(const struct mem *m, struct account *all,
		      struct account *no_owner, struct account *no_mr)
{
	*all = m->account.all;
	*no_owner = m->account.no_owner;
	*no_mr = m->account.no_mr;
}

/**
 * mr_account_next() - See account.h.
 */
bool mr_account_next(const struct mem *m, uint32_t *at, uint32_t *key,
		     struct mr_attr *attr, struct account *out)
{
	const struct key_table *t = &m->keys;

	for (uint32_t looked = 0; *at < t->fresh; ++*at) {
		const struct key_row *row = key_at(t, *at);
		const bool region = row->state != KEY_FREE &&
				    row->kind == KEY_REGION;

		if (!region && ++looked < KEY_CHUNK)
			continue;
		*key = region ? row->key : 0;
		*out = account_copy(region ? row->mr->account : NULL);
		if (region)
			mr_attr_copy(row->mr, attr);
		++*at;
		return true;
	}
	return false;
}
