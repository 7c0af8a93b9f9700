/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cred_test.c: whose is the other end of a unix socket? */
#include "host_fixture.h"
#include "os/cred.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { OVERFLOW = 65534 };

static const struct sockaddr_un *address(socklen_t *len)
{
	static struct sockaddr_un sun = {.sun_family = AF_UNIX};
	static int pid;

	if (!pid) /* of the test, not of its children */
		pid = getpid();
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(sun.sun_path + 1, 64,
					    "nopin-cred-test-%d", pid));
	return &sun;
}

static int listener(void)
{
	socklen_t len;
	const struct sockaddr *sa = (const struct sockaddr *)address(&len);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	return bind(fd, sa, len) || listen(fd, 4) ? -1 : fd;
}

static int connected(void)
{
	socklen_t len;
	const struct sockaddr *sa = (const struct sockaddr *)address(&len);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	return connect(fd, sa, len) ? -1 : fd;
}

/* A child that says on the pipe when it has begun, and ends with us. */
static pid_t child_start(void (*run)(int begun))
{
	int begun[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(begun), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(begun[0]);
		run(begun[1]);
		_exit(1);
	}
	close(begun[1]);
	assert_int_equal(read(begun[0], &c, 1), 1);
	close(begun[0]);
	return pid;
}

static void child_ready(int begun)
{
	if (write(begun, "", 1) != 1)
		_exit(9);
}

static void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void cred_check__ours(void **state)
{
	int listens = listener(), fd = connected(), served;
	struct ucred who;

	(void)state;
	served = accept(listens, NULL, NULL);
	assert_int_equal(cred_check(fd, false, &who), 0);
	assert_int_equal(who.pid, getpid());
	assert_int_equal(cred_check(served, false, &who), 0);
	assert_int_equal(who.uid, geteuid());
	close(served);
	close(fd);
	close(listens);
}

static void stranger_calls(int begun)
{
	if (setgid(1001) || setuid(1001) || connected() < 0)
		_exit(2);
	child_ready(begun);
	pause();
}

static void cred_check__stranger(void **state)
{
	int listens, served;
	struct ucred who;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	listens = listener();
	pid = child_start(stranger_calls);
	served = accept(listens, NULL, NULL);
	assert_int_equal(cred_check(served, false, &who), -EPERM);
	assert_int_equal(who.uid, 1001);
	child_end(pid);
	close(served);
	close(listens);
}

static bool map_id(const char *file, unsigned outside)
{
	char map[64];
	int fd = open(file, O_WRONLY), len;

	len = snprintf(map, sizeof(map), "%d %u 1", OVERFLOW, outside);
	return fd >= 0 && write(fd, map, (size_t)len) == len;
}

/* Into a namespace where we are 65534 and everybody else looks so. */
static bool enter_userns(void)
{
	const unsigned uid = geteuid(), gid = getegid();
	int fd;

	if (unshare(CLONE_NEWUSER))
		return false;
	fd = open("/proc/self/setgroups", O_WRONLY);
	return fd >= 0 && write(fd, "deny", 4) == 4 &&
	       map_id("/proc/self/uid_map", uid) &&
	       map_id("/proc/self/gid_map", gid) && geteuid() == OVERFLOW;
}

/* Exits with what cred_check() says of who calls first, from outside, and second, a
 * child of its own. */
static void judge_in_userns(int begun)
{
	struct ucred who;
	int listens, ret;
	pid_t pid;

	if (!enter_userns())
		_exit(77);
	listens = listener();
	child_ready(begun);
	ret = cred_check(accept(listens, NULL, NULL), false, &who);
	if (who.uid != OVERFLOW || ret != -EPERM)
		_exit(2);
	pid = fork();
	if (pid == 0) {
		(void)connected();
		pause();
	}
	ret = cred_check(accept(listens, NULL, NULL), false, &who);
	child_end(pid); /* it has our listener, too */
	_exit(who.uid != OVERFLOW || ret != 0 ? 3 : 0);
}

/* The namespace has no number for whoever calls: he looks like its only user. */
static void cred_check__no_number(void **state)
{
	int begun[2], status, fd;
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe(begun), 0);
	pid = fork();
	if (pid == 0)
		judge_in_userns(begun[1]);
	close(begun[1]);
	fd = read(begun[0], &c, 1) == 1 ? connected() : -1;
	close(begun[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fd);
	if (WEXITSTATUS(status) == 77)
		skip(); /* the host lets nobody make one */
	assert_int_equal(status, 0);
}

static void nobody_judges(int begun)
{
	int listens, served;
	struct ucred who;
	pid_t pid;

	if (setgid(OVERFLOW) || setuid(OVERFLOW))
		_exit(2);
	listens = listener();
	pid = fork();
	if (pid == 0)
		_exit(connected() < 0);
	if (waitpid(pid, NULL, 0) != pid)
		_exit(3);
	served = accept(listens, NULL, NULL);
	if (cred_check(served, false, &who) || who.uid != OVERFLOW)
		_exit(4);
	child_ready(begun);
	pause();
}

/* Debian's nobody is a user as any other where every user has a number, also when the
 * process that asked has ended. */
static void cred_check__nobody(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	child_end(child_start(nobody_judges));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cred_check__ours),
		cmocka_unit_test(cred_check__stranger),
		cmocka_unit_test(cred_check__no_number),
		cmocka_unit_test(cred_check__nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
