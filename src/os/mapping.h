/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapping.h: the mappings of this process, as /proc tells them. */
#ifndef NOPIN_OS_MAPPING_H
#define NOPIN_OS_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** struct range - A half-open range of addresses. */
struct range {
	uint64_t start, end;
};

/** range_has() - Is @addr in @r? */
static inline bool range_has(const struct range *r, uint64_t addr)
{
	return addr >= r->start && addr < r->end;
}

/**
 * struct mapping - One line of maps, with smaps also what it is made of.
 * @anon:	private and of no file
 * @uffd:	registered with a userfaultfd (smaps only, as all below)
 * @thp:	a fault may bring in a huge page
 * @huge:	hugetlb
 * @device:	not ordinary memory
 * @locked:	it stays in memory
 * @swapped:	some of it is swapped out
 */
struct mapping {
	struct range range;
	bool read, write, anon;
	bool uffd, thp, huge, device, locked, swapped;
};

struct mapping_scan {
	int fd;
	bool smaps;
	size_t at, have;
	uint64_t pos;
	char buf[1536];
};

/**
 * mapping_first() - Begin to read @path, a maps or smaps file.
 * Return: 0 and the first mapping in @map; -errno: nothing is open.
 * Context: a thread of ours: the scan is larger than 2 KiB.
 */
int mapping_first(struct mapping_scan *s, const char *path,
		  struct mapping *map);

/** mapping_next() - Return: false at the end. */
bool mapping_next(struct mapping_scan *s, struct mapping *map);
void mapping_end(struct mapping_scan *s);

#endif
