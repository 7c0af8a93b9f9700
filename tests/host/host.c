/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.c: processes and what they say to each other. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum { CHILDREN_MAX = 64, NOBODY = 65534 };

static pid_t child[CHILDREN_MAX];
static unsigned children;

/** struct verdict - What any process of a test tells all of them. */
struct verdict {
	bool skipped, off_cpu;
	char retried[64];
};

static struct verdict *verdict;

/* Who talks to a process that skipped fails, and no more than that. */
static _Noreturn void end_failed(void)
{
	_exit(verdict && verdict->skipped ? EXIT_SKIP : 1);
}

void host_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: not true: %s (errno: %s)\n", file, line, what,
		strerror(errno));
	end_failed();
}

void host_fail_two(const char *file, int line, const char *a, uint64_t va,
		   const char *b, uint64_t vb)
{
	fprintf(stderr, "%s:%d: %s is %llu, %s, %llu\n", file, line, a,
		(unsigned long long)va, b, (unsigned long long)vb);
	end_failed();
}

void host_skip(const char *why)
{
	printf("SKIP: %s\n", why);
	fflush(stdout);
	if (verdict)
		verdict->skipped = true;
	_exit(EXIT_SKIP);
}

uint64_t host_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

void host_sleep(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / SECOND),
			     .tv_nsec = (long)(ns % SECOND)};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

void host_start(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("NOPIN_ADDR", "lo", 0);
	/* "info" is what makes the NIC count the major faults of moves and tell. */
	setenv("NOPIN_LOG", "info", 0);
	alarm(7200);
	verdict = host_shared(sizeof(*verdict));
}

void host_retried(const char *what)
{
	if (verdict)
		snprintf(verdict->retried, sizeof(verdict->retried), "%s",
			 what);
}

void host_off_cpu(void)
{
	if (verdict)
		__atomic_store_n(&verdict->off_cpu, true, __ATOMIC_RELAXED);
}

int host_fork(void (*role)(int fd))
{
	const pid_t parent = getpid();
	int fd[2];
	pid_t pid;

	REQUIRE(children < CHILDREN_MAX);
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		REQUIRE(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		REQUIRE(getppid() == parent);
		close(fd[0]);
		children = 0;
		role(fd[1]);
		_exit(0);
	}
	close(fd[1]);
	child[children++] = pid;
	return fd[0];
}

void host_join(void)
{
	int status;

	while (children) {
		REQUIRE(waitpid(child[--children], &status, 0) > 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP)
			_exit(EXIT_SKIP);
		REQUIRE(status == 0);
	}
	if (!verdict->retried[0])
		return;
	fprintf(stderr, "process %s\n", verdict->retried);
	REQUIRE(verdict->off_cpu);
}

const char *host_tool(const char *path)
{
	static char opened[32];
	const int fd = open(path, O_RDONLY);

	REQUIRE(fd >= 0);
	snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
	return opened;
}

void host_own_network(void)
{
	const unsigned uid = getuid();
	char map[32];
	int fd;

	if (unshare(CLONE_NEWNET) == 0)
		return;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		host_skip("no network namespace of one's own");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	REQUIRE(fd >= 0 && write(fd, map, strlen(map)) > 0);
	close(fd);
}

void host_enter(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	REQUIRE(fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
	close(fd);
}

void host_user(void)
{
	if (geteuid() != 0)
		return;
	REQUIRE(setresgid(NOBODY, NOBODY, NOBODY) == 0);
	REQUIRE(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	/* As a process that was always of this user: may see itself. */
	REQUIRE(prctl(PR_SET_DUMPABLE, 1) == 0);
	REQUIRE(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
}

void host_say(int fd, uint64_t what)
{
	REQUIRE(send(fd, &what, sizeof(what), MSG_NOSIGNAL) == sizeof(what));
}

uint64_t host_hear(int fd)
{
	uint64_t what;

	REQUIRE(recv(fd, &what, sizeof(what), MSG_WAITALL) == sizeof(what));
	return what;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t host_quantile(uint64_t *v, size_t n, double q)
{
	size_t at = (size_t)(q * (double)n);

	REQUIRE(n > 0);
	qsort(v, n, sizeof(*v), compare);
	return v[at < n ? at : n - 1];
}

uint64_t host_random(void)
{
	static uint64_t x = 0x2545f4914f6cdd1d;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static uint8_t byte_of(uint64_t round, size_t at)
{
	return (uint8_t)(round * 31 + at + (at >> 8));
}

void host_fill(uint8_t *p, size_t n, uint64_t round)
{
	for (size_t i = 0; i < n; i++)
		p[i] = byte_of(round, i);
}

void host_check(const uint8_t *p, size_t n, uint64_t round)
{
	for (size_t i = 0; i < n; i++)
		REQUIRE(p[i] == byte_of(round, i));
}

size_t host_resident(void *base, size_t bytes)
{
	static unsigned char in[1 << 20];
	size_t n = 0;

	REQUIRE(bytes / PAGE <= sizeof(in));
	REQUIRE(mincore(base, bytes, in) == 0);
	for (size_t i = 0; i < bytes / PAGE; i++)
		n += in[i] & 1;
	return n;
}

void *host_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	REQUIRE(p != MAP_FAILED);
	return p;
}

void *host_map(void *at, size_t bytes)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
			       (at ? MAP_FIXED_NOREPLACE : 0),
		       -1, 0);

	REQUIRE(p != MAP_FAILED);
	REQUIRE(madvise(p, bytes, MADV_NOHUGEPAGE) == 0);
	return p;
}
