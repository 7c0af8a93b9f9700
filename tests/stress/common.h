/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* common.h: what the stress tests of nic/ and those of verbs/ share: arguments,
 * chance, memory. A test that finds something wrong says what and ends at once.
 */
#ifndef NOPIN_TESTS_STRESS_COMMON_H
#define NOPIN_TESTS_STRESS_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define REQUIRE(c)                                                             \
	do {                                                                   \
		if (!(c)) {                                                    \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__,     \
				__LINE__, #c);                                 \
			_exit(1);                                              \
		}                                                              \
	} while (0)

/* A number below @below. @seed: a thread's own, not 0 */
static inline uint32_t rnd(uint32_t *seed, uint32_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed % below;
}

/** struct action - What a thread may do, and how often beside the others. */
struct action {
	void (*run)(uint32_t *seed);
	uint32_t weight;
};

/* One of the @n after the other, by chance, until @stop. */
static inline void act(const struct action *actions, size_t n, uint32_t seed,
		       const bool *stop)
{
	uint32_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += actions[i].weight;
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		uint32_t pick = rnd(&seed, total), i = 0;

		while (pick >= actions[i].weight)
			pick -= actions[i++].weight;
		actions[i].run(&seed);
	}
}

/* Where nobody else's memory comes when it is unmapped while peers still write to
 * it. (ThreadSanitizer has no such place.) */
static inline void *fixture_place(size_t bytes)
{
	static uintptr_t next = 0x200000000000;

#if defined(__SANITIZE_THREAD__)
	return NULL;
#endif
	return (void *)__atomic_fetch_add(&next, (bytes | 0xffff) + 1,
					  __ATOMIC_RELAXED);
}

static inline void *fixture_map(size_t bytes)
{
	void *p = mmap(fixture_place(bytes), bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(p != MAP_FAILED);
	return p;
}

/* A long that a test's argument @n gives. */
static inline long fixture_arg(int argc, char **argv, int n, long otherwise)
{
	return argc > n ? strtol(argv[n], NULL, 0) : otherwise;
}

#endif
