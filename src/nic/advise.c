/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* advise.c: ibv_advise_mr(): a thread that waits for the pages (flush) asks and waits
 * like an access; else prefetch.c has them fetched.
 */
#include "base/check.h"
#include "base/page.h"
#include "base/verdict.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/use.h"
#include "mem/waiter.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/prefetch.h"
#include "nic/progress.h"
#include "os/pages.h"
#include "os/run.h"
#include "ring/wqe.h"

#include <errno.h>

/* Lock held, but between two parts. Bring [iova, iova + len) in and wait until
 * it is there: pieces that the table can hold, however pages share its sets. */
static int fetch_now(struct nic *nic, struct dma *d)
{
	const uint64_t piece = MIN(64, nic->cfg.entries / 4) * PAGE_BYTES;
	struct waiter w;
	int err = 0;

	waiter_init(&w, NULL);
	while (d->len && !err) {
		uint64_t n = MIN(d->len, piece);
		struct dma part = *d;
		enum verdict v;

		part.len = n;
		mem_inline_budget(nic->mem, 0);
		v = dma_fetch(nic->mem, &part, nic->x.now,
			      os_fresh_after(nic->os, nic->x.now), &w);
		if (v == V_OK) {
			d->iova += n;
			d->len -= n;
			nic_unlock(nic);
			nic_lock(nic);
		} else if (v == V_WAIT || v == V_NO_RESOURCE) {
			nic_wait_idle(nic);
		} else {
			err = -EFAULT;
		}
	}
	waiter_cancel(nic->mem, &w);
	return err;
}

static int advise_one(struct nic *nic, uint32_t pd, enum nic_advice advice,
		      bool flush, const struct sge *s)
{
	bool write = advice == NIC_PREFETCH_WRITE;
	struct dma d = {.pd = pd,
			.key = s->lkey,
			.iova = s->addr,
			.len = s->len,
			.need = write ? ACCESS_LOCAL_WRITE : 0,
			.write = write};
	struct mr_attr attr;
	int err = prefetch_check(nic, pd, write, s, &attr);

	if (err || !s->len)
		return err;
	if (flush && advice != NIC_PREFETCH_NO_FAULT)
		return fetch_now(nic, &d);
	prefetch_later(nic, pd, advice, s);
	return 0;
}

int nic_mr_advise(struct nic *nic, uint32_t pd, enum nic_advice advice,
		  bool flush, const struct sge *sge, unsigned n)
{
	int err = 0;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	for (unsigned i = 0; i < n && !err; i++)
		err = advise_one(nic, pd, advice, flush, &sge[i]);
	nic_unlock(nic);
	return err;
}
