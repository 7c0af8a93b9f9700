/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pin_test.c: what is locked, and that all or nothing is. */
#include "base/check.h"
#include "base/page.h"
#include "host_fixture.h"
#include "os/pages.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>

enum { PAGES = 8 };

static struct os *os;
static uint8_t *p;

static uint64_t at(size_t page)
{
	return (uintptr_t)p + page * PAGE_BYTES;
}

static unsigned long locked_pages(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long kib = 0;
	char line[256];
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "VmLck: %lu", &kib) == 1;
	fclose(f);
	assert_true(found);
	return kib * 1024 / PAGE_BYTES;
}

static int setup(void **state)
{
	struct rlimit limit;

	(void)state;
	os = host_plain();
	p = pages_apart(PAGES, PROT_READ | PROT_WRITE);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (geteuid() && limit.rlim_cur < PAGES * PAGE_BYTES)
		skip(); /* os_pin__limit is for us */
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	munmap(p, PAGES * PAGE_BYTES);
	os_close(os);
	return 0;
}

/* Whole pages, whatever the bytes. */
static void os_pin__whole_pages(void **state)
{
	(void)state;
	assert_int_equal(os_pin(os, at(1) + 100, PAGE_BYTES, true), 0);
	assert_int_equal(locked_pages(), 2);
	assert_true(page_present(p + PAGE_BYTES));
	assert_true(page_present(p + 2 * PAGE_BYTES));
	assert_false(page_present(p + 3 * PAGE_BYTES));
	assert_int_equal(os_unpin(os, at(1) + 100, PAGE_BYTES), 0);
	assert_int_equal(locked_pages(), 0);
}

/* It waits for no page. */
static void os_pin__when_it_comes(void **state)
{
	(void)state;
	assert_int_equal(os_pin(os, at(0), PAGES * PAGE_BYTES, false), 0);
	assert_int_equal(locked_pages(), PAGES);
	assert_false(page_present(p));
	assert_int_equal(os_unpin(os, at(0), PAGES * PAGE_BYTES), 0);
	assert_int_equal(locked_pages(), 0);
}

static void os_pin__all_or_nothing(void **state)
{
	(void)state;
	assert_int_equal(munmap(p + 4 * PAGE_BYTES, PAGE_BYTES), 0);
	for (int fetch = 0; fetch < 2; fetch++) {
		assert_int_equal(os_pin(os, at(0), PAGES * PAGE_BYTES, fetch),
				 -EFAULT);
		assert_int_equal(locked_pages(), 0);
	}
	assert_int_equal(mprotect(p + 2 * PAGE_BYTES, PAGE_BYTES, PROT_NONE),
			 0);
	assert_int_equal(os_pin(os, at(0), 4 * PAGE_BYTES, true), -EFAULT);
	assert_int_equal(locked_pages(), 0);
}

/* Root may lock what it likes: this thread gives that up, or takes it back. */
static void may_lock_all(bool may)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct cap[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &head, cap), 0);
	if (may)
		cap[0].effective |= cap[0].permitted & 1u << CAP_IPC_LOCK;
	else
		cap[0].effective &= ~(1u << CAP_IPC_LOCK);
	assert_int_equal(syscall(SYS_capset, &head, cap), 0);
}

static void os_pin__limit(void **state)
{
	struct rlimit lim, low;

	(void)state;
	getrlimit(RLIMIT_MEMLOCK, &lim);
	may_lock_all(false);
	for (rlim_t pages = 0; pages < PAGES; pages += 4) {
		low = lim;
		low.rlim_cur = MIN(lim.rlim_max, pages * PAGE_BYTES);
		assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
		assert_int_equal(os_pin(os, at(0), PAGES * PAGE_BYTES, true),
				 -ENOMEM);
		assert_int_equal(locked_pages(), 0);
	}
	may_lock_all(true);
	setrlimit(RLIMIT_MEMLOCK, &lim);
}

/* munlock(2) stops at a hole. */
static void os_unpin__beyond_a_hole(void **state)
{
	(void)state;
	assert_int_equal(os_pin(os, at(0), PAGES * PAGE_BYTES, true), 0);
	assert_int_equal(munmap(p + 3 * PAGE_BYTES, PAGE_BYTES), 0);
	assert_int_equal(munmap(p, PAGE_BYTES), 0);
	assert_int_equal(locked_pages(), PAGES - 2);
	assert_int_equal(os_unpin(os, at(0), PAGES * PAGE_BYTES), -EFAULT);
	assert_int_equal(locked_pages(), 0);
}

/* By the system call: the sanitizers make mlock(3) do nothing. */
static void lock_pages(size_t first, size_t pages)
{
	assert_int_equal(syscall(SYS_mlock, at(first), pages * PAGE_BYTES), 0);
}

static void os_pinned__first(void **state)
{
	uint64_t addr = at(0), len = PAGES * PAGE_BYTES;

	(void)state;
	assert_false(os_pinned(os, &addr, &len));
	lock_pages(2, 1);
	lock_pages(5, 3);
	assert_true(os_pinned(os, &addr, &len));
	assert_int_equal(addr, at(2));
	assert_int_equal(len, PAGE_BYTES);
	addr = at(3);
	len = 3 * PAGE_BYTES;
	assert_true(os_pinned(os, &addr, &len));
	assert_int_equal(addr, at(5));
	assert_int_equal(len, PAGE_BYTES);
	addr = at(3);
	len = 2 * PAGE_BYTES;
	assert_false(os_pinned(os, &addr, &len));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void os_memory_limit__says_which(void **state)
{
	struct rlimit before, rl;
	char text[128];

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* they have terabytes of addresses, and end without more */
#endif
	getrlimit(RLIMIT_AS, &before);
	rl = (struct rlimit){UINT64_C(1) << 40, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_AS, &rl), 0);
	os_memory_limit(text, sizeof(text));
	assert_non_null(strstr(text, "RLIMIT_AS is 1073741824 KiB"));
	/* what the NIC maps is locked */
	getrlimit(RLIMIT_MEMLOCK, &rl);
	if (rl.rlim_cur != RLIM_INFINITY) {
		assert_int_equal(mlockall(MCL_FUTURE), 0);
		os_memory_limit(text, sizeof(text));
		munlockall();
		assert_non_null(strstr(text, "RLIMIT_MEMLOCK is"));
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(os_pin__whole_pages),
		TEST(os_pin__when_it_comes),
		TEST(os_pin__all_or_nothing),
		TEST(os_pin__limit),
		TEST(os_unpin__beyond_a_hole),
		TEST(os_pinned__first),
		cmocka_unit_test(os_memory_limit__says_which),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
