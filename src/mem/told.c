/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* told.c: ranges of the shadow page table: what the host tells of pages, and what is
 * forgotten of them. The theory is at the head of spt.c.
 */
#include "base/check.h"
#include "base/page.h"
#include "base/range.h"
#include "mem/ageing.h"
#include "mem/change.h"
#include "mem/cheap.h"
#include "mem/entry.h"
#include "mem/limits.h"
#include "mem/regions.h"
#include "mem/spt.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/tickets.h"
#include "mem/upcall.h"
#include "mem/watch.h"

#include <errno.h>
#include <string.h>

/* What to do with an entry of a range. Return: true to stop. */
typedef bool (*entry_fn)(struct spt *s, uint64_t *e);

/* At most as much work as the table is large, however long the range is. */
static bool spt_walk(struct spt *s, uint64_t vpn, uint64_t pages, entry_fn fn)
{
	uint64_t num = s->sets.used * SPT_WAYS, *e;

	if (pages < num) {
		for (uint64_t i = 0; i < pages; i++) {
			e = spt_find(s, vpn + i);
			if (e && fn(s, e))
				return true;
		}
		return false;
	}
	for (uint64_t i = 0; i < num; i++)
		if (s->e[i] &&
		    range_ok(vpn_of(s, s->e[i], i / SPT_WAYS) - vpn, 1,
			     pages) &&
		    fn(s, &s->e[i]))
			return true;
	return false;
}

static bool entry_held(struct spt *s, uint64_t *e)
{
	return e_held(s, *e);
}

static bool entry_absent(struct spt *s, uint64_t *e)
{
	entry_tell(s, e, UPCALL_EVICTED);
	return false;
}

static bool entry_known(struct spt *s, uint64_t *e)
{
	(void)e;
	mem_of(s)->watch.counted++;
	return false;
}

static bool entry_drop(struct spt *s, uint64_t *e)
{
	if (!e_held(s, *e)) {
		entry_end(s, e, UPCALL_EVICTED);
		return false;
	}
	entry_tell(s, e, UPCALL_EVICTED);
	*e = e_make(*e & TAG_MASK, e_aux(*e), SPT_ABSENT);
	return false;
}

static bool entry_protect(struct spt *s, uint64_t *e)
{
	(void)s;
	if (e_state(*e) == SPT_AHEAD)
		*e &= ~(AHEAD_WRITABLE << AUX_SHIFT);
	else if (e_state(*e) == SPT_WRITABLE)
		*e = e_make(*e & TAG_MASK, e_aux(*e), SPT_READABLE);
	return false;
}

static bool entry_writable(uint64_t e)
{
	return e_state(e) == SPT_AHEAD ? e_aux(e) & AHEAD_WRITABLE
				       : e_state(e) == SPT_WRITABLE;
}

static bool entry_protect_tell(struct spt *s, uint64_t *e)
{
	if (entry_writable(*e))
		entry_tell(s, e, UPCALL_PROTECTED);
	return entry_protect(s, e);
}

/* Replaced pages that now really are gone must not count as table misses. */
static void victim_forget(struct spt *s, uint64_t vpn, uint64_t pages)
{
	if (pages >= SPT_VICTIMS)
		memset(s->victim, 0, sizeof(s->victim));
	else
		for (uint64_t i = 0; i < pages; i++)
			(void)spt_was_replaced(s, vpn + i);
}

/**
 * spt_forget() - Drop what is known of a range, cheap ranges included.
 * @m:		the NIC's memory
 * @vpn, @pages: the range
 */
void spt_forget(struct mem *m, uint64_t vpn, uint64_t pages)
{
	m->spt.gen++;
	spt_walk(&m->spt, vpn, pages, entry_drop);
	victim_forget(&m->spt, vpn, pages);
	cheap_forget(&m->cheap, vpn, vpn + pages);
	cheap_forget(&m->plain, vpn, vpn + pages);
}

/**
 * spt_renew() - Forget what is known of its pages for a region that is made, moved or
 * resumed. The host does not say when memory that is not registered is mapped anew, so
 * that may be about others. The table is not walked: the region remembers the tick, up
 * to which stamps do not count for it, and if there are such stamps already the table
 * goes on with the next one. More than AHEAD_RENEW regions within a tick, each after a
 * touch, trust what was touched in that tick.
 * @m:		the NIC's memory
 * @vpn, @pages: of the region
 *
 * Return: key_row.since.
 */
int64_t spt_renew(struct mem *m, uint64_t vpn, uint64_t pages)
{
	struct spt *s = &m->spt;

	if (s->exact)
		return -1;
	if (s->time.stamped == s->time.tick &&
	    s->time.tick - s->time.now_tick < AHEAD_RENEW)
		s->time.tick++;
	pages = pages_clip(vpn, pages);
	cheap_forget(&m->cheap, vpn, vpn + pages);
	cheap_forget(&m->plain, vpn, vpn + pages);
	ticket_renew(m, vpn, pages, s->time.tick - 1);
	s->time.renewed = (int64_t)s->time.tick - 1;
	return s->time.renewed;
}

/**
 * spt_map() - See spt.h.
 * @m:		the NIC's memory
 * @vpn, @pages: which; of more than the table can hold the last are noted
 * @writable:	and writable; false does not take that right away
 * @now_ns:	when they were seen
 */
void spt_map(struct mem *m, uint64_t vpn, uint64_t pages, bool writable,
	     uint64_t now_ns)
{
	uint64_t num = m->spt.sets.used * SPT_WAYS;
	uint64_t end;

	spt_tick(&m->spt, now_ns);
	pages = pages_clip(vpn, pages);
	end = vpn + pages;
	for (vpn = end - MIN(pages, num); vpn < end; vpn++)
		spt_install(m, vpn, writable, m->spt.time.renewed,
			    m->spt.time.tick);
}

/**
 * spt_map_ahead() - See spt.h.
 * @m:		the NIC's memory
 * @vpn, @pages, @writable, @now_ns: as in spt_map()
 * @fresh_ns:	pages that are known since are just known for longer
 * @key:	of the region
 */
void spt_map_ahead(struct mem *m, uint64_t vpn, uint64_t pages, bool writable,
		   uint64_t now_ns, uint64_t fresh_ns, uint32_t key)
{
	struct spt_view v;

	spt_tick(&m->spt, now_ns);
	v = spt_view(&m->spt, now_ns, fresh_ns, -1);
	pages = pages_clip(vpn, pages);
	for (uint64_t p = vpn; p < vpn + pages; p++) {
		if (spt_ahead(&m->spt, &v, p, writable))
			continue;
		if (spt_age(&m->spt, &v, p, writable) >= 0)
			spt_install(m, p, writable, m->spt.time.renewed,
				    m->spt.time.tick);
		else
			spt_install_ahead(m, p, writable, m->spt.time.tick,
					  key);
	}
}

/**
 * spt_unmap() - See spt.h.
 * @m:		the NIC's memory
 * @vpn, @pages: which
 */
int spt_unmap(struct mem *m, uint64_t vpn, uint64_t pages)
{
	pages = pages_clip(vpn, pages);
	if (spt_held(m, vpn, pages))
		return -EBUSY;
	spt_forget(m, vpn, pages);
	ticket_outdate(m, vpn, pages);
	return 0;
}

/**
 * spt_protect() - See spt.h.
 * @m:		the NIC's memory
 * @vpn, @pages: which
 */
int spt_protect(struct mem *m, uint64_t vpn, uint64_t pages)
{
	pages = pages_clip(vpn, pages);
	if (spt_held(m, vpn, pages))
		return -EBUSY;
	m->spt.gen++;
	spt_walk(&m->spt, vpn, pages, entry_protect_tell);
	cheap_forget(&m->cheap, vpn, vpn + pages);
	cheap_forget(&m->plain, vpn, vpn + pages);
	ticket_protect(m, vpn, pages);
	return 0;
}

/**
 * spt_protect_all() - See spt.h. O(1) in the table but for exact hosts, and for more than
 * AHEAD_MAX forks within a tick.
 * @m:		the NIC's memory
 */
void spt_protect_all(struct mem *m)
{
	struct spt *s = &m->spt;

	s->gen++;
	if (!s->exact && s->time.tick - s->time.now_tick < AHEAD_MAX)
		s->time.protect = (int64_t)s->time.tick++;
	else
		spt_walk(s, 0, VPN_END, entry_protect);
	m->cheap.num = 0;
	ticket_protect(m, 0, VPN_END);
	upcall_all(m, UPCALL_PROTECTED);
}

/**
 * spt_absent() - See spt.h. The table is not changed: what the pager found is
 * about to be noted.
 * @m:		the NIC's memory
 * @vpn, @pages: which
 */
void spt_absent(struct mem *m, uint64_t vpn, uint64_t pages)
{
	if (m->watch.num > 0 && !m->spt.exact)
		spt_walk(&m->spt, vpn, pages_clip(vpn, pages), entry_absent);
}

/**
 * spt_known() - Count the pages of these that are in the table.
 * @m:		the NIC's memory
 * @vpn, @pages: which
 */
uint32_t spt_known(struct mem *m, uint64_t vpn, uint64_t pages)
{
	m->watch.counted = 0;
	spt_walk(&m->spt, vpn, pages_clip(vpn, pages), entry_known);
	return m->watch.counted;
}

/**
 * spt_held() - See spt.h.
 * @m:		the NIC's memory
 * @vpn, @pages: which
 */
bool spt_held(struct mem *m, uint64_t vpn, uint64_t pages)
{
	return m->spt.exact &&
	       spt_walk(&m->spt, vpn, pages_clip(vpn, pages), entry_held);
}

/**
 * watch_know() - Count what is known of a region: pages that exact hosts know already are
 * known to it, too.
 * @m:		the NIC's memory
 * @mr:		after watch_add() or watch_renew()
 */
void watch_know(struct mem *m, struct mr *mr)
{
	if (likely(!mr->watched))
		return;
	mr->known = m->spt.exact && mr->minimum > 0
			    ? spt_known(m, page_of(mr->row->addr),
					pages_spanned(mr->row->addr,
						      mr->row->length))
			    : 0;
}
