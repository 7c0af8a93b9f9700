/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spt.c: the shadow page table: what the NIC knows of the host's pages
 * (design D7, D12). ticket.c asks for missing pages, dma.c resolves
 * accesses.
 *
 * Theory of operation
 *
 * A 4-way set-associative table of 8-byte entries, a set being half a cache
 * line. An entry is
 *
 *	state (2 bits) | aux (20 bits) | tag (42 bits)
 *
 * and an entry that is all zero is free. Page number <-> (set, tag) is a
 * bijection, so the page can be computed from an entry's place. Two neighbours
 * share a set and a run of pages uses consecutive sets, which makes runs cheap
 * for the cache; different stretches as long as the table are displaced
 * against each other by a hash.
 *
 * How many sets are in use may change (entries_bound()), one at a time, as in linear
 * hashing: a page has one place in the whole table, its home, and where that is
 * beyond the sets in use, the set that the lower bits of it name. So a set more
 * takes the entries that are at home in it from one other set, and a set less gives
 * its entries to that one, where the oldest of both are replaced. The tag says
 * where home is but for two bits, which are those of the set. A table that may use
 * an eighth touches an eighth of its memory, and is no other than one that was made
 * so small.
 *
 * Ways are kept in the order of last touch (on ageing hosts: to a tick), newest
 * first, so the entry to replace is the last one that may be.
 *
 * A page that was fetched ahead (SPT_AHEAD) is not ready to a quick look: its
 * first use is seen, and others pay nothing for it. Whether it may be written is
 * the lowest bit of aux; on hosts that age, its stamp is a tick older for that, or
 * the same.
 *
 * Exact hosts: aux is a hold count. An entry with holds is not replaced, even
 * if its state is SPT_ABSENT (a page held for a cheap fault, or after
 * dma_fault()). A page without entry is absent.
 *
 * Other hosts: aux is the time of the last touch in ticks of 2^20 ns, rounded
 * down. The table is a guess there, and its pages may vanish at any time: a
 * hold on a page would promise nothing, so only regions are held, and the bits
 * go to the stamp. Stamps wrap after 18 minutes; the sweep, which is driven
 * by time passing and looks at every set once in 2^18 ticks (4.6 minutes),
 * removes entries older than that, and older ones never count. So a
 * wrapped stamp cannot look fresh.
 * spt_protect_all() (every fork) does not walk the table: it remembers the
 * tick, up to which all stamps count as readable only, and goes on with the
 * next one.
 */
#include "mem/spt.h"
#include "base/account.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "mem/account.h"
#include "mem/ageing.h"
#include "mem/change.h"
#include "mem/entry.h"
#include "mem/spare.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/upcall.h"
#include "mem/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t *set_to_front(uint64_t *set, unsigned i)
{
	uint64_t e = set[i];

	for (; i > 0; i--)
		set[i] = set[i - 1];
	set[0] = e;
	return set;
}

/* --- places --------------------------------------------------------------- */

/* The way to use for a new entry: a free one, else the oldest not held. */
static int set_victim(const struct spt *s, const uint64_t *set)
{
	int way = -1;

	for (int i = SPT_WAYS - 1; i >= 0; i--) {
		if (set[i] == 0)
			return i;
		if (way < 0 && !e_held(s, set[i]))
			way = i;
	}
	return way;
}

/* Move the entry @e of a page to the front of its set; if it has none (NULL),
 * make one, absent and unstamped. NULL: everything else in the set is held.
 */
uint64_t *spt_place(struct mem *m, uint64_t vpn, const uint64_t *e)
{
	struct spt *s = &m->spt;
	uint64_t *set = set_of(s, vpn);
	int way;

	if (e)
		return set_to_front(set, (unsigned)(e - set));
	way = set_victim(s, set);
	s->short_of |= way < 0 || set[way] != 0;
	if (way < 0)
		return NULL;
	if (set[way] != 0) {
		if (unlikely(m->watch.num > 0))
			way = spare_pick(m, set, set_index(s, set));
		spt_replace(m, set[way], set_index(s, set));
	}
	s->live++;
	set[way] = tag_of(s, vpn);
	return set_to_front(set, (unsigned)way);
}

/**
 * spt_room() - Could an entry for this page be installed?
 * @s:		the table
 * @vpn:	page
 */
bool spt_room(const struct spt *s, uint64_t vpn)
{
	return spt_find(s, vpn) || set_victim(s, set_of(s, vpn)) >= 0;
}

/* --- installing, touching ------------------------------------------------- */

/* Its entry is made again, for @writable: if it said more the program is told. */
static void redo_ahead(struct mem *m, uint64_t *e, bool writable)
{
	if (unlikely(e && e_state(*e) == SPT_AHEAD))
		entry_end(&m->spt, e,
			  !writable && e_aux(*e) & AHEAD_WRITABLE
				  ? UPCALL_PROTECTED
				  : UPCALL_NUM);
}

/**
 * spt_drop_ahead() - Forget a page that was fetched ahead and that no access will use.
 * @m:		the NIC's memory
 * @vpn:	page; nothing happens if it is any other
 */
void spt_drop_ahead(struct mem *m, uint64_t vpn)
{
	uint64_t *e = spt_find(&m->spt, vpn);

	if (unlikely(e && e_state(*e) == SPT_AHEAD))
		entry_end(&m->spt, e, UPCALL_REPLACED);
}

/**
 * spt_install() - Note that a page was present at @at. Rights it had stay.
 * @m:		the NIC's memory, spt_tick() was called
 * @vpn:	page
 * @writable:	and writable
 * @since:	rights it had up to this tick do not stay
 * @at:		tick, at most spt.time.tick; if more is known since, nothing happens
 * Where the set is full of held entries nothing happens: the page misses.
 */
void spt_install(struct mem *m, uint64_t vpn, bool writable, int64_t since,
		 uint64_t at)
{
	enum spt_state state = writable ? SPT_WRITABLE : SPT_READABLE;
	struct spt *s = &m->spt;
	uint64_t *e = spt_find(s, vpn), old;

	if (unlikely(e && e_state(*e) == SPT_AHEAD)) {
		if (!s->exact && s->time.tick - at > SWEEP_TICKS)
			return;
		redo_ahead(m, e, writable);
		e = NULL;
	}
	/* Within a tick the order of touches does not matter. */
	if (e && !s->exact && e_aux(*e) == (at & AUX_MASK) &&
	    e_state(*e) >= state)
		return;
	/* Something newer is known, or such a stamp would wrap. */
	if (!s->exact && s->time.tick - at > (e ? e_age(s, *e) : SWEEP_TICKS))
		return;
	old = e ? *e : 0;
	/* in front, with its neighbours, it stays where it is */
	if (!e || (uint64_t)(e - s->e) % SPT_WAYS > RUN_MASK)
		e = spt_place(m, vpn, e);
	if (!e)
		return;
	state = MAX(state, e_kept_state(s, *e, since));
	s->time.stamped = MAX(s->time.stamped, at);
	entry_set(m, vpn, e, old,
		  e_make(*e & TAG_MASK, s->exact ? e_aux(*e) : at, state));
}

/**
 * spt_install_ahead() - Note that a page was present at @at, and that no access needs it
 * yet.
 * @m:		the NIC's memory, spt_tick() was called
 * @vpn:	page
 * @writable:	and writable
 * @at:		tick, at most spt.time.tick
 * @key:	of the region for which it was fetched, or 0
 */
void spt_install_ahead(struct mem *m, uint64_t vpn, bool writable, uint64_t at,
		       uint32_t key)
{
	struct spt *s = &m->spt;
	uint64_t *e, old;

	redo_ahead(m, spt_find(s, vpn), writable);
	e = spt_find(s, vpn);
	old = e ? *e : 0;
	/* Another access was quicker. */
	if (e && (s->exact || e_age(s, *e) <= s->time.tick - at)) {
		spt_install(m, vpn, writable, s->time.renewed, at);
		return;
	}
	e = spt_place(m, vpn, e);
	if (!e)
		return;
	s->time.stamped = MAX(s->time.stamped, at);
	at = (s->exact ? 0 : at & ~AHEAD_WRITABLE) |
	     (writable ? AHEAD_WRITABLE : 0);
	entry_set(m, vpn, e, old, e_make(*e & TAG_MASK, at, SPT_AHEAD));
	count(m->cnt, CNT_prefetch_pages);
	mem_account(m, NULL, key, ACCT_prefetch_pages, 1);
}

/* It is as if it had not been fetched ahead. */
static void ahead_settle(struct spt *s, uint64_t *e)
{
	enum spt_state state = e_aux(*e) & AHEAD_WRITABLE ? SPT_WRITABLE
							  : SPT_READABLE;

	*e = e_make(*e & TAG_MASK, s->exact ? 0 : e_stamp(*e), state);
}

/**
 * spt_use() - Note that a page is accessed.
 * @m:		the NIC's memory
 * @vpn:	page
 *
 * Return: was it fetched ahead, and not used before?
 */
bool spt_use(struct mem *m, uint64_t vpn)
{
	uint64_t *e = spt_find(&m->spt, vpn);

	if (!e || e_state(*e) != SPT_AHEAD)
		return false;
	ahead_settle(&m->spt, e);
	return true;
}

/**
 * spt_miss_ahead() - Note that a page is asked for. If it was fetched ahead that was in
 * vain, but what is known of it remains: it may well be there, and the answer tells.
 * @m:		the NIC's memory
 * @vpn:	page; nothing happens if it is any other
 */
void spt_miss_ahead(struct mem *m, uint64_t vpn)
{
	uint64_t *e = spt_find(&m->spt, vpn);

	if (likely(!e || e_state(*e) != SPT_AHEAD))
		return;
	entry_wasted(&m->spt, *e);
	ahead_settle(&m->spt, e);
}

/* --- making -------------------------------------------------------------- */

/**
 * spt_init() - Make an empty table; its memory is not touched.
 * @m:		with cfg set
 *
 * Return: 0 or -ENOMEM.
 */
int spt_init(struct mem *m)
{
	struct spt *s = &m->spt;
	unsigned bits = 31 - (unsigned)__builtin_clz(m->cfg.entries);

	s->sets.bits = bits - 2;
	s->sets.mask = (UINT64_C(1) << s->sets.bits) - 1;
	use_sets(s, s->sets.mask + 1);
	s->sets.wanted = s->sets.used;
	s->exact = m->cfg.exact;
	s->time.protect = s->time.renewed = -1;
	s->e = heap_array(UINT64_C(1) << bits, sizeof(*s->e));
	return s->e ? 0 : -ENOMEM;
}

/**
 * spt_fini() - Free the table.
 * @m:		also after an spt_init() that failed
 */
void spt_fini(struct mem *m)
{
	heap_free(m->spt.e);
}
