/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spare.c: what entries of the shadow page table are worth to the regions that are
 * watched (upcall.c), and so which of them are spared when one has to go.
 *
 * A region knows a page if it was learned since the region was made: on hosts that
 * age, the stamp tells. So what is counted when an entry is made is what is counted
 * when it goes, whenever the region came.
 */
#include "mem/spt.h"

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

static struct worth e_worth(struct mem *m, uint64_t e, uint64_t set)
{
	const uint64_t vpn = vpn_of(&m->spt, e, set);
	struct worth w = {.weight = 1};
	uint32_t at = 0;
	struct mr *mr;

	while ((mr = watch_next(&m->watch, vpn, &at))) {
		if (!e_known(&m->spt, e, mr))
			continue;
		w.needed |= mr->known <= mr->attr.minimum;
		w.weight = MAX(w.weight, mr->attr.weight);
	}
	return w;
}

/* The oldest of @n entries, newest first, that may go and is not in @but. Return: -1:
 * there is none. */
static int oldest(const struct spt *s, const uint64_t *e, unsigned n,
		  unsigned but)
{
	for (int i = (int)n - 1; i >= 0; i--)
		if (!e_held(s, e[i]) && !(but >> i & 1))
			return i;
	return -1;
}

/**
 * spare_pick() - Which entry is to be replaced, by those who have the pages.
 * Up to SPT_SPARED that are needed are spared, if another may go. Where none is, the
 * oldest goes, or the next one to it if that has less weight. So whoever is spared
 * nothing still has two places in each set: an access may need two pages of it.
 * @m:		the NIC's memory
 * @e, @n:	entries of one set, or of two that become one, newest first
 * @set:	which
 *
 * Return: index; -1: all are held.
 */
int spare_pick(struct mem *m, const uint64_t *e, unsigned n, uint64_t set)
{
	struct worth w[2 * SPT_WAYS];
	unsigned needed = 0, num = 0;
	const int last = oldest(&m->spt, e, n, 0);
	int out, next;

	for (unsigned i = 0; i < n; i++) {
		w[i] = e_worth(m, e[i], set);
		needed |= (unsigned)w[i].needed << i;
		num += w[i].needed;
	}
	/* of too many that are needed, the oldest */
	out = oldest(&m->spt, e, n, num > SPT_SPARED ? ~needed : needed);
	if (out < 0)
		out = last;
	if (out < 0)
		return out;
	next = oldest(&m->spt, e, n, 1U << out);
	if (num == 0 && next >= 0 && w[next].weight < w[out].weight)
		out = next;
	count_add(m->cnt, CNT_spt_below, w[out].needed);
	count_add(m->cnt, CNT_spt_spared, out != last);
	return out;
}
