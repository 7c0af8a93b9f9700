/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spare.c: what entries of the shadow page table are worth to the regions that are
 * watched (upcall.c), and so which of them are spared when one has to go.
 *
 * A region knows a page if it was learned since the region was made: on hosts that
 * age, the stamp tells. So what is counted when an entry is made is what is counted
 * when it goes, whenever the region came.
 */
#include "mem/entry.h"

/* Does the region know of its page by this entry? */
static bool e_known(const struct spt *s, uint64_t e, const struct mr *mr)
{
	return e != 0 && (s->exact ||
			  (int64_t)e_age(s, e) < (int64_t)s->tick - mr->since);
}

/**
 * watch_count() - An entry changed.
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
		/* who registers too often counts some too few */
		if (mr->known > 0)
			mr->known -= e_known(&m->spt, old, mr);
	}
}

/**
 * struct worth - Of an entry, to those who have its page.
 * @needed:	some region would have its minimum no longer
 */
struct worth {
	bool needed;
	uint32_t weight;
};

static struct worth e_worth(struct mem *m, const uint64_t *e)
{
	const uint64_t vpn = vpn_of(&m->spt, (uint64_t)(e - m->spt.e));
	struct worth w = {.weight = 1};
	uint32_t at = 0;
	struct mr *mr;

	while ((mr = watch_next(&m->watch, vpn, &at))) {
		if (!e_known(&m->spt, *e, mr))
			continue;
		w.needed |= mr->known <= mr->attr.minimum;
		w.weight = MAX(w.weight, mr->attr.weight);
	}
	return w;
}

/**
 * set_spare() - Which entry of a set is to be replaced, by those who have the pages:
 * none that is needed, if there is another; of the others the one whose place in the
 * order of touch, divided by its weight, is the last.
 * @m:		the NIC's memory
 * @set:	all in use
 * @way:	the oldest that may go
 *
 * Return: @way, or another one that may.
 */
int set_spare(struct mem *m, const uint64_t *set, int way)
{
	struct worth best = e_worth(m, &set[way]), w;
	int oldest = way;

	for (int i = way - 1; i >= 0; i--) {
		if (e_held(&m->spt, set[i]))
			continue;
		w = e_worth(m, &set[i]);
		if (w.needed ||
		    (!best.needed && (uint64_t)(i + 1) * best.weight <=
					     (uint64_t)(way + 1) * w.weight))
			continue;
		best = w;
		way = i;
	}
	count_add(m->cnt, CNT_spt_below, best.needed);
	if (way != oldest)
		count(m->cnt, CNT_spt_spared);
	return way;
}
