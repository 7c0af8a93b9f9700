/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pool.h: the redirect pool. */
#ifndef NOPIN_MEM_POOL_H
#define NOPIN_MEM_POOL_H

#include <stdbool.h>
#include <stdint.h>

struct mem;

/** slot_get() - Return: slot number, or -EAGAIN when the pool is used up. */
int slot_get(struct mem *m);
void slot_put(struct mem *m, int slot);
uint8_t *slot_data(struct mem *m, int slot);
/** slot_has() - Does the memory of a slot begin at or before @p, and end behind it? */
bool slot_has(const struct mem *m, int slot, const void *p);
unsigned slots_free(const struct mem *m);
/** slots_used() - Count those that were taken and not put back. */
unsigned slots_used(const struct mem *m);

#endif
