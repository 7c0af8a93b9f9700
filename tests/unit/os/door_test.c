/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* door_test.c: what the door opens is no number of the program's; what the program
 * closes is none of the door's.
 */
#include "base/check.h"
#include "host_fixture.h"
#include "os/door.h"
#include "os/doorman.h"
#include "os/sys.h"
#include "os/sys_file.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

static int open_there(struct os *os, void *arg)
{
	(void)os;
	(void)arg;
	return (int)sys_call(SYS_eventfd2, 0, EFD_CLOEXEC, 0, 0, 0, 0);
}

static int close_there(struct os *os, void *fd)
{
	(void)os;
	return sys_close(*(int *)fd);
}

static int which(struct os *os, void *arg)
{
	(void)os;
	*(uintptr_t *)arg = os_self();
	return 0;
}

static int open_places(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Return: how many the process has open, and not the door, which has looked around. */
static int open_places_beside(struct os *os)
{
	uintptr_t ignored;

	assert_int_equal(door_call(os, which, &ignored), 0);
	return open_places();
}

static void door_call__own_descriptors(void **state)
{
	struct os *os = host_plain();
	int before, fd;

	(void)state;
	assert_int_equal(door_open(os), 0);
	assert_int_equal(door_open(os), 0);
	before = open_places_beside(os);
	fd = door_call(os, open_there, NULL);
	assert_true(fd >= 0);
	assert_int_equal(open_places(), before);
	/* none of the program's is left there but those that wake */
	assert_true(fd < 3);
	assert_int_equal(door_call(os, close_there, &fd), 0);
	assert_int_equal(door_call(os, close_there, &fd), -EBADF);
	os_close(os);
}

/* Where that is denied all is done in the table of the process. */
static void door_call__denied(void **state)
{
	struct os *os = host_plain();
	int before, fd;

	(void)state;
	refuse(SYS_close_range, -1, 0, EPERM);
	assert_int_equal(door_open(os), 0);
	before = open_places_beside(os);
	fd = door_call(os, open_there, NULL);
	assert_int_equal(open_places(), before + 1);
	assert_int_equal(door_call(os, close_there, &fd), 0);
	refuse_none();
	os_close(os);
}

/* So it is where a file of the program's may not be closed. */
static void door_call__beside_a_file(void **state)
{
	FILE *file = tmpfile();
	struct os *os = host_plain();
	uintptr_t ignored;

	(void)state;
	assert_non_null(file);
	assert_int_equal(door_open(os), 0);
	assert_int_equal(door_call(os, which, &ignored), 0);
	assert_true(os->door.apart);
	os_close(os);
	os = host_plain();
	redirect("/proc/self/mountinfo", "/dev/null");
	assert_int_equal(door_open(os), 0);
	assert_int_equal(door_call(os, which, &ignored), 0);
	assert_false(os->door.apart);
	assert_true(fcntl(fileno(file), F_GETFD) >= 0);
	refuse_none();
	os_close(os);
	fclose(file);
}

/* An end that cannot be kept leaves nothing behind, whichever of the two it is. */
static void door_open__end_not_kept(void **state)
{
	static const unsigned nth[] = {1, 3}; /* each is looked at twice */
	struct os *os = host_plain();
	const int before = open_places();

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(nth); i++) {
		refuse_none();
		refuse_nth(SYS_fstat, nth[i], EACCES);
		assert_int_equal(door_open(os), -EPERM);
		assert_int_equal(open_places(), before);
		assert_false(os->door.wake.kept);
		assert_false(os->door.ear.kept);
	}
	refuse_none();
	assert_int_equal(door_open(os), 0);
	os_close(os);
}

static int take_there(struct os *os, void *arg)
{
	(void)arg;
	return door_take(os);
}

/* It is the lowest number there, and stays open when the program closes its own. */
static void door_hand__copy(void **state)
{
	struct os *os = host_plain();
	int ends[2], fd, later;
	char c;

	(void)state;
	assert_int_equal(door_open(os), 0);
	assert_int_equal(door_hand(os, -1, take_there, NULL), -EOPNOTSUPP);
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	fd = door_hand(os, ends[1], take_there, NULL);
	assert_int_equal(fd, 0);
	later = door_call(os, open_there, NULL);
	assert_true(later > fd);
	close(ends[1]);
	assert_int_equal(read(ends[0], &c, 1), -1);
	assert_int_equal(door_call(os, close_there, &fd), 0);
	assert_int_equal(read(ends[0], &c, 1), 0);
	assert_int_equal(door_hand(os, -1, take_there, NULL), -EOPNOTSUPP);
	close(ends[0]);
	os_close(os);
}

/* One that nobody takes is closed when the next comes, or with the door. */
static void door_hand__not_taken(void **state)
{
	struct os *os = host_plain();
	int ends[2];
	char c;

	(void)state;
	assert_int_equal(door_open(os), 0);
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	for (int i = 0; i < 3; i++) {
		const int fd = door_hand(os, ends[1], open_there, NULL);

		assert_int_equal(door_call(os, close_there, (void *)&fd), 0);
	}
	close(ends[1]);
	os_close(os);
	assert_int_equal(read(ends[0], &c, 1), 0);
	close(ends[0]);
}

static void door_hand__denied(void **state)
{
	struct os *os = host_plain();
	int ends[2], before;

	(void)state;
	refuse(SYS_close_range, -1, 0, EPERM);
	assert_int_equal(door_open(os), 0);
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	before = open_places_beside(os);
	assert_int_equal(door_hand(os, ends[1], take_there, NULL), -EOPNOTSUPP);
	assert_int_equal(open_places(), before);
	refuse_none();
	os_close(os);
	close(ends[0]);
	close(ends[1]);
}

static void door_call__without_one(void **state)
{
	struct os *os = host_plain();
	uintptr_t who;

	(void)state;
	assert_int_equal(door_call(NULL, which, &who), 0);
	assert_int_equal(who, os_self());
	assert_int_equal(door_call(os, which, &who), 0);
	assert_int_equal(who, os_self());
	assert_int_equal(door_open(os), 0);
	assert_int_equal(door_call(os, which, &who), 0);
	assert_int_not_equal(who, os_self());
	os_close(os);
}

/* Nobody is woken by what the program closed, nor is what has its number now
 * written to; the door looks by itself. */
static void door_call__who_wakes_is_closed(void **state)
{
	struct os *os = host_plain();
	struct pollfd ear = {.events = POLLIN};
	int ends[2], wakes;
	uintptr_t who;
	char c;

	(void)state;
	assert_int_equal(door_open(os), 0);
	wakes = os->door.wake.fd;
	ear.fd = os->door.ear.fd;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(dup2(ends[1], wakes), wakes);
	/* it is not told so again and again */
	assert_int_equal(poll(&ear, 1, 0), 0);
	assert_int_equal(door_call(os, which, &who), 0);
	assert_int_not_equal(who, os_self());
	os_close(os);
	assert_int_equal(recv(ends[0], &c, 1, 0), -1);
	close(ends[0]);
	close(ends[1]);
	close(wakes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(door_call__own_descriptors),
		cmocka_unit_test(door_call__denied),
		cmocka_unit_test(door_call__beside_a_file),
		cmocka_unit_test(door_open__end_not_kept),
		cmocka_unit_test(door_hand__copy),
		cmocka_unit_test(door_hand__not_taken),
		cmocka_unit_test(door_hand__denied),
		cmocka_unit_test(door_call__without_one),
		cmocka_unit_test(door_call__who_wakes_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
