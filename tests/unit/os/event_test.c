/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event_test.c: the numbers that events get, and what they say. */
#include "host_fixture.h"
#include "os/wait.h"

#include <fcntl.h>
#include <sys/resource.h>

static void os_event_open__where_select_reaches(void **state)
{
	int fd = os_event_open();

	(void)state;
	assert_in_range(fd, 500, 1023);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	/* the program says by O_NONBLOCK what it wants of a blocking call */
	assert_false(os_event_nonblock(fd));
	assert_false(os_event_clear(fd));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_true(os_event_nonblock(fd));
	os_event_close(fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_false(os_event_nonblock(fd));
}

static void os_event_own__out_of_the_way(void **state)
{
	struct rlimit rl;
	int fd = os_event_own();

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_cur >= 1280)
		assert_true(fd >= 1024);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	os_event_set(fd);
	assert_true(os_event_clear(fd));
	os_event_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_event_open__where_select_reaches),
		cmocka_unit_test(os_event_own__out_of_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
