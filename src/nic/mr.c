/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.c: protection domains and regions for the API edge, and prefetch. */
#include "nic/impl.h"

#include <errno.h>

int nic_pd_alloc(struct nic *nic, uint32_t *pd)
{
	int n;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	n = pd_alloc(nic->mem);
	nic_unlock(nic);
	if (n < 0)
		return n;
	*pd = (uint32_t)n;
	return 0;
}

int nic_pd_dealloc(struct nic *nic, uint32_t pd)
{
	int err;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	err = pd_dealloc(nic->mem, pd);
	nic_unlock(nic);
	return err;
}

int nic_mr_reg(struct nic *nic, const struct mr_attr *attr, uint32_t *key)
{
	int err;

	if (nic_child(nic))
		return -ENODEV;
	if (nic->cfg.pin && attr->length != UINT64_MAX) {
		err = os_lock_range(nic->os, attr->addr, attr->length, true);
		if (err)
			return err == -EAGAIN ? -ENOMEM : err;
	}
	nic_lock(nic);
	err = mr_register(nic->mem, attr, key);
	nic_unlock(nic);
	if (err && nic->cfg.pin && attr->length != UINT64_MAX)
		os_lock_range(nic->os, attr->addr, attr->length, false);
	return err;
}

int nic_mr_dereg(struct nic *nic, uint32_t key)
{
	struct mr_attr attr;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	err = mr_query(nic->mem, key, &attr);
	if (!err)
		err = mr_revoke(nic->mem, key);
	if (!err)
		while ((err = mr_free(nic->mem, key)) == -EBUSY)
			nic_wait_idle(nic);
	nic_unlock(nic);
	if (!err && nic->cfg.pin && attr.length != UINT64_MAX)
		os_lock_range(nic->os, attr.addr, attr.length, false);
	return err;
}

int nic_mr_query(struct nic *nic, uint32_t key, struct mr_attr *attr)
{
	int err;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	err = mr_query(nic->mem, key, attr);
	nic_unlock(nic);
	return err;
}

/* --- prefetch ------------------------------------------------------------------- */

static int advise_check(struct nic *nic, uint32_t pd, bool write,
			const struct sge *s, struct mr_attr *attr)
{
	if (mr_query(nic->mem, s->lkey, attr))
		return -EINVAL;
	if (attr->pd != pd)
		return -EPERM;
	if (write && !(attr->access & ACCESS_LOCAL_WRITE))
		return -EPERM;
	if (s->addr < attr->iova ||
	    !range_ok(s->addr - attr->iova, s->len, attr->length))
		return -EINVAL;
	return 0;
}

/* Lock held. Bring [addr, addr + len) in and wait until it is there. */
static int fetch_now(struct nic *nic, struct dma *d)
{
	struct waiter w;
	int err = 0;

	waiter_init(&w, NULL);
	while (d->len && !err) {
		uint64_t n = MIN(d->len, 64 * PAGE_BYTES);
		struct dma part = *d;
		enum verdict v;

		part.len = n;
		moves_reset(&nic->scratch.moves);
		nic->scratch.holds.num = 0;
		mem_inline_budget(nic->mem, 0);
		v = dma_resolve(nic->mem, &part, NULL, 0, os_now(nic->os),
				os_fresh_after(nic->os, os_now(nic->os)), &w,
				&nic->scratch.moves, &nic->scratch.holds);
		if (v == V_OK) {
			dma_release(nic->mem, &nic->scratch.holds, 0, false,
				    os_now(nic->os));
			d->iova += n;
			d->len -= n;
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
	struct os_page_req req = {.write = write,
				  .whole = true,
				  .probe = advice == NIC_PREFETCH_NO_FAULT};
	struct mr_attr attr;
	uint64_t addr;
	int err = advise_check(nic, pd, write, s, &attr);

	if (err || !s->len)
		return err;
	if (flush && !req.probe)
		return fetch_now(nic, &d);
	addr = attr.addr + (s->addr - attr.iova);
	req.addr = addr & ~(PAGE_BYTES - 1);
	req.bytes = pages_spanned(addr, s->len) << PAGE_SHIFT;
	os_page_ask(nic->os, &req); /* advice: a full queue loses nothing */
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
