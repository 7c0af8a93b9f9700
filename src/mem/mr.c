/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.c: protection domains and memory regions: which QPs may reach which addresses
 * by which key. Registration records a range and touches no page (design D6);
 * what the pages are is spt.c's business.
 *
 * Teardown: mr_revoke() makes a region unreachable at once; mr_free() gives
 * the row of its key back when the last hold is gone.
 */
#include "mem/mr.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/page.h"
#include "base/range.h"
#include "base/strategy.h"
#include "base/verdict.h"
#include "mem/fault.h"
#include "mem/key.h"
#include "mem/key_table.h"
#include "mem/overwrite.h"
#include "mem/pattern.h"
#include "mem/regions.h"
#include "mem/share.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/tickets.h"
#include "mem/waiting.h"
#include "mem/watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum {
	PD_MAX = 1 << 16,
	ACCESS_ALL = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
		     ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |
		     ACCESS_MW_BIND | ACCESS_ZERO_BASED | ACCESS_ON_DEMAND |
		     ACCESS_RELAXED_ORDERING,
};

/* --- protection domains -------------------------------------------------- */

static struct pd *pd_at(struct mem *m, uint32_t pd)
{
	CHECK(pd > 0 && pd <= m->pds.num);
	CHECK(m->pds.v[pd - 1].used);
	return &m->pds.v[pd - 1];
}

static int pd_grow(struct pds *p)
{
	uint32_t cap = p->cap ? p->cap * 2 : 8;
	struct pd *v;

	if (p->num < p->cap)
		return 0;
	if (cap > PD_MAX)
		return -ENOMEM;
	v = heap_grow(p->v, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	p->v = v;
	p->cap = cap;
	return 0;
}

/**
 * pd_alloc() - See mr.h.
 * @m:		the NIC's memory
 */
int pd_alloc(struct mem *m)
{
	struct pds *p = &m->pds;
	uint32_t pd = p->free;
	int ret;

	if (pd != 0) {
		p->free = p->v[pd - 1].next;
	} else {
		ret = pd_grow(p);
		if (ret != 0)
			return ret;
		pd = ++p->num;
		p->v[pd - 1] = (struct pd){.users = 0};
	}
	p->v[pd - 1].used = true;
	p->live++;
	return (int)pd;
}

/**
 * pd_get() - See mr.h.
 * @m:		the NIC's memory
 * @pd:		from pd_alloc()
 */
void pd_get(struct mem *m, uint32_t pd)
{
	pd_at(m, pd)->users++;
}

/**
 * pd_put() - See mr.h.
 * @m:		the NIC's memory
 * @pd:		from pd_alloc()
 */
void pd_put(struct mem *m, uint32_t pd)
{
	struct pd *p = pd_at(m, pd);

	CHECK(p->users > 0);
	p->users--;
}

/**
 * pd_dealloc() - See mr.h.
 * @m:		the NIC's memory
 * @pd:		from pd_alloc()
 */
int pd_dealloc(struct mem *m, uint32_t pd)
{
	struct pd *p = pd_at(m, pd);

	if (p->users > 0)
		return -EBUSY;
	p->used = false;
	p->next = m->pds.free;
	m->pds.free = pd;
	m->pds.live--;
	share_pd_gone(m);
	return 0;
}

/* --- regions ------------------------------------------------------------- */

/**
 * mr_fini() - Free the tables of regions and PDs.
 * @m:		the NIC's memory
 */
void mr_fini(struct mem *m)
{
	for (unsigned i = 0; i < KEY_CHUNKS; i++)
		heap_free(m->mrs.chunk[i]);
	key_table_fini(&m->keys);
	heap_free(m->pds.v);
}

/* Pages that were fetched for it, or are to be, are of no use any more. */
static void mr_pattern_gone(struct mem *m, struct mr *mr)
{
	struct pages asked;

	if (!mr->pattern)
		return;
	ticket_unguess(m, mr->row->key);
	for (unsigned i = 0; pattern_asked(mr->pattern, i, &asked); i++)
		for (uint64_t p = asked.start; p < asked.end; p++)
			spt_drop_ahead(m, p);
	heap_free(mr->pattern);
	mr->pattern = NULL;
}

static_assert(MR_MAX - KEYS_USED_MAX == 0, "as many keys as are promised");

/* Make KEY_CHUNK more rows, and room for a region at each, or neither. */
static int mr_grow(struct mem *m)
{
	const uint32_t made = m->keys.made;
	struct mr *chunk;

	if (made == KEYS_MAX)
		return -ENOMEM;
	chunk = heap_array(KEY_CHUNK, sizeof(*chunk));
	if (!chunk || key_table_grow(&m->keys) != 0) {
		heap_free(chunk);
		return -ENOMEM;
	}
	m->mrs.chunk[made / KEY_CHUNK] = chunk;
	return 0;
}

/* Take a free index. */
static int mr_take(struct mem *m, uint32_t *index)
{
	if (key_take(&m->keys, index) == 0)
		return 0;
	return mr_grow(m) == 0 ? key_take(&m->keys, index) : -ENOMEM;
}

static bool access_valid(uint32_t access)
{
	const uint32_t writes = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;

	if (access & ~(uint32_t)ACCESS_ALL)
		return false;
	return !(access & writes) || (access & ACCESS_LOCAL_WRITE);
}

/**
 * mr_register() - See mr.h. What is known of its pages was learned of memory that was
 * mapped there before, and does not count.
 * @m:		the NIC's memory
 * @attr:	copied; its PD gets one more user. With ACCESS_ZERO_BASED the
 *		caller has set iova to 0
 * @key:	set on success, never 0
 */
int mr_register(struct mem *m, const struct mr_attr *attr, uint32_t *key)
{
	struct key_row *row;
	struct mr *mr;
	uint32_t i;
	int ret;

	if (range_wraps(attr->addr, attr->length) ||
	    range_wraps(attr->iova, attr->length) ||
	    !access_valid(attr->access))
		return -EINVAL;
	ret = watch_room(m, attr);
	if (ret == 0)
		ret = mr_take(m, &i);
	if (ret != 0)
		return ret;
	mr = &m->mrs.chunk[i / KEY_CHUNK][i % KEY_CHUNK];
	pd_get(m, attr->pd);
	row = key_at(&m->keys, i);
	*row = (struct key_row){
		.addr = attr->addr,
		.iova = attr->iova,
		.length = attr->length,
		.since = spt_renew(m, page_of(attr->addr),
				   pages_spanned(attr->addr, attr->length)),
		.mr = mr,
		.key = key_new(&m->keys, i),
		.pd = attr->pd,
		.access = attr->access,
		.state = KEY_LIVE,
		.gen = row->gen,
		.fault = (uint8_t)attr->fault,
	};
	*mr = (struct mr){
		.row = row,
		.index = i,
		.upcalls = attr->upcalls,
		.cookie = attr->cookie,
		.minimum = attr->minimum,
		.weight = attr->weight,
	};
	watch_add(m, mr, attr);
	watch_know(m, mr);
	*key = row->key;
	return 0;
}

/**
 * mr_replace() - See mr.h.
 * @m:		the NIC's memory
 * @old:	any
 * @attr, @key:	as in mr_register()
 */
int mr_replace(struct mem *m, uint32_t old, const struct mr_attr *attr,
	       uint32_t *key)
{
	struct mr *mr = mr_by_key(m, old);
	const bool watched = mr && mr->watched;
	int ret;

	if (watched)
		watch_remove(m, mr);
	ret = mr_register(m, attr, key);
	if (ret != 0 && watched)
		watch_put_back(m, mr);
	return ret;
}

/**
 * mr_query() - See mr.h.
 * @m:		the NIC's memory
 * @key:	any
 * @attr:	set on success
 */
int mr_query(struct mem *m, uint32_t key, struct mr_attr *attr)
{
	struct mr *mr = mr_by_key(m, key);

	if (!mr)
		return -ENOENT;
	mr_attr_copy(mr, attr);
	return 0;
}

/**
 * mr_change() - See mr.h.
 * @m:		the NIC's memory
 * @key:	any
 * @pd:		from pd_alloc()
 * @access:	enum access
 */
int mr_change(struct mem *m, uint32_t key, uint32_t pd, uint32_t access)
{
	struct mr *mr = mr_live(m, key);

	if (!mr)
		return -ENOENT;
	if (!access_valid(access))
		return -EINVAL;
	if (mr->row->holds > 0)
		return -EBUSY;
	pd_get(m, pd);
	pd_put(m, mr->row->pd);
	mr->row->pd = pd;
	mr->row->access = access;
	return 0;
}

/**
 * mr_set_fault() - See mr.h.
 * @m:		the NIC's memory
 * @key:	any
 * @fault:	STRATEGY_NONE: as the QP or the NIC says
 */
int mr_set_fault(struct mem *m, uint32_t key, enum strategy fault)
{
	struct mr *mr = mr_by_key(m, key);

	if (!mr)
		return -ENOENT;
	mr->row->fault = (uint8_t)fault;
	return 0;
}

static void mr_unreachable(struct mem *m, struct mr *mr)
{
	suspend_gone(m, mr);
	watch_remove(m, mr);
	mr->row->state = KEY_REVOKED;
}

/**
 * mr_revoke() - See mr.h. To revoke a region that a peer has invalidated already is fine.
 * @m:		the NIC's memory
 * @key:	any
 */
int mr_revoke(struct mem *m, uint32_t key)
{
	struct mr *mr = mr_by_key(m, key);

	if (!mr)
		return -ENOENT;
	mr_unreachable(m, mr);
	return 0;
}

/**
 * mr_free() - See mr.h.
 * @m:		the NIC's memory
 * @key:	any
 */
int mr_free(struct mem *m, uint32_t key)
{
	struct mr *mr = mr_by_key(m, key);

	if (!mr)
		return -ENOENT;
	mr_unreachable(m, mr);
	if (mr->row->holds > 0)
		return -EBUSY;
	pd_put(m, mr->row->pd);
	mr_let_go(mr);
	mr_pattern_gone(m, mr);
	mr_account_gone(m, mr);
	heap_free(mr->suspension);
	key_give_back(&m->keys, mr->index);
	return 0;
}

/**
 * mr_invalidate() - See mr.h.
 * @m:		the NIC's memory
 * @pd:		of the QP
 * @key:	as the peer or the program named it
 */
enum verdict mr_invalidate(struct mem *m, uint32_t pd, uint32_t key)
{
	struct mr *mr = mr_live(m, key);

	if (!mr || mr->row->pd != pd)
		return V_PROT;
	mr_unreachable(m, mr);
	return V_OK;
}

/**
 * mr_idle() - See mr.h. It is asked about a region that was revoked, invalidated or
 * suspended: a caller that promised that the key is dead waits for this, as moves resolved
 * before may still write. Asking changes nothing, and also works once the program has
 * deregistered the region.
 * @m:		the NIC's memory
 * @key:	any
 */
bool mr_idle(struct mem *m, uint32_t key)
{
	const struct mr *mr = mr_by_key(m, key);

	return !mr || mr->row->holds == 0;
}
