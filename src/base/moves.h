/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* moves.h: copies between NIC memory and application memory, as data.
 *
 * mem/dma.c makes them (resolved and checked), os/ executes them outside every
 * lock, xport/ gets the outcome back. `addr` is an application address: only
 * os/ may hand it to the kernel, nobody may dereference it.
 */
#ifndef NOPIN_BASE_MOVES_H
#define NOPIN_BASE_MOVES_H

#include <stdbool.h>
#include <stdint.h>

enum move_kind {
	MOVE_NONE,
	MOVE_GATHER, /* application -> NIC */
	MOVE_SCATTER, /* NIC -> application */
	MOVE_OVERWRITE, /* the same; what pages held is dropped first */
	MOVE_FETCH_ADD, /* *addr += operand, old value to result (8 bytes) */
	MOVE_CMP_SWP, /* if *addr == compare: *addr = operand; result = old */
	MOVE_NUM
};

/**
 * struct move - One contiguous copy, or one 8-byte atomic.
 * @addr:	application address
 * @nic:	NIC memory (packet, slot, header slab); NULL for atomics
 * @len:	bytes, > 0
 * @token:	left alone by os/: the owner's, e.g. which packet this is for
 * @operand:	atomics: what is added or swapped in (host order)
 * @compare:	MOVE_CMP_SWP: what is compared with
 * @drop, @drop_len: MOVE_OVERWRITE: range of whole pages, of which each has its
 *		first byte in the move
 * @result:	atomics: the value before
 */
struct move {
	uint64_t addr;
	void *nic;
	uint32_t len;
	uint8_t kind;
	uint16_t token;
	union {
		uint64_t operand, drop;
	};
	union {
		uint64_t compare, drop_len;
	};
	uint64_t result;
};

enum { MOVES_MAX = 192 };

/**
 * struct moves - A list that is executed in order and stops at the first
 * failure.
 * @num:	entries in use
 * @done:	out: entries executed whole; == num on success
 * @error:	out: 0, or that of entry @done, which may be half done: -EFAULT, or another
 *		-errno of the host
 */
struct moves {
	unsigned num;
	unsigned done;
	int error;
	struct move m[MOVES_MAX];
};

static inline void moves_reset(struct moves *mv)
{
	mv->num = mv->done = 0;
	mv->error = 0;
}

static inline unsigned moves_room(const struct moves *mv)
{
	return MOVES_MAX - mv->num;
}

#endif
