/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* prefetch.h: ranges that are brought in while nobody waits. The engine lock is held
 * for every function. */
#ifndef NOPIN_NIC_PREFETCH_H
#define NOPIN_NIC_PREFETCH_H

#include "base/list.h"
#include "nic/memory.h"
#include "ring/wqe.h"

struct mr_attr;
struct nic;
struct os_page_done;

enum { PREFETCHES = 128 };

/* What the pagers are asked for a prefetch: + its index; tickets' are less. */
#define PREFETCH_ID (UINT64_C(1) << 32)

/**
 * struct prefetch - A range that is brought in while nobody waits.
 * @link:	unless a piece of it is with the pagers
 * @rest:	what was not asked for yet
 * @protects:	nic.host.protects when the last piece was asked for
 */
struct prefetch {
	struct list link;
	uint32_t pd;
	enum nic_advice advice;
	struct sge rest;
	uint64_t protects;
};

/** struct prefetches - @out: pieces with the pagers. */
struct prefetches {
	struct prefetch all[PREFETCHES];
	struct list idle, queue;
	unsigned out;
};

void prefetch_init(struct nic *nic);

/** prefetch_check() - Check that [s->addr, + s->len) of @pd may be fetched (@write: to be
 * written). Return: 0, with @attr of its region; -EFAULT; -EINVAL: another PD's. */
int prefetch_check(struct nic *nic, uint32_t pd, bool write,
		   const struct sge *s, struct mr_attr *attr);

/** prefetch_later() - Keep @s, which was checked, to be fetched. It is advice: what
 * cannot be kept is lost. */
void prefetch_later(struct nic *nic, uint32_t pd, enum nic_advice advice,
		    const struct sge *s);

/** prefetch_ask() - Hand the next pieces to the pagers. */
void prefetch_ask(struct nic *nic);

/** prefetch_done() - Note in the table the pages of an answer with PREFETCH_ID or more,
 * and queue what is left of its range, unless that failed. */
void prefetch_done(struct nic *nic, const struct os_page_done *d);

#endif
