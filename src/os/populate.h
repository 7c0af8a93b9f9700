/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* populate.h: pages made present without being written to. */
#ifndef NOPIN_OS_POPULATE_H
#define NOPIN_OS_POPULATE_H

#include <stdbool.h>
#include <stdint.h>

/** struct populate - Result of making a range present. */
struct populate {
	uint64_t bytes; /* ready from the start */
	int error; /* of what is behind: 0, -EFAULT, -ENOMEM */
	bool writable;
	bool by_hand; /* the kernel refused some of it, user mode could */
};

/**
 * populate_range() - Make pages present without writing to them. May block.
 * @end_ns: begin no more pages, after the first, from then on
 */
struct populate populate_range(uint64_t addr, uint64_t bytes, bool write,
			       uint64_t end_ns);

/** populate_probe() - Find what is present from the start; brings in nothing. */
struct populate populate_probe(uint64_t addr, uint64_t bytes);

/** populate_in_child() - Forget what was the parent's. Context: fork_forget_parent(), before
 * anything else of os/ runs in a child. */
void populate_in_child(void);

#endif
