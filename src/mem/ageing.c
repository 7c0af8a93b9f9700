/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ageing.c: time in the shadow page table: stamps, what counts as fresh, and the sweep.
 * The theory is at the head of spt.c.
 */
#include "mem/ageing.h"
#include "base/check.h"
#include "mem/change.h"
#include "mem/entry.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/upcall.h"
#include "mem/watch.h"

static void spt_sweep(struct spt *s, uint64_t sets, bool all)
{
	for (; sets > 0; sets--) {
		uint64_t *set = s->e + s->sweep.next * SPT_WAYS;

		/* Not written if free: the table may never have been touched.
		 */
		for (unsigned i = 0; i < SPT_WAYS; i++)
			if (set[i] && (all || e_age(s, set[i]) > SWEEP_TICKS))
				entry_end(s, &set[i],
					  all ? UPCALL_NUM : UPCALL_REPLACED);
		s->sweep.next = s->sweep.next + 1 < s->sets.used
					? s->sweep.next + 1
					: 0;
	}
}

static __attribute__((noinline)) void next_tick(struct spt *s, uint64_t now)
{
	/* before the first use the table is empty: nothing to sweep */
	uint64_t gone = s->time.now_tick ? now - s->time.now_tick : 0;

	s->time.now_tick = now;
	s->time.tick = MAX(s->time.tick, now);
	if (s->exact)
		return;
	/* After so long a time stamps may have wrapped: all go. */
	if (gone > SWEEP_TICKS) {
		watch_forget(mem_of(s));
		spt_sweep(s, s->sets.used, true);
		return;
	}
	s->sweep.rest += gone * s->sets.used;
	spt_sweep(s, s->sweep.rest / SWEEP_TICKS, false);
	s->sweep.rest %= SWEEP_TICKS;
}

/**
 * spt_tick() - Note what time it is, and sweep the sets that are due. Cheap within a tick,
 * a few sets a tick otherwise; a whole sweep, which takes some ms at the default size,
 * after 4.6 idle minutes.
 * @s:		the table
 * @now_ns:	may be a little older than what was seen before
 */
void spt_tick(struct spt *s, uint64_t now_ns)
{
	uint64_t now = now_ns >> TICK_SHIFT;

	s->time.now_ns = now_ns;
	if (unlikely(now > s->time.now_tick))
		next_tick(s, now);
}

/**
 * spt_view() - Find what counts as fresh. A stamp is a tick rounded down and must
 * not lie before fresh_ns, so an entry may count as stale up to a tick too
 * early; but one from the running tick is fresh in any case, or a waiter that
 * was woken just now could not go on.
 * @s:		the table, spt_tick() was called
 * @now_ns:	now
 * @fresh_ns:	what was learned before this does not count
 * @since:	key_row.since: nor what was up to this tick
 */
struct spt_view spt_view(struct spt *s, uint64_t now_ns, uint64_t fresh_ns,
			 int64_t since)
{
	uint64_t fresh = (fresh_ns >> TICK_SHIFT) +
			 ((fresh_ns & ((1 << TICK_SHIFT) - 1)) != 0);
	int64_t age = fresh >= s->time.tick ? 0
					    : (int64_t)(s->time.tick - fresh);
	int64_t since_protect = (int64_t)s->time.tick - s->time.protect - 1;

	if (fresh_ns > now_ns)
		return (struct spt_view){{-1, -1}};
	age = MIN(age, SWEEP_TICKS);
	age = MIN(age, (int64_t)s->time.tick - since - 1);
	return (struct spt_view){{age, MIN(age, since_protect)}};
}

/* Does what an entry says still count? An exact host says when it does not. */
static inline bool e_fresh(const struct spt *s, const struct spt_view *v,
			   uint64_t e, bool write)
{
	return s->exact || (int64_t)e_age(s, e) <= v->max_age[write];
}

/**
 * spt_age() - Tell how many ticks ago a page was last touched, if it can be accessed
 * without a fault, as far as we know. A page that spt_ahead() is about does not count.
 * @s:		the table
 * @v:		what counts as fresh
 * @vpn:	page
 * @write:	to write it
 *
 * Return: the ticks, 0 on exact hosts; negative: it cannot be accessed.
 */
int64_t spt_age(const struct spt *s, const struct spt_view *v, uint64_t vpn,
		bool write)
{
	const uint64_t *e = spt_find(s, vpn);

	if (!e || e_state(*e) < (write ? SPT_WRITABLE : SPT_READABLE) ||
	    !e_fresh(s, v, *e, write))
		return -1;
	return s->exact ? 0 : (int64_t)e_age(s, *e);
}

/**
 * spt_ahead() - True if a page can be accessed without a fault, as far as we know, that was
 * fetched ahead and not used yet.
 * @s, @v, @vpn, @write: as in spt_age()
 */
bool spt_ahead(const struct spt *s, const struct spt_view *v, uint64_t vpn,
	       bool write)
{
	const uint64_t *e = spt_find(s, vpn);

	if (!e || e_state(*e) != SPT_AHEAD ||
	    (write && !(e_aux(*e) & AHEAD_WRITABLE)))
		return false;
	return e_fresh(s, v, *e, write);
}
