/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.h: protection domains and regions, for the API edge.
 * Threads, errors and children of fork(): nic.h.
 */
#ifndef NOPIN_NIC_MEMORY_H
#define NOPIN_NIC_MEMORY_H

#include "base/strategy.h"
#include "mem/mr.h"
#include "ring/wqe.h"

struct nic;

int nic_pd_alloc(struct nic *nic, uint32_t *pd);
int nic_pd_dealloc(struct nic *nic, uint32_t pd);
int nic_mr_reg(struct nic *nic, const struct mr_attr *attr, uint32_t *key);
/** nic_mr_replace() - Register a region in place of @old (0: of none), which the caller
 * deregisters then (mr_replace()). */
int nic_mr_replace(struct nic *nic, uint32_t old, const struct mr_attr *attr,
		   uint32_t *key);
/**
 * nic_mr_change() - Give the region of @key, which stays, other rights and another PD.
 * Waits for moves that the old rights let in. Return: as mr_change(), but never -EBUSY;
 * or why the region is refused (reg_enter()).
 */
int nic_mr_change(struct nic *nic, uint32_t key, uint32_t pd, uint32_t access);
/** nic_mr_dereg() - Revoke, wait for moves that hold it (never for a pager). */
int nic_mr_dereg(struct nic *nic, uint32_t key);
int nic_mr_query(struct nic *nic, uint32_t key, struct mr_attr *attr);
/** nic_mr_set_fault() - Choose what answers missing pages of the region from now on.
 * Return: as nic_qp_set_fault(); -ENOENT. */
int nic_mr_set_fault(struct nic *nic, uint32_t key, enum strategy s);

/* The numbers are those of enum ib_uverbs_advise_mr_advice. */
enum nic_advice {
	NIC_PREFETCH,
	NIC_PREFETCH_WRITE,
	NIC_PREFETCH_NO_FAULT,
};
/**
 * nic_mr_advise() - Bring pages in (or only learn which are there).
 * @flush:	wait until it is done; else ranges beyond a bound are forgotten
 * Return: -EFAULT for an unmapped or protected range (when flushing), a bad key
 * or range, rights that the region lacks; -EINVAL: of another PD.
 */
int nic_mr_advise(struct nic *nic, uint32_t pd, enum nic_advice advice,
		  bool flush, const struct sge *sge, unsigned n);

#endif
