/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* psn.h: 24-bit serial arithmetic of packet sequence numbers (IBTA 9.7.1). */
#ifndef NOPIN_WIRE_PSN_H
#define NOPIN_WIRE_PSN_H

#include <stdint.h>

typedef uint32_t psn_t; /* always < 2^24 */

#define PSN_MASK UINT32_C(0xffffff)

/* The distance of two PSNs that tells which is ahead of the other. */
#define PSN_AHEAD_MAX INT32_C(0x7fffff)

static inline psn_t psn_add(psn_t a, uint32_t n)
{
	return (a + n) & PSN_MASK;
}

/** psn_diff() - Return the distance of @a ahead of @b, in [-2^23, 2^23). */
static inline int32_t psn_diff(psn_t a, psn_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
