/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timecode.h: times as a packet or an attribute says them, in five bits. */
#ifndef NOPIN_WIRE_TIMECODE_H
#define NOPIN_WIRE_TIMECODE_H

#include <stdint.h>

/** rnr_code_to_ns() - Convert a 5-bit RNR timer code (IBTA table 45) to ns. */
uint64_t rnr_code_to_ns(uint8_t code);

/** rnr_ns_to_code() - Choose the code of the shortest time that is at least @ns (or the
 * longest). */
uint8_t rnr_ns_to_code(uint64_t ns);

/** ack_timeout_to_ns() - Compute 4.096 us * 2^@code in ns; code 0 (no timeout):
 * UINT64_MAX. */
uint64_t ack_timeout_to_ns(uint8_t code);

#endif
