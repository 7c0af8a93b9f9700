/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entry.h: entries of the shadow page table and where they are: what the
 * files of it share. The theory is at the head of spt.c.
 */
#ifndef NOPIN_MEM_ENTRY_H
#define NOPIN_MEM_ENTRY_H

#include "base/check.h"
#include "mem/limits.h"
#include "mem/mem.h"
#include "mem/state.h"
#include "mem/table.h"

enum {
	RUN_SHIFT = 1, /* 2^RUN_SHIFT neighbours share a set */
	SET_BITS_MIN = 2, /* of the sets in use */
	TAG_BITS = 42,
	AUX_BITS = 20,
	AUX_SHIFT = TAG_BITS,
	STATE_SHIFT = TAG_BITS + AUX_BITS,
	/* for one sweep, and the oldest age that counts */
	SWEEP_TICKS = 1 << (AUX_BITS - 2),
	/* A right to write survives touches that only read if they come as
	 * often as the sweeper's (ticks).
	 */
	KEEP_WRITABLE = 64,
	/* How far the stamps may run ahead of time by forks (ticks), and by
	 * registrations: they leave forks some.
	 */
	AHEAD_MAX = 8,
	AHEAD_RENEW = 4,
};

#define TAG_MASK       ((UINT64_C(1) << TAG_BITS) - 1)
#define AUX_MASK       ((UINT64_C(1) << AUX_BITS) - 1)
#define AUX_ONE	       (UINT64_C(1) << AUX_SHIFT)
#define AHEAD_WRITABLE UINT64_C(1) /* in aux */
#define RUN_MASK       ((UINT64_C(1) << RUN_SHIFT) - 1)

static_assert(STATE_SHIFT + 2 == 64, "an entry is one word");
static_assert(SPT_WAYS << SET_BITS_MIN == SPT_ENTRIES_MIN,
	      "the smallest table");
static_assert(VPN_BITS - SET_BITS_MIN == TAG_BITS, "all but what the set says");

static inline enum spt_state e_state(uint64_t e)
{
	return (enum spt_state)(e >> STATE_SHIFT);
}

static inline uint64_t e_aux(uint64_t e)
{
	return e >> AUX_SHIFT & AUX_MASK;
}

static inline uint64_t e_make(uint64_t tag, uint64_t aux, enum spt_state state)
{
	return tag | (aux & AUX_MASK) << AUX_SHIFT |
	       (uint64_t)state << STATE_SHIFT;
}

static inline bool e_held(const struct spt *s, uint64_t e)
{
	return s->exact && e_state(e) != SPT_AHEAD && e_aux(e) != 0;
}

static inline uint64_t e_stamp(uint64_t e)
{
	return e_state(e) == SPT_AHEAD ? e_aux(e) & ~AHEAD_WRITABLE : e_aux(e);
}

static inline uint64_t e_age(const struct spt *s, uint64_t e)
{
	return (s->time.tick - e_stamp(e)) & AUX_MASK;
}

/* The state that may be carried over when the page is touched again. */
static inline enum spt_state e_kept_state(const struct spt *s, uint64_t e,
					  int64_t since)
{
	int64_t age = (int64_t)e_age(s, e), lost = MAX(s->time.protect, since);

	if (!s->exact && e_state(e) == SPT_WRITABLE &&
	    (age > KEEP_WRITABLE || age >= (int64_t)s->time.tick - lost))
		return SPT_READABLE;
	return e_state(e);
}

static inline uint64_t set_displace(const struct spt *s, uint64_t stretch)
{
	return (stretch * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - s->sets.bits);
}

/* Stretch and home: the set if all of them were in use. */
static inline uint64_t home_of(const struct spt *s, uint64_t vpn)
{
	uint64_t run = vpn >> RUN_SHIFT, stretch = run >> s->sets.bits;
	uint64_t set = (run + set_displace(s, stretch)) & s->sets.mask;

	return stretch << s->sets.bits | set;
}

static inline uint64_t *set_of(const struct spt *s, uint64_t vpn)
{
	uint64_t set = home_of(s, vpn) & s->sets.used_mask;

	if (set >= s->sets.used)
		set &= s->sets.used_mask >> 1;
	return s->e + set * SPT_WAYS;
}

static inline uint64_t tag_of(const struct spt *s, uint64_t vpn)
{
	return home_of(s, vpn) >> SET_BITS_MIN << RUN_SHIFT | (vpn & RUN_MASK);
}

/* Of an entry in its place. */
static inline uint64_t set_index(const struct spt *s, const uint64_t *e)
{
	return (uint64_t)(e - s->e) / SPT_WAYS;
}

/* home_of() the page of an entry in set @set. */
static inline uint64_t e_home(uint64_t e, uint64_t set)
{
	return (e & TAG_MASK) >> RUN_SHIFT << SET_BITS_MIN |
	       (set & ((1 << SET_BITS_MIN) - 1));
}

/* The page that an entry in set @set is about: set_of() inverted. */
static inline uint64_t vpn_of(const struct spt *s, uint64_t e, uint64_t set)
{
	uint64_t home = e_home(e, set);
	uint64_t stretch = home >> s->sets.bits;
	uint64_t run = (home - set_displace(s, stretch)) & s->sets.mask;

	return (stretch << s->sets.bits | run) << RUN_SHIFT | (e & RUN_MASK);
}

static inline uint64_t vpn_at(const struct spt *s, const uint64_t *e)
{
	return vpn_of(s, *e, set_index(s, e));
}

static inline uint64_t *spt_find(const struct spt *s, uint64_t vpn)
{
	uint64_t *set = set_of(s, vpn), tag = tag_of(s, vpn);

	for (unsigned i = 0; i < SPT_WAYS; i++)
		if ((set[i] & TAG_MASK) == tag && set[i] >> AUX_SHIFT)
			return &set[i];
	return NULL;
}

static inline struct mem *mem_of(struct spt *s)
{
	return container_of(s, struct mem, spt);
}

/** use_sets() - Use so many sets from now on. */
static inline void use_sets(struct spt *s, uint64_t sets)
{
	s->sets.used = sets;
	s->sets.used_mask = sets > 1 ? UINT64_MAX >> __builtin_clzll(sets - 1)
				     : 0;
}

#endif
