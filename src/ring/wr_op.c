/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wr_op.c: the table made of wr_op.def. */
#include "ring/wr_op.h"

const uint8_t wr_op_flags[WR_NUM] = {
#define WR_OP(name, flags, packet, wc) [WR_##name] = (flags),
#include "ring/wr_op.def"
#undef WR_OP
};
