/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* node.c: what is at a path below /sys/class/infiniband*, and in
 * /dev/infiniband. The content comes from nopin's libibverbs.so.1 (its sysfs.c),
 * which is loaded for it if the program has not loaded it itself.
 */
#include "preload/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define SYS    "/sys/class/infiniband"
#define DEV    "/dev/infiniband"
#define UVERBS "uverbs0"

typedef int read_fn(const char *dir, const char *file, char *buf, size_t size);

/* Set while we look something up: what that opens is none of our business. */
static __thread bool inside;

/* Return: whether a path without doubled slashes could be ours. */
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

static bool normalize(const char *path, char *out, size_t size)
{
	size_t len = 0;

	for (; *path; path++) {
		if (*path == '/' && len && out[len - 1] == '/')
			continue;
		if (len + 1 >= size)
			return false;
		out[len++] = *path;
	}
	if (len > 1 && out[len - 1] == '/')
		len--;
	out[len] = '\0';
	return true;
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

bool node_find(const char *path, struct node *node)
{
	const int saved = errno;

	if (!path ||
	    (strncmp(path, "/sys/", 5) != 0 && strncmp(path, "/dev/", 5) != 0))
		return false;
	if (inside || !normalize(path, node->path, sizeof(node->path)) ||
	    !watched(node->path))
		return false;
	node->kind = NODE_NONE;
	inside = true;
	if (strncmp(node->path, DEV, strlen(DEV)) == 0)
		find_dev(node);
	else
		find_sys(node);
	inside = false;
	errno = saved;
	return node->kind != NODE_NONE;
}
