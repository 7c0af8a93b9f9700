/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* opcode.h: BTH opcodes, what each carries, and which may follow which. */
#ifndef NOPIN_WIRE_OPCODE_H
#define NOPIN_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* BTH opcodes of reliable connection, and nopin's (manufacturer range). An
 * extension data packet has the opcode OP_X_DATA | the RC opcode. */
enum bth_opcode {
	OP_SEND_FIRST = 0x00,
	OP_SEND_MIDDLE,
	OP_SEND_LAST,
	OP_SEND_LAST_IMM,
	OP_SEND_ONLY,
	OP_SEND_ONLY_IMM,
	OP_WRITE_FIRST,
	OP_WRITE_MIDDLE,
	OP_WRITE_LAST,
	OP_WRITE_LAST_IMM,
	OP_WRITE_ONLY,
	OP_WRITE_ONLY_IMM,
	OP_READ_REQ,
	OP_READ_RESP_FIRST,
	OP_READ_RESP_MIDDLE,
	OP_READ_RESP_LAST,
	OP_READ_RESP_ONLY,
	OP_ACK,
	OP_ATOMIC_ACK,
	OP_CMP_SWP,
	OP_FETCH_ADD,
	OP_SEND_LAST_INV = 0x16,
	OP_SEND_ONLY_INV = 0x17,
	OP_WRITE_LAST_NOTIFY = 0x18, /* extension packets only, and the next */
	OP_WRITE_ONLY_NOTIFY = 0x19,
	OP_UD_SEND_ONLY = 0x64,
	OP_UD_SEND_ONLY_IMM = 0x65,
	OP_X_HELLO = 0xc0, /* are you a nopin? */
	OP_X_HELLO_REPLY = 0xc1,
	OP_X_FORWARD = 0xc2, /* from the holder of 4791: a packet as it came */
	OP_X_ACK = 0xc3, /* placed, accepted, what is missing, credit */
	OP_X_OPEN = 0xc4, /* is that a QP of yours, connected to me? */
	OP_X_DATA = 0xe0, /* | RC opcode: any RC packet but ACK */
};

/* Properties of an opcode, from opcode.def. */
enum op_flag {
	OPF_REQUEST = 1 << 0,
	OPF_RESPONSE = 1 << 1,
	OPF_FIRST = 1 << 2, /* begins a message (FIRST and ONLY) */
	OPF_LAST = 1 << 3, /* ends a message (LAST and ONLY) */
	OPF_SEND = 1 << 4,
	OPF_WRITE = 1 << 5,
	OPF_READ = 1 << 6, /* READ request or response */
	OPF_ATOMIC = 1 << 7,
	OPF_IMM = 1 << 8,
	OPF_INV = 1 << 9, /* IETH */
	OPF_RETH = 1 << 10,
	OPF_AETH = 1 << 11,
	OPF_ATOMICETH = 1 << 12,
	OPF_ATOMICACKETH = 1 << 13,
	OPF_DETH = 1 << 14,
	OPF_PAYLOAD = 1 << 15, /* may carry payload */
	OPF_EXT = 1 << 16, /* an extension packet */
	OPF_UD = 1 << 17,
	OPF_NOTIFY = 1 << 18, /* raises a counter */
};

/** struct op_info - One row of opcode.def; @flags 0: no such opcode. */
struct op_info {
	const char *name;
	uint32_t flags;
	uint8_t hdr_bytes; /* BTH and all extended headers */
};

/** opcode_info() - Find the row of @opcode, any byte. Never NULL. */
const struct op_info *opcode_info(uint8_t opcode);

/**
 * op_select() - Choose the RC opcode of one packet of a message.
 * @flags:	one of OPF_SEND, OPF_WRITE, OPF_READ (a READ response), with
 *		OPF_FIRST and OPF_LAST as the packet is the message's first or
 *		last; OPF_IMM, OPF_INV or OPF_NOTIFY as the message has it (only the
 *		last packet's opcode shows it); other bits do not matter
 */
uint8_t op_select(uint32_t flags);

/**
 * op_follows() - May a packet with flags @op come after one with @prev, in one
 * direction of one QP? A message must be whole before the next one begins.
 * @prev:	0: there was none yet
 */
bool op_follows(uint32_t prev, uint32_t op);

#endif
