/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* holds.h: pages of an exact host that are kept from being unmapped. */
#ifndef NOPIN_MEM_HOLDS_H
#define NOPIN_MEM_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

struct mem;

bool spt_hold(struct mem *m, uint64_t vpn);
void spt_unhold(struct mem *m, uint64_t vpn);

#endif
