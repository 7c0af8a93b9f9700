/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* name_test.c: one holder a name; free again when it goes, however it goes. */
#include "host_fixture.h"

#include <signal.h>
#include <sys/prctl.h>

static char name[64];

static int name_new(void **state)
{
	(void)state;
	snprintf(name, sizeof(name), "test-%d", getpid());
	return 0;
}

/* A child that waits for its end, which comes with ours at the latest. */
static void child_pauses(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
	_exit(1);
}

static void os_claim__one_holder(void **state)
{
	int fd = os_claim(NULL, name);
	char other[80];
	int fd2;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(os_claim(NULL, name), -EADDRINUSE);
	snprintf(other, sizeof(other), "%sx", name);
	fd2 = os_claim(NULL, other);
	assert_true(fd2 >= 0);
	os_unclaim(fd2);
	os_unclaim(fd);
	fd = os_claim(NULL, name);
	assert_true(fd >= 0);
	os_unclaim(fd);
}

static void os_claim__long_name(void **state)
{
	char longest[120];
	int fd;

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[101] = 0;
	fd = os_claim(NULL, longest);
	assert_true(fd >= 0);
	os_unclaim(fd);
	longest[101] = 'a';
	longest[102] = 0;
	assert_int_equal(os_claim(NULL, longest), -ENAMETOOLONG);
}

static void os_claim__holder_is_killed(void **state)
{
	int pipefd[2], fd = -1;
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe(pipefd), 0);
	pid = fork();
	if (pid == 0) {
		c = os_claim(NULL, name) >= 0;
		if (write(pipefd[1], &c, 1) == 1)
			child_pauses();
		_exit(1);
	}
	assert_int_equal(read(pipefd[0], &c, 1), 1);
	assert_int_equal(c, 1);
	assert_int_equal(os_claim(NULL, name), -EADDRINUSE);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fd = os_claim(NULL, name);
	assert_true(fd >= 0);
	os_unclaim(fd);
	close(pipefd[0]);
	close(pipefd[1]);
}

/* A child that lives on must not hold what its parent held. */
static void os_claim__child_lives_on(void **state)
{
	struct os *os = host_plain();
	int fd = os_claim(NULL, name);
	uint16_t port, again;
	pid_t pid;
	int index;

	(void)state;
	index = os_port_open(os, 0, &port);
	assert_int_equal(index, 0);
	pid = fork();
	if (pid == 0)
		child_pauses();
	os_unclaim(fd);
	os_port_close(os, index);
	/* as soon as the child has run at all */
	for (int i = 0; i < 1000; i++) {
		fd = os_claim(NULL, name);
		index = os_port_open(os, port, &again);
		if (fd >= 0 && index >= 0)
			break;
		if (fd >= 0)
			os_unclaim(fd);
		if (index >= 0)
			os_port_close(os, index);
		usleep(5000);
	}
	assert_true(fd >= 0);
	assert_int_equal(index, 0);
	assert_int_equal(again, port);
	os_unclaim(fd);
	os_close(os);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_claim__one_holder),
		cmocka_unit_test(os_claim__long_name),
		cmocka_unit_test(os_claim__holder_is_killed),
		cmocka_unit_test(os_claim__child_lives_on),
	};

	struct os *os;
	int ret;

	/* The fork handlers come with the first NIC. */
	if (os_open(&os, &(struct os_config){.pagers = 0}) < 0)
		return 1;
	ret = cmocka_run_group_tests(tests, name_new, NULL);
	os_close(os);
	return ret;
}
