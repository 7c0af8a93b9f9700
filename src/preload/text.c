/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* text.c: files of ours that are open. Each is a memfd, so that all that a program does
 * with its descriptor works. A file of sysfs is asked anew by each read() from
 * its beginning (perftest -W opens counters once and reads them twice), so read()
 * and pread() of these descriptors write it anew first. The C library's streams do
 * not call them: what fopen() opens stays as it was.
 *
 * That a program closed a descriptor is noticed when it is another file.
 */
#undef _FILE_OFFSET_BITS /* it would make one name of pread() and pread64() */

#include "preload/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 32, FD_MAX = 4096 };

/* Checking variants that the fortified C library calls; in no header. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t len, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t len, off64_t at, size_t room);

/** struct file - @ino: tells the memfd from what is open under its number later. */
struct file {
	int fd;
	ino_t ino;
	char path[sizeof(((struct node *)0)->path)];
};

static struct file files[FILES_MAX];
static unsigned opened; /* the oldest makes room for the newest */
static uint64_t known[FD_MAX / 64]; /* read without the lock, to be quick */

static void set_known(int fd, bool is)
{
	const uint64_t bit = UINT64_C(1) << fd % 64;

	if (is)
		__atomic_fetch_or(&known[fd / 64], bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&known[fd / 64], ~bit, __ATOMIC_RELAXED);
}

static bool text_is_known(int fd)
{
	return fd >= 0 && fd < FD_MAX &&
	       __atomic_load_n(&known[fd / 64], __ATOMIC_RELAXED) >> fd % 64 &
		       1;
}

static struct file *text_find(int fd)
{
	for (unsigned i = 0; i < FILES_MAX; i++)
		if (files[i].path[0] && files[i].fd == fd)
			return &files[i];
	return NULL;
}

static void text_forget(struct file *file)
{
	if (file->path[0])
		set_known(file->fd, false);
	file->path[0] = '\0';
}

static void text_remember(int fd, const struct node *node)
{
	struct file *file;
	struct stat st;

	if (fd >= FD_MAX || fstat(fd, &st) || !tables_lock())
		return;
	file = text_find(fd);
	if (!file)
		file = &files[opened++ % FILES_MAX];
	text_forget(file);
	file->fd = fd;
	file->ino = st.st_ino;
	memcpy(file->path, node->path, sizeof(file->path));
	set_known(fd, true);
	tables_unlock();
}

static bool text_fill(int fd, const struct node *node)
{
	return ftruncate(fd, 0) == 0 &&
	       pwrite(fd, node->text, node->len, 0) == (ssize_t)node->len;
}

int text_open(const struct node *node, int flags)
{
	const unsigned cloexec = flags & O_CLOEXEC ? MFD_CLOEXEC : 0;
	const int fd = memfd_create("nopin-sysfs", cloexec);

	if (fd < 0)
		return -1;
	if (!text_fill(fd, node)) {
		close(fd);
		return -1;
	}
	text_remember(fd, node);
	return fd;
}

static void renew(int fd)
{
	const int saved = errno;
	char path[sizeof(((struct node *)0)->path)];
	const char *at = path;
	struct node node;
	struct file *file;
	struct stat st;
	bool ours;

	if (!tables_lock())
		return;
	file = text_find(fd);
	ours = file && !fstat(fd, &st) && st.st_ino == file->ino;
	if (ours)
		memcpy(path, file->path, sizeof(path));
	else if (file)
		text_forget(file);
	tables_unlock();
	if (ours && node_find(AT_FDCWD, &at, &node))
		text_fill(fd, &node);
	errno = saved;
}

/* Before @fd is read at @at, or (-1) where it stands. */
static void renew_at(int fd, off64_t at)
{
	if (__builtin_expect(text_is_known(fd), 0) &&
	    (at < 0 ? lseek64(fd, 0, SEEK_CUR) : at) == 0)
		renew(fd);
}

#define READ(name, params, args, at)                                           \
	EXPORT ssize_t name params                                             \
	{                                                                      \
		renew_at(fd, at);                                              \
		return REAL(name) args;                                        \
	}

READ(read, (int fd, void *buf, size_t len), (fd, buf, len), -1)
READ(__read_chk, (int fd, void *buf, size_t len, size_t room),
     (fd, buf, len, room), -1)
READ(pread, (int fd, void *buf, size_t len, off_t at), (fd, buf, len, at), at)
READ(pread64, (int fd, void *buf, size_t len, off64_t at), (fd, buf, len, at),
     at)
READ(__pread_chk, (int fd, void *buf, size_t len, off_t at, size_t room),
     (fd, buf, len, at, room), at)
READ(__pread64_chk, (int fd, void *buf, size_t len, off64_t at, size_t room),
     (fd, buf, len, at, room), at)
