/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* release.c: after the moves that dma.c resolved: let their holds go, and note what they
 * told about pages.
 */
#include "base/check.h"
#include "base/list.h"
#include "base/moves.h"
#include "base/page.h"
#include "mem/ageing.h"
#include "mem/dma.h"
#include "mem/doubts.h"
#include "mem/fault.h"
#include "mem/holds.h"
#include "mem/key_table.h"
#include "mem/limits.h"
#include "mem/moving.h"
#include "mem/regions.h"
#include "mem/state.h"
#include "mem/table.h"

/* A move accessed these pages, so they are ready; an exact host says so
 * itself. If anything lost rights since the access was resolved, maybe these
 * pages did after the move: nothing is concluded then.
 */
static void hold_touch(struct mem *m, struct key_row *row, const struct hold *h)
{
	uint32_t gen = m->spt.gen << HOLD_GEN_SHIFT >> HOLD_GEN_SHIFT;

	if (m->cfg.exact || h->row >> HOLD_GEN_SHIFT != gen ||
	    h->touched == (uint32_t)m->spt.time.tick)
		return;
	for (uint64_t i = 0; i < h->pages; i++)
		spt_install(m, h->vpn + i, h->row & HOLD_WRITE,
			    key_region(row)->since, m->spt.time.tick);
}

/**
 * dma_release() - See dma.h.
 * @m:		the NIC's memory
 * @holds:	those from index @from on are dropped
 * @from:	index
 * @ok:		the moves were made: the pages were just touched
 * @now_ns:	now
 */
void dma_release(struct mem *m, struct holds *holds, unsigned from, bool ok,
		 uint64_t now_ns)
{
	spt_tick(&m->spt, now_ns);
	if (from == 0 && holds->num > 0)
		moving_remove(holds);
	for (unsigned i = from; i < holds->num; i++) {
		const struct hold *h = &holds->h[i];
		struct key_row *row = key_at(&m->keys, h->row & (KEYS_MAX - 1));

		key_unhold(row);
		m->holds--;
		if (unlikely(h->cheap))
			fault_cheap_end(m, holds->account, row->mr,
					now_ns - holds->cheap_ns);
		if (ok)
			hold_touch(m, row, h);
		if (unlikely(!list_empty(&m->moving_wait)))
			moving_wake(m, h);
		if (m->cfg.exact)
			for (uint64_t p = 0; p < h->pages; p++)
				spt_unhold(m, h->vpn + p);
	}
	holds->num = MIN(holds->num, from);
}

/**
 * dma_trim() - See dma.h.
 * @m:		the NIC's memory
 * @bytes:	so much less, of the last move; fewer than it has
 * @mv, @holds:	their last entries are from the same dma_resolve()
 */
void dma_trim(struct mem *m, uint64_t bytes, struct moves *mv,
	      struct holds *holds)
{
	struct hold *h = &holds->h[holds->num - 1];
	struct move *last = &mv->m[mv->num - 1];
	uint64_t pages;

	CHECK(mv->num > 0 && holds->num > 0 && bytes < last->len);
	CHECK(last->kind != MOVE_OVERWRITE);
	last->len -= (uint32_t)bytes;
	pages = pages_spanned(last->addr, last->len);
	for (uint64_t p = pages; m->cfg.exact && p < h->pages; p++)
		spt_unhold(m, h->vpn + p);
	h->pages = (uint32_t)pages;
}

/**
 * dma_fault() - See dma.h.
 * @m:		the NIC's memory
 * @addr, @len:	what the move was to access
 */
void dma_fault(struct mem *m, uint64_t addr, uint64_t len)
{
	uint64_t vpn = page_of(addr);
	uint64_t pages = pages_clip(vpn, pages_spanned(addr, len));

	spt_forget(m, vpn, pages);
	doubts_note(&m->doubts, (struct pages){vpn, vpn + pages});
}
