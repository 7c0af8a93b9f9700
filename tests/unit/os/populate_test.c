/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* populate_test.c: presence without writing, on a kernel that cannot populate
 * (before 5.14) and where even its substitutes are refused. The ordinary way
 * is in pager_test.c.
 */
#include "base/page.h"
#include "host_fixture.h"
#include "os/populate.h"

#include <signal.h>

/* This program never lets os/ see MADV_POPULATE_*. */
static int old_kernel(void **state)
{
	(void)state;
	refuse_none();
	refuse(SYS_madvise, 2, 22, EINVAL);
	refuse(SYS_madvise, 2, 23, EINVAL);
	return 0;
}

static void expect(const void *p, size_t bytes, bool write, size_t ready,
		   int error)
{
	struct populate got = populate_range((uintptr_t)p, bytes, write,
					     UINT64_MAX);

	assert_int_equal(got.bytes, ready);
	assert_int_equal(got.error, error);
	assert_int_equal(got.writable, write && ready > 0);
}

static void populate_range__before_5_14(void **state)
{
	uint8_t *p = pages_apart(6, PROT_READ | PROT_WRITE);
	uint8_t *ro = pages_new(2, PROT_READ);

	(void)state;
	expect(p, 2 * PAGE_BYTES, true, 2 * PAGE_BYTES, 0);
	assert_true(page_present(p + PAGE_BYTES));
	assert_int_equal(refuse_calls(SYS_futex), 2);
	expect(p + 2 * PAGE_BYTES, 2 * PAGE_BYTES, false, 2 * PAGE_BYTES, 0);
	assert_true(page_present(p + 3 * PAGE_BYTES));
	assert_int_equal(refuse_calls(SYS_process_vm_readv), 2);
	for (size_t i = 0; i < 4 * PAGE_BYTES; i++)
		assert_int_equal(p[i], 0);
	memset(p, 0xff, PAGE_BYTES);
	expect(p, PAGE_BYTES, true, PAGE_BYTES, 0);
	assert_int_equal(p[0] & p[1] & p[2] & p[3], 0xff);
	munmap(p + 5 * PAGE_BYTES, PAGE_BYTES);
	expect(p, 6 * PAGE_BYTES, true, 5 * PAGE_BYTES, -EFAULT);
	expect(p, 6 * PAGE_BYTES, false, 5 * PAGE_BYTES, -EFAULT);
	expect(ro, PAGE_BYTES, true, 0, -EFAULT);
	expect(ro, PAGE_BYTES, false, PAGE_BYTES, 0);
	pages_free(p, 5);
	pages_free(ro, 2);
}

/* @n pages of a private mapping of a file: reads share the file's page, the
 * first write makes a page of its own. For anonymous memory only a count of
 * faults could tell the two, and kernels differ in what a read brings in.
 */
static uint8_t *file_pages_new(size_t n)
{
	int fd = memfd_create("populate_test", MFD_CLOEXEC);
	uint8_t *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(n * PAGE_BYTES)), 0);
	p = mmap(NULL, n * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
		 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	return p;
}

static void populate_range__touch_only(void **state)
{
	uint8_t *p = pages_new(3, PROT_READ | PROT_WRITE);
	uint8_t *q = file_pages_new(2);
	uint8_t *none = pages_new(1, PROT_NONE);

	(void)state;
	refuse(SYS_futex, -1, 0, EPERM);
	refuse(SYS_process_vm_readv, -1, 0, EPERM);
	p[PAGE_BYTES] = 0xaa;
	expect(p, 3 * PAGE_BYTES, true, 3 * PAGE_BYTES, 0);
	expect(p, 3 * PAGE_BYTES, false, 3 * PAGE_BYTES, 0);
	assert_int_equal(p[PAGE_BYTES], 0xaa);
	expect(q, PAGE_BYTES, true, PAGE_BYTES, 0);
	expect(q + PAGE_BYTES, PAGE_BYTES, false, PAGE_BYTES, 0);
	assert_true(page_present(q) && !page_shared(q));
	assert_true(page_present(q + PAGE_BYTES) &&
		    page_shared(q + PAGE_BYTES));
	pages_free(q, 2);
	expect(none, PAGE_BYTES, false, 0, -EFAULT);
	expect(none, PAGE_BYTES, true, 0, -EFAULT);
	/* and without /proc the touch itself is the verdict */
	refuse(SYS_openat, -1, 0, EACCES);
	expect(none, PAGE_BYTES, false, 0, -EFAULT);
	expect(none, PAGE_BYTES, true, 0, -EFAULT);
	expect(p, PAGE_BYTES, true, PAGE_BYTES, 0);
	assert_int_equal(populate_probe((uintptr_t)p, PAGE_BYTES).bytes, 0);
	pages_free(p, 3);
	pages_free(none, 1);
}

/* A page that the kernel says no to without trying installs no handler. */
static void populate_range__leaves_signals_alone(void **state)
{
	uint8_t *none = pages_new(1, PROT_NONE);
	struct sigaction before, after;

	(void)state;
	sigaction(SIGSEGV, NULL, &before);
	expect(none, PAGE_BYTES, false, 0, -EFAULT);
	expect(NULL, PAGE_BYTES, true, 0, -EFAULT);
	sigaction(SIGSEGV, NULL, &after);
	assert_true(before.sa_handler == after.sa_handler);
	pages_free(none, 1);
}

/* Interrupted is not failed. */
static void populate_range__interrupted(void **state)
{
	uint8_t *p = pages_new(1, PROT_READ | PROT_WRITE);

	(void)state;
	refuse_nth(SYS_futex, 1, EINTR);
	expect(p, PAGE_BYTES, true, PAGE_BYTES, 0);
	assert_int_equal(refuse_calls(SYS_futex), 2);
	pages_free(p, 1);
}

static void populate_range__nothing(void **state)
{
	(void)state;
	expect(NULL, 0, false, 0, 0);
	expect((void *)8192, 0, true, 0, 0);
}

#define TEST(f) cmocka_unit_test_setup(f, old_kernel)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(populate_range__leaves_signals_alone),
		TEST(populate_range__before_5_14),
		TEST(populate_range__interrupted),
		TEST(populate_range__nothing),
		TEST(populate_range__touch_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
