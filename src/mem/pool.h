/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pool.h: take and give back slots of the redirect pool, by number. How many a QP or a
 * peer may have is decided in xport/credit.c and window.c; slots_bound() is in mem/use.h.
 * Engine lock.
 */
#ifndef NOPIN_MEM_POOL_H
#define NOPIN_MEM_POOL_H

#include <stdbool.h>
#include <stdint.h>

struct mem;

/** slot_get() - Take a slot. Return: its number, or -EAGAIN: slots_free() is 0. */
int slot_get(struct mem *m);
/** slot_put() - Give back @slot, from slot_get(). */
void slot_put(struct mem *m, int slot);
/** slot_data() - Return the memory of a slot that is taken: SLOT_BYTES. */
uint8_t *slot_data(struct mem *m, int slot);
/** slot_has() - Return true if @p (any, or NULL) points into the memory of @slot. */
bool slot_has(const struct mem *m, int slot, const void *p);
/** slots_free() - Count the slots that slot_get() would give now: slots_bound() less those
 * that are taken. */
unsigned slots_free(const struct mem *m);
/** slots_used() - Count those that were taken and not put back. */
unsigned slots_used(const struct mem *m);

#endif
