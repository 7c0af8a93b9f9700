/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.h: numbers of RoCEv2 (IBTA volume 1, chapter 9 and annex A17) and of nopin's
 * own packets (doc/wire.md) that a sender and a receiver share.
 */
#ifndef NOPIN_WIRE_ROCE_H
#define NOPIN_WIRE_ROCE_H

enum {
	ROCE_PORT = 4791,
	QPN_PORT_BASE = 49152, /* a nopin QPN's upper 14 bits + this = port */
	BTH_BYTES = 12,
	ICRC_BYTES = 4,
	MTU_MIN = 256,
	MTU_MAX = 4096,
	XDATA_HDR = 40, /* headers of an extension packet with payload */
	GRH_BYTES = 40, /* in front of every datagram received */
	PKT_HDR_MAX = 64, /* longest header that pkt_build() makes */
	PKEY_DEFAULT = 0xffff,
};

#endif
