/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* heap.h: memory of the NIC's own objects (defined in os/).
 *
 * Not malloc(), because a fork() of the program must not make it copy-on-write:
 * a write to it would then wait for the end of the fork (design D7). A child
 * finds it zeroed (os_child()).
 * May be called by any thread.
 */
#ifndef NOPIN_BASE_HEAP_H
#define NOPIN_BASE_HEAP_H

#include <stddef.h>

/**
 * heap_alloc() - Allocate an object.
 * @bytes:	> 0; large ones stay untouched until they are used
 * Return: zeroed and aligned to 64 bytes; NULL when there is no memory.
 */
void *heap_alloc(size_t bytes);

/**
 * heap_alloc_ready() - Allocate as heap_alloc() does, but neither wait nor ask the host.
 * @bytes:	1..8192
 * Return: also NULL where heap_alloc() would have had to: try again later.
 */
void *heap_alloc_ready(size_t bytes);

/** heap_prepare() - See to it that heap_alloc_ready() has memory; may wait. */
void heap_prepare(void);

/** heap_array() - Allocate @n times @bytes, 0 or more, as heap_alloc() does. */
static inline void *heap_array(size_t n, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(n, bytes, &all))
		return NULL;
	return heap_alloc(all ? all : 1);
}

/**
 * heap_grow() - Resize @p to @bytes as realloc() does; what is new is zeroed.
 * @p:	from here, or NULL
 * Return: NULL when there is no memory; then @p is as it was.
 */
void *heap_grow(void *p, size_t bytes);

/** heap_free() - Free @p, which is from here, or NULL. */
void heap_free(void *p);

/**
 * heap_stack() - Allocate a thread's stack as heap_alloc() does.
 * Return: also NULL where the C library had better make it.
 */
void *heap_stack(size_t bytes);

/**
 * heap_own() - Return the one object of this process at @place, made when it is first
 * asked for. A child finds it zeroed, whatever kind of fork made it. Takes no lock.
 * @place:	a static pointer, NULL at first
 * Return: zeroed at first; never freed; NULL when there is no memory.
 */
void *heap_own(void **place, size_t bytes);

/** heap_before_fork() - Make all of it present: a first touch would wait, too. */
void heap_before_fork(void);

#endif
