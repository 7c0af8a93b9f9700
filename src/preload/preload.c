/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* preload.c: libnopin-preload.so, put into programs by `nopin run`. Some look
 * for their device in the file system instead of asking libibverbs: UCX wants
 * /dev/infiniband/uverbs0 to be a device and reads GID types, NCCL reads GID
 * types, perftest -W reads port files, pyverbs lists device/net. This answers
 * look-ups below /sys/class/infiniband, /sys/class/infiniband_verbs and
 * /dev/infiniband from memory, so nothing is left behind and no right needed:
 * files are memfds, the device is /dev/null as far as anybody can see,
 * directories are lists. Everything else goes straight on to the C library.
 *
 * A directory of ours can be the working directory (ibstatus), until the process
 * executes another program.
 *
 * Not covered, because no known client needs it: paths relative to a directory
 * descriptor, opening a directory with open(), glob() and nftw() (they look things
 * up inside the C library), and system calls made without the C library.
 */
/* With it, the headers would make one name of open() and open64(). */
#undef _FILE_OFFSET_BITS

#include "preload/preload.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { DEV_MAJOR = 231, DEV_MINOR = 192, DIRS_MAX = 16 };

/* Checking variants that the fortified C library calls; in no header. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int at, const char *path, int flags);
int __openat64_2(int at, const char *path, int flags);
char *__realpath_chk(const char *path, char *out, size_t size);
char *__getcwd_chk(char *buf, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t size);
/* What stat() and its family were before glibc 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int at, const char *path, struct stat *st,
	       int flags);
int __fxstatat64(int version, int at, const char *path, struct stat64 *st,
		 int flags);

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one stat");
_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one dirent");

/* A function that answers for @path if that is ours, and else goes on. */
#define REPLACE_FROM(dir, type, name, params, args, answer)                    \
	EXPORT type name params                                                \
	{                                                                      \
		struct node node;                                              \
                                                                               \
		if (node_find(dir, &path, &node))                              \
			return answer;                                         \
		return REAL(name) args;                                        \
	}
#define REPLACE(...)	REPLACE_FROM(AT_FDCWD, __VA_ARGS__)
#define REPLACE_AT(...) REPLACE_FROM(at, __VA_ARGS__)

static int preload_fail(int err)
{
	errno = err;
	return -1;
}

/* --- open ---------------------------------------------------------------------- */

static int open_node(const struct node *node, int flags)
{
	if (node->kind == NODE_DEVICE)
		return REAL(open)("/dev/null", flags);
	if (node->kind == NODE_DIR)
		return preload_fail((flags & O_ACCMODE) == O_RDONLY ? EACCES
								    : EISDIR);
	if ((flags & O_ACCMODE) != O_RDONLY)
		return preload_fail(EACCES);
	if (flags & O_DIRECTORY)
		return preload_fail(ENOTDIR);
	return text_open(node, flags);
}

/* The mode is there only if a file may be created. */
#define MODE(flags)                                                            \
	({                                                                     \
		mode_t mode = 0;                                               \
		if ((flags) & (O_CREAT | __O_TMPFILE)) {                       \
			va_list args;                                          \
			va_start(args, flags);                                 \
			mode = va_arg(args, mode_t);                           \
			va_end(args);                                          \
		}                                                              \
		mode;                                                          \
	})

REPLACE(int, open, (const char *path, int flags, ...),
	(path, flags, MODE(flags)), open_node(&node, flags))
REPLACE(int, open64, (const char *path, int flags, ...),
	(path, flags, MODE(flags)), open_node(&node, flags))
REPLACE(int, __open_2, (const char *path, int flags), (path, flags),
	open_node(&node, flags))
REPLACE(int, __open64_2, (const char *path, int flags), (path, flags),
	open_node(&node, flags))
REPLACE_AT(int, openat, (int at, const char *path, int flags, ...),
	   (at, path, flags, MODE(flags)), open_node(&node, flags))
REPLACE_AT(int, openat64, (int at, const char *path, int flags, ...),
	   (at, path, flags, MODE(flags)), open_node(&node, flags))
REPLACE_AT(int, __openat_2, (int at, const char *path, int flags),
	   (at, path, flags), open_node(&node, flags))
REPLACE_AT(int, __openat64_2, (int at, const char *path, int flags),
	   (at, path, flags), open_node(&node, flags))

static FILE *fopen_node(const struct node *node, const char *mode)
{
	const bool reads = mode[0] == 'r' && !strchr(mode, '+');
	const int cloexec = strchr(mode, 'e') ? O_CLOEXEC : 0;
	const int fd = open_node(node, (reads ? O_RDONLY : O_RDWR) | cloexec);
	FILE *file = fd < 0 ? NULL : fdopen(fd, mode);

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

REPLACE(FILE *, fopen, (const char *path, const char *mode), (path, mode),
	fopen_node(&node, mode))
REPLACE(FILE *, fopen64, (const char *path, const char *mode), (path, mode),
	fopen_node(&node, mode))

/* --- stat, access, links ------------------------------------------------------------ */

static const mode_t node_modes[] = {
	[NODE_FILE] = S_IFREG | 0444,
	[NODE_DIR] = S_IFDIR | 0755,
	[NODE_DEVICE] = S_IFCHR | 0666,
};

static int stat_node(const struct node *node, void *out)
{
	struct stat st = {
		.st_mode = node_modes[node->kind],
		.st_nlink = 1,
		.st_ino = 1,
		.st_blksize = 4096,
		.st_size = node->kind == NODE_FILE ? 4096 : 0, /* as sysfs */
	};

	for (const char *c = node->path; *c; c++)
		st.st_ino = st.st_ino * 31 + (unsigned char)*c;
	if (node->kind == NODE_DEVICE)
		st.st_rdev = makedev(DEV_MAJOR, DEV_MINOR);
	memcpy(out, &st, sizeof(st));
	return 0;
}

REPLACE(int, stat, (const char *path, struct stat *st), (path, st),
	stat_node(&node, st))
REPLACE(int, stat64, (const char *path, struct stat64 *st), (path, st),
	stat_node(&node, st))
REPLACE(int, lstat, (const char *path, struct stat *st), (path, st),
	stat_node(&node, st))
REPLACE(int, lstat64, (const char *path, struct stat64 *st), (path, st),
	stat_node(&node, st))
REPLACE_AT(int, fstatat, (int at, const char *path, struct stat *st, int flags),
	   (at, path, st, flags), stat_node(&node, st))
REPLACE_AT(int, fstatat64,
	   (int at, const char *path, struct stat64 *st, int flags),
	   (at, path, st, flags), stat_node(&node, st))
REPLACE(int, __xstat, (int version, const char *path, struct stat *st),
	(version, path, st), stat_node(&node, st))
REPLACE(int, __xstat64, (int version, const char *path, struct stat64 *st),
	(version, path, st), stat_node(&node, st))
REPLACE(int, __lxstat, (int version, const char *path, struct stat *st),
	(version, path, st), stat_node(&node, st))
REPLACE(int, __lxstat64, (int version, const char *path, struct stat64 *st),
	(version, path, st), stat_node(&node, st))
REPLACE_AT(int, __fxstatat,
	   (int version, int at, const char *path, struct stat *st, int flags),
	   (version, at, path, st, flags), stat_node(&node, st))
REPLACE_AT(int, __fxstatat64,
	   (int version, int at, const char *path, struct stat64 *st,
	    int flags),
	   (version, at, path, st, flags), stat_node(&node, st))

static int statx_node(const struct node *node, struct statx *out)
{
	struct stat st;

	stat_node(node, &st);
	*out = (struct statx){
		.stx_mask = STATX_BASIC_STATS,
		.stx_blksize = (uint32_t)st.st_blksize,
		.stx_nlink = (uint32_t)st.st_nlink,
		.stx_mode = (uint16_t)st.st_mode,
		.stx_ino = st.st_ino,
		.stx_size = (uint64_t)st.st_size,
		.stx_rdev_major = major(st.st_rdev),
		.stx_rdev_minor = minor(st.st_rdev),
	};
	return 0;
}

REPLACE_AT(int, statx,
	   (int at, const char *path, int flags, unsigned int mask,
	    struct statx *out),
	   (at, path, flags, mask, out), statx_node(&node, out))

static int access_node(const struct node *node, int mode)
{
	const bool may_write = node->kind == NODE_DEVICE;
	const bool may_search = node->kind == NODE_DIR;

	if ((mode & W_OK && !may_write) || (mode & X_OK && !may_search))
		return preload_fail(EACCES);
	return 0;
}

REPLACE(int, access, (const char *path, int mode), (path, mode),
	access_node(&node, mode))
REPLACE(int, eaccess, (const char *path, int mode), (path, mode),
	access_node(&node, mode))
REPLACE(int, euidaccess, (const char *path, int mode), (path, mode),
	access_node(&node, mode))
REPLACE_AT(int, faccessat, (int at, const char *path, int mode, int flags),
	   (at, path, mode, flags), access_node(&node, mode))

/* There are no links among ours. */
static char *realpath_node(const struct node *node, char *out)
{
	return out ? memcpy(out, node->path, strlen(node->path) + 1)
		   : strdup(node->path);
}

REPLACE(char *, realpath, (const char *path, char *out), (path, out),
	realpath_node(&node, out))
REPLACE(char *, __realpath_chk, (const char *path, char *out, size_t size),
	(path, out, size), realpath_node(&node, out))
REPLACE(ssize_t, readlink, (const char *path, char *buf, size_t len),
	(path, buf, len), preload_fail(EINVAL))
REPLACE(ssize_t, __readlink_chk,
	(const char *path, char *buf, size_t len, size_t size),
	(path, buf, len, size), preload_fail(EINVAL))
REPLACE_AT(ssize_t, readlinkat,
	   (int at, const char *path, char *buf, size_t len),
	   (at, path, buf, len), preload_fail(EINVAL))

/* --- directories ---------------------------------------------------------------------- */

/**
 * struct dir - A directory of ours that is open. The program holds a true DIR
 * (of /), so that functions we do not replace work on it. Without a lock, which a
 * child of fork() might find held for ever: a stream is read by one thread at a time.
 */
struct dir {
	DIR *handle; /* NULL: free; TAKEN: being filled */
	struct node node;
	const char *next;
	struct dirent64 entry;
};

static struct dir dirs[DIRS_MAX];
static unsigned dirs_open; /* at least so many: read first, to be quick */

#define TAKEN ((DIR *)dirs)

static struct dir *find_dir(const DIR *handle)
{
	if (__atomic_load_n(&dirs_open, __ATOMIC_ACQUIRE) == 0)
		return NULL;
	for (unsigned i = 0; i < DIRS_MAX; i++)
		/* pairs with opendir_node() */
		if (__atomic_load_n(&dirs[i].handle, __ATOMIC_ACQUIRE) ==
		    handle)
			return &dirs[i];
	return NULL;
}

static struct dir *take_dir(void)
{
	for (unsigned i = 0; i < DIRS_MAX; i++) {
		DIR *none = NULL;

		if (__atomic_compare_exchange_n(&dirs[i].handle, &none, TAKEN,
						false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return &dirs[i];
	}
	return NULL;
}

static DIR *opendir_node(const struct node *node)
{
	const bool is_dir = node->kind == NODE_DIR;
	DIR *handle = REAL(opendir)(is_dir ? "/" : "/dev/null"); /* ENOTDIR */
	struct dir *dir;

	if (!handle)
		return NULL;
	dir = take_dir();
	if (!dir) {
		REAL(closedir)(handle);
		errno = EMFILE;
		return NULL;
	}
	dir->node = *node;
	dir->next = dir->node.text;
	__atomic_add_fetch(&dirs_open, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&dir->handle, handle, __ATOMIC_RELEASE);
	return handle;
}

REPLACE(DIR *, opendir, (const char *path), (path), opendir_node(&node))

/* The entry of the line at *@next of a listing, and on to the next; a slash at its
 * end means a directory. Return: false at the end. */
static bool next_entry(const struct node *node, const char **next,
		       struct dirent64 *entry)
{
	size_t len = strcspn(*next, "\n");

	if (len == 0 || len >= sizeof(entry->d_name))
		return false;
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->d_name, *next, len);
	*next += len + ((*next)[len] == '\n');
	entry->d_type = DT_REG;
	if (entry->d_name[len - 1] == '/') {
		entry->d_name[len - 1] = '\0';
		entry->d_type = DT_DIR;
	}
	entry->d_reclen = sizeof(*entry);
	entry->d_ino = 1 + (ino_t)(*next - node->text);
	entry->d_off = *next - node->text;
	return true;
}

/* Return: true, and the entry or NULL at the end, if @handle is ours. */
static bool read_dir(DIR *handle, struct dirent64 **entry)
{
	struct dir *dir = find_dir(handle);

	if (dir)
		*entry = next_entry(&dir->node, &dir->next, &dir->entry)
				 ? &dir->entry
				 : NULL;
	return dir;
}

EXPORT struct dirent *readdir(DIR *handle)
{
	struct dirent64 *entry;

	if (read_dir(handle, &entry))
		return (struct dirent *)entry;
	return REAL(readdir)(handle);
}

EXPORT struct dirent64 *readdir64(DIR *handle)
{
	struct dirent64 *entry;

	if (read_dir(handle, &entry))
		return entry;
	return REAL(readdir64)(handle);
}

EXPORT void rewinddir(DIR *handle)
{
	struct dir *dir = find_dir(handle);

	if (dir)
		dir->next = dir->node.text;
	REAL(rewinddir)(handle);
}

EXPORT int closedir(DIR *handle)
{
	struct dir *dir = find_dir(handle);

	if (dir) {
		__atomic_store_n(&dir->handle, NULL, __ATOMIC_RELEASE);
		__atomic_sub_fetch(&dirs_open, 1, __ATOMIC_RELEASE);
	}
	return REAL(closedir)(handle);
}

/* All of @node's entries, each from malloc(). Return: how many; -1: ENOMEM. */
static int copy_entries(const struct node *node, void ***out)
{
	const char *next = node->text;
	struct dirent64 entry;
	void **v = NULL;
	int n = 0;

	for (; next_entry(node, &next, &entry); n++) {
		void **more = realloc(v, sizeof(*v) * ((size_t)n + 1));

		if (!more)
			break;
		v = more;
		v[n] = malloc(sizeof(entry));
		if (!v[n])
			break;
		memcpy(v[n], &entry, sizeof(entry));
	}
	if (*next) {
		while (n-- > 0)
			free(v[n]);
		free(v);
		return preload_fail(ENOMEM);
	}
	*out = v ? v : malloc(1);
	return n;
}

typedef int compare_fn(const void *a, const void *b);

#define SCANDIR(name, type)                                                    \
	EXPORT int name(const char *path, type ***list,                        \
			int (*filter)(const type *),                           \
			int (*compare)(const type **, const type **))          \
	{                                                                      \
		int n, kept = 0;                                               \
		struct node node;                                              \
		void **v;                                                      \
                                                                               \
		if (!node_find(AT_FDCWD, &path, &node))                        \
			return REAL(name)(path, list, filter, compare);        \
		if (node.kind != NODE_DIR)                                     \
			return preload_fail(ENOTDIR);                          \
		n = copy_entries(&node, &v);                                   \
		if (n < 0)                                                     \
			return n;                                              \
		for (int i = 0; i < n; i++)                                    \
			if (!filter || filter(v[i]))                           \
				v[kept++] = v[i];                              \
			else                                                   \
				free(v[i]);                                    \
		if (compare)                                                   \
			qsort(v, (size_t)kept, sizeof(*v),                     \
			      (compare_fn *)(void *)compare);                  \
		*list = (type **)v;                                            \
		return kept;                                                   \
	}

SCANDIR(scandir, struct dirent)
SCANDIR(scandir64, struct dirent64)

/* --- the working directory ---------------------------------------------------------- */

/* For functions that we do not replace it is one where names mean nothing much and
 * nothing can be made or removed. */
static int preload_enter(const struct node *node)
{
	if (node->kind != NODE_DIR)
		return preload_fail(ENOTDIR);
	if (REAL(chdir)("/sys") && REAL(chdir)("/"))
		return -1;
	node_enter(node);
	return 0;
}

EXPORT int chdir(const char *path)
{
	struct node node;
	int rc;

	if (node_find(AT_FDCWD, &path, &node))
		return preload_enter(&node);
	rc = REAL(chdir)(path);
	if (!rc)
		node_leave();
	return rc;
}

EXPORT int fchdir(int fd)
{
	const int rc = REAL(fchdir)(fd);

	if (!rc)
		node_leave();
	return rc;
}

EXPORT char *getcwd(char *buf, size_t size)
{
	char path[sizeof(((struct node *)0)->path)];

	if (!node_cwd(path, sizeof(path)))
		return REAL(getcwd)(buf, size);
	if (!buf && !size)
		return strdup(path);
	if (size <= strlen(path)) {
		errno = buf && !size ? EINVAL : ERANGE;
		return NULL;
	}
	if (!buf)
		buf = malloc(size);
	return buf ? memcpy(buf, path, strlen(path) + 1) : NULL;
}

EXPORT char *__getcwd_chk(char *buf, size_t size, size_t room)
{
	return size > room ? REAL(__getcwd_chk)(buf, size, room)
			   : getcwd(buf, size);
}
