/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file_test.c: files that stay open, whatever becomes of their numbers. */
#include "host_fixture.h"
#include "os/atfork.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/fresh.h"
#include "os/host.h"

#include <fcntl.h>

#define VMSTAT "/proc/vmstat"

static unsigned opens(void)
{
	return refuse_calls(SYS_openat);
}

static int borrow(const char *path)
{
	char c;
	int fd = file_borrow(path);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &c, 1, 0), 1);
	return fd;
}

static void file_borrow__stays_open(void **state)
{
	unsigned before;
	int a, b;

	(void)state;
	files_begin();
	before = opens();
	a = borrow(VMSTAT);
	/* somebody else reads another one */
	b = borrow(VMSTAT);
	assert_int_not_equal(a, b);
	assert_int_equal(opens(), before + 1);
	file_return(a);
	file_return(b);
	for (int i = 0; i < 100; i++) {
		a = borrow(VMSTAT);
		b = borrow(VMSTAT);
		assert_int_not_equal(a, b);
		file_return(b);
		file_return(a);
	}
	assert_int_equal(opens(), before + 1);
	files_end();
	/* nobody wants it any more */
	assert_int_equal(fcntl(a, F_GETFD), -1);
	assert_int_equal(fcntl(b, F_GETFD), -1);
	before = opens();
	a = borrow(VMSTAT);
	file_return(a);
	assert_int_equal(opens(), before + 1);
	assert_int_equal(fcntl(a, F_GETFD), -1);
}

static void file_return__after_the_end(void **state)
{
	int fd;

	(void)state;
	files_begin();
	files_begin();
	fd = borrow(VMSTAT);
	files_end();
	file_return(fd);
	assert_int_equal(borrow(VMSTAT), fd);
	files_end();
	/* who reads it goes on */
	assert_true(fcntl(fd, F_GETFD) >= 0);
	file_return(fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	file_return(-ENOENT);
}

/* What is not there takes no number, not even for a moment. */
static void file_borrow__not_there(void **state)
{
	unsigned before = opens();

	(void)state;
	assert_int_equal(file_borrow("/proc/no-such-file"), -ENOENT);
	assert_int_equal(opens(), before);
}

/* The program closed it, and has its number for something else. */
static void file_borrow__closed_by_the_program(void **state)
{
	char c;
	int fd, null, now;

	(void)state;
	files_begin();
	fd = borrow(VMSTAT);
	file_return(fd);
	null = open("/dev/null", O_RDONLY);
	assert_int_equal(dup2(null, fd), fd);
	now = borrow(VMSTAT);
	assert_int_not_equal(now, fd);
	file_return(now);
	files_end();
	assert_int_equal(fcntl(now, F_GETFD), -1);
	assert_int_equal(pread(fd, &c, 1, 0), 0);
	/* and while somebody reads it */
	files_begin();
	now = borrow(VMSTAT);
	assert_int_equal(dup2(null, now), now);
	file_return(now);
	files_end();
	assert_int_equal(close(now), 0);
	close(fd);
	close(null);
}

static int low;

static void reopen_low(void)
{
	assert_int_equal(close(low), 0);
	assert_int_equal(open("/dev/null", O_RDONLY), low);
}

/* The program closes what has its lowest number, before that was moved, and opens
 * something else: nobody reads that for long. */
static void file_borrow__another_is_there(void **state)
{
	unsigned before;
	int fd;

	(void)state;
	files_begin();
	low = dup(0);
	close(low);
	before = opens();
	meanwhile(SYS_fcntl, reopen_low);
	fd = file_borrow("/proc/stat");
	file_return(fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	fd = borrow("/proc/stat");
	file_return(fd);
	assert_int_equal(opens(), before + 2);
	files_end();
}

/* However short the time since the last NIC. */
static void files_begin__all_that_pagers_read(void **state)
{
	unsigned before;
	int a;

	(void)state;
	files_begin();
	files_end();
	files_begin();
	host_look_now();
	before = opens();
	host_look(clock_ns() + 1000 * MS);
	fresh_check(clock_ns() + 1000 * MS);
	file_return(borrow("/proc/self/smaps"));
	file_return(borrow("/proc/self/maps"));
	a = file_share("/proc/self/pagemap");
	file_return(file_share("/proc/self/pagemap"));
	file_return(a);
	assert_int_equal(opens(), before);
	files_end();
}

/* More files than there are places, and a path that fits none. */
static void file_borrow__many(void **state)
{
	char path[600] = "/proc/self/";
	int fd[64];
	unsigned before;

	(void)state;
	files_begin();
	for (int i = 0; i < 64; i++)
		fd[i] = borrow(VMSTAT);
	for (int i = 0; i < 64; i++)
		file_return(fd[i]);
	before = opens();
	file_return(borrow("/proc/meminfo"));
	file_return(borrow("/proc/meminfo"));
	assert_int_equal(opens(), before + 1);
	while (strlen(path) < 500)
		strcat(path, "./././/");
	strcat(path, "maps");
	file_return(borrow(path));
	file_return(borrow(path));
	assert_int_equal(opens(), before + 2);
	memcpy(path + strlen(path) - 4, "./././/maps", 12);
	file_return(borrow(path));
	file_return(borrow(path));
	assert_int_equal(opens(), before + 4);
	files_end();
	for (int i = 0; i < 64; i++)
		assert_int_equal(fcntl(fd[i], F_GETFD), -1);
}

/* Nobody who reads it is left without, and it goes with the last of them. */
static void file_share__at_once(void **state)
{
	unsigned before;
	int a, b, c;

	(void)state;
	files_begin();
	a = file_share(VMSTAT);
	before = opens();
	b = file_share(VMSTAT);
	assert_int_equal(a, b);
	/* not for who wants it alone */
	c = borrow(VMSTAT);
	assert_int_not_equal(c, a);
	assert_int_equal(opens(), before + 1);
	files_end();
	file_return(c);
	file_return(b);
	assert_true(fcntl(a, F_GETFD) >= 0);
	file_return(a);
	assert_int_equal(fcntl(a, F_GETFD), -1);
}

static bool reads_meanwhile, was_read;

static void *reads(void *arg)
{
	file_return(file_borrow(VMSTAT));
	return arg;
}

/* Installed before os/'s, so it runs after it: fork() has begun. Nothing may be
 * asserted. */
static void before_fork(void)
{
	const struct timespec end = {.tv_sec = time(NULL) + 10};
	pthread_t thread;

	if (!reads_meanwhile)
		return;
	pthread_create(&thread, NULL, reads, NULL);
	was_read = pthread_timedjoin_np(thread, NULL, &end) == 0;
}

/* fork() takes long where there is much memory: pages come meanwhile. */
static void file_borrow__while_it_forks(void **state)
{
	pid_t pid;

	(void)state;
	fork_init();
	files_begin();
	reads_meanwhile = true;
	pid = fork();
	reads_meanwhile = false;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(was_read);
	files_end();
}

/* In a child /proc/self is another. */
static void files_begin__in_a_child(void **state)
{
	pid_t pid;
	int fd, status;

	(void)state;
	fork_init();
	files_begin();
	fd = borrow("/proc/self/stat");
	file_return(fd);
	pid = fork();
	if (pid == 0) {
		char text[64] = "";

		files_begin();
		fd = borrow("/proc/self/stat");
		pread(fd, text, sizeof(text) - 1, 0);
		_exit(atoi(text) != getpid());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(borrow("/proc/self/stat"), fd);
	file_return(fd);
	files_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_borrow__stays_open),
		cmocka_unit_test(file_return__after_the_end),
		cmocka_unit_test(file_borrow__not_there),
		cmocka_unit_test(file_borrow__closed_by_the_program),
		cmocka_unit_test(file_borrow__another_is_there),
		cmocka_unit_test(files_begin__all_that_pagers_read),
		cmocka_unit_test(file_borrow__many),
		cmocka_unit_test(file_share__at_once),
		cmocka_unit_test(file_borrow__while_it_forks),
		cmocka_unit_test(files_begin__in_a_child),
	};

	pthread_atfork(before_fork, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
