/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* slots.h: the slots of the redirect pool. */
#ifndef NOPIN_MEM_SLOTS_H
#define NOPIN_MEM_SLOTS_H

#include <stdint.h>

struct mem;

/** struct pool - @free: stack of free slots; @used: a flag per slot; @bound: so many
 * may be used */
struct pool {
	uint32_t *free;
	uint8_t *used;
	uint32_t num_free, bound;
};

int pool_init(struct mem *m);
void pool_fini(struct mem *m);

#endif
