/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pool.c: slots of the redirect pool, as numbers. The memory is os/'s; it is
 * not looked at here. The slot given back last is handed out first, so that a
 * small number of slots stays warm.
 */
#include "mem/pool.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "mem/mem.h"
#include "mem/slots.h"
#include "mem/state.h"
#include "mem/use.h"

#include <errno.h>
#include <stdlib.h>

/**
 * pool_init() - Make the pool, with all slots free.
 * @m:		with cfg set
 *
 * Return: 0 or -ENOMEM.
 */
int pool_init(struct mem *m)
{
	struct pool *p = &m->pool;

	p->free = heap_array(m->cfg.slots, sizeof(*p->free));
	p->used = heap_array(m->cfg.slots, sizeof(*p->used));
	if (!p->free || !p->used)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->cfg.slots; i++)
		p->free[i] = m->cfg.slots - 1 - i;
	p->num_free = p->bound = m->cfg.slots;
	return 0;
}

/**
 * pool_fini() - Free what pool_init() made.
 * @m:		also after a pool_init() that failed
 */
void pool_fini(struct mem *m)
{
	heap_free(m->pool.free);
	heap_free(m->pool.used);
}

/**
 * slot_get() - See pool.h.
 * @m:		the NIC's memory
 */
int slot_get(struct mem *m)
{
	struct pool *p = &m->pool;
	uint64_t *most = &m->cnt->v[CNT_slots_used_max];
	uint32_t slot;

	if (slots_free(m) == 0)
		return -EAGAIN;
	slot = p->free[--p->num_free];
	p->used[slot] = 1;
	*most = MAX(*most, m->cfg.slots - p->num_free);
	return (int)slot;
}

/**
 * slot_put() - See pool.h.
 * @m:		the NIC's memory
 * @slot:	from slot_get()
 */
void slot_put(struct mem *m, int slot)
{
	struct pool *p = &m->pool;

	CHECK(slot >= 0 && (uint32_t)slot < m->cfg.slots);
	CHECK(p->used[slot]);
	p->used[slot] = 0;
	p->free[p->num_free++] = (uint32_t)slot;
}

/**
 * slot_data() - See pool.h.
 * @m:		the NIC's memory
 * @slot:	from slot_get()
 */
uint8_t *slot_data(struct mem *m, int slot)
{
	CHECK(slot >= 0 && (uint32_t)slot < m->cfg.slots);
	return m->cfg.slot_base + (size_t)slot * SLOT_BYTES;
}

/**
 * slot_has() - See pool.h.
 * @m:		the NIC's memory
 * @slot:	from slot_get()
 * @p:		anywhere, or NULL
 */
bool slot_has(const struct mem *m, int slot, const void *p)
{
	const uintptr_t start = (uintptr_t)m->cfg.slot_base +
				(size_t)slot * SLOT_BYTES;

	return (uintptr_t)p - start < SLOT_BYTES;
}

/**
 * slots_free() - See pool.h.
 * @m:		the NIC's memory
 */
unsigned slots_free(const struct mem *m)
{
	const struct pool *p = &m->pool;
	const uint32_t used = slots_used(m);

	return p->bound > used ? p->bound - used : 0;
}

/**
 * slots_used() - See pool.h.
 * @m:		the NIC's memory
 */
unsigned slots_used(const struct mem *m)
{
	return m->cfg.slots - m->pool.num_free;
}

/**
 * slots_bound() - See use.h.
 * @m:		the NIC's memory
 * @num:	how many there are from now on
 */
void slots_bound(struct mem *m, uint32_t num)
{
	m->pool.bound = MIN(num, m->cfg.slots);
}
