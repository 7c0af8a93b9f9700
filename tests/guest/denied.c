/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* denied.c [CALL]: programs that filter system calls (seccomp, systemd, containers)
 * may deny any of those that nopin makes. Then it does without, or says which one it
 * needs when the device is opened. It does not hang later, nor move wrong bytes.
 *
 * With --list: the calls, for what checks that none is missing.
 */
#include "link.h"
#include "watch.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { REFUSED = 2 };

/** enum outcome - WORKS: without it. NEEDED: and that is said. */
enum outcome { WORKS, NEEDED };

#define CALL(name, outcome)                                                    \
	{                                                                      \
#name, SYS_##name, outcome                                     \
	}

static const struct call {
	const char *name;
	int nr;
	enum outcome outcome;
} calls[] = {
	CALL(accept4, WORKS),
	CALL(access, WORKS),
	CALL(bind, NEEDED),
	CALL(close, WORKS),
	CALL(close_range, WORKS),
	CALL(connect, WORKS),
	CALL(epoll_create1, NEEDED),
	CALL(epoll_ctl, NEEDED),
	CALL(epoll_pwait, NEEDED),
	CALL(eventfd2, NEEDED),
	CALL(fchmod, WORKS),
	CALL(fcntl, NEEDED),
	CALL(fstat, WORKS),
	CALL(ftruncate, WORKS),
	CALL(futex, NEEDED),
	CALL(getpid, WORKS),
	CALL(getrandom, WORKS),
	CALL(getrlimit, WORKS),
	CALL(getrusage, WORKS),
	CALL(getsockname, NEEDED),
	CALL(getsockopt, WORKS),
	CALL(gettid, WORKS),
	CALL(geteuid, WORKS),
	CALL(ioctl, WORKS),
	CALL(listen, WORKS),
	CALL(madvise, NEEDED),
	CALL(mbind, WORKS),
	CALL(memfd_create, WORKS),
	CALL(mlock, WORKS),
	CALL(mlock2, WORKS),
	CALL(mmap, NEEDED),
	CALL(mremap, WORKS),
	CALL(msync, WORKS),
	CALL(munlock, WORKS),
	CALL(munmap, WORKS),
	CALL(nanosleep, WORKS),
	CALL(newfstatat, WORKS),
	CALL(openat, WORKS),
	CALL(ppoll, NEEDED),
	CALL(prctl, WORKS),
	CALL(pread64, WORKS),
	CALL(preadv, WORKS),
	CALL(preadv2, NEEDED),
	CALL(prlimit64, WORKS),
	CALL(process_vm_readv, WORKS),
	CALL(process_vm_writev, WORKS),
	CALL(pwrite64, WORKS),
	CALL(pwritev, WORKS),
	CALL(read, WORKS),
	CALL(readv, WORKS),
	CALL(recvfrom, WORKS),
	CALL(recvmsg, NEEDED),
	CALL(rt_sigaction, WORKS),
	CALL(rt_sigprocmask, WORKS),
	CALL(rt_tgsigqueueinfo, WORKS),
	CALL(sched_getaffinity, WORKS),
	CALL(sched_getattr, WORKS),
	CALL(sched_setaffinity, WORKS),
	CALL(sched_setattr, WORKS),
	CALL(sendmsg, NEEDED),
	CALL(setsockopt, NEEDED),
	CALL(shutdown, WORKS),
	CALL(signalfd4, WORKS),
	CALL(socket, NEEDED),
	CALL(socketpair, WORKS),
	CALL(statx, WORKS),
	CALL(unlink, WORKS),
	CALL(userfaultfd, WORKS),
	CALL(write, WORKS),
	CALL(writev, WORKS),
};

static void deny(int nr, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
}

/* --- what a program does ------------------------------------------------------ */

static void program(int nr, int error)
{
	struct ibv_device **list;
	struct link l;

	deny(nr, error);
	list = ibv_get_device_list(NULL);
	if (!list || !list[0])
		_exit(REFUSED);
	l.ctx = ibv_open_device(list[0]);
	if (!l.ctx)
		_exit(REFUSED);
	link_setup(&l);
	link_work(&l);
	link_close(&l);
	_exit(0);
}

/* --- judging it ------------------------------------------------------------------- */

/* What it wrote to standard error is in @text. Return: wait status. */
static int watch(int nr, int error, char *text)
{
	int from;
	pid_t pid = watch_fork(&from);

	if (pid == 0)
		program(nr, error);
	return watch_end(pid, from, text);
}

static bool is_right(const struct call *c, int status, const char *text)
{
	if (!WIFEXITED(status))
		return false;
	if (c->outcome == WORKS)
		return WEXITSTATUS(status) == 0;
	return WEXITSTATUS(status) == REFUSED && strstr(text, c->name);
}

static bool check(const struct call *c, int error)
{
	char text[TEXT_MAX];
	const int status = watch(c->nr, error, text);
	const bool right = is_right(c, status, text) || watch_sanitizer(text);

	if (!right)
		fprintf(stderr, "%s denied with %s: %s, %s %d:\n%s", c->name,
			strerror(error),
			c->outcome == WORKS ? "should work" : "is needed",
			WIFEXITED(status) ? "exit status" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status)
					  : WTERMSIG(status),
			text);
	return right;
}

int main(int argc, char **argv)
{
	const bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
	bool right = true;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct call *c = &calls[i];

		if (list) {
			puts(c->name);
		} else if (argc < 2 || strcmp(argv[1], c->name) == 0) {
			right &= check(c, EPERM);
			right &= check(c, ENOSYS);
		}
	}
	return !right;
}
