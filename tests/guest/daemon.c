/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* daemon.c late|early|closed|reach|free|connecting|follow|beside LIMIT: daemons fork
 * twice and close all descriptors from 3 to 1023, whatever they are.
 *  late    the device is opened afterwards: it works
 *  early   before the first fork: the daemon gets ENODEV, who opened it goes on
 *  closed  in the very process that closes: its NIC dies with an event
 *  reach   LIMIT leaves room above them: so does the NIC, and lives, and what
 *          has the numbers now is not its business
 *  free    what number is free stays so: no thread of ours takes it meanwhile
 *  connecting  nor while a connection is made
 *  follow  nor while addresses of the host come and go
 *  beside  nor while other NICs do, one of which held UDP port 4791 first, and while
 *          it is asked questions
 * LIMIT: of descriptors.
 */
#include "link.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static void close_all(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

/* Return: in the daemon 0, with stdin a pipe to say it is well; else the
 * pipe's other end. */
static int daemonise(void)
{
	int ends[2];

	REQUIRE(pipe(ends) == 0);
	if (fork()) {
		wait(NULL);
		close(ends[1]);
		return ends[0];
	}
	setsid();
	if (fork())
		_exit(0);
	REQUIRE(chdir("/") == 0);
	REQUIRE(dup2(ends[1], 0) == 0);
	close_all();
	return 0;
}

static void say_well(void)
{
	REQUIRE(write(0, "y", 1) == 1);
	_exit(0);
}

static void hear_well(int fd)
{
	char c;

	REQUIRE(read(fd, &c, 1) == 1 && c == 'y');
	close(fd);
}

static void late(void)
{
	const int fd = daemonise();
	struct link l;

	if (fd) {
		hear_well(fd);
		return;
	}
	link_open(&l);
	for (int i = 0; i < 100; i++)
		link_send(&l, i & 1, LINK_BYTES, (uint8_t)(i | 1));
	link_close(&l);
	say_well();
}

static void early(void)
{
	struct ibv_wc wc;
	struct link l;
	int fd;

	link_open(&l);
	link_send(&l, 0, 100, 1);
	fd = daemonise();
	if (fd) {
		hear_well(fd);
		link_send(&l, 1, LINK_BYTES, 2);
		link_close(&l);
		return;
	}
	REQUIRE(ibv_poll_cq(l.cq[0], 1, &wc) < 0);
	REQUIRE(link_post(&l, 0, 8) == ENODEV);
	REQUIRE(ibv_destroy_qp(l.qp[0]) == ENODEV);
	REQUIRE(ibv_close_device(l.ctx) == ENODEV);
	say_well();
}

static void closed(void)
{
	struct ibv_async_event ev;
	struct ibv_wc wc;
	struct link l;

	link_open(&l);
	link_send(&l, 0, LINK_BYTES, 1);
	close_all();
	REQUIRE(ibv_get_async_event(l.ctx, &ev) == 0);
	REQUIRE(ev.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&ev);
	/* nothing that is posted waits for ever */
	REQUIRE(link_post(&l, 0, 100) == 0);
	wc = link_wait(l.cq[0]);
	REQUIRE(wc.status == IBV_WC_WR_FLUSH_ERR);
	wc = link_wait(l.cq[1]);
	REQUIRE(wc.status == IBV_WC_WR_FLUSH_ERR);
	link_close(&l);
	/* and the next device is a new one */
	link_open(&l);
	link_send(&l, 0, LINK_BYTES, 1);
	link_close(&l);
}

static const char ours[8] = "program";

/* Take every free number: what is in @fd came from its pair. */
static int occupy(int *fd)
{
	int n = 0;

	while (n < 1020 && socketpair(AF_UNIX, SOCK_STREAM, 0, fd + n) == 0 &&
	       fd[n + 1] < 1024)
		n += 2;
	REQUIRE(n > 900);
	for (int i = 0; i < n; i++)
		REQUIRE(write(fd[i], ours, sizeof(ours)) == sizeof(ours));
	return n;
}

static void untouched(const int *fd, int n)
{
	char is[2 * sizeof(ours)];

	for (int i = 0; i < n; i++) {
		REQUIRE(recv(fd[i], is, sizeof(is), MSG_DONTWAIT) ==
			sizeof(ours));
		REQUIRE(memcmp(is, ours, sizeof(ours)) == 0);
	}
}

/* All but the descriptors that were handed out are out of reach. */
static void reach(void)
{
	static int fd[1024];
	struct link l;
	int n;

	link_open(&l);
	link_send(&l, 0, LINK_BYTES, 1);
	close_all();
	n = occupy(fd);
	for (int i = 0; i < 100; i++) {
		link_send(&l, i & 1, LINK_BYTES, (uint8_t)(i | 1));
		usleep(1000); /* our threads sleep and wake again */
	}
	untouched(fd, n);
	link_close(&l);
}

/* The number that the next descriptor has. */
static int lowest_free(void)
{
	const int fd = dup(0);

	REQUIRE(fd >= 0 && close(fd) == 0);
	return fd;
}

/* Pages are served all the time, so the pagers look at what the kernel says of
 * memory, too. */
static void free_numbers(void)
{
	const time_t end = time(NULL) + 2;
	struct link l;
	int first;

	link_open(&l);
	link_send(&l, 0, LINK_BYTES, 1);
	first = lowest_free();
	for (int i = 0; time(NULL) < end; i++) {
		if (i % 1000 == 0)
			link_send(&l, 0, LINK_BYTES, (uint8_t)(i | 1));
		REQUIRE(lowest_free() == first);
	}
	link_close(&l);
}

static void own_network(void)
{
	if (unshare(CLONE_NEWNET) == 0 && system("ip link set lo up") == 0)
		return;
	printf("SKIP: no network namespace\n");
	exit(77);
}

/* Return: a process in whose network namespace, ours, addresses come and go. */
static pid_t change_addresses(void)
{
	pid_t pid;

	own_network();
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("sh", "sh", "-c",
		       "while ip addr add 127.0.0.2/32 dev lo; do "
		       "ip addr del 127.0.0.2/32 dev lo; done",
		       (char *)NULL);
		_exit(1);
	}
	return pid;
}

/* Until addresses were others often enough, whatever time that takes. */
static void follow(void)
{
	enum { CHANGES = 20 };
	const pid_t changer = change_addresses();
	struct ibv_async_event ev;
	struct link l;
	int first;

	link_open(&l);
	link_send(&l, 0, LINK_BYTES, 1);
	REQUIRE(fcntl(l.ctx->async_fd, F_SETFL, O_NONBLOCK) == 0);
	first = lowest_free();
	for (int changes = 0; changes < CHANGES;) {
		REQUIRE(lowest_free() == first);
		if (ibv_get_async_event(l.ctx, &ev) != 0)
			continue;
		REQUIRE(ev.event_type == IBV_EVENT_GID_CHANGE);
		ibv_ack_async_event(&ev);
		changes++;
	}
	REQUIRE(kill(changer, SIGKILL) == 0);
	REQUIRE(waitpid(changer, NULL, 0) == changer);
	link_close(&l);
}

/* While connections are made, which threads of ours do that run beside the program's. */
static void connecting(void)
{
	enum { CONNECTIONS = 20, WATCHED_MS = 50 };
	struct timespec now, end;
	struct link l;
	int first;

	for (int i = 0; i < CONNECTIONS; i++) {
		link_open(&l);
		first = lowest_free();
		clock_gettime(CLOCK_MONOTONIC, &end);
		end.tv_sec += (end.tv_nsec + WATCHED_MS * 1000000) / 1000000000;
		end.tv_nsec = (end.tv_nsec + WATCHED_MS * 1000000) % 1000000000;
		do {
			REQUIRE(lowest_free() == first);
			clock_gettime(CLOCK_MONOTONIC, &now);
		} while (now.tv_sec < end.tv_sec ||
			 (now.tv_sec == end.tv_sec &&
			  now.tv_nsec < end.tv_nsec));
		link_send(&l, 0, LINK_BYTES, 1);
		link_close(&l);
	}
}

/* Another NIC of the host. Return: its process, which lives until @life is closed. */
static pid_t neighbour(int *life)
{
	int lives[2], open[2];
	struct link l;
	pid_t pid;
	char c;

	REQUIRE(pipe(lives) == 0 && pipe(open) == 0);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		close(lives[1]);
		link_open(&l);
		link_send(&l, 0, LINK_BYTES, 1);
		REQUIRE(write(open[1], "y", 1) == 1);
		REQUIRE(read(lives[0], &c, 1) == 0);
		_exit(0); /* its NIC ends as that of a killed one */
	}
	close(lives[0]);
	close(open[1]);
	REQUIRE(read(open[0], &c, 1) == 1);
	close(open[0]);
	*life = lives[1];
	return pid;
}

static void neighbour_end(pid_t pid, int life)
{
	int status;

	close(life);
	REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
}

/* As nopin-stat(1) does. */
static void ask(pid_t pid)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	const int n = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1,
			       "nopin/ctl/%d", pid),
		  fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	const socklen_t len =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			    (size_t)n);
	char answer[256];

	REQUIRE(connect(fd, (struct sockaddr *)&sun, len) == 0);
	REQUIRE(send(fd, "host", 4, 0) == 4);
	REQUIRE(recv(fd, answer, sizeof(answer), 0) > 0);
	close(fd);
}

/* The first of them holds UDP port 4791 until @pid has a NIC, too. */
static void neighbours(pid_t pid, int ready, int go)
{
	enum { ROUNDS = 20 };
	int life;
	pid_t other = neighbour(&life);
	char c;

	REQUIRE(write(ready, "y", 1) == 1 && read(go, &c, 1) == 1);
	for (int i = 0; i < ROUNDS; i++) {
		neighbour_end(other, life);
		ask(pid);
		other = neighbour(&life);
	}
	neighbour_end(other, life);
	_exit(0);
}

/* What there is beside us is done by a process that has nothing of ours. */
static void beside(void)
{
	const pid_t self = getpid();
	int ready[2], go[2], first, status;
	struct link l;
	pid_t pid;
	char c;

	own_network();
	REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0)
		neighbours(self, ready[1], go[0]);
	REQUIRE(read(ready[0], &c, 1) == 1);
	link_open(&l);
	link_send(&l, 0, LINK_BYTES, 1);
	first = lowest_free();
	REQUIRE(write(go[1], "y", 1) == 1);
	for (int i = 0; waitpid(pid, &status, WNOHANG) == 0; i++) {
		if (i % 1000 == 0)
			link_send(&l, 0, LINK_BYTES, (uint8_t)(i | 1));
		REQUIRE(lowest_free() == first);
	}
	REQUIRE(status == 0);
	link_close(&l);
}

int main(int argc, char **argv)
{
	struct rlimit rl;

	REQUIRE(argc == 3 && getrlimit(RLIMIT_NOFILE, &rl) == 0);
	rl.rlim_cur = (rlim_t)atoi(argv[2]);
	REQUIRE(setrlimit(RLIMIT_NOFILE, &rl) == 0);
	alarm(3 * PATIENCE);
	if (strcmp(argv[1], "late") == 0)
		late();
	else if (strcmp(argv[1], "early") == 0)
		early();
	else if (strcmp(argv[1], "closed") == 0)
		closed();
	else if (strcmp(argv[1], "reach") == 0)
		reach();
	else if (strcmp(argv[1], "free") == 0)
		free_numbers();
	else if (strcmp(argv[1], "connecting") == 0)
		connecting();
	else if (strcmp(argv[1], "follow") == 0)
		follow();
	else
		beside();
	return 0;
}
