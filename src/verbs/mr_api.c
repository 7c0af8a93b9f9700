/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr_api.c: registering memory, and advice about it. Every region is paged on
 * demand, whether or not the program asked for that; what the range contains is
 * not looked at (mem/ and os/ do when it is used).
 */
#include "verbs/mr_api.h"
#include "base/range.h"
#include "nic/memory.h"
#include "verbs/object.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* ACCESS_* that mean something to mem/ */
	KNOWN = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
		ACCESS_REMOTE_ATOMIC | ACCESS_MW_BIND | ACCESS_ZERO_BASED |
		ACCESS_ON_DEMAND | ACCESS_RELAXED_ORDERING,
	/* hints that may be ignored */
	IGNORED = IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE,
};

int access_from_verbs(unsigned int access, uint32_t *out)
{
	const uint32_t needs_write = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;

	if (access & ~(unsigned int)(KNOWN | IGNORED))
		return -EINVAL;
	if (access & needs_write && !(access & ACCESS_LOCAL_WRITE))
		return -EINVAL;
	*out = access & KNOWN;
	return 0;
}

/* The whole address space is asked for as NULL and SIZE_MAX, and only by programs
 * that know what on-demand paging is.
 */
static int check_range(uint64_t addr, uint64_t length, uint64_t iova,
		       uint32_t access)
{
	if (addr == 0 && length == UINT64_MAX)
		return access & ACCESS_ON_DEMAND && iova == 0 ? 0 : -EINVAL;
	if (length == 0 || range_wraps(addr, length) ||
	    range_wraps(iova, length))
		return -EINVAL;
	return 0;
}

struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length,
		      uint64_t iova, unsigned int access, struct mr_attr more)
{
	struct vctx *ctx = vctx_of(pd->context);
	struct mr_attr attr = more;
	struct vmr *mr;
	uint32_t key;
	int rc;

	attr.pd = pd->handle;
	attr.addr = (uintptr_t)addr;
	attr.iova = iova;
	attr.length = length;
	rc = access_from_verbs(access, &attr.access);
	if (!rc)
		rc = check_range(attr.addr, length, iova, attr.access);
	if (rc)
		return fail(-rc);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return fail(ENOMEM);
	attr.cookie = &mr->base;
	rc = nic_mr_reg(ctx->nic, &attr, &key);
	if (rc) {
		free(mr);
		return fail(-rc);
	}
	mr->base = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.handle = key,
		.lkey = key,
		.rkey = key,
	};
	vobj_add(ctx, &mr->obj, VOBJ_MR);
	return &mr->base;
}

/* As verbs have it. */
static struct ibv_mr *reg_plain(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	return reg_mr(pd, addr, length, iova, access,
		      (struct mr_attr){.minimum = 0});
}

/* Where a region begins for requests that use its key. */
static uint64_t start_of(void *addr, unsigned int access)
{
	return access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	return reg_plain(pd, addr, length, start_of(addr, (unsigned)access),
			 (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access)
{
	return reg_plain(pd, addr, length, iova, (unsigned)access);
}

/* What ibv_reg_mr() becomes when its access flags are not constant: @iova is
 * the address then, also for zero-based regions.
 */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	if (iova == (uintptr_t)addr)
		iova = start_of(addr, access);
	return reg_plain(pd, addr, length, iova, access);
}

/* What @flags say of the new region; the rest is as it was. Where a region begins
 * belongs to its translation. */
static int rereg_attr(struct mr_attr *attr, int flags, struct ibv_pd *pd,
		      void *addr, size_t length, int access)
{
	if (flags & IBV_REREG_MR_CHANGE_PD)
		attr->pd = pd->handle;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		const uint32_t was = attr->access;
		int rc = access_from_verbs((unsigned)access, &attr->access);

		if (!rc && !(flags & IBV_REREG_MR_CHANGE_TRANSLATION) &&
		    (was ^ attr->access) & ACCESS_ZERO_BASED)
			rc = -EINVAL;
		if (rc)
			return rc;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		attr->addr = (uintptr_t)addr;
		attr->length = length;
		attr->iova = start_of(addr, attr->access);
	}
	return check_range(attr->addr, attr->length, attr->iova, attr->access);
}

/* In place, or (a key that is no more, or a new range) by a new region, and then the
 * old one goes when nothing can fail any more. Return: 0 or -errno. */
static int change_or_replace(struct ibv_mr *mr, int flags,
			     const struct mr_attr *attr)
{
	struct nic *nic = vctx_of(mr->context)->nic;
	int rc = -ENOENT;
	uint32_t key;

	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION))
		rc = nic_mr_change(nic, mr->handle, attr->pd, attr->access);
	if (rc != -ENOENT)
		return rc;
	rc = nic_mr_replace(nic, mr->handle, attr, &key);
	if (rc)
		return rc;
	nic_mr_dereg(nic, mr->handle);
	mr->handle = mr->lkey = mr->rkey = key;
	return 0;
}

static bool rereg_flags_ok(const struct ibv_mr *mr, int flags,
			   const struct ibv_pd *pd)
{
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || !flags)
		return false;
	return !(flags & IBV_REREG_MR_CHANGE_PD) ||
	       (pd && pd->context == mr->context);
}

/**
 * ibv_rereg_mr() - Change a region as @flags say. Its keys stay, but those of a region
 * that gets another range, or that a peer has invalidated.
 * Return: 0 or IBV_REREG_MR_ERR_INPUT, with errno: the old region is as it was.
 */
int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	struct mr_attr attr;
	int rc = -EINVAL;

	if (rereg_flags_ok(mr, flags, pd))
		rc = nic_mr_query(vctx_of(mr->context)->nic, mr->handle, &attr);
	if (!rc)
		rc = rereg_attr(&attr, flags, pd, addr, length, access);
	if (!rc)
		rc = change_or_replace(mr, flags, &attr);
	if (rc) {
		errno = -rc;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		mr->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct vmr *mr = container_of(ibmr, struct vmr, base);

	if (mr->obj.ctx) {
		int rc = nic_mr_dereg(mr->obj.ctx->nic, mr->base.handle);

		if (rc)
			return -rc;
		vobj_del(&mr->obj);
	}
	free(mr);
	return 0;
}

static int advise_some(struct ibv_pd *pd, enum nic_advice advice, bool flush,
		       const struct ibv_sge *from, unsigned n)
{
	struct sge sge[32];

	for (unsigned i = 0; i < n; i++)
		sge[i] = (struct sge){
			.addr = from[i].addr,
			.len = from[i].length,
			.lkey = from[i].lkey,
		};
	return -nic_mr_advise(vctx_of(pd->context)->nic, pd->handle, advice,
			      flush, sge, n);
}

int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
	      uint32_t flags, struct ibv_sge *sge, uint32_t num)
{
	const bool flush = flags & IBV_ADVISE_MR_FLAG_FLUSH;
	int rc = 0;

	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || num == 0)
		return EINVAL;
	if ((unsigned)advice > NIC_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	for (uint32_t at = 0; at < num && !rc; at += 32)
		rc = advise_some(pd, (enum nic_advice)advice, flush, sge + at,
				 MIN(num - at, 32));
	return rc;
}
