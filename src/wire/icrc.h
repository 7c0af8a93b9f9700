/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* icrc.h: the checksums behind a packet: RoCEv2's over all of it, and that of an
 * extension packet over its headers.
 */
#ifndef NOPIN_WIRE_ICRC_H
#define NOPIN_WIRE_ICRC_H

#include "base/addr.h"
#include "wire/psn.h"
#include "wire/roce.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** struct path - What the IP and UDP headers say, for the ICRC. */
struct path {
	struct ipaddr src, dst;
	uint16_t sport, dport; /* host order */
};

/**
 * icrc() - Compute the RoCEv2 ICRC of a packet, IPv4 identification taken as @ident.
 * @iov,n:	the UDP payload without its last four bytes, in pieces; the
 *		first piece holds the whole BTH
 */
struct span {
	const void *p;
	size_t len;
};
uint32_t icrc(const struct path *path, uint16_t ident, const struct span *iov,
	      unsigned n);

/** icrc_store() - Put @crc at @trailer as the wire wants it. */
void icrc_store(uint32_t crc, uint8_t trailer[ICRC_BYTES]);
uint32_t icrc_load(const uint8_t trailer[ICRC_BYTES]);

/**
 * icrc_ok() - Is the trailer of @pkt (@total bytes, trailer included) right for
 * some IPv4 identification (see wire/icrc.c), or exactly right for IPv6?
 */
bool icrc_ok(const struct path *path, const uint8_t *pkt, size_t total);

/** xcrc() - Compute the trailer of an extension packet: CRC-32 over its headers only. */
uint32_t xcrc(const uint8_t *hdr, size_t hdr_len);

/**
 * xcrc_next() - Compute xcrc() of the XDATA_HDR bytes that only differ from those of
 * @crc in the PSN, which is @psn instead of the one before it.
 */
uint32_t xcrc_next(uint32_t crc, psn_t psn);

/** xcrc_ok() - Does @trailer hold xcrc() of these headers? */
bool xcrc_ok(const uint8_t *hdr, size_t hdr_len,
	     const uint8_t trailer[ICRC_BYTES]);

#endif
