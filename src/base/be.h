/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* be.h: big-endian integers as types of their own, so that a missing swap
 * does not compile.
 */
#ifndef NOPIN_BASE_BE_H
#define NOPIN_BASE_BE_H

#include <stdint.h>

typedef struct {
	uint8_t b[2];
} be16_t;
typedef struct {
	uint8_t b[3];
} be24_t;
typedef struct {
	uint8_t b[4];
} be32_t;
typedef struct {
	uint8_t b[8];
} be64_t;

static inline uint16_t be16_get(be16_t v)
{
	return (uint16_t)(v.b[0] << 8 | v.b[1]);
}

static inline be16_t be16_put(uint16_t v)
{
	return (be16_t){{(uint8_t)(v >> 8), (uint8_t)v}};
}

static inline uint32_t be24_get(be24_t v)
{
	return (uint32_t)v.b[0] << 16 | (uint32_t)v.b[1] << 8 | v.b[2];
}

static inline be24_t be24_put(uint32_t v)
{
	return (be24_t){{(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v}};
}

static inline uint32_t be32_get(be32_t v)
{
	return (uint32_t)v.b[0] << 24 | (uint32_t)v.b[1] << 16 |
	       (uint32_t)v.b[2] << 8 | v.b[3];
}

static inline be32_t be32_put(uint32_t v)
{
	return (be32_t){{(uint8_t)(v >> 24), (uint8_t)(v >> 16),
			 (uint8_t)(v >> 8), (uint8_t)v}};
}

static inline uint64_t be64_get(be64_t v)
{
	be32_t hi = {{v.b[0], v.b[1], v.b[2], v.b[3]}};
	be32_t lo = {{v.b[4], v.b[5], v.b[6], v.b[7]}};

	return (uint64_t)be32_get(hi) << 32 | be32_get(lo);
}

static inline be64_t be64_put(uint64_t v)
{
	be32_t hi = be32_put((uint32_t)(v >> 32)), lo = be32_put((uint32_t)v);

	return (be64_t){{hi.b[0], hi.b[1], hi.b[2], hi.b[3], lo.b[0], lo.b[1],
			 lo.b[2], lo.b[3]}};
}

#endif
