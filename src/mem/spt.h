/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spt.h: what the host tells of pages. */
#ifndef NOPIN_MEM_SPT_H
#define NOPIN_MEM_SPT_H

#include <stdbool.h>
#include <stdint.h>

struct mem;

/**
 * spt_map() - Pages are present (and writable). Never takes a right away.
 */
void spt_map(struct mem *m, uint64_t vpn, uint64_t pages, bool writable,
	     uint64_t now_ns);

/**
 * spt_map_ahead() - The same of pages that were fetched for the region of @key and
 * that nobody needs yet. What was known since @fresh_ns is nothing new.
 */
void spt_map_ahead(struct mem *m, uint64_t vpn, uint64_t pages, bool writable,
		   uint64_t now_ns, uint64_t fresh_ns, uint32_t key);

/**
 * spt_unmap() - Pages are going away. Answers about them that are
 * still to come do not count.
 * Return: 0, or -EBUSY when some are held (an exact host waits and repeats).
 */
int spt_unmap(struct mem *m, uint64_t vpn, uint64_t pages);

/**
 * spt_protect() - Pages become readable only (mprotect); tickets out for them
 * make them readable, no more. Return: as spt_unmap().
 */
int spt_protect(struct mem *m, uint64_t vpn, uint64_t pages);

/**
 * spt_absent() - Some of these pages were found absent: who was told that they are
 * known is told. For hosts that are not exact; others say so at once.
 */
void spt_absent(struct mem *m, uint64_t vpn, uint64_t pages);

/** spt_protect_all() - fork(): every page readable only. */
void spt_protect_all(struct mem *m);

/**
 * spt_held() - Is any of these pages under a hold? Only exact hosts hold pages;
 * false on others.
 */
bool spt_held(struct mem *m, uint64_t vpn, uint64_t pages);

#endif
