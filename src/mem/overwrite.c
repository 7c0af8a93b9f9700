/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* overwrite.c: strategy *overwrite*: may the old content of a missing page be
 * dropped, because what comes covers the page as a whole? Then nothing is fetched:
 * the move drops it (os/) and writes into an empty page.
 *
 * Theory of operation
 *
 * A page may be dropped when
 * - the message writes every byte of it, and its first byte is written by this
 *   access, so nothing of the message is in it yet;
 * - nobody may look at it before a completion (receive buffers and destinations of
 *   READ: the accesses by L_Key), or the region said that it may be seen empty;
 * - it is of a mapping where a dropped page is an empty page: private anonymous
 *   memory in small pages, not locked, without userfaultfd (*plain*). Pagers tell
 *   which ranges are. To be wrong about that costs a fetch, never data: dropping a
 *   page of a file changes nothing but who has it mapped.
 * It is dropped by the move, under its hold: a pager could come late, when the
 * region is gone and its memory in use for something else.
 *
 * Where nothing is known of a mapping, tickets of its region are *looks*, until one
 * is answered: the pager only says whether it is plain. If it is not, the access
 * asks for all its pages at once then; one that had been fetched for the look would
 * have to come before the others are asked for.
 */
#include "mem/overwrite.h"
#include "base/check.h"
#include "base/page.h"
#include "base/range.h"
#include "base/strategy.h"
#include "base/timerq.h"
#include "mem/cheap.h"
#include "mem/dma.h"
#include "mem/key_table.h"
#include "mem/regions.h"
#include "mem/state.h"
#include "mem/ticket.h"
#include "mem/tickets.h"
#include "mem/waiter.h"

/* What was learned counts so long; or that nothing could be. */
static const uint64_t plain_ns = 1000000000, early_ns = 10000000;

/**
 * over_pages() - Find the pages that the message writes whole, from the first byte of the
 * access on; those behind the access included.
 * @d:		the access
 * @addr:	its application address
 * @behind:	bytes of the region from @addr on
 */
struct pages over_pages(const struct dma *d, uint64_t addr, uint64_t behind)
{
	uint64_t end = addr + MIN(sat_add(d->len, d->follow), behind);
	struct pages p = {page_of(addr + PAGE_BYTES - 1), page_of(end)};

	if (p.start > p.end)
		p.end = p.start;
	return p;
}

/**
 * over_allowed() - Look whether anything of an access may be dropped.
 * @row:	of its region's key
 * @d:		the access
 * @set:	what may answer its missing pages
 */
bool over_allowed(const struct key_row *row, const struct dma *d,
		  strategies_t set)
{
	return d->write && !d->ready &&
	       set & STRATEGY_BIT(STRATEGY_OVERWRITE) &&
	       (!d->remote || row->fault == STRATEGY_OVERWRITE);
}

/**
 * over_look() - Tell whether the missing page @vpn is plain.
 * @m:		the NIC's memory
 * @mr:		region of the access
 * @vpn:	page
 * @now_ns:	now
 *
 * Return: YES; NO; LOOK: it is not known, so ask.
 */
enum over over_look(const struct mem *m, const struct mr *mr, uint64_t vpn,
		    uint64_t now_ns)
{
	uint64_t fresh = m->cfg.exact || now_ns < plain_ns ? 0
							   : now_ns - plain_ns;

	if (cheap_covers(&m->plain, vpn, fresh))
		return OVER_YES;
	return now_ns <= mr->look_ns ? OVER_NO : OVER_LOOK;
}

/**
 * over_looked() - Note that a pager looked: what is not known to be plain now is not.
 * @m:		the NIC's memory
 * @key:	of the region that asked; it may be gone
 * @early:	the pager could not say yet
 * @now_ns:	now
 */
void over_looked(struct mem *m, uint32_t key, bool early, uint64_t now_ns)
{
	struct mr *mr = mr_live(m, key);

	if (!mr)
		return;
	if (early)
		mr->look_ns = now_ns + early_ns;
	else
		mr->look_ns = m->cfg.exact ? TIME_NEVER : now_ns + plain_ns;
}
