/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* moving.h: pages that moves hold, and what waits for them. */
#ifndef NOPIN_MEM_MOVING_H
#define NOPIN_MEM_MOVING_H

#include "mem/key.h"

#include <stdbool.h>

struct hold;
struct holds;
struct mem;
struct waiter;

enum {
	/* struct hold.row: its index, was it a write, spt.gen at resolve */
	HOLD_WRITE = 1 << KEY_INDEX_BITS,
	HOLD_GEN_SHIFT = KEY_INDEX_BITS + 1,
};

void moving_init(struct mem *m);
void moving_add(struct mem *m, struct holds *h);
void moving_remove(struct holds *h);
bool moving_page(const struct mem *m, const struct holds *own, uint64_t vpn,
		 uint64_t pages, uint64_t *page);
void moving_wait(struct mem *m, struct waiter *w, uint64_t page,
		 uint64_t now_ns);
void moving_wake(struct mem *m, const struct hold *h);

#endif
