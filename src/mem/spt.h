/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spt.h: what the host tells of pages. */
#ifndef NOPIN_MEM_SPT_H
#define NOPIN_MEM_SPT_H

#include <stdbool.h>
#include <stdint.h>

struct mem;

/**
 * spt_map() - Note that pages are present (and writable). Never takes a right away.
 */
void spt_map(struct mem *m, uint64_t vpn, uint64_t pages, bool writable,
	     uint64_t now_ns);

/**
 * spt_map_ahead() - Note that pages are present, as spt_map() does, which were fetched for
 * the region of @key and which no access needs yet. What was known since @fresh_ns is
 * nothing new.
 */
void spt_map_ahead(struct mem *m, uint64_t vpn, uint64_t pages, bool writable,
		   uint64_t now_ns, uint64_t fresh_ns, uint32_t key);

/**
 * spt_unmap() - Note that pages are going away. Answers about them that are still to come
 * do not count.
 * Return: 0, or -EBUSY when some are held: nothing has changed then (an exact host waits
 * and repeats).
 */
int spt_unmap(struct mem *m, uint64_t vpn, uint64_t pages);

/**
 * spt_protect() - Note that pages become readable only (mprotect); tickets out for them
 * make them readable, no more. Return: as spt_unmap().
 */
int spt_protect(struct mem *m, uint64_t vpn, uint64_t pages);

/**
 * spt_absent() - Tell the program that some of these pages were found absent: it is told
 * of each that is known. For hosts that are not exact; others say so at once.
 */
void spt_absent(struct mem *m, uint64_t vpn, uint64_t pages);

/** spt_protect_all() - Note a fork(): every page is readable only, held or not. */
void spt_protect_all(struct mem *m);

/**
 * spt_held() - Is any of these pages under a hold? Only exact hosts hold pages;
 * false on others.
 */
bool spt_held(struct mem *m, uint64_t vpn, uint64_t pages);

#endif
