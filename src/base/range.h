/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* range.h: the only bounds arithmetic in the tree. Ranges are half-open. */
#ifndef NOPIN_BASE_RANGE_H
#define NOPIN_BASE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * range_ok() - Does [off, off + len) lie inside [0, size)?
 * An empty range is inside at every off <= size. Never wraps.
 */
static inline bool range_ok(uint64_t off, uint64_t len, uint64_t size)
{
	return len <= size && off <= size - len;
}

/**
 * range_wraps() - Would the last byte of [start, start + len) lie beyond 2^64?
 */
static inline bool range_wraps(uint64_t start, uint64_t len)
{
	return len != 0 && start > UINT64_MAX - (len - 1);
}

/** sat_add() - Add @a and @b; UINT64_MAX if the sum does not fit. */
static inline uint64_t sat_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
