/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* name_test.c: one holder a name; free again when it goes, however it goes. */
#include "base/timerq.h"
#include "host_fixture.h"
#include "os/name.h"
#include "os/names.h"
#include "os/net.h"
#include "os/wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
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
	os_unclaim(NULL, fd2);
	os_unclaim(NULL, fd);
	fd = os_claim(NULL, name);
	assert_true(fd >= 0);
	os_unclaim(NULL, fd);
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
	os_unclaim(NULL, fd);
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
	os_unclaim(NULL, fd);
	close(pipefd[0]);
	close(pipefd[1]);
}

/* Claim @name, and share it from a port of its own. */
static int holder_begin(struct os *os, const char *what, uint64_t secret)
{
	const int claim = os_claim(os, what);
	uint16_t number;

	assert_true(claim >= 0);
	assert_int_equal(
		os_claim_share(os, claim, os_port_open(os, 0, &number), secret),
		0);
	return claim;
}

/* Return: a socket bound to @port, or -1. */
static int other_binds(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(port)};
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (bind(fd, (void *)&at, sizeof(at)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Return: 1: @secret; -EPIPE. */
static int ask_until_told(struct os *os, int fd, uint64_t *secret)
{
	int ret = 0;

	for (int i = 0; i < 1000 && ret == 0; i++) {
		os_wait(os, OS_WAIT_TIMER, os_now(os) + 10 * MS, -1);
		ret = os_holder_says(os, fd, secret);
	}
	return ret;
}

static void os_holder_ask__told_until_the_end(void **state)
{
	struct os *holder = host_plain(), *os = host_plain();
	int claim = os_claim(holder, name), fd, port;
	struct os_holder who = {0};
	uint64_t secret = 0;
	uint16_t number;

	(void)state;
	/* it is not ready to serve */
	assert_int_equal(os_holder_ask(os, name, &who), -ECONNREFUSED);
	port = os_port_open(holder, 0, &number);
	assert_int_equal(os_claim_share(holder, claim, port, 0x1234), 0);
	fd = os_holder_ask(os, name, &who);
	assert_true(fd >= 0);
	assert_int_equal(who.pid, getpid());
	assert_int_equal(who.uid, geteuid());
	assert_int_equal(ask_until_told(os, fd, &secret), 1);
	assert_int_equal(secret, 0x1234);
	assert_int_equal(os_holder_says(os, fd, &secret), 0);
	(void)os_holder_spoke(os);
	os_wait(os, OS_WAIT_TIMER, os_now(os) + 10 * MS, -1);
	assert_false(os_holder_spoke(os));
	os_claim_unshare(holder);
	/* who sleeps is woken by it */
	os_wait(os, OS_WAIT_TIMER, TIME_NEVER, -1);
	assert_true(os_holder_spoke(os));
	assert_int_equal(os_holder_says(os, fd, &secret), -EPIPE);
	os_holder_leave(os, fd);
	os_unclaim(holder, claim);
	os_close(holder);
	os_close(os);
}

/* What the program has under that number now is neither read nor closed. */
static void os_holder_says__closed_by_the_program(void **state)
{
	struct os *holder = host_plain(), *os = host_plain();
	int claim = holder_begin(holder, name, 1), fd, ends[2];
	struct os_holder who;
	uint64_t word = 7;

	(void)state;
	fd = os_holder_ask(os, name, &who);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	assert_int_equal(send(ends[1], &word, sizeof(word), 0), sizeof(word));
	assert_int_equal(dup2(ends[0], fd), fd);
	assert_int_equal(os_holder_says(os, fd, &word), -EPIPE);
	os_holder_leave(os, fd);
	assert_int_equal(recv(fd, &word, sizeof(word), MSG_DONTWAIT),
			 sizeof(word));
	close(fd);
	close(ends[0]);
	close(ends[1]);
	os_unclaim(holder, claim);
	os_close(holder);
	os_close(os);
}

/* Asking opens nothing as long as a thread of the program sees to it, and asking in
 * vain uses nothing up. */
static void os_prepare__opens_beforehand(void **state)
{
	struct os *holder = host_plain(), *os = host_plain();
	int claim = os_claim(holder, name), fd[OS_SPARES + 1];
	struct os_holder who;
	unsigned opened;
	uint16_t number;
	int port;

	(void)state;
	port = os_port_open(holder, 0, &number);
	os_prepare(os);
	opened = refuse_calls(SYS_socket);
	for (int i = 0; i < 2 * OS_SPARES; i++)
		assert_int_equal(os_holder_ask(os, name, &who), -ECONNREFUSED);
	assert_int_equal(os_claim_share(holder, claim, port, 1), 0);
	for (int i = 0; i < OS_SPARES; i++)
		fd[i] = os_holder_ask(os, name, &who);
	assert_int_equal(refuse_calls(SYS_socket), opened);
	os_prepare(os);
	opened = refuse_calls(SYS_socket);
	fd[OS_SPARES] = os_holder_ask(os, name, &who);
	assert_int_equal(refuse_calls(SYS_socket), opened);
	for (int i = 0; i <= OS_SPARES; i++) {
		assert_true(fd[i] >= 0);
		os_holder_leave(os, fd[i]);
	}
	os_unclaim(holder, claim);
	os_close(holder);
	os_close(os);
}

/* Places are free again when guests have left, and nobody waits for one in vain. */
static void os_claim_share__guests_come_and_go(void **state)
{
	struct os *holder = host_plain(), *os = host_plain();
	int claim = holder_begin(holder, name, 1), fd[OS_GUESTS_MAX], last, n;
	struct os_holder who;
	uint64_t secret;

	(void)state;
	for (n = 0; n < OS_GUESTS_MAX; n++) {
		fd[n] = os_holder_ask(os, name, &who);
		assert_true(fd[n] >= 0);
		assert_int_equal(ask_until_told(os, fd[n], &secret), 1);
	}
	last = os_holder_ask(os, name, &who);
	assert_int_equal(ask_until_told(os, last, &secret), -EPIPE);
	os_holder_leave(os, last);
	os_holder_leave(os, fd[0]);
	fd[0] = os_holder_ask(os, name, &who);
	assert_int_equal(ask_until_told(os, fd[0], &secret), 1);
	while (n--)
		os_holder_leave(os, fd[n]);
	os_claim_unshare(holder);
	os_unclaim(holder, claim);
	os_close(holder);
	os_close(os);
}

/* Those that were told hear of the end before another process can have the port. */
static void os_claim_share__port_is_free_last(void **state)
{
	struct os *holder = host_plain(), *os = host_plain();
	const int claim = os_claim(holder, name);
	struct os_holder who;
	uint64_t secret;
	uint16_t number;
	int fd, port;

	(void)state;
	port = os_port_open(holder, 0, &number);
	assert_int_equal(os_claim_share(holder, claim, port, 1), 0);
	fd = os_holder_ask(os, name, &who);
	assert_int_equal(ask_until_told(os, fd, &secret), 1);
	os_port_close(holder, port);
	assert_int_equal(other_binds(number), -1);
	assert_int_equal(os_holder_says(os, fd, &secret), 0);
	os_claim_unshare(holder);
	assert_int_equal(os_holder_says(os, fd, &secret), -EPIPE);
	port = other_binds(number);
	assert_true(port >= 0);
	close(port);
	os_holder_leave(os, fd);
	os_unclaim(holder, claim);
	os_close(holder);
	os_close(os);
}

/* The door's thread stops before it closes the second of a guest and the port. */
static int half;
static int half_fd, half_says, half_port;
static uint16_t half_number;
static struct os *half_os;

static void close_second(void)
{
	__atomic_store_n(&half, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&half, __ATOMIC_SEQ_CST) == 1)
		usleep(100);
}

static void close_first(void)
{
	meanwhile(SYS_close, close_second);
}

/* The door has descriptors of its own, so another thread looks at ours. */
static void *half_look(void *arg)
{
	uint64_t secret;

	while (__atomic_load_n(&half, __ATOMIC_SEQ_CST) == 0)
		usleep(100);
	half_says = os_holder_says(half_os, half_fd, &secret);
	half_port = other_binds(half_number);
	__atomic_store_n(&half, 2, __ATOMIC_SEQ_CST);
	return arg;
}

static void os_claim_unshare__guests_first(void **state)
{
	struct os *holder = host_plain();
	const int claim = os_claim(holder, name);
	struct os_holder who;
	pthread_t thread;
	uint64_t secret;
	int port;

	(void)state;
	half_os = host_plain();
	port = os_port_open(holder, 0, &half_number);
	assert_int_equal(os_claim_share(holder, claim, port, 1), 0);
	half_fd = os_holder_ask(half_os, name, &who);
	assert_int_equal(ask_until_told(half_os, half_fd, &secret), 1);
	os_port_close(holder, port);
	pthread_create(&thread, NULL, half_look, NULL);
	meanwhile(SYS_close, close_first);
	os_claim_unshare(holder);
	pthread_join(thread, NULL);
	refuse_none();
	assert_int_equal(half_says, -EPIPE);
	assert_int_equal(half_port, -1);
	os_holder_leave(half_os, half_fd);
	os_unclaim(holder, claim);
	os_close(holder);
	os_close(half_os);
}

/* Count the descriptors of the thread @tid that are the socket @fd of ours. */
static unsigned copies_of(const char *tid, int fd)
{
	char path[600], ours[64] = "", link[64];
	const struct dirent *e;
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(readlink(path, ours, sizeof(ours) - 1) > 0);
	snprintf(path, sizeof(path), "/proc/self/task/%s/fd", tid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		memset(link, 0, sizeof(link));
		snprintf(path, sizeof(path), "/proc/self/task/%s/fd/%s", tid,
			 e->d_name);
		n += readlink(path, link, sizeof(link) - 1) > 0 &&
		     strcmp(link, ours) == 0;
	}
	closedir(dir);
	return n;
}

/* A copy would be counted off before the connections of guests end
 * (tests/platform/exit-flight.c). */
static void os_claim_share__port_is_no_descriptor(void **state)
{
	struct os *holder = host_plain();
	const int claim = os_claim(holder, name);
	const struct dirent *e;
	uint16_t number;
	unsigned doors = 0;
	DIR *tasks;
	int port;

	(void)state;
	port = os_port_open(holder, 0, &number);
	assert_int_equal(os_claim_share(holder, claim, port, 1), 0);
	assert_true(holder->door.apart);
	tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	while ((e = readdir(tasks))) {
		char path[600], comm[32] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 e->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		assert_true(read(fd, comm, sizeof(comm) - 1) >= 0);
		close(fd);
		if (strcmp(comm, "nopin-door\n") != 0)
			continue;
		doors++;
		assert_int_equal(copies_of(e->d_name, holder->rx.port[port].fd),
				 0);
	}
	closedir(tasks);
	assert_int_equal(doors, 1);
	os_claim_unshare(holder);
	os_port_close(holder, port);
	os_unclaim(holder, claim);
	os_close(holder);
}

static void hold_until_killed(int out)
{
	struct os *os = host_plain();
	const int claim = os_claim(os, name);
	uint16_t number;
	const int port = os_port_open(os, 0, &number);

	if (os_claim_share(os, claim, port, 7) == 0 &&
	    write(out, &number, sizeof(number)) == sizeof(number))
		child_pauses();
	_exit(1);
}

static void killed_once(struct os *os)
{
	struct os_holder who;
	uint64_t secret;
	uint16_t number;
	int ends[2], fd, port;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0)
		hold_until_killed(ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &number, sizeof(number)),
			 sizeof(number));
	close(ends[0]);
	fd = os_holder_ask(os, name, &who);
	assert_int_equal(ask_until_told(os, fd, &secret), 1);
	kill(pid, SIGKILL);
	do
		port = other_binds(number);
	while (port < 0);
	assert_int_equal(os_holder_says(os, fd, &secret), -EPIPE);
	close(port);
	os_holder_leave(os, fd);
	waitpid(pid, NULL, 0);
}

static void os_claim_share__killed(void **state)
{
	struct os *os = host_plain();

	(void)state;
	for (int i = 0; i < 20; i++)
		killed_once(os);
	os_close(os);
}

enum { STRANGER = 1001, STRANGER_BAD_HOLDER = 3, STRANGER_NOT_TOLD };

/* A process of another user: it asks root's holder, and then @holds a name itself. */
static void stranger(bool holds)
{
	struct os_holder who = {0};
	uint64_t secret = 0;
	struct os *mine;
	char other[80];
	int fd, ret = 0;

	if (setgid(STRANGER) || setuid(STRANGER))
		_exit(2);
	mine = host_plain();
	fd = os_holder_ask(mine, name, &who);
	if (fd < 0 || who.uid != 0)
		_exit(STRANGER_BAD_HOLDER);
	while (ret == 0) {
		usleep(1000);
		ret = os_holder_says(mine, fd, &secret);
	}
	if (secret != 7)
		_exit(STRANGER_NOT_TOLD);
	if (!holds)
		_exit(0);
	snprintf(other, sizeof(other), "%s-other", name);
	holder_begin(mine, other, 8);
	child_pauses();
}

/* Without a door a name is ours all the same, and shared with nobody. */
static void os_claim__without_a_door(void **state)
{
	struct os *os, *other = host_plain();
	int claim;

	(void)state;
	os = host_plain();
	refuse(SYS_socketpair, -1, 0, EPERM);
	claim = os_claim(os, name);
	assert_true(claim >= 0);
	assert_int_equal(os_claim_share(os, claim, 0, 7), -EOPNOTSUPP);
	refuse_none();
	assert_int_equal(os_claim(other, name), -EADDRINUSE);
	os_unclaim(os, claim);
	os_close(os);
	os_close(other);
}

/* Another user's process with the name is nobody's holder; and root's is. */
static void os_holder_ask__whose(void **state)
{
	struct os_holder who = {0};
	struct os *os;
	int claim, fd, status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	os = host_plain();
	claim = holder_begin(os, name, 7);
	pid = fork();
	if (pid == 0)
		stranger(true);
	snprintf(name + strlen(name), 8, "-other");
	do {
		os_wait(os, OS_WAIT_TIMER, os_now(os) + 10 * MS, -1);
		fd = os_holder_ask(os, name, &who);
	} while (fd == -ECONNREFUSED && waitpid(pid, &status, WNOHANG) == 0);
	assert_int_equal(fd, -EPERM);
	assert_int_equal(who.uid, STRANGER);
	assert_int_equal(who.pid, pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	os_claim_unshare(os);
	os_unclaim(os, claim);
	os_close(os);
	name_new(NULL);
}

/* A filter of system calls may keep that from us: then it is nobody, not root. */
static void os_holder_ask__kernel_does_not_tell(void **state)
{
	struct os *holder = host_plain(), *os = host_plain();
	const int claim = holder_begin(holder, name, 7);
	struct os_holder who = {0};

	(void)state;
	refuse(SYS_getsockopt, -1, 0, EPERM);
	assert_int_equal(os_holder_ask(os, name, &who), -EPERM);
	refuse_none();
	assert_int_equal(who.pid, 0);
	assert_int_equal(who.uid, OS_NO_USER);
	os_claim_unshare(holder);
	os_unclaim(holder, claim);
	os_close(holder);
	os_close(os);
}

/* As the user @uid, of this thread alone: the C library's would be all threads'. */
static void be(uid_t uid)
{
	assert_int_equal(syscall(SYS_setresuid, -1, uid, -1), 0);
}

/* Connect as @uid until that is refused. Return: how often it was told. */
static unsigned ask_as(struct os *os, uid_t uid, int *fds)
{
	struct os_holder who;
	uint64_t secret;
	unsigned n = 0;

	for (;;) {
		be(uid);
		fds[n] = os_holder_ask(os, name, &who);
		be(0);
		assert_true(fds[n] >= 0);
		if (ask_until_told(os, fds[n], &secret) != 1)
			break;
		n++;
	}
	os_holder_leave(os, fds[n]);
	return n;
}

/* A user may have thousands of others (subuid(5)): all of them have half. */
static void os_claim_share__half_for_strangers(void **state)
{
	struct os *holder, *os;
	int claim, fds[OS_GUESTS_MAX + 1];
	unsigned n = 0, one;
	uid_t uid = STRANGER;

	(void)state;
	if (geteuid() != 0)
		skip();
	holder = host_plain();
	os = host_plain();
	claim = holder_begin(holder, name, 7);
	do {
		one = ask_as(os, uid++, fds + n);
		if (!n)
			assert_int_equal(one, OS_GUESTS_MAX / 4);
		n += one;
	} while (one);
	assert_int_equal(n, OS_GUESTS_MAX / 2);
	n += ask_as(os, 0, fds + n);
	assert_int_equal(n, OS_GUESTS_MAX);
	while (n--)
		os_holder_leave(os, fds[n]);
	/* what is ours may fill all of it, and then there is no room in their half */
	n = ask_as(os, 0, fds);
	assert_int_equal(n, OS_GUESTS_MAX);
	assert_int_equal(ask_as(os, STRANGER, fds + n), 0);
	while (n--)
		os_holder_leave(os, fds[n]);
	os_claim_unshare(holder);
	os_unclaim(holder, claim);
	os_close(holder);
	os_close(os);
}

/* The port is not the door's where that has no descriptors of its own: nobody of
 * another user is served then. */
static void os_claim_share__without_a_table(void **state)
{
	struct os *os;
	int claim, status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	os = host_plain();
	refuse(SYS_close_range, -1, 0, EPERM);
	claim = holder_begin(os, name, 7);
	pid = fork();
	if (pid == 0)
		stranger(false);
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STRANGER_NOT_TOLD);
	refuse_none();
	os_unclaim(os, claim);
	os_close(os);
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
	os_unclaim(NULL, fd);
	os_port_close(os, index);
	/* as soon as the child has run at all */
	for (;;) {
		fd = os_claim(NULL, name);
		index = os_port_open(os, port, &again);
		if (fd >= 0 && index >= 0)
			break;
		if (fd >= 0)
			os_unclaim(NULL, fd);
		if (index >= 0)
			os_port_close(os, index);
		usleep(5000);
	}
	assert_int_equal(index, 0);
	assert_int_equal(again, port);
	os_unclaim(NULL, fd);
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
		cmocka_unit_test(os_holder_ask__told_until_the_end),
		cmocka_unit_test(os_holder_says__closed_by_the_program),
		cmocka_unit_test(os_prepare__opens_beforehand),
		cmocka_unit_test(os_claim_share__guests_come_and_go),
		cmocka_unit_test(os_claim_share__port_is_free_last),
		cmocka_unit_test(os_claim_unshare__guests_first),
		cmocka_unit_test(os_claim_share__port_is_no_descriptor),
		cmocka_unit_test(os_claim_share__killed),
		cmocka_unit_test(os_claim_share__half_for_strangers),
		cmocka_unit_test(os_claim_share__without_a_table),
		cmocka_unit_test(os_claim__without_a_door),
		cmocka_unit_test(os_holder_ask__whose),
		cmocka_unit_test(os_holder_ask__kernel_does_not_tell),
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
