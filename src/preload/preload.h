/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* preload.h: what preload.c's replacements ask node.c about a path. */
#ifndef NOPIN_PRELOAD_PRELOAD_H
#define NOPIN_PRELOAD_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* The function that ours stands in front of, with its own type. */
#define REAL(name)                                                             \
	({                                                                     \
		static __typeof__(&name) next;                                 \
		__typeof__(&name) fn = __atomic_load_n(&next,                  \
						       __ATOMIC_RELAXED);      \
		if (!fn) {                                                     \
			*(void **)&fn = dlsym(RTLD_NEXT, #name);               \
			__atomic_store_n(&next, fn, __ATOMIC_RELAXED);         \
		}                                                              \
		fn;                                                            \
	})

enum node_kind { NODE_NONE, NODE_FILE, NODE_DIR, NODE_DEVICE };

/**
 * struct node - What is at a path.
 * @text:	a file's content; a directory's names, one a line
 */
struct node {
	enum node_kind kind;
	char path
		[256]; /* absolute, without dots, doubled and trailing slashes */
	size_t len;
	char text[1024];
};

/**
 * node_find() - Is there anything of ours at *@path?
 * @at:		what it is relative to, if it is: only AT_FDCWD is ours
 * Return: false for all other paths, quickly and with errno as it was. One relative
 * to a directory of ours is absolute then, in @node.
 */
bool node_find(int at, const char **path, struct node *node);

/**
 * tables_lock() - Lock what is known of working directory and descriptors. A child
 * inherits that, but not the lock, whichever thread held it.
 * Return: false, without the lock: no memory.
 */
bool tables_lock(void);
void tables_unlock(void);

/** node_enter() - Note that a directory of ours is the working directory from now on. */
void node_enter(const struct node *node);
/** node_leave() - Note that none of ours is. */
void node_leave(void);
/** node_cwd() - Is one of ours the working directory? It is in @out then. False also if it
 * is longer than @size allows, or without memory. */
bool node_cwd(char *out, size_t size);

/**
 * text_open() - Open a file of ours. A program that reads it from its beginning gets what
 * the file says then, as with sysfs.
 * @flags:	of open()
 * Return: a descriptor; -1 with errno.
 */
int text_open(const struct node *node, int flags);

#endif
