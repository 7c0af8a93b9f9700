/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* blocks.h: which blocks of an owner's memory a user knows to be ready. */
#ifndef NOPIN_SESSION_BLOCKS_H
#define NOPIN_SESSION_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/** struct block - @next: in its bucket. @newer, @older: in the order of use. */
struct block {
	uint64_t number;
	uint32_t next, newer, older;
};

/**
 * struct blocks - A set of at most @cap numbers of blocks, that used last goes last.
 * @bucket:	the first block of each chain
 * @spare:	the first one that is not used, chained by next
 */
struct blocks {
	struct block *block;
	uint32_t *bucket;
	uint32_t cap, num, spare, newest, oldest;
	unsigned bits;
};

enum { BLOCKS_MAX = 1 << 24 };

/** blocks_init() - Make an empty set. @cap: 1..BLOCKS_MAX. Return: 0; -EINVAL; -ENOMEM. */
int blocks_init(struct blocks *b, uint32_t cap);
void blocks_fini(struct blocks *b);
/** blocks_use() - Is it there? Then it is the one that was used last. */
bool blocks_use(struct blocks *b, uint64_t number);
/** blocks_add() - Add @number, or note that it is there: it is the one used last. Return:
 * true if another had to go, the one used least recently. */
bool blocks_add(struct blocks *b, uint64_t number);
/** blocks_drop() - Remove all of first..last. Return: how many there were. */
uint32_t blocks_drop(struct blocks *b, uint64_t first, uint64_t last);

#endif
