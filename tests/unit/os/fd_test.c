/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fd_test.c: descriptors out of the way, by every limit there is. */
#include "base/check.h"
#include "host_fixture.h"
#include "os/fd.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>

static struct rlimit saved;

static void limit(rlim_t n)
{
	struct rlimit rl = {n, saved.rlim_max};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

static void fd_high__limits(void **state)
{
	static const struct {
		rlim_t limit;
		int high, event; /* at least */
	} t[] = {
		{4096, 1024, 768}, {1280, 1024, 768}, {1279, 1023, 768},
		{1024, 768, 768},  {300, 150, 150},   {64, 32, 32},
	};

	(void)state;
	getrlimit(RLIMIT_NOFILE, &saved);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		int a, b;

		if (t[i].limit > saved.rlim_max)
			continue;
		limit(t[i].limit);
		a = fd_high(open("/dev/null", O_RDONLY));
		b = fd_event(open("/dev/null", O_RDONLY));
		assert_in_range(a, t[i].high, t[i].limit - 1);
		assert_in_range(b, t[i].event, MIN(t[i].limit, 1024) - 1);
		assert_int_equal(fcntl(a, F_GETFD), FD_CLOEXEC);
		assert_int_equal(fcntl(b, F_GETFD), FD_CLOEXEC);
		fd_close(a);
		fd_close(b);
	}
	limit(saved.rlim_cur);
}

static void fd_high__errors_pass(void **state)
{
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	assert_int_equal(fd_high(-EMFILE), -EMFILE);
	fd_close(-1);
	fd_close(-EMFILE);
	/* no high one to be had: it stays as it is */
	refuse_none();
	refuse(SYS_fcntl, -1, 0, EMFILE);
	assert_int_equal(fd_high(fd), fd);
	refuse_none();
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
}

static void fd_memory__substitutes(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		char c = 1;
		int fd;

		refuse_none();
		if (i > 0)
			refuse(SYS_memfd_create, -1, 0, ENOSYS);
		if (i > 1)
			refuse_nth(SYS_openat, 1, EACCES);
		if (i > 2)
			refuse_nth(SYS_openat, 1, EACCES);
		fd = fd_memory("x", 10000);
		refuse_none();
		if (i == 3) {
			assert_int_equal(fd, -EACCES);
			continue;
		}
		assert_true(fd >= 32);
		assert_int_equal(pread(fd, &c, 1, 9999), 1);
		assert_int_equal(c, 0);
		assert_int_equal(pread(fd, &c, 1, 10000), 0);
		close(fd);
	}
	refuse_nth(SYS_ftruncate, 1, ENOSPC);
	assert_int_equal(fd_memory("x", 10000), -ENOSPC);
	refuse_none();
}

/* Beyond the limit there is no file, and no signal; up to it there is. */
static void fd_resize__limited(void **state)
{
	int fd = fd_memory("x", 0);
	struct rlimit before, rl;
	char c;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &before);
	rl = (struct rlimit){10000, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &rl), 0);
	assert_int_equal(fd_resize(fd, 10001), -EFBIG);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	assert_int_equal(fd_resize(fd, 10000), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 10000);
	assert_true(fd_may_have(10000) && !fd_may_have(10001));
	/* as far as anybody knows */
	refuse(SYS_prlimit64, -1, 0, EPERM);
	assert_false(fd_may_have(10001));
	refuse(SYS_getrlimit, -1, 0, EPERM);
	assert_true(fd_may_have(10001));
	refuse_none();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	refuse(SYS_ftruncate, -1, 0, ENOSYS);
	assert_int_equal(fd_resize(fd, 20000), 0);
	refuse_none();
	assert_int_equal(pread(fd, &c, 1, 19999), 1);
	assert_int_equal(pread(fd, &c, 1, 20000), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fd_high__limits),
		cmocka_unit_test(fd_high__errors_pass),
		cmocka_unit_test(fd_memory__substitutes),
		cmocka_unit_test(fd_resize__limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
