/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fd.c: descriptors of a guest (design D13): CLOEXEC, and out of the way of
 * programs that expect the lowest number or close everything below 1024.
 */
#include "os/fd.h"
#include "base/check.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_socket.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
	FD_ROOM = 256, /* descriptors that we may need at most, about */
	FD_BASE = 1024, /* where the limit allows it: beyond select(2) */
};

static int fd_move(int fd, long base)
{
	int moved;

	if (fd < 0 || fd >= base)
		return fd;
	moved = sys_fcntl(fd, F_DUPFD_CLOEXEC, base);
	if (moved < 0)
		return fd; /* a low number works as well */
	sys_close(fd);
	return moved;
}

uint64_t fd_rlimit(int what, uint64_t unknown)
{
	struct rlimit rl = {.rlim_cur = unknown};
	long ret = sys_call(SYS_prlimit64, 0, what, 0, SYS_PTR(&rl), 0, 0);

	if (sys_denied(ret))
		ret = sys_call(SYS_getrlimit, what, SYS_PTR(&rl), 0, 0, 0, 0);
	return ret < 0 ? unknown : rl.rlim_cur;
}

uint64_t os_descriptor_limit(void)
{
	return fd_rlimit(RLIMIT_NOFILE, 0);
}

static long fd_limit(void)
{
	return (long)MIN(fd_rlimit(RLIMIT_NOFILE, 0), UINT64_C(1) << 20);
}

int fd_high(int fd)
{
	long limit = fd_limit();

	if (limit >= FD_BASE + FD_ROOM)
		return fd_move(fd, FD_BASE);
	return fd_move(fd, limit - MIN(limit / 2, FD_ROOM));
}

bool fd_spare(void)
{
	return fd_limit() >= FD_ROOM;
}

int fd_event(int fd)
{
	long limit = MIN(fd_limit(), FD_BASE);

	return fd_move(fd, limit - MIN(limit / 2, FD_ROOM));
}

bool fd_is(int fd, uint64_t dev, uint64_t ino)
{
	struct stat st;

	return sys_fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void fd_close(int fd)
{
	if (fd >= 0)
		sys_close(fd);
}

int fd_send(int to, int fd)
{
	union scm_rights control = {0};
	char byte = 0;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0)
		scm_rights_add(&m, &control, fd);
	return (int)sys_sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void scm_rights_add(struct msghdr *m, union scm_rights *c, int fd)
{
	struct cmsghdr *h;

	m->msg_control = c;
	m->msg_controllen = sizeof(*c);
	h = CMSG_FIRSTHDR(m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
}

static int fd_unlinked(void)
{
	int fd = sys_open("/dev/shm", O_TMPFILE | O_RDWR | O_EXCL);

	if (fd < 0)
		fd = sys_open("/tmp", O_TMPFILE | O_RDWR | O_EXCL);
	return fd;
}

/* A limit is looked at first, as a thread that goes beyond it gets SIGXFSZ. */
int fd_resize(int fd, uint64_t bytes)
{
	static const char zero;
	const struct iovec last = {(void *)(uintptr_t)&zero, 1};
	int ret;

	if (!fd_may_have(bytes))
		return -EFBIG;
	ret = sys_ftruncate(fd, bytes);
	if (sys_denied(ret) && bytes > 0)
		ret = MIN((int)sys_pwritev(fd, &last, 1, bytes - 1), 0);
	return ret;
}

bool fd_may_have(uint64_t bytes)
{
	return bytes <= fd_rlimit(RLIMIT_FSIZE, RLIM_INFINITY);
}

int fd_memory(const char *name, uint64_t bytes)
{
	int fd = (int)sys_call(SYS_memfd_create, SYS_PTR(name), MFD_CLOEXEC, 0,
			       0, 0, 0);
	int ret;

	if (fd < 0)
		fd = fd_unlinked();
	fd = fd_high(fd);
	if (fd < 0)
		return fd;
	(void)sys_fcntl(fd, F_SETFL, O_NOATIME); /* reads are quicker */
	if (bytes == 0)
		return fd;
	ret = fd_resize(fd, bytes);
	if (ret == 0)
		return fd;
	sys_close(fd);
	return ret;
}
