/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open_test.c: the host as a guest: nothing leaks, descriptors are out of the way. */
#include "base/check.h"
#include "base/page.h"
#include "host_fixture.h"
#include "os/copy.h"
#include "os/net.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>

static bool inherited[4096];

/* Count descriptors of ours, and check what they must be. */
static unsigned fds(int *lowest)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	unsigned n = 0;

	*lowest = INT32_MAX;
	while ((e = readdir(d)) != NULL) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] == '.' || fd == dirfd(d) || inherited[fd])
			continue;
		n++;
		*lowest = MIN(*lowest, fd);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	}
	closedir(d);
	return n;
}

static void use(struct os *os)
{
	uint8_t *mem = os_memory(os, 3 * PAGE_BYTES - 1);
	uint16_t port;
	static struct moves mv;

	assert_non_null(mem);
	assert_int_equal((uintptr_t)mem % PAGE_BYTES, 0);
	for (size_t i = 0; i < 3 * PAGE_BYTES; i++)
		assert_int_equal(mem[i], 0);
	assert_true(os_port_open(os, 0, &port) >= 0);
	moves_reset(&mv);
	mv.num = 1;
	mv.m[0] = (struct move){.addr = (uintptr_t)&port,
				.nic = mem,
				.len = 2,
				.kind = MOVE_GATHER};
	os_moves(os, &mv);
	assert_int_equal(mv.error, 0);
}

static void os_open__leaves_nothing(void **state)
{
	int lowest;
	unsigned before = fds(&lowest);

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct os *os = host_plain();

		use(os);
		fds(&lowest);
		assert_true(lowest >= 1024 - 256);
		os_close(os);
	}
	assert_int_equal(fds(&lowest), before);
}

/* Each system call of open and use fails once: an error, or a substitute. */
static void os_open__nth_call_fails(void **state)
{
	static const long calls[] = {
		SYS_memfd_create, SYS_eventfd2,	 SYS_epoll_create1, SYS_socket,
		SYS_setsockopt,	  SYS_bind,	 SYS_fcntl,	    SYS_madvise,
		SYS_getsockopt,	  SYS_prlimit64, SYS_getrandom,
	};
	const struct os_config cfg = {.pagers = 1};
	int lowest, errors = 0;
	unsigned before = fds(&lowest);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		for (unsigned n = 1; n < 12; n++) {
			struct os *os = NULL;
			uint16_t port;
			int ret;

			refuse_none();
			refuse_nth(calls[i], n, EPERM);
			ret = os_open(&os, &cfg);
			if (ret < 0) {
				assert_null(os);
				errors++;
			} else {
				ret = os_port_open(os, 0, &port);
				assert_true(ret == 0 || ret == -EPERM);
				errors += ret < 0;
				os_close(os);
			}
			refuse_none();
			assert_int_equal(fds(&lowest), before);
		}
	assert_in_range(errors, 6, 60);
}

static void os_open__few_descriptors(void **state)
{
	struct rlimit old, few = {64, 64};
	struct os *os;
	int lowest;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &old);
	few.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	os = host_plain();
	use(os);
	fds(&lowest);
	assert_in_range(lowest, 32, 63);
	os_close(os);
	setrlimit(RLIMIT_NOFILE, &old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_open__leaves_nothing),
		cmocka_unit_test(os_open__nth_call_fails),
		cmocka_unit_test(os_open__few_descriptors),
	};

	for (int i = 0; i < 4096; i++)
		inherited[i] = fcntl(i, F_GETFD) >= 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
