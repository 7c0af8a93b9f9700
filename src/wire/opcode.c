/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* opcode.c: the table made of opcode.def, and the two questions a transport
 * asks of it: which opcode has this packet of a message (IBTA 9.4), and may
 * that one follow the last (9.7.4.1.2, "opcode sequence"). What is inside the
 * packets is parse.c's and build.c's.
 */
#include "wire/opcode.h"
#include "base/check.h"
#include "wire/hdr.h"
#include "wire/roce.h"
#include "wire/xhdr.h"

#define IF(flags, flag, bytes) ((flags) & (flag) ? (bytes) : 0)

#define STD_BYTES(f)                                                           \
	(BTH_BYTES + IF(f, OPF_DETH, sizeof(struct deth)) +                    \
	 IF(f, OPF_RETH, sizeof(struct reth)) +                                \
	 IF(f, OPF_ATOMICETH, sizeof(struct atomiceth)) +                      \
	 IF(f, OPF_AETH, sizeof(struct aeth)) +                                \
	 IF(f, OPF_ATOMICACKETH, sizeof(struct atomicacketh)) +                \
	 IF(f, OPF_IMM, sizeof(struct immdt)) +                                \
	 IF(f, OPF_INV, sizeof(struct ieth)))

#define XDATA_BYTES(f)                                                         \
	(BTH_BYTES + sizeof(struct xdata) +                                    \
	 IF(f, OPF_ATOMICETH, sizeof(struct xatomic)) +                        \
	 IF(f, OPF_ATOMICACKETH, sizeof(struct atomicacketh)))

static const struct op_info ops[256] = {
#define OP_STD(name, f) [OP_##name] = {#name, (f), STD_BYTES(f)},
#define OP_XDATA(name, f)                                                      \
	[OP_X_DATA | OP_##name] = {"X_" #name, (f) | OPF_EXT, XDATA_BYTES(f)},
#define OP_DATA(name, f)                                                       \
	OP_STD(name, f)                                                        \
	OP_XDATA(name, f)
#define OP_EXT(name, f, bytes) [OP_##name] = {#name, (f), (bytes)},
#include "wire/opcode.def"
#undef OP_STD
#undef OP_XDATA
#undef OP_DATA
#undef OP_EXT
};

const struct op_info *opcode_info(uint8_t opcode)
{
	static const struct op_info unknown = {"unknown", 0, 0};

	return ops[opcode].flags ? &ops[opcode] : &unknown;
}

uint8_t op_select(uint32_t flags)
{
	/* in the order middle, first, last, only */
	static const uint8_t send[4] = {OP_SEND_MIDDLE, OP_SEND_FIRST,
					OP_SEND_LAST, OP_SEND_ONLY};
	static const uint8_t write[4] = {OP_WRITE_MIDDLE, OP_WRITE_FIRST,
					 OP_WRITE_LAST, OP_WRITE_ONLY};
	static const uint8_t resp[4] = {OP_READ_RESP_MIDDLE, OP_READ_RESP_FIRST,
					OP_READ_RESP_LAST, OP_READ_RESP_ONLY};
	unsigned where = (flags & OPF_FIRST ? 1 : 0) +
			 (flags & OPF_LAST ? 2 : 0);
	uint32_t last = flags & OPF_LAST ? flags : 0;

	switch (flags & (OPF_SEND | OPF_WRITE | OPF_READ)) {
	case OPF_SEND:
		if (last & OPF_INV)
			return where == 3 ? OP_SEND_ONLY_INV : OP_SEND_LAST_INV;
		return send[where] + (last & OPF_IMM ? 1 : 0);
	case OPF_WRITE:
		if (last & OPF_NOTIFY)
			return where == 3 ? OP_WRITE_ONLY_NOTIFY
					  : OP_WRITE_LAST_NOTIFY;
		return write[where] + (last & OPF_IMM ? 1 : 0);
	default:
		CHECK(flags & OPF_READ);
		return resp[where];
	}
}

bool op_follows(uint32_t prev, uint32_t op)
{
	const uint32_t kind = OPF_REQUEST | OPF_RESPONSE | OPF_SEND |
			      OPF_WRITE | OPF_READ | OPF_ATOMIC | OPF_UD;

	if (!prev || prev & OPF_LAST)
		return op & OPF_FIRST;
	return !(op & OPF_FIRST) && (op & kind) == (prev & kind);
}
