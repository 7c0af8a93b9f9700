/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spare.h: entries that regions were promised. */
#ifndef NOPIN_MEM_SPARE_H
#define NOPIN_MEM_SPARE_H

#include "base/base.h"

struct mem;
struct mr;

void watch_count(struct mem *m, uint64_t vpn, uint64_t old, uint64_t new);
bool spare_below(const struct mem *m, const struct mr *mr, uint64_t e);
int spare_pick(struct mem *m, const uint64_t *e, uint64_t set);
unsigned spare_shrink(struct mem *m, uint64_t *e, unsigned n, uint64_t set);

#endif
