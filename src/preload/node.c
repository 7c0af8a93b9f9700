/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* node.c: what is at a path below /sys/class/infiniband*, and in
 * /dev/infiniband. The content comes from nopin's libibverbs.so.1 (its sysfs.c),
 * which is loaded for it if the program has not loaded it itself.
 */
#include "preload/preload.h"

#include "base/heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#define SYS    "/sys/class/infiniband"
#define DEV    "/dev/infiniband"
#define UVERBS "uverbs0"

typedef int read_fn(const char *dir, const char *file, char *buf, size_t size);

/* Set while we look something up: what that opens is none of our business. */
static __thread bool inside;

/* Return: whether a path without dots and doubled slashes could be ours. */
static bool watched(const char *path)
{
	return strncmp(path, SYS, strlen(SYS)) == 0 ||
	       strncmp(path, DEV, strlen(DEV)) == 0;
}

static read_fn *reader(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
	read_fn *fn = NULL;

	if (lib)
		*(void **)&fn = dlsym(lib, "ibv_read_sysfs_file");
	return fn;
}

/* --- the working directory ------------------------------------------------------ */

static void *lock_place;

bool tables_lock(void)
{
	return heap_own(&lock_place, sizeof(pthread_mutex_t)) &&
	       pthread_mutex_lock(lock_place) == 0;
}

void tables_unlock(void)
{
	pthread_mutex_unlock(lock_place);
}

static char cwd[sizeof(((struct node *)0)->path)];
static bool cwd_ours; /* read without the lock, to be quick */

void node_enter(const struct node *node)
{
	if (!tables_lock())
		return;
	memcpy(cwd, node->path, sizeof(cwd));
	__atomic_store_n(&cwd_ours, true, __ATOMIC_RELEASE);
	tables_unlock();
}

void node_leave(void)
{
	__atomic_store_n(&cwd_ours, false, __ATOMIC_RELEASE);
}

bool node_cwd(char *out, size_t size)
{
	bool ours;

	if (!__atomic_load_n(&cwd_ours, __ATOMIC_ACQUIRE) || !tables_lock())
		return false;
	ours = cwd_ours && strlen(cwd) < size;
	if (ours)
		memcpy(out, cwd, strlen(cwd) + 1);
	tables_unlock();
	return ours;
}

/* --- paths ------------------------------------------------------------------------ */

/* Append what @path names to @out, an absolute path of @len bytes ("": the root).
 * There are no links among ours, so ".." is one name less. */
static bool node_append(const char *path, char *out, size_t len, size_t size)
{
	while (*path) {
		const size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len && out[--len] != '/')
				;
		} else if (n && !(n == 1 && path[0] == '.')) {
			if (len + n + 2 > size)
				return false;
			out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
		}
		path += n + (path[n] == '/');
	}
	if (!len)
		out[len++] = '/';
	out[len] = '\0';
	return true;
}

/* Return: whether @path could be ours. */
static bool absolute(int at, const char *path, char *out, size_t size)
{
	if (path[0] == '/')
		return (strncmp(path, "/sys/", 5) == 0 ||
			strncmp(path, "/dev/", 5) == 0) &&
		       node_append(path, out, 0, size);
	return path[0] && at == AT_FDCWD && node_cwd(out, size) &&
	       node_append(path, out, strlen(out), size);
}

static void find_dev(struct node *node)
{
	if (strcmp(node->path, DEV "/" UVERBS) == 0)
		node->kind = NODE_DEVICE;
	if (strcmp(node->path, DEV) != 0)
		return;
	node->kind = NODE_DIR;
	strcpy(node->text, UVERBS "\n");
	node->len = strlen(node->text);
}

static void find_sys(struct node *node)
{
	read_fn *const read = reader();
	char *slash;
	int len;

	if (!read)
		return;
	len = read(node->path, ".", node->text, sizeof(node->text));
	if (len >= 0) {
		node->kind = NODE_DIR;
		node->len = (size_t)len;
		return;
	}
	slash = strrchr(node->path, '/');
	*slash = '\0';
	len = read(node->path, slash + 1, node->text, sizeof(node->text) - 1);
	*slash = '/';
	if (len < 0)
		return;
	node->kind = NODE_FILE;
	node->text[len] = '\n';
	node->len = (size_t)len + 1;
}

bool node_find(int at, const char **path, struct node *node)
{
	const int saved = errno;

	if (inside || !*path ||
	    !absolute(at, *path, node->path, sizeof(node->path)))
		return false;
	node->kind = NODE_NONE;
	inside = true;
	if (strncmp(node->path, DEV, strlen(DEV)) == 0)
		find_dev(node);
	else if (watched(node->path))
		find_sys(node);
	inside = false;
	errno = saved;
	if (node->kind == NODE_NONE && (*path)[0] != '/')
		*path = node->path;
	return node->kind != NODE_NONE;
}
