/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spt_size.c: how large the shadow page table may be (design D12): sets come and go,
 * one at a time. The theory is at the head of spt.c.
 */
#include "base/check.h"
#include "mem/change.h"
#include "mem/entry.h"
#include "mem/spare.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/upcall.h"
#include "mem/use.h"

#include <string.h>

/* The set that @set takes its entries from, and gives them back to. */
static uint64_t set_parent(uint64_t set)
{
	return set & ~(UINT64_C(1) << (63 - __builtin_clzll(set)));
}

/* The sweep may not come to entries that move: those that it would take go now. Return:
 * is nothing left? */
static bool set_sweep(struct spt *s, uint64_t *set)
{
	const uint64_t index = set_index(s, set);
	uint64_t any = 0;

	for (unsigned i = 0; i < SPT_WAYS; i++) {
		if (!set[i])
			continue;
		if (!s->exact && e_age(s, set[i]) > SWEEP_TICKS) {
			entry_over(s, set[i], index, UPCALL_REPLACED);
			set[i] = 0;
		}
		any |= set[i];
	}
	return !any;
}

/* A set more is in use. */
static void set_split(struct spt *s)
{
	const uint64_t set = s->sets.used, parent = set_parent(set);
	uint64_t *from = s->e + parent * SPT_WAYS, *to = s->e + set * SPT_WAYS;
	unsigned stay = 0, go = 0;

	use_sets(s, set + 1);
	if (set_sweep(s, from))
		return;
	for (unsigned i = 0; i < SPT_WAYS; i++) {
		const uint64_t e = from[i];

		from[i] = 0;
		if (!e)
			continue;
		if ((e_home(e, parent) & s->sets.used_mask) == set)
			to[go++] = e;
		else
			from[stay++] = e;
	}
}

/* Is @a newer than @b? Exact hosts tell no time: in turns. */
static bool e_newer(const struct spt *s, uint64_t a, uint64_t b, unsigned turn)
{
	if (!a || !b)
		return a != 0;
	return s->exact ? turn % 2 : e_age(s, a) < e_age(s, b);
}

/* Entries of two sets, newest first. Return: how many. */
static unsigned interleave(const struct spt *s, const uint64_t *a,
			   const uint64_t *b, uint64_t *out)
{
	unsigned n = 0, i = 0, k = 0;

	while (i < SPT_WAYS || k < SPT_WAYS) {
		const uint64_t x = i < SPT_WAYS ? a[i] : 0;
		const uint64_t y = k < SPT_WAYS ? b[k] : 0;
		const bool first = k == SPT_WAYS ||
				   (i < SPT_WAYS && e_newer(s, x, y, n));

		if (first ? x : y)
			out[n++] = first ? x : y;
		i += first;
		k += !first;
	}
	return n;
}

static unsigned spt_size_take_out(uint64_t *e, unsigned n, unsigned out)
{
	memmove(&e[out], &e[out + 1], (n - 1 - out) * sizeof(*e));
	return n - 1;
}

/* An entry of some region went: only those are to be looked at again for which it may
 * have been the last to spare. */
static void worth_less(struct mem *m, const uint64_t *e, struct worth *w,
		       unsigned n, uint64_t set)
{
	for (unsigned i = 0; i < n; i++)
		if (w[i].regions && w[i].spare > 0 && --w[i].spare == 0)
			w[i] = spare_worth(m, e[i], set);
}

static void shrink_watched(struct mem *m, uint64_t *e, unsigned n, uint64_t set)
{
	struct worth w[2 * SPT_WAYS];

	for (unsigned i = 0; i < n; i++)
		w[i] = spare_worth(m, e[i], set);
	while (n > SPT_WAYS) {
		const unsigned out = (unsigned)spare_among(m, e, w, n);
		const bool regions = w[out].regions;

		spt_replace(m, e[out], set);
		memmove(&w[out], &w[out + 1], (n - 1 - out) * sizeof(*w));
		n = spt_size_take_out(e, n, out);
		if (regions)
			worth_less(m, e, w, n, set);
	}
}

/**
 * shrink() - Replace entries until those that are left fit a set: each time the
 * one that spare_pick() says of so many.
 * @m:		the NIC's memory
 * @e:		@n entries, newest first, of which SPT_WAYS are held at most
 * @n:		up to 2 * SPT_WAYS
 * @set:	their home
 *
 * Return: how many are left.
 */
static unsigned shrink(struct mem *m, uint64_t *e, unsigned n, uint64_t set)
{
	CHECK(n <= 2 * SPT_WAYS);
	if (n > SPT_WAYS && unlikely(m->watch.num > 0)) {
		shrink_watched(m, e, n, set);
		return SPT_WAYS;
	}
	while (n > SPT_WAYS) {
		const unsigned out = (unsigned)spare_oldest(&m->spt, e, n, 0);

		spt_replace(m, e[out], set);
		n = spt_size_take_out(e, n, out);
	}
	return n;
}

/* The last set gives its entries away. Return: false: too many are held. */
static bool set_merge(struct mem *m)
{
	struct spt *s = &m->spt;
	const uint64_t set = s->sets.used - 1, parent = set_parent(set);
	uint64_t *from = s->e + set * SPT_WAYS, *to = s->e + parent * SPT_WAYS;
	uint64_t all[2 * SPT_WAYS];
	unsigned n, held = 0;

	if (!set_sweep(s, from)) {
		(void)set_sweep(s, to);
		n = interleave(s, from, to, all);
		for (unsigned i = 0; i < n; i++)
			held += e_held(s, all[i]);
		if (held > SPT_WAYS)
			return false;
		memset(from, 0, SPT_WAYS * sizeof(*from));
		n = shrink(m, all, n, parent);
		memset(to, 0, SPT_WAYS * sizeof(*to));
		memcpy(to, all, n * sizeof(*all));
	}
	use_sets(s, set);
	return true;
}

/**
 * entries_bound() - See use.h. An empty table has that size at once.
 * @m:		the NIC's memory
 * @num:	how many entries there may be
 */
void entries_bound(struct mem *m, uint64_t num)
{
	struct spt *s = &m->spt;
	uint64_t sets = MIN(num / SPT_WAYS, s->sets.mask + 1);

	s->sets.wanted = MAX(sets, UINT64_C(1) << SET_BITS_MIN);
	if (s->live == 0)
		use_sets(s, s->sets.wanted);
}

/**
 * entries_resize() - See use.h. Some ns a set.
 * @m:		the NIC's memory
 * @sets:	so many at most
 *
 * Return: is there more to do?
 */
bool entries_resize(struct mem *m, unsigned sets)
{
	struct spt *s = &m->spt;

	for (; sets > 0 && s->sets.used < s->sets.wanted; sets--)
		set_split(s);
	for (; sets > 0 && s->sets.used > s->sets.wanted; sets--)
		if (!set_merge(m))
			break;
	return s->sets.used != s->sets.wanted;
}
