/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl_test.c: who is let in at the control socket, for how long, and how it is
 * answered.
 */
#include "base/timerq.h"
#include "host_fixture.h"
#include "os/names.h"
#include "os/wait.h"

#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { EVER = 0 };

static struct os *os;
static int pid; /* ours; a child finds nothing in @os */
static char req[64];

static int open_ctl(void **state)
{
	const struct os_config cfg = {.addr = "lo"};

	(void)state;
	assert_int_equal(os_open(&os, &cfg), 0);
	assert_int_equal(os_ctl_open(os), 0);
	pid = os->pid;
	return 0;
}

static int close_ctl(void **state)
{
	(void)state;
	os_close(os);
	return 0;
}

static int dial(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int n = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1,
			 "nopin/ctl/%d", pid);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	assert_int_equal(
		connect(fd, (struct sockaddr *)&sun,
			(socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
				(socklen_t)n),
		0);
	return fd;
}

/* As the background thread does, until something comes, or for @ms. Return: what the
 * last os_ctl_take() said. */
static int serve(unsigned ms)
{
	const uint64_t end = ms == EVER ? TIME_NEVER
					: os_now(os) + ms * UINT64_C(1000000);
	int ret = -EAGAIN;

	while (ret == -EAGAIN && os_now(os) < end) {
		os_wait(os, OS_WAIT_TIMER, end, -1);
		ret = os_ctl_take(os, req, sizeof(req));
	}
	return ret;
}

/* Return: the answer's length; @file: the descriptor with it, or -1. */
static ssize_t receive(int fd, char *buf, size_t size, int *file)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {buf, size - 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.space,
			   .msg_controllen = sizeof(control.space)};
	ssize_t n = recvmsg(fd, &m, 0);
	const struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	*file = -1;
	if (n >= 0)
		buf[n] = '\0';
	if (c)
		memcpy(file, CMSG_DATA(c), sizeof(*file));
	return n;
}

static void os_ctl_answer__text(void **state)
{
	char buf[64];
	int fd = dial(), file;

	(void)state;
	assert_int_equal(send(fd, "what", 4, 0), 4);
	assert_int_equal(serve(EVER), 4);
	assert_memory_equal(req, "what", 4);
	assert_int_equal(os_ctl_answer(os, NULL, "this\n", 5), 0);
	assert_int_equal(receive(fd, buf, sizeof(buf), &file), 2);
	assert_string_equal(buf, "ok");
	assert_true(file >= 0);
	assert_int_equal(pread(file, buf, sizeof(buf), 0), 5);
	assert_memory_equal(buf, "this\n", 5);
	assert_int_equal(receive(fd, buf, sizeof(buf), &file), 0);
	close(fd);
}

static void os_ctl_answer__error(void **state)
{
	char buf[64];
	int fd = dial(), file;

	(void)state;
	assert_int_equal(send(fd, "what", 4, 0), 4);
	assert_int_equal(serve(EVER), 4);
	assert_int_equal(os_ctl_answer(os, "never", NULL, 0), 0);
	assert_true(receive(fd, buf, sizeof(buf), &file) > 0);
	assert_string_equal(buf, "error never");
	assert_int_equal(file, -1);
	close(fd);
}

static void os_ctl_take__too_long(void **state)
{
	char buf[sizeof(req) + 1] = {0}, said[64];
	int fd = dial(), file;

	(void)state;
	assert_int_equal(send(fd, buf, sizeof(buf), 0), sizeof(buf));
	assert_int_equal(serve(EVER), -EMSGSIZE);
	assert_true(receive(fd, said, sizeof(said), &file) > 0);
	assert_string_equal(said, "error the request is too long");
	close(fd);
}

/* Nobody waits for it, and the next one is let in. */
static void os_ctl_take__who_says_nothing(void **state)
{
	int silent = dial(), fd = dial(), file;
	char buf[64];

	(void)state;
	assert_int_equal(send(fd, "what", 4, 0), 4);
	assert_int_equal(serve(EVER), 4);
	assert_int_equal(receive(silent, buf, sizeof(buf), &file), 5);
	assert_string_equal(buf, "again");
	assert_int_equal(os_ctl_answer(os, "never", NULL, 0), 0);
	close(silent);
	close(fd);
}

/* Nobody else wants to: it may ask as late as it likes. */
static void os_ctl_take__late(void **state)
{
	int fd = dial();

	(void)state;
	assert_int_equal(serve(300), -EAGAIN);
	assert_int_equal(send(fd, "what", 4, 0), 4);
	assert_int_equal(serve(EVER), 4);
	assert_int_equal(os_ctl_answer(os, "never", NULL, 0), 0);
	close(fd);
}

static int late_fd;
static uint32_t late; /* 1: now; 2: done */

/* The door has no descriptors of the test. */
static void *ask_late(void *arg)
{
	while (!__atomic_load_n(&late, __ATOMIC_ACQUIRE))
		sched_yield();
	assert_int_equal(send(late_fd, "what", 4, 0), 4);
	__atomic_store_n(&late, 2, __ATOMIC_RELEASE);
	return arg;
}

static void let_ask_late(void)
{
	__atomic_store_n(&late, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&late, __ATOMIC_ACQUIRE) != 2)
		sched_yield();
}

/* It asks just when it is hung up on: that it is to come again reaches it. */
static void os_ctl_take__late_and_crossing(void **state)
{
	int fd, file;
	pthread_t asks;
	char buf[64];

	(void)state;
	late_fd = dial();
	assert_int_equal(pthread_create(&asks, NULL, ask_late, NULL), 0);
	fd = dial();
	assert_int_equal(send(fd, "what", 4, 0), 4);
	meanwhile(SYS_shutdown, let_ask_late);
	assert_int_equal(serve(EVER), 4);
	pthread_join(asks, NULL);
	assert_int_equal(receive(late_fd, buf, sizeof(buf), &file), 5);
	assert_string_equal(buf, "again");
	assert_int_equal(os_ctl_answer(os, "never", NULL, 0), 0);
	close(late_fd);
	close(fd);
}

/* There is no descriptor left for the file: it is told so. */
static void os_ctl_answer__no_room(void **state)
{
	int fd = dial(), file;
	char buf[64];

	(void)state;
	assert_int_equal(send(fd, "what", 4, 0), 4);
	assert_int_equal(serve(EVER), 4);
	refuse(SYS_memfd_create, -1, 0, EMFILE);
	refuse(SYS_openat, -1, 0, EMFILE);
	assert_int_equal(os_ctl_answer(os, NULL, "this", 4), -EMFILE);
	refuse_none();
	assert_true(receive(fd, buf, sizeof(buf), &file) > 0);
	assert_int_equal(file, -1);
	assert_int_equal(strncmp(buf, "error ", 6), 0);
	close(fd);
}

/* Who asked, but did not wait for the answer, has asked for nothing. */
static void os_ctl_take__who_is_gone(void **state)
{
	int gone = dial(), fd;

	(void)state;
	assert_int_equal(serve(20), -EAGAIN);
	close(gone);
	fd = dial();
	assert_int_equal(send(fd, "what", 4, 0), 4);
	close(fd);
	assert_int_equal(serve(300), -EAGAIN);
}

static void os_ctl_answer__who_is_gone(void **state)
{
	int fd = dial();

	(void)state;
	assert_int_equal(send(fd, "what", 4, 0), 4);
	assert_int_equal(serve(EVER), 4);
	close(fd);
	assert_true(os_ctl_answer(os, NULL, "x", 1) < 0);
}

static void stranger(void)
{
	static const char want[] = "error this process is another user's";
	char buf[64];
	int fd, file;

	if (setgid(65534) || setuid(65534))
		_exit(2);
	fd = dial();
	(void)send(fd, "what", 4, MSG_NOSIGNAL); /* it may have heard already */
	if (receive(fd, buf, sizeof(buf), &file) <= 0)
		_exit(3);
	_exit(file != -1 || strcmp(buf, want) != 0);
}

static void os_ctl_take__stranger(void **state)
{
	int status;
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip();
	child = fork();
	assert_true(child >= 0);
	if (!child)
		stranger();
	assert_int_equal(serve(EVER), -EPERM);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(os_ctl_answer__text, open_ctl,
						close_ctl),
		cmocka_unit_test_setup_teardown(os_ctl_answer__error, open_ctl,
						close_ctl),
		cmocka_unit_test_setup_teardown(os_ctl_take__too_long, open_ctl,
						close_ctl),
		cmocka_unit_test_setup_teardown(os_ctl_take__who_says_nothing,
						open_ctl, close_ctl),
		cmocka_unit_test_setup_teardown(os_ctl_take__late, open_ctl,
						close_ctl),
		cmocka_unit_test_setup_teardown(os_ctl_take__late_and_crossing,
						open_ctl, close_ctl),
		cmocka_unit_test_setup_teardown(os_ctl_answer__no_room,
						open_ctl, close_ctl),
		cmocka_unit_test_setup_teardown(os_ctl_take__who_is_gone,
						open_ctl, close_ctl),
		cmocka_unit_test_setup_teardown(os_ctl_answer__who_is_gone,
						open_ctl, close_ctl),
		cmocka_unit_test_setup_teardown(os_ctl_take__stranger, open_ctl,
						close_ctl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
