/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork_test.c: with atfork.c: the child knows, the parent counts, and descriptors that the
 * program reused stay the child's.
 */
#include "base/check.h"
#include "base/page.h"
#include "host_fixture.h"
#include "os/clock.h"
#include "os/copy.h"
#include "os/fork.h"
#include "os/fresh.h"
#include "os/names.h"
#include "threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#define SECOND (1000 * MS)

static int child(bool (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static struct os *os;

static bool is_child(void)
{
	return os_child(os);
}

static bool grandchild(void)
{
	return os_child(os) && child(is_child) == 0;
}

static void os_child__in_child_and_grandchild(void **state)
{
	(void)state;
	assert_false(os_child(os));
	assert_int_equal(child(is_child), 0);
	assert_int_equal(child(grandchild), 0);
	assert_false(os_child(os));
}

/* Also without any handler running. */
static void os_child__raw_clone(void **state)
{
	int status;
	long pid = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L, 0L);

	(void)state;
	if (pid == 0)
		_exit(os_child(os) ? 0 : 1);
	assert_int_equal(waitpid((pid_t)pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A thread that starts allocates, and its child by clone(2) would find the lock of the
 * allocator taken for ever: no library can help that. What sleeps has none. */
static void others_sleep(void)
{
	while (threads_now("", "RD") != 1)
		usleep(1000);
}

/* A child that no handler told of opens a device, forks and looks at the host.
 * Return: its status. */
static int opens_in_clone(void)
{
	int status = -1;
	long pid;

	others_sleep();
	pid = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L, 0L);
	if (pid == 0) {
		struct os *own;
		unsigned looks;
		int fd;

		own = host_plain();
		fd = os_claim(NULL, "fork-test-own");
		if (os_child(own) || !os_child(os) || child(is_child) != 0)
			_exit(2);
		looks = refuse_calls(SYS_pread64);
		fresh_check(clock_ns() + 2 * SECOND);
		if (refuse_calls(SYS_pread64) == looks)
			_exit(3);
		os_close(host_plain());
		if (fcntl(fd, F_GETFD) < 0)
			_exit(4); /* forgotten twice */
		os_unclaim(NULL, fd);
		os_close(own);
		_exit(0);
	}
	waitpid((pid_t)pid, &status, 0);
	return status;
}

static long during;
static unsigned clones;

static void opens_in_clone_again(void)
{
	const long nr = during;

	during = -1;
	assert_int_equal(opens_in_clone(), 0);
	clones++;
	during = nr;
	meanwhile(nr, opens_in_clone_again);
}

/* Whatever lock somebody holds who is not in the child. */
static void os_open__in_a_child_of_anything(void **state)
{
	static const long calls[] = {SYS_madvise, SYS_fstat, SYS_pread64,
				     SYS_fcntl};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++) {
		struct os *other;

		clones = 0;
		during = calls[i];
		meanwhile(during, opens_in_clone_again);
		other = host_plain();
		assert_non_null(os_memory(other, 1));
		fresh_check(clock_ns() + SECOND);
		assert_int_equal(child(is_child), 0);
		refuse_none();
		assert_true(clones > 0);
		os_close(other);
	}
}

static sem_t stopped, go_on;

static void *stop_forks(void *arg)
{
	fork_stop();
	sem_post(&stopped);
	while (sem_wait(&go_on) != 0)
		;
	fork_go_on();
	return arg;
}

static void fork_stop__not_in_a_child(void **state)
{
	pthread_t t;
	int status;

	(void)state;
	sem_init(&stopped, 0, 0);
	sem_init(&go_on, 0, 0);
	assert_int_equal(pthread_create(&t, NULL, stop_forks, NULL), 0);
	while (sem_wait(&stopped) != 0)
		;
	status = opens_in_clone();
	sem_post(&go_on);
	pthread_join(t, NULL);
	assert_int_equal(status, 0);
}

static bool yes(void)
{
	return true;
}

static bool forking_before, forking_after, begun_before, begun_after;
static bool opens;

static void before_fork(void)
{
	if (opens)
		os = host_plain();
	forking_before = os && os_forking(os);
	begun_before = os_step_begin();
	os_step_end(begun_before);
}

static void after_fork(void)
{
	forking_after = os && os_forking(os);
	begun_after = os_step_begin();
	os_step_end(begun_after);
}

static bool not_forking(void)
{
	return !os_forking(os);
}

/* Before those of os/, which are installed by a constructor: ours run inside them. */
static void install_first(void)
{
	pthread_atfork(before_fork, after_fork, NULL);
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const first)(void) = install_first;

/* See setup(). */
static void os_open__in_the_first_fork(void **state)
{
	const bool begun = os_step_begin();

	(void)state;
	os_step_end(begun);
	assert_true(begun);
	assert_false(os_forking(os));
}

static void os_forking__while_it_does(void **state)
{
	(void)state;
	assert_false(os_forking(os));
	assert_int_equal(child(not_forking), 0);
	assert_true(forking_before);
	assert_true(forking_after);
	assert_false(begun_before || begun_after);
	assert_false(os_forking(os));
}

static void os_forks__counts(void **state)
{
	uint64_t before = os_forks(os);
	struct os *late;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(child(yes), 0);
	assert_int_equal(os_forks(os), before + 3);
	late = host_plain();
	assert_int_equal(os_forks(late), 0);
	os_close(late);
}

static int claimed;

static bool claimed_is_open(void)
{
	return fcntl(claimed, F_GETFD) >= 0;
}

static void fork_close_in_child__only_what_is_ours(void **state)
{
	int other;

	(void)state;
	claimed = os_claim(NULL, "fork-test");
	assert_true(claimed >= 0);
	assert_int_not_equal(child(claimed_is_open), 0);
	/* The program closed it and got the number for something else. */
	other = open("/dev/null", O_RDONLY);
	assert_int_equal(dup2(other, claimed), claimed);
	assert_int_equal(child(claimed_is_open), 0);
	os_unclaim(NULL, claimed);
	assert_int_equal(child(claimed_is_open), 1 << 8);
	close(other);
}

/* NIC memory is not the child's to touch, and ours stays as it was. */
static uint8_t *memory;

static bool memory_is_gone(void)
{
	return madvise(memory, PAGE_BYTES, MADV_NORMAL) < 0;
}

static void os_memory__not_in_child(void **state)
{
	(void)state;
	memory = os_memory(os, 1);
	assert_non_null(memory);
	memory[0] = 5;
	assert_int_equal(child(memory_is_gone), 0);
	assert_int_equal(memory[0], 5);
}

/* A first touch during fork() would wait for its end. */
static void os_memory__present_before_fork(void **state)
{
	const size_t bytes = 300 * PAGE_BYTES;
	struct os *other = host_plain();
	uint8_t *p = os_memory(os, bytes), *q = os_memory(other, bytes);

	(void)state;
	assert_false(page_present(p));
	assert_int_equal(child(not_forking), 0);
	for (size_t i = 0; i < bytes; i += PAGE_BYTES)
		assert_true(page_present(p + i) && page_present(q + i));
	/* what is closed is not looked after any more */
	os_close(other);
	q = pages_new(300, PROT_READ | PROT_WRITE);
	assert_int_equal(child(not_forking), 0);
	assert_false(page_present(q));
	pages_free(q, 300);
}

/* A step that began before is over before the pages change. */
static bool begun, ended;

/* While fork() waits. */
static void end_step(void)
{
	ended = true;
	os_step_end(begun);
}

static bool step_ended(void)
{
	return ended;
}

static void os_step__fork_waits(void **state)
{
	(void)state;
	begun = os_step_begin();
	assert_true(begun);
	meanwhile(SYS_nanosleep, end_step);
	assert_int_equal(child(step_ended), 0);
	/* but not for one that is blocked */
	ended = false;
	begun = os_step_begin();
	assert_true(begun);
	assert_int_not_equal(child(step_ended), 0);
	end_step();
	/* nor for what has nothing to do with it */
	assert_int_equal(child(not_forking), 0);
}

/* The first open of the process comes in the middle of a fork(). */
static int setup(void **state)
{
	pid_t pid;

	(void)state;
	opens = true;
	pid = fork();
	if (pid == 0)
		_exit(0);
	opens = false;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_open__in_the_first_fork),
		cmocka_unit_test(os_child__in_child_and_grandchild),
		cmocka_unit_test(os_child__raw_clone),
		cmocka_unit_test(os_open__in_a_child_of_anything),
		cmocka_unit_test(fork_stop__not_in_a_child),
		cmocka_unit_test(os_forking__while_it_does),
		cmocka_unit_test(os_forks__counts),
		cmocka_unit_test(fork_close_in_child__only_what_is_ours),
		cmocka_unit_test(os_memory__present_before_fork),
		cmocka_unit_test(os_step__fork_waits),
		cmocka_unit_test(os_memory__not_in_child),
	};
	int ret;

	ret = cmocka_run_group_tests(tests, setup, NULL);

	os_close(os);
	return ret;
}
