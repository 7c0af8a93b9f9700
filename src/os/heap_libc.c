/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* heap_libc.c: heap.h over the C library's memory, for the simulation and under
 * AddressSanitizer: what is freed is not used again unnoticed. A fork() makes it
 * copy-on-write.
 */
#include "base/check.h"
#include "base/heap.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

/**
 * struct block - Stands before an object.
 * @bytes:	what it was asked for with
 * @base:	what calloc() gave, which leaves large memory untouched
 */
struct block {
	_Alignas(ALIGN) size_t bytes;
	void *base;
};

void *heap_alloc(size_t bytes)
{
	int keep = errno;
	struct block *b;
	void *base;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	base = calloc(1, ALIGN + sizeof(*b) + bytes);
	errno = keep;
	if (!base)
		return NULL;
	b = (struct block *)(((uintptr_t)base + ALIGN - 1) & -(uintptr_t)ALIGN);
	b->bytes = bytes;
	b->base = base;
	return b + 1;
}

void *heap_alloc_ready(size_t bytes)
{
	return heap_alloc(bytes);
}

void heap_prepare(void)
{
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
		free(((struct block *)p)[-1].base);
}

void heap_before_fork(void)
{
}

void *heap_stack(size_t bytes)
{
	(void)bytes;
	return NULL;
}
