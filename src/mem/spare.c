/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spare.c: what entries of the shadow page table are worth to the regions that are
 * watched (upcall.c), and so which of them are spared when one has to go.
 *
 * A region knows a page if it was learned since the region was made: on hosts that
 * age, the stamp tells. So what is counted when an entry is made is what is counted
 * when it goes, whenever the region came.
 */
#include "mem/spare.h"
#include "base/check.h"
#include "base/counters.h"
#include "mem/entry.h"
#include "mem/key_table.h"
#include "mem/regions.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/watch.h"

#include <string.h>

/* Does the region know of its page by this entry? */
static bool e_known(const struct spt *s, uint64_t e, const struct mr *mr)
{
	return e != 0 &&
	       (s->exact ||
		(int64_t)e_age(s, e) < (int64_t)s->time.tick - mr->row->since);
}

/**
 * watch_count() - Count an entry that changed, for the watched regions that have its page.
 * @m:		the NIC's memory
 * @vpn:	its page
 * @old, @new:	what it was, and is; 0: none
 */
void watch_count(struct mem *m, uint64_t vpn, uint64_t old, uint64_t new)
{
	uint32_t at = 0;
	struct mr *mr;

	while ((mr = watch_next(&m->watch, vpn, &at))) {
		mr->known += e_known(&m->spt, new, mr);
		/* for a program that registers too often some too few are counted */
		if (mr->known > 0)
			mr->known -= e_known(&m->spt, old, mr);
	}
}

/**
 * spare_below() - Has a region less than it is promised without an entry?
 * @m:		the NIC's memory
 * @mr:		has its page
 * @e:		entry, which is counted if the region knows of it
 */
bool spare_below(const struct mem *m, const struct mr *mr, uint64_t e)
{
	const uint32_t one = e_known(&m->spt, e, mr);

	/* a region that is promised nothing misses nothing, also where too few
	 * are counted */
	return mr->known - MIN(mr->known, one) < mr->promised;
}

struct worth spare_worth(struct mem *m, uint64_t e, uint64_t set)
{
	const uint64_t vpn = vpn_of(&m->spt, e, set);
	struct worth w = {.spare = UINT32_MAX, .weight = 1};
	uint32_t at = 0;
	struct mr *mr;

	while ((mr = watch_next(&m->watch, vpn, &at))) {
		const uint32_t p = mr->promised;

		if (!e_known(&m->spt, e, mr))
			continue;
		if (p > 0)
			w.spare = MIN(w.spare, mr->known - MIN(mr->known, p));
		w.weight = MAX(w.weight, mr->weight);
		w.regions = true;
	}
	return w;
}

/* The oldest of @n entries, newest first, that may go and is not in @but. Return: -1:
 * there is none. */
int spare_oldest(const struct spt *s, const uint64_t *e, unsigned n,
		 unsigned but)
{
	for (int i = (int)n - 1; i >= 0; i--)
		if (!e_held(s, e[i]) && !(but >> i & 1))
			return i;
	return -1;
}

/* Which of @n entries, newest first, is to go, as they are worth. Return: -1: all are
 * held. */
int spare_among(struct mem *m, const uint64_t *e, const struct worth *w,
		unsigned n)
{
	const int last = spare_oldest(&m->spt, e, n, 0);
	unsigned needed = 0, num = 0;
	int out, next;

	for (unsigned i = 0; i < n; i++) {
		needed |= (unsigned)(w[i].spare == 0) << i;
		num += w[i].spare == 0;
	}
	/* of too many that are needed, the oldest */
	out = spare_oldest(&m->spt, e, n, num > SPT_SPARED ? ~needed : needed);
	if (out < 0)
		out = last;
	if (out < 0)
		return out;
	next = spare_oldest(&m->spt, e, n, 1U << out);
	if (num == 0 && next >= 0 && w[next].weight < w[out].weight)
		out = next;
	count_add(m->cnt, CNT_spt_below, w[out].spare == 0);
	count_add(m->cnt, CNT_spt_spared, out != last);
	return out;
}

/**
 * spare_pick() - Choose the entry that is to be replaced, by the users of the pages.
 * Up to SPT_SPARED that are needed are spared, if another may go. Where none is, the
 * oldest goes, or the next one to it if that has less weight. So a region that is
 * spared nothing still has two places in each set: an access may need two pages of it.
 * @m:		the NIC's memory
 * @e:		SPT_WAYS entries of a set, newest first
 * @set:	which
 *
 * Return: index; -1: all are held.
 */
int spare_pick(struct mem *m, const uint64_t *e, uint64_t set)
{
	struct worth w[SPT_WAYS];

	for (unsigned i = 0; i < SPT_WAYS; i++)
		w[i] = spare_worth(m, e[i], set);
	return spare_among(m, e, w, SPT_WAYS);
}
