/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* slowfile.c: runs a program that sees a file whose pages take a while to be
 * read, as those of a busy disk or of a file server do. No root: the file is a
 * FUSE mount in a user and mount namespace that only the program lives in, so
 * nothing is left behind, however it ends.
 *
 *   slowfile FILE BYTES READ_US PROGRAM [ARGS...]
 *
 * FILE, which must exist, looks BYTES long and reads as zeros until written.
 * Every READ of it waits READ_US first; several wait at the same time. WRITEs
 * do not wait. Exits as PROGRAM does, or with 77 where this is not allowed.
 *
 * The root of the mount is the file itself, so there is nothing to look up.
 */
#include "demo.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SERVERS = 16,
	WRITE_MAX = 128 << 10,
	REQUEST_MAX = WRITE_MAX + PAGE,
	MINOR = 31, /* Linux 5.4: what linux/fuse.h of every Debian knows */
	NOT_ALLOWED = 77,
};

/**
 * struct served - The file.
 * @dev: /dev/fuse
 * @data: a memfd; only what was written takes memory
 */
static struct served {
	uint64_t bytes, read_us;
	int dev, data;
	uid_t uid;
	gid_t gid;
} served;

static void __attribute__((noreturn)) not_allowed(const char *what)
{
	fprintf(stderr, "slowfile: %s: %s\n", what, strerror(errno));
	exit(NOT_ALLOWED);
}

/* --- the protocol ------------------------------------------------------------ */

static void reply(uint64_t unique, int err, const void *data, size_t n)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + n),
		.error = -err,
		.unique = unique,
	};
	const struct iovec iov[] = {
		{&head, sizeof(head)},
		{(void *)(uintptr_t)data, n},
	};

	/* Fails when the request was interrupted: nobody waits for it. */
	if (writev(served.dev, iov, n ? 2 : 1) < 0 && errno != ENOENT)
		die(errno, "answer to the kernel");
}

static void reply_init(uint64_t unique, const struct fuse_init_in *in)
{
	const struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = in->minor < MINOR ? in->minor : MINOR,
		.max_background = SERVERS,
		.congestion_threshold = SERVERS,
		.max_write = WRITE_MAX,
	};

	reply(unique, 0, &out, sizeof(out));
}

static void reply_attr(uint64_t unique)
{
	const struct fuse_attr_out out = {
		.attr_valid = 3600,
		.attr = {.ino = FUSE_ROOT_ID,
			 .size = served.bytes,
			 .mode = S_IFREG | 0600,
			 .nlink = 1,
			 .uid = served.uid,
			 .gid = served.gid,
			 .blksize = PAGE},
	};

	reply(unique, 0, &out, sizeof(out));
}

static void reply_read(uint64_t unique, const struct fuse_read_in *in,
		       char *buf)
{
	const uint32_t n = in->size < WRITE_MAX ? in->size : WRITE_MAX;
	ssize_t got;

	sleep_until(now_ns() + served.read_us * 1000);
	got = pread(served.data, buf, n, (off_t)in->offset);
	reply(unique, got < 0 ? errno : 0, buf, got < 0 ? 0 : (size_t)got);
}

static void reply_write(uint64_t unique, const struct fuse_write_in *in)
{
	struct fuse_write_out out = {.size = in->size};

	if (pwrite(served.data, in + 1, in->size, (off_t)in->offset) !=
	    (ssize_t)in->size)
		reply(unique, EIO, NULL, 0);
	else
		reply(unique, 0, &out, sizeof(out));
}

static void answer(char *request, char *buf)
{
	const struct fuse_in_header *in = (const void *)request;
	const void *args = in + 1;
	const struct fuse_open_out opened = {.open_flags = FOPEN_KEEP_CACHE};

	switch (in->opcode) {
	case FUSE_INIT:
		reply_init(in->unique, args);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR: /* times, when the mapping was written */
		reply_attr(in->unique);
		break;
	case FUSE_OPEN:
		reply(in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		reply_read(in->unique, args, buf);
		break;
	case FUSE_WRITE:
		reply_write(in->unique, args);
		break;
	case FUSE_FLUSH:
	case FUSE_FSYNC:
	case FUSE_RELEASE:
	case FUSE_DESTROY:
		reply(in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(in->unique, ENOSYS, NULL, 0);
	}
}

static void *serve(void *unused)
{
	char *request = malloc(REQUEST_MAX), *buf = malloc(WRITE_MAX);

	(void)unused;
	if (!request || !buf)
		die(ENOMEM, "buffers");
	for (;;) {
		ssize_t n = read(served.dev, request, REQUEST_MAX);

		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			answer(request, buf);
		else if (n < 0 && errno == ENODEV) /* unmounted */
			return NULL;
		else if (n < 0 && errno != EINTR && errno != ENOENT &&
			 errno != EAGAIN)
			die(errno, "requests of the kernel");
	}
}

/* --- the mount --------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		not_allowed(path);
	close(fd);
}

static void enter_namespace(void)
{
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		not_allowed("a user namespace");
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", served.uid, served.uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", served.gid, served.gid);
	write_file("/proc/self/gid_map", map);
}

static void mount_on(const char *file)
{
	char options[128];

	served.dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (served.dev < 0)
		not_allowed("/dev/fuse");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=100000,user_id=%u,group_id=%u", served.dev,
		 served.uid, served.gid);
	if (mount("slowfile", file, "fuse", MS_NOSUID | MS_NODEV, options))
		not_allowed("a FUSE mount");
}

static pid_t start(char **argv)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die(errno, "fork");
	if (pid)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	execvp(argv[0], argv);
	die(errno, "%s", argv[0]);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status;
	pid_t pid;

	if (argc < 5)
		die(0, "usage: slowfile FILE BYTES READ_US PROGRAM [ARGS...]");
	served.bytes = number(argv[2]);
	served.read_us = number(argv[3]);
	served.uid = getuid();
	served.gid = getgid();
	served.data = memfd_create("slowfile", MFD_CLOEXEC);
	if (served.data < 0 || ftruncate(served.data, (off_t)served.bytes))
		die(errno, "%s bytes", argv[2]);
	enter_namespace();
	mount_on(argv[1]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pid = start(argv + 4);
	for (int i = 0; i < SERVERS; i++)
		if (pthread_create(&thread, NULL, serve, NULL))
			die(EAGAIN, "pthread_create");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die(errno, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
