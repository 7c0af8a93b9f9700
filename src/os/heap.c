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
 * A thread that runs the engine waits for no other: it takes what a chunk has left, which
 * others see to (heap_alloc_ready(), heap_prepare()).
 */
#include "base/heap.h"
#include "base/check.h"
#include "base/list.h"
#include "base/page.h"
#include "os/sys_memory.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum {
	ALIGN = 64,
	CHUNK = 256 * 1024,
	LARGE = 16 * 1024,
	CLASSES = LARGE / ALIGN,
	READY = 64 * 1024, /* what heap_prepare() leaves in the chunk */
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
 * @fork:	the fork that last made it present, as heap.forks counts them
 */
struct span {
	_Alignas(ALIGN) struct list link;
	size_t bytes, unused;
	uint64_t fork;
};

struct heap {
	pthread_mutex_t lock;
	struct list spans; /* those that are present already are last */
	uint64_t forks;
	uint8_t *at, *end; /* what is left of the chunk */
	struct block *unused[CLASSES];
};

static void *heap_place;

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

/* Return: NULL before anything was allocated. */
static struct heap *heap_there(void)
{
	return __atomic_load_n(&heap_place, __ATOMIC_ACQUIRE);
}

/* Return: with the lock; NULL: no memory. All zero is also the state of a mutex
 * that no thread holds, which is what a child finds. */
static struct heap *heap_get(void)
{
	struct heap *heap = heap_own(&heap_place, sizeof(*heap));

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

	struct block *b;

	if (!s)
		return NULL;
	list_insert_after(&h->spans, &s->link);
	b = (struct block *)(s + 1);
	b->bytes = bytes;
	return b;
}

static void unused_put(struct heap *h, struct block *b)
{
	struct block **list = &h->unused[b->bytes / ALIGN - 1];

	b->next = *list;
	*list = b;
}

/* The rest of the old chunk becomes objects of its own. */
static void chunk_put(struct heap *h, struct span *s)
{
	struct block *rest;

	list_insert_after(&h->spans, &s->link);
	while (h->at != h->end) {
		rest = (struct block *)h->at;
		rest->bytes = MIN((size_t)(h->end - h->at), (size_t)LARGE);
		h->at += rest->bytes;
		unused_put(h, rest);
	}
	h->at = (uint8_t *)(s + 1);
	h->end = (uint8_t *)s + CHUNK;
}

/* Return: NULL: the chunk is used up. */
static struct block *small_alloc(struct heap *h, size_t bytes)
{
	struct block **unused = &h->unused[bytes / ALIGN - 1], *b = *unused;

	if (b) {
		*unused = b->next;
	} else {
		if ((size_t)(h->end - h->at) < bytes)
			return NULL;
		b = (struct block *)h->at;
		h->at += bytes;
	}
	memset(b, 0, bytes);
	b->bytes = bytes;
	return b;
}

static struct block *small_alloc_or_map(struct heap *h, size_t bytes)
{
	struct block *b = small_alloc(h, bytes);
	struct span *s;

	if (b)
		return b;
	s = span_map(CHUNK);
	if (!s)
		return NULL;
	chunk_put(h, s);
	return small_alloc(h, bytes);
}

/* With what stands before it. 0: too many. */
static size_t block_bytes(size_t bytes)
{
	if (bytes > SIZE_MAX / 2)
		return 0;
	return sizeof(struct block) + DIV_ROUND_UP(bytes, ALIGN) * ALIGN;
}

void *heap_alloc(size_t bytes)
{
	size_t all = block_bytes(bytes);
	int keep = errno;
	struct block *b = NULL;
	struct heap *h;

	h = all > 0 ? heap_get() : NULL;
	if (h) {
		b = all > LARGE ? large_alloc(h, all)
				: small_alloc_or_map(h, all);
		pthread_mutex_unlock(&h->lock);
	}
	errno = keep;
	return b ? b + 1 : NULL;
}

void *heap_alloc_ready(size_t bytes)
{
	size_t all = block_bytes(bytes);
	struct heap *heap = heap_there();
	struct block *b;

	if (all == 0 || all > LARGE || !heap ||
	    pthread_mutex_trylock(&heap->lock) != 0)
		return NULL;
	b = small_alloc(heap, all);
	pthread_mutex_unlock(&heap->lock);
	return b ? b + 1 : NULL;
}

static bool heap_ready(const struct heap *h)
{
	return h->end - h->at >= READY;
}

void heap_prepare(void)
{
	int keep = errno;
	struct heap *h = heap_get();
	struct span *s = NULL;
	bool enough;

	if (!h)
		return;
	enough = heap_ready(h);
	pthread_mutex_unlock(&h->lock);
	if (!enough)
		s = span_map(CHUNK);
	if (s) {
		/* Not under the lock, for this may wait. */
		(void)sys_madvise((uintptr_t)s, CHUNK, MADV_POPULATE_WRITE);
		pthread_mutex_lock(&h->lock);
		enough = heap_ready(h);
		if (!enough)
			chunk_put(h, s);
		pthread_mutex_unlock(&h->lock);
		if (enough)
			munmap(s, CHUNK);
	}
	errno = keep;
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
	s = b->bytes > LARGE ? (struct span *)b - 1 : NULL;
	h = heap_get();
	if (s)
		list_del(&s->link);
	else
		unused_put(h, b);
	pthread_mutex_unlock(&h->lock);
	if (s)
		munmap(s, s->bytes);
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

/* One that is not present for this fork yet; from now on it is. */
static struct span *span_next(struct heap *h)
{
	struct span *s;

	if (!h->spans.next || list_empty(&h->spans))
		return NULL;
	s = list_entry(h->spans.next, struct span, link);
	if (s->fork == h->forks)
		return NULL;
	s->fork = h->forks;
	list_del(&s->link);
	list_add_tail(&h->spans, &s->link);
	return s;
}

/* Not under the lock, for it may wait for others. If the span goes meanwhile,
 * nothing is populated, or a few pages of what came in its place. */
void heap_before_fork(void)
{
	struct heap *h = heap_there();
	uintptr_t start, end;
	struct span *s;

	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->forks++;
	while ((s = span_next(h)) != NULL) {
		start = (uintptr_t)s + s->unused;
		end = (uintptr_t)s + s->bytes;
		pthread_mutex_unlock(&h->lock);
		(void)sys_madvise(start, end - start, MADV_POPULATE_WRITE);
		pthread_mutex_lock(&h->lock);
	}
	pthread_mutex_unlock(&h->lock);
}

void *heap_stack(size_t bytes)
{
	struct block *b = heap_alloc(bytes);
	struct heap *h;
	struct span *s;

	if (!b || bytes <= STACK_USED)
		return b;
	s = (struct span *)(b - 1) - 1;
	/* Until its thread knows which pages are the C library's. */
	(void)sys_madvise((uintptr_t)s, s->bytes, MADV_KEEPONFORK);
	h = heap_get(); /* heap_before_fork() reads it */
	s->unused = (bytes - STACK_USED) & -(size_t)PAGE_BYTES;
	pthread_mutex_unlock(&h->lock);
	return b;
}
