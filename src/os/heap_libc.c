/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* heap_libc.c: heap.h over the C library's memory, for the simulation and under
 * AddressSanitizer: what is freed is not used again unnoticed. A fork() makes it
 * copy-on-write.
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/** struct block - Stands before an object. @bytes: what it was asked for with. */
struct block {
	_Alignas(64) size_t bytes;
};

void *heap_alloc(size_t bytes)
{
	size_t all = sizeof(struct block) + DIV_ROUND_UP(bytes, 64) * 64;
	struct block *b = bytes < SIZE_MAX / 2 ? aligned_alloc(64, all) : NULL;

	if (!b)
		return NULL;
	memset(b, 0, all);
	b->bytes = bytes;
	return b + 1;
}

void *heap_grow(void *p, size_t bytes)
{
	void *bigger = heap_alloc(bytes);

	if (bigger && p) {
		memcpy(bigger, p, MIN(((struct block *)p)[-1].bytes, bytes));
		heap_free(p);
	}
	return bigger;
}

void heap_free(void *p)
{
	if (p)
		free((struct block *)p - 1);
}

void heap_before_fork(void)
{
}

void *heap_stack(size_t bytes)
{
	(void)bytes;
	return NULL;
}
