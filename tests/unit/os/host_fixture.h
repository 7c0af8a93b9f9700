/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host_fixture.h: what the unit tests of os/ share: cmocka, an open host,
 * loopback addresses.
 */
#ifndef NOPIN_TESTS_HOST_FIXTURE_H
#define NOPIN_TESTS_HOST_FIXTURE_H

#include "base/page.h"
#include "os/os.h"
#include "os/run.h"
#include "os/sys.h"
#include "refuse.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define MS UINT64_C(1000000)

static inline struct os *host_open(const struct os_config *cfg)
{
	struct os *os = NULL;

	assert_int_equal(os_open(&os, cfg), 0);
	return os;
}

static inline struct os *host_plain(void)
{
	static const struct os_config cfg = {.pagers = 4};

	return host_open(&cfg);
}

static inline struct ipaddr ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct ipaddr){.b = {[10] = 0xff, [11] = 0xff, a, b, c, d}};
}

static inline struct ipaddr ip6_loopback(void)
{
	return (struct ipaddr){.b = {[15] = 1}};
}

/** pages_new() - @n pages of never-touched private anonymous memory. */
static inline uint8_t *pages_new(size_t n, int prot)
{
	uint8_t *p = mmap(NULL, n * PAGE_BYTES, prot,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	madvise(p, n * PAGE_BYTES, MADV_NOHUGEPAGE);
	return p;
}

/** pages_apart() - The same, where the kernel puts nothing by itself: a page that is
 * unmapped there leaves a hole, whatever other threads map meanwhile. */
static inline uint8_t *pages_apart(size_t n, int prot)
{
	static uintptr_t next = 0x60000000; /* also with a sanitizer */
	uint8_t *p = mmap((void *)next, n * PAGE_BYTES, prot,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			  0);

	assert_ptr_equal(p, next);
	next += (n + 1) * PAGE_BYTES;
	madvise(p, n * PAGE_BYTES, MADV_NOHUGEPAGE);
	return p;
}

static inline void pages_free(void *p, size_t n)
{
	assert_int_equal(munmap(p, n * PAGE_BYTES), 0);
}

/** page_entry() - The page of @p as /proc/self/pagemap has it. */
static inline uint64_t page_entry(const void *p)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &entry, 8, (off_t)((uintptr_t)p / 512)), 8);
	close(fd);
	return entry;
}

/** page_present() - Is the page of @p mapped in now? */
static inline bool page_present(const void *p)
{
	return page_entry(p) >> 63;
}

/** page_shared() - Is it a file's page, not one of the process's own? */
static inline bool page_shared(const void *p)
{
	return page_entry(p) >> 61 & 1;
}

#endif
