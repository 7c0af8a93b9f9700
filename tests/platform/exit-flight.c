/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process that is killed has two tables of descriptors, of threads that end side by
 * side. A socket in flight (SCM_RIGHTS) to the lowest descriptor of the one is let go after
 * the connection of a higher one has ended, whenever the other table lets it go. A copy of
 * the lowest number is not: it is counted off when the table begins to close.
 */
#include "exit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* What lies between makes one table end long after it began, and the other between. */
enum { ROUNDS = 50, PORT_FD = 600, MANY = 4000, LINE_FD = 16000 };

static bool flies;
static int port, line, step;

static void fill(int from, int to)
{
	for (int fd = from; fd < to; fd++)
		FACT(fcntl(0, F_DUPFD, fd) >= fd);
}

static void step_is(int n)
{
	while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != n)
		sched_yield();
}

static void next_step(void)
{
	__atomic_add_fetch(&step, 1, __ATOMIC_RELEASE);
}

/* Return: what it is in flight to. */
static int send_port(void)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int ends[2];

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &port, sizeof(port));
	FACT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	FACT(sendmsg(ends[0], &m, 0) == 1);
	close(ends[0]);
	return ends[1];
}

static void *door(void *arg)
{
	int held;

	FACT(unshare(CLONE_FILES) == 0);
	held = flies ? send_port() : dup(port);
	FACT(dup2(held, PORT_FD) == PORT_FD);
	close(held);
	close(port);
	fill(PORT_FD + 1, LINE_FD);
	FACT(dup2(line, LINE_FD) == LINE_FD);
	close(line);
	next_step();
	step_is(2);
	FACT(write(LINE_FD, &at, sizeof(at)) == sizeof(at));
	for (;;)
		pause();
	return arg;
}

static void child(int end)
{
	socklen_t len = sizeof(at);
	pthread_t t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	line = end;
	port = port_bind();
	FACT(port >= 0 && getsockname(port, (void *)&at, &len) == 0);
	FACT(pthread_create(&t, NULL, door, NULL) == 0);
	step_is(1);
	close(line);
	fill(100, 2 * MANY);
	FACT(fcntl(port, F_DUPFD, 2 * MANY + 1) > 0);
	close(port);
	next_step();
	for (;;)
		pause();
}

int main(void)
{
	struct rlimit limit;
	int told = 0;

	FACT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	SKIP_UNLESS(limit.rlim_max > LINE_FD &&
			    setrlimit(RLIMIT_NOFILE, &limit) == 0,
		    "too few descriptors may be open");
	for (int i = 0; i < ROUNDS; i++) {
		flies = true;
		FACT(told_first(child));
		flies = false;
		told += told_first(child);
	}
	printf("of a copy: told before in %d of %d\n", told, ROUNDS);
	return 0;
}
