/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* prefetch.c: pages that are brought in ahead of their use, or only looked for,
 * while nobody waits for them.
 *
 * Such a range is kept, and asked for in pieces, one of a range and few altogether
 * at a time: so no answer is long work for the engine, pagers are left for faults,
 * and no more is fetched when the region is gone.
 */
#include "nic/prefetch.h"
#include "base/check.h"
#include "base/list.h"
#include "base/page.h"
#include "base/range.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "nic/device.h"
#include "nic/memory.h"
#include "os/pages.h"
#include "ring/wqe.h"

#include <errno.h>

enum {
	PIECE_BYTES = 1 << 20,
	PIECES_OUT = 4,
};

int prefetch_check(struct nic *nic, uint32_t pd, bool write,
		   const struct sge *s, struct mr_attr *attr)
{
	if (mr_query(nic->mem, s->lkey, attr))
		return -EFAULT;
	if (attr->pd != pd)
		return -EINVAL;
	if (write && !(attr->access & ACCESS_LOCAL_WRITE))
		return -EFAULT;
	if (s->addr < attr->iova ||
	    !range_ok(s->addr - attr->iova, s->len, attr->length))
		return -EFAULT;
	return 0;
}

void prefetch_init(struct nic *nic)
{
	list_init(&nic->prefetch.idle);
	list_init(&nic->prefetch.queue);
	for (unsigned i = 0; i < PREFETCHES; i++)
		list_add_tail(&nic->prefetch.idle, &nic->prefetch.all[i].link);
}

/* Return: false: there is no next piece. */
static bool ask_piece(struct nic *nic, struct prefetch *p)
{
	struct os_page_req req = {.id = PREFETCH_ID +
					(uint64_t)(p - nic->prefetch.all),
				  .write = p->advice == NIC_PREFETCH_WRITE,
				  .probe = p->advice == NIC_PREFETCH_NO_FAULT,
				  .whole = true};
	struct mr_attr attr;
	uint64_t addr;
	uint32_t len;

	if (prefetch_check(nic, p->pd, req.write, &p->rest, &attr))
		return false;
	addr = attr.addr + (p->rest.addr - attr.iova);
	len = MIN(p->rest.len, PIECE_BYTES - (uint32_t)(addr % PIECE_BYTES));
	req.addr = addr & ~(PAGE_BYTES - 1);
	req.bytes = pages_spanned(addr, len) << PAGE_SHIFT;
	p->protects = nic->host.protects;
	p->rest.addr += len;
	p->rest.len -= len;
	return os_page_ask(nic->os, &req) == 0;
}

void prefetch_ask(struct nic *nic)
{
	struct list *queue = &nic->prefetch.queue;

	while (!list_empty(queue) && nic->prefetch.out < PIECES_OUT) {
		struct prefetch *p = list_entry(queue->next, struct prefetch,
						link);

		list_del(&p->link);
		if (ask_piece(nic, p))
			nic->prefetch.out++;
		else
			list_add_tail(&nic->prefetch.idle, &p->link);
	}
}

void prefetch_done(struct nic *nic, const struct os_page_done *d)
{
	const uint64_t now_ns = nic->x.now;
	struct prefetch *p = &nic->prefetch.all[d->id - PREFETCH_ID];
	bool more = p->rest.len && !d->error;

	bool writable = d->writable && p->protects == nic->host.protects;
	uint64_t vpn = page_of(d->addr), pages = d->bytes >> PAGE_SHIFT;

	if (p->advice == NIC_PREFETCH_NO_FAULT)
		spt_map(nic->mem, vpn, pages, writable, now_ns);
	else
		spt_map_ahead(nic->mem, vpn, pages, writable, now_ns,
			      os_fresh_after(nic->os, now_ns), p->rest.lkey);
	nic->prefetch.out--;
	list_add_tail(more ? &nic->prefetch.queue : &nic->prefetch.idle,
		      &p->link);
}

void prefetch_later(struct nic *nic, uint32_t pd, enum nic_advice advice,
		    const struct sge *s)
{
	struct list *l = nic->prefetch.idle.next;
	struct prefetch *p = list_entry(l, struct prefetch, link);

	if (list_empty(&nic->prefetch.idle))
		return;
	list_del(l);
	p->pd = pd;
	p->advice = advice;
	p->rest = *s;
	list_add_tail(&nic->prefetch.queue, l);
	prefetch_ask(nic);
}
