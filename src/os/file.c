/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file.c: files of /proc and /sys that are read again and again. A thread that opens one
 * takes the lowest free number for a moment, before fd_high() moves it; a program
 * that counts on that number, or closes it, finds something else there. So while
 * there is a NIC a file stays open, at a high number, for the next reader.
 *
 * A descriptor is one reader's at a time, or of all that share it: the kernel goes
 * on where a reader of maps stopped only if no other read meanwhile.
 */
#include "os/file.h"
#include "base/check.h"
#include "os/fd.h"
#include "os/sys_file.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

/* Names of cgroups are long: 166 bytes below a desktop's terminal. */
enum { FILES_MAX = 48, FILE_PATH_MAX = 512 };

/**
 * struct file - One that is open, if @path is not empty.
 * @readers:	how many have it now
 * @shared:	others may read it meanwhile
 * @dev, @ino:	what @fd was when it was opened: the program may have closed it
 * @used:	when it was returned last, in calls of file_return()
 */
struct file {
	char path[FILE_PATH_MAX];
	int fd;
	unsigned readers;
	bool shared;
	uint64_t dev, ino, used;
};

static struct {
	pthread_mutex_t lock;
	unsigned users; /* NICs that there are */
	uint64_t tick;
	struct file file[FILES_MAX];
} files = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool file_is_ours(const struct file *f)
{
	return fd_is(f->fd, f->dev, f->ino);
}

static void file_drop(struct file *f)
{
	if (file_is_ours(f))
		sys_close(f->fd);
	f->path[0] = 0;
}

static void files_drop(bool read_too)
{
	for (struct file *f = files.file; f < files.file + FILES_MAX; f++)
		if (f->path[0] != 0 && (read_too || f->readers == 0))
			file_drop(f);
}

/* Return: one that can be read now, or NULL. */
static struct file *file_find(const char *path, bool shared)
{
	for (struct file *f = files.file; f < files.file + FILES_MAX; f++) {
		if ((f->readers > 0 && !(shared && f->shared)) ||
		    strcmp(f->path, path) != 0)
			continue;
		if (file_is_ours(f))
			return f;
		if (f->readers == 0)
			f->path[0] = 0;
	}
	return NULL;
}

/* A place for one more: a free one, or that of the file returned longest ago. */
static struct file *file_place(void)
{
	struct file *best = NULL;

	for (struct file *f = files.file; f < files.file + FILES_MAX; f++) {
		if (f->path[0] == 0)
			return f;
		if (f->readers == 0 && (!best || f->used < best->used))
			best = f;
	}
	if (best)
		file_drop(best);
	return best;
}

/* @fd was opened for a reader that has it now, and is to be @as: while it had a low
 * number, the program may have closed that, and opened something else. */
static void file_keep(const char *path, int fd, bool shared,
		      const struct stat *as)
{
	const size_t len = strlen(path) + 1;
	struct file *f, new = {.fd = fd,
			       .readers = 1,
			       .shared = shared,
			       .dev = as->st_dev,
			       .ino = as->st_ino};

	if (len > FILE_PATH_MAX || !file_is_ours(&new))
		return;
	memcpy(new.path, path, len);
	f = file_place();
	if (!f)
		return;
	/* A child may find it at any moment: the name comes last. */
	new.path[0] = 0;
	*f = new;
	__atomic_store_n(&f->path[0], path[0], __ATOMIC_RELEASE);
}

static int borrow(const char *path, bool shared)
{
	struct file *f = NULL;
	struct stat st;
	int fd;

	pthread_mutex_lock(&files.lock);
	if (files.users > 0)
		f = file_find(path, shared);
	if (f) {
		f->readers++;
		f->shared = shared;
	}
	pthread_mutex_unlock(&files.lock);
	if (f)
		return f->fd;
	/* A file that is not there takes no number either. */
	fd = sys_stat(path, &st);
	if (fd == 0)
		fd = fd_high(sys_open(path, O_RDONLY));
	if (fd < 0)
		return fd;
	pthread_mutex_lock(&files.lock);
	if (files.users > 0)
		file_keep(path, fd, shared, &st);
	pthread_mutex_unlock(&files.lock);
	return fd;
}

int file_borrow(const char *path)
{
	return borrow(path, false);
}

int file_share(const char *path)
{
	return borrow(path, true);
}

void file_return(int fd)
{
	struct file *f;

	if (fd < 0)
		return;
	pthread_mutex_lock(&files.lock);
	for (f = files.file; f < files.file + FILES_MAX; f++)
		if (f->path[0] != 0 && f->readers > 0 && f->fd == fd)
			break;
	if (f == files.file + FILES_MAX) {
		sys_close(fd);
	} else {
		f->readers--;
		f->used = ++files.tick;
		if (files.users == 0 && f->readers == 0)
			file_drop(f);
	}
	pthread_mutex_unlock(&files.lock);
}

void files_begin(void)
{
	static const char *const soon[] = {
		"/proc/vmstat",
		"/proc/self/pagemap",
		"/proc/self/smaps",
		"/proc/self/maps",
	};

	pthread_mutex_lock(&files.lock);
	files.users++;
	pthread_mutex_unlock(&files.lock);
	/* Now, on a thread of the program's. */
	for (unsigned i = 0; i < ARRAY_SIZE(soon); i++)
		file_return(file_borrow(soon[i]));
}

void files_end(void)
{
	pthread_mutex_lock(&files.lock);
	if (files.users > 0 && --files.users == 0)
		files_drop(false);
	pthread_mutex_unlock(&files.lock);
}

void files_in_child(void)
{
	/* The files are about the parent; the thread that held the lock is not here. */
	files.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	files_drop(true);
	files.users = 0;
}
