/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pool.h: boxes with margins, out of a range of pages. It keeps account only:
 * the range may be in another process.
 */
#ifndef NOPIN_TESTS_VERIFY_POOL_H
#define NOPIN_TESTS_VERIFY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { POOL_PAGES = 8192, POOL_PAGE = 4096, MARGIN = 64, POOL_NONE = -1 };
#define POOL_BYTES ((size_t)POOL_PAGES * (size_t)POOL_PAGE)

struct pool {
	size_t next, free;
	bool used[POOL_PAGES];
};

/* With margins, and wherever in a cache line it starts. */
static inline size_t pool_pages(size_t length)
{
	return (3 * (size_t)MARGIN + length + POOL_PAGE - 1) / POOL_PAGE;
}

static inline bool pool_is_free(const struct pool *p, size_t first, size_t n)
{
	return first + n <= POOL_PAGES && !memchr(p->used + first, true, n);
}

/** pool_take() - A box for @length bytes that is as misaligned as @like.
 * What was given back longest ago is taken first.
 *
 * Return: where in the range the bytes begin, or POOL_NONE.
 */
static inline int64_t pool_take(struct pool *p, size_t length, uint64_t like)
{
	const size_t n = pool_pages(length);

	if (p->free < n)
		return POOL_NONE;
	for (size_t tried = 0; tried < POOL_PAGES; tried++) {
		const size_t first = (p->next + tried) % POOL_PAGES;

		if (!pool_is_free(p, first, n))
			continue;
		memset(p->used + first, true, n);
		p->free -= n;
		p->next = first + n;
		return (int64_t)(first * POOL_PAGE + MARGIN + like % MARGIN);
	}
	return POOL_NONE;
}

static inline void pool_give(struct pool *p, size_t offset, size_t length)
{
	const size_t n = pool_pages(length);

	memset(p->used + offset / POOL_PAGE, false, n);
	p->free += n;
}

#endif
