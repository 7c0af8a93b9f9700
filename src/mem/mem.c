/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mem.c: opening and closing the memory side of a NIC. */
#include "mem/mem.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "mem/eventcounts.h"
#include "mem/key.h"
#include "mem/moving.h"
#include "mem/pool.h"
#include "mem/regions.h"
#include "mem/share.h"
#include "mem/slots.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/tickets.h"
#include "mem/use.h"
#include "mem/watch.h"

#include <errno.h>
#include <stdlib.h>

static void mem_free(struct mem *m)
{
	pool_fini(m);
	ticket_fini(m);
	spt_fini(m);
	counts_fini(m);
	mr_fini(m);
	watch_fini(m);
	heap_free(m);
}

/**
 * mem_open() - Make the tables; large ones are not touched until used.
 * @out:	set on success
 * @cfg:	bounds; copied. slot_base and counters are borrowed until
 *		mem_close()
 *
 * Return: 0, -ENOMEM, or -EINVAL for a bound out of range (see struct
 * mem_config).
 */
int mem_open(struct mem **out, const struct mem_config *cfg)
{
	struct mem *m;
	int ret;

	if (cfg->entries < SPT_ENTRIES_MIN || cfg->slots == 0 ||
	    cfg->slots > INT32_MAX || cfg->tickets == 0 ||
	    cfg->tickets > TICKETS_MAX || cfg->pagers == 0)
		return -EINVAL;
	m = heap_alloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->cfg = *cfg;
	m->cnt = cfg->counters;
	key_init(&m->keys.secret, cfg->seed);
	counts_init(m);
	moving_init(m);
	shares_init(m);
	list_init(&m->watch.news);
	ret = spt_init(m);
	if (ret == 0)
		ret = ticket_init(m);
	if (ret == 0)
		ret = pool_init(m);
	if (ret != 0) {
		mem_free(m);
		return ret;
	}
	*out = m;
	return 0;
}

/**
 * mem_close() - See mem.h. A ticket may still be out, for a page that hangs: no waiter
 * waits for it any more.
 * @m:		consumed
 */
void mem_close(struct mem *m)
{
	CHECK(m->keys.num_used == 0);
	CHECK(m->holds == 0);
	CHECK(m->pool.num_free == m->cfg.slots);
	mem_free(m);
}

/**
 * mem_use() - See use.h.
 * @m:		the NIC's memory
 * @out:	set
 */
void mem_use(struct mem *m, struct mem_use *out)
{
	*out = (struct mem_use){
		.entries = m->spt.live,
		.promised = m->watch.promised,
		.slots = slots_used(m),
		.asked = m->tickets.asked,
		.entries_short = m->spt.short_of,
		.pagers_short = m->tickets.short_of ||
				!list_empty(&m->tickets.over[QUEUE_FRESH]),
	};
	m->spt.short_of = m->tickets.short_of = false;
}

/**
 * mem_inline_budget() - See use.h.
 * @m:		the NIC's memory
 * @pages:	how many pages
 */
void mem_inline_budget(struct mem *m, unsigned pages)
{
	m->inline_budget = pages;
}
