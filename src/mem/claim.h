/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* claim.h: a waiter claims a ticket. */
#ifndef NOPIN_MEM_CLAIM_H
#define NOPIN_MEM_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct mem;
struct waiter;

bool share_claim(struct mem *m, struct waiter *w, uint64_t now_ns);

#endif
