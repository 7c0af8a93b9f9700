/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ageing.h: time in the shadow page table. */
#ifndef NOPIN_MEM_AGEING_H
#define NOPIN_MEM_AGEING_H

#include <stdbool.h>
#include <stdint.h>

struct spt;

enum { TICK_SHIFT = 20 }; /* stamps of the table: about a millisecond */

/**
 * struct spt_view - What counts as fresh in one resolve.
 * @max_age:	in ticks, for reading and for writing; negative: nothing
 */
struct spt_view {
	int64_t max_age[2];
};

void spt_tick(struct spt *s, uint64_t now_ns);
struct spt_view spt_view(struct spt *s, uint64_t now_ns, uint64_t fresh_ns,
			 int64_t since);
int64_t spt_age(const struct spt *s, const struct spt_view *v, uint64_t vpn,
		bool write);
bool spt_ahead(const struct spt *s, const struct spt_view *v, uint64_t vpn,
	       bool write);
static inline bool spt_ready(const struct spt *s, const struct spt_view *v,
			     uint64_t vpn, bool write)
{
	return spt_age(s, v, vpn, write) >= 0 || spt_ahead(s, v, vpn, write);
}

#endif
