/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timecode.c: the two encodings of times: RNR NAK timer codes (IBTA 9.7.5.2.8,
 * table 45) and local ACK timeouts (9.7.6.1.3).
 */
#include "wire/timecode.h"
#include "base/timerq.h"

enum { RNR_UNIT_NS = 10000, RNR_CODES = 32, ACK_UNIT_NS = 4096 };

/* in units of 0.01 ms; code 0 is the longest */
static const uint32_t rnr_units[RNR_CODES] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t rnr_code_to_ns(uint8_t code)
{
	return (uint64_t)rnr_units[code % RNR_CODES] * RNR_UNIT_NS;
}

uint8_t rnr_ns_to_code(uint64_t ns)
{
	for (int code = 1; code < RNR_CODES; code++)
		if (rnr_code_to_ns((uint8_t)code) >= ns)
			return (uint8_t)code;
	return 0;
}

uint64_t ack_timeout_to_ns(uint8_t code)
{
	code %= 32;
	return code ? (uint64_t)ACK_UNIT_NS << code : TIME_NEVER;
}
