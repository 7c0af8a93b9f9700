/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wr_op.h: the operations of work requests. */
#ifndef NOPIN_RING_WR_OP_H
#define NOPIN_RING_WR_OP_H

#include <stdbool.h>
#include <stdint.h>

enum wr_op {
	WR_NONE,
#define WR_OP(name, flags, packet, wc) WR_##name,
#include "ring/wr_op.def"
#undef WR_OP
	WR_NUM
};

/*
 * SGES, INLINE: it takes data, and from the program at once
 * REMOTE: it names memory of the peer
 * READ: the peer answers with data; ATOMIC: with 8 bytes that were there before
 * LOCAL: the peer hears nothing of it
 * DATAGRAM: also without a connection
 */
enum wr_op_flag {
	WRO_SGES = 1 << 0,
	WRO_INLINE = 1 << 1,
	WRO_REMOTE = 1 << 2,
	WRO_READ = 1 << 3,
	WRO_ATOMIC = 1 << 4,
	WRO_LOCAL = 1 << 5,
	WRO_DATAGRAM = 1 << 6,
};

/* By enum wr_op. */
extern const uint8_t wr_op_flags[WR_NUM];

/** wr_op_is() - Has @op, an enum wr_op, any of @flags? */
static inline bool wr_op_is(uint8_t op, enum wr_op_flag flags)
{
	return wr_op_flags[op] & flags;
}

#endif
