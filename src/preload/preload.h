/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* preload.h: what preload.c's replacements ask node.c about a path. */
#ifndef NOPIN_PRELOAD_PRELOAD_H
#define NOPIN_PRELOAD_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

enum node_kind { NODE_NONE, NODE_FILE, NODE_DIR, NODE_DEVICE };

/**
 * struct node - What is at a path.
 * @text:	a file's content; a directory's names, one a line
 */
struct node {
	enum node_kind kind;
	char path[256]; /* without doubled and trailing slashes */
	size_t len;
	char text[1024];
};

/**
 * node_find() - Is there anything of ours at @path?
 * Return: false for all other paths, quickly and with errno as it was.
 */
bool node_find(const char *path, struct node *node);

#endif
