/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* change.c: an entry of the shadow page table changes, ends, or is replaced, and what it
 * said is told (upcall.c). The theory is at the head of spt.c.
 */
#include "mem/change.h"
#include "base/account.h"
#include "base/check.h"
#include "base/counters.h"
#include "mem/account.h"
#include "mem/entry.h"
#include "mem/spare.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/upcall.h"
#include "mem/watch.h"

/*
 * To tell a table miss from a fault we would have to remember every page that
 * was replaced, for which D12 leaves no room. So the last few thousand are
 * remembered, one in a slot, by 15 bits of a hash: a replaced page is
 * forgotten when another falls into its slot, and one page in 2^15 that was
 * never in the table is taken for one that was.
 */
static uint16_t *victim_slot(struct spt *s, uint64_t vpn, uint16_t *print)
{
	uint64_t h = vpn * UINT64_C(0xd6e8feb86659fd93);

	*print = (uint16_t)(h >> 32 | 1);
	return &s->victim[h >> 52 & (SPT_VICTIMS - 1)];
}

static void victim_note(struct spt *s, uint64_t vpn)
{
	uint16_t print, *slot = victim_slot(s, vpn, &print);

	*slot = print;
}

/**
 * spt_was_replaced() - Was the entry of this page replaced lately? Forgets it.
 * @s:		the table
 * @vpn:	a page that is missing
 */
bool spt_was_replaced(struct spt *s, uint64_t vpn)
{
	uint16_t print, *slot = victim_slot(s, vpn, &print);

	if (*slot != print)
		return false;
	*slot = 0;
	return true;
}

void entry_wasted(struct spt *s, uint64_t e)
{
	struct mem *m = mem_of(s);

	if (e_state(e) != SPT_AHEAD)
		return;
	count(m->cnt, CNT_prefetch_waste);
	mem_account(m, NULL, 0, ACCT_prefetch_waste, 1);
}

void entry_set(struct mem *m, uint64_t vpn, uint64_t *e, uint64_t old,
	       uint64_t new)
{
	*e = new;
	if (unlikely(m->watch.num > 0))
		watch_count(m, vpn, old, new);
}

void entry_tell(struct spt *s, const uint64_t *e, enum upcall_reason why)
{
	struct mem *m = mem_of(s);

	if (unlikely(m->watch.num > 0) && e_state(*e) > SPT_ABSENT)
		upcall_page(m, vpn_at(s, e), *e, why);
}

void entry_over(struct spt *s, uint64_t e, uint64_t set, enum upcall_reason why)
{
	struct mem *m = mem_of(s);
	uint64_t vpn;

	entry_wasted(s, e);
	s->live--;
	if (likely(m->watch.num == 0))
		return;
	vpn = vpn_of(s, e, set);
	if (why != UPCALL_NUM && e_state(e) > SPT_ABSENT)
		upcall_page(m, vpn, e, why);
	watch_count(m, vpn, e, 0);
}

void entry_end(struct spt *s, uint64_t *e, enum upcall_reason why)
{
	entry_over(s, *e, set_index(s, e), why);
	*e = 0;
}

void spt_replace(struct mem *m, uint64_t e, uint64_t set)
{
	struct spt *s = &m->spt;

	victim_note(s, vpn_of(s, e, set));
	count(m->cnt, CNT_spt_evictions);
	entry_over(s, e, set, UPCALL_REPLACED);
}
