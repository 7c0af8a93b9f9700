/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* heap_test.c: objects of the NIC: zeroed, aligned, used again, gone in a child,
 * and not copy-on-write after a fork.
 */
#include "base/check.h"
#include "base/heap.h"
#include "host_fixture.h"

#include <stddef.h>
#include <sys/resource.h>

static void zero(const uint8_t *p, size_t bytes)
{
	assert_int_equal((uintptr_t)p % 64, 0);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(p[i], 0);
}

static const size_t sizes[] = {1,     63,    64,    65,	   16255,
			       16256, 16320, 16321, 65536, 300000};

static void heap_alloc__zeroed_again(void **state)
{
	uint8_t *p[ARRAY_SIZE(sizes)];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			p[i] = heap_alloc(sizes[i]);
			zero(p[i], sizes[i]);
			memset(p[i], 0xa5, sizes[i]);
		}
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			for (size_t k = 0; k < sizes[i]; k++)
				assert_int_equal(p[i][k], 0xa5);
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			heap_free(p[i]);
	}
}

static void heap_alloc__same_size_again(void **state)
{
	void *p = heap_alloc(200);

	(void)state;
	heap_free(p);
	assert_ptr_equal(heap_alloc(250), p);
	heap_free(p);
}

static void heap_alloc__many(void **state)
{
	static uint8_t *p[3000];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = heap_alloc(1 + i);
		zero(p[i], 1 + i);
		memset(p[i], (int)i, 1 + i);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++) {
		for (unsigned k = 0; k <= i; k++)
			assert_int_equal(p[i][k], (uint8_t)i);
		heap_free(p[i]);
	}
}

static void heap_alloc__too_much(void **state)
{
	(void)state;
	errno = 7;
	assert_null(heap_alloc(SIZE_MAX));
	assert_null(heap_alloc(SIZE_MAX / 2 - 4096));
	assert_null(heap_array(SIZE_MAX / 8, 16));
	assert_int_equal(errno, 7);
}

/* It ends when what is there is used up, and goes on when more is prepared. */
static void heap_alloc_ready__what_is_there(void **state)
{
	static uint8_t *p[1024];
	unsigned n = 0, had;

	(void)state;
	heap_prepare();
	do
		p[n] = heap_alloc_ready(1000);
	while (p[n] && ++n < ARRAY_SIZE(p));
	assert_in_range(n, 60, 300); /* 64 KiB .. 256 KiB and what was freed */
	had = n;
	heap_prepare();
	p[n++] = heap_alloc_ready(1000);
	assert_non_null(p[had]);
	zero(p[had], 1000);
	assert_null(heap_alloc_ready(1 << 20));
	assert_null(heap_alloc_ready(SIZE_MAX));
	while (n > 0)
		heap_free(p[--n]);
}

static void heap_grow__keeps(void **state)
{
	uint8_t *p = heap_grow(NULL, 100);

	(void)state;
	zero(p, 100);
	memset(p, 1, 100);
	p = heap_grow(p, 100000);
	for (int i = 0; i < 100; i++)
		assert_int_equal(p[i], 1);
	zero(p + 128, 100000 - 128);
	heap_free(p);
	heap_free(NULL);
}

static int ended(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

#ifndef __SANITIZE_THREAD__
static uint64_t minflt(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (uint64_t)ru.ru_minflt;
}

/* Not even the first touch of a page faults after a fork. */
static void fork__no_fault(void **state)
{
	const size_t bytes = 4 << 20;
	uint8_t *p = heap_alloc(bytes);
	uint64_t before;
	pid_t pid;

	(void)state;
	p[0] = 1;
	heap_before_fork();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(p[0]); /* the child has none of it */
	before = minflt();
	for (size_t i = 0; i < bytes; i += 4096)
		((volatile uint8_t *)p)[i] = 2;
	/* this very function's stack may be */
	assert_in_range(minflt() - before, 0, 8);
	assert_int_equal(ended(pid), 0);
	heap_free(p);
}
#endif

#ifndef __SANITIZE_THREAD__
/* The first touch of what is handed out is no fault. */
static void heap_alloc_ready__no_fault(void **state)
{
	void *p[60];
	uint64_t before;

	(void)state;
	heap_prepare();
	before = minflt();
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		assert_non_null(p[i] = heap_alloc_ready(1000));
	assert_int_equal(minflt() - before, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		heap_free(p[i]);
}
#endif

static void fork__child_begins_anew(void **state)
{
	void *before = heap_alloc(100);
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		uint8_t *p = heap_alloc(100), *q = heap_alloc(100000);

		_exit(p && q && !p[0] && !q[0] ? 0 : 1);
	}
	assert_int_equal(ended(pid), 0);
	heap_free(before);
}

static void *make_stacks(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2000; i++)
		heap_free(heap_stack(256 * 1024));
	return NULL;
}

/* For TSan: one thread makes stacks for threads while another one forks. */
static void heap_stack__while_another_forks(void **state)
{
	pthread_t maker;

	(void)state;
	heap_free(heap_alloc(1));
	assert_int_equal(pthread_create(&maker, NULL, make_stacks, NULL), 0);
	for (int i = 0; i < 2000; i++)
		heap_before_fork();
	assert_int_equal(pthread_join(maker, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap_alloc__zeroed_again),
		cmocka_unit_test(heap_alloc__same_size_again),
		cmocka_unit_test(heap_alloc__many),
		cmocka_unit_test(heap_alloc__too_much),
		cmocka_unit_test(heap_alloc_ready__what_is_there),
		cmocka_unit_test(heap_grow__keeps),
#ifndef __SANITIZE_THREAD__ /* its own pages fault */
		cmocka_unit_test(fork__no_fault),
		cmocka_unit_test(heap_alloc_ready__no_fault),
#endif
		cmocka_unit_test(heap_stack__while_another_forks),
		cmocka_unit_test(fork__child_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
