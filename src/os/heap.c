/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* heap.c: memory of the NIC's own objects, of which fork() makes no copy.
 *
 * Theory of operation. Spans of anonymous memory that a child gets zeroed: so
 * the pages of the parent stay writable, and none of its threads has to wait
 * for a fork() that is going on. A large object has a span of its own; small
 * ones are carved from a chunk and, when freed, kept in a list for their size,
 * which is rounded up to 64 bytes. The heap's state is in such memory itself,
 * so a child that opens a NIC begins with an empty heap.
 * Before a fork() every page is made present, because a first touch would wait,
 * too.
 */
#include "os/impl.h"

#include <string.h>
#include <sys/mman.h>

enum {
	ALIGN = 64,
	CHUNK = 256 * 1024,
	LARGE = 16 * 1024,
	CLASSES = LARGE / ALIGN,
	STACK_USED = 64 * 1024, /* the most that a thread of ours needs */
};

static_assert(STACK_USED > LARGE, "a stack has a span of its own");

/** struct block - Stands before an object. @bytes: with this. */
struct block {
	_Alignas(ALIGN) size_t bytes;
	struct block *next;
};

/**
 * struct span - Stands at the start of each mapping of @bytes.
 * @unused:	so many of them need not be present: the far end of a stack
 */
struct span {
	_Alignas(ALIGN) struct list link;
	size_t bytes, unused;
};

struct heap {
	struct span span;
	pthread_mutex_t lock;
	struct list spans;
	uint8_t *at, *end; /* what is left of the chunk */
	struct block *unused[CLASSES];
};

static pthread_once_t heap_once = PTHREAD_ONCE_INIT;
static struct heap *heap;

static void *span_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct span *s = p;

	if (p == MAP_FAILED)
		return NULL;
	if (sys_madvise((uintptr_t)p, bytes, MADV_WIPEONFORK) < 0) {
		munmap(p, bytes);
		return NULL;
	}
	s->bytes = bytes;
	return s;
}

static void heap_open(void)
{
	heap = span_map(DIV_ROUND_UP(sizeof(*heap), PAGE_BYTES) * PAGE_BYTES);
}

/* Return: with the lock; NULL: no memory. All zero is also the state of a mutex
 * that nobody holds, which is what a child finds. */
static struct heap *heap_get(void)
{
	pthread_once(&heap_once, heap_open);
	if (!heap)
		return NULL;
	pthread_mutex_lock(&heap->lock);
	if (!heap->spans.next)
		list_init(&heap->spans);
	return heap;
}

static struct block *large_alloc(struct heap *h, size_t bytes)
{
	const size_t all = DIV_ROUND_UP(sizeof(struct span) + bytes,
					PAGE_BYTES) *
			   PAGE_BYTES;
	struct span *s = span_map(all);

	if (!s)
		return NULL;
	list_add_tail(&h->spans, &s->link);
	return (struct block *)(s + 1);
}

static void unused_put(struct heap *h, struct block *b)
{
	struct block **list = &h->unused[b->bytes / ALIGN - 1];

	b->next = *list;
	*list = b;
}

/* What is left of the old chunk is smaller than a small object. */
static bool chunk_next(struct heap *h)
{
	struct span *s = span_map(CHUNK);
	struct block *rest = (struct block *)h->at;

	if (!s)
		return false;
	list_add_tail(&h->spans, &s->link);
	if (h->at != h->end) {
		rest->bytes = (size_t)(h->end - h->at);
		unused_put(h, rest);
	}
	h->at = (uint8_t *)(s + 1);
	h->end = (uint8_t *)s + CHUNK;
	return true;
}

static struct block *small_alloc(struct heap *h, size_t bytes)
{
	struct block **unused = &h->unused[bytes / ALIGN - 1], *b = *unused;

	if (b) {
		*unused = b->next;
	} else {
		if ((size_t)(h->end - h->at) < bytes && !chunk_next(h))
			return NULL;
		b = (struct block *)h->at;
		h->at += bytes;
	}
	memset(b, 0, bytes);
	return b;
}

static void *heap_alloc_from(struct heap *h, size_t bytes)
{
	struct block *b;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = sizeof(*b) + DIV_ROUND_UP(bytes, ALIGN) * ALIGN;
	b = bytes > LARGE ? large_alloc(h, bytes) : small_alloc(h, bytes);
	if (!b)
		return NULL;
	b->bytes = bytes;
	return b + 1;
}

void *heap_alloc(size_t bytes)
{
	int keep = errno;
	struct heap *h;
	void *p = NULL;

	h = heap_get();
	if (h) {
		p = heap_alloc_from(h, bytes);
		pthread_mutex_unlock(&h->lock);
	}
	errno = keep;
	return p;
}

void heap_free(void *p)
{
	int keep = errno;
	struct block *b;
	struct heap *h;
	struct span *s;

	if (!p)
		return;
	b = (struct block *)p - 1;
	s = (struct span *)b - 1;
	h = heap_get();
	if (b->bytes > LARGE) {
		list_del(&s->link);
		munmap(s, s->bytes);
	} else {
		unused_put(h, b);
	}
	pthread_mutex_unlock(&h->lock);
	errno = keep;
}

void *heap_grow(void *p, size_t bytes)
{
	void *bigger = heap_alloc(bytes);

	if (bigger && p) {
		size_t had = ((struct block *)p)[-1].bytes -
			     sizeof(struct block);

		memcpy(bigger, p, MIN(had, bytes));
		heap_free(p);
	}
	return bigger;
}

void heap_before_fork(void)
{
	struct heap *h = heap;

	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	if (h->spans.next)
		list_for_each(l, &h->spans) {
			struct span *s = list_entry(l, struct span, link);

			(void)sys_madvise((uintptr_t)s + s->unused,
					  s->bytes - s->unused,
					  MADV_POPULATE_WRITE);
		}
	pthread_mutex_unlock(&h->lock);
}

void *heap_stack(size_t bytes)
{
	struct block *b = heap_alloc(bytes);
	struct span *s;

	if (!b || bytes <= STACK_USED)
		return b;
	s = (struct span *)(b - 1) - 1;
	pthread_mutex_lock(&heap->lock); /* heap_before_fork() reads it */
	s->unused = (bytes - STACK_USED) & -(size_t)PAGE_BYTES;
	pthread_mutex_unlock(&heap->lock);
	return b;
}
