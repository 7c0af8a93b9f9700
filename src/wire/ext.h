/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ext.h: what nopin's own packets say by single bits (doc/wire.md). */
#ifndef NOPIN_WIRE_EXT_H
#define NOPIN_WIRE_EXT_H

/* Feature bits of a hello. */
enum hello_feature {
	HELLO_GRO = 1 << 0, /* bursts are received whole */
	HELLO_SUSPEND = 1 << 1, /* XACK_SUSPEND is understood */
	HELLO_NOTIFY = 1 << 2, /* and WRITEs that notify are */
};

/* What else an OP_X_OPEN says. */
enum open_flag {
	OPEN_ASK = 1 << 0, /* its sender does not know whether it is known */
	OPEN_SURE = 1 << 1, /* it knows the epoch of the receiver */
	OPEN_KNOWN = OPEN_ASK | OPEN_SURE,
};

/* What else an OP_X_ACK says. */
enum xack_flag {
	XACK_SACK = 1 << 0, /* sack is valid: bit i = accepted + 2 + i came */
	XACK_HOLD = 1 << 1, /* pages of `psn` are being fetched; packets from
			     * there on were forgotten; wait for XACK_RESUME */
	XACK_RESUME = 1 << 2, /* send again from `psn`, now */
	XACK_PROBE = 1 << 3, /* say at once where you are */
	XACK_PROBED = 1 << 4, /* this is the answer */
	XACK_FAULT = 1 << 5, /* RNR because of a page: costs no RNR retry */
	XACK_SUSPEND = 1 << 6, /* we wait for a region of ours: hold_us */
	XACK_TWICE = 1 << 7, /* what had been accepted came once more */
	XACK_KNOWN = XACK_SACK | XACK_HOLD | XACK_RESUME | XACK_PROBE |
		     XACK_PROBED | XACK_FAULT | XACK_SUSPEND | XACK_TWICE,
};

#endif
