/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* grh.h: the global route header in front of every datagram received. */
#ifndef NOPIN_WIRE_GRH_H
#define NOPIN_WIRE_GRH_H

#include "wire/pkt.h"
#include "wire/roce.h"

#include <stdint.h>

/**
 * grh_build() - Build the global route header that is put in front of a datagram: of
 * IPv6 its own, of IPv4 that in the last 20 bytes (IBTA A17.4.5). Where the mark is not
 * known (datagrams that another NIC passed on) traffic class and hop limit are 0 and 64.
 */
void grh_build(const struct pkt *pkt, uint8_t out[GRH_BYTES]);

#endif
