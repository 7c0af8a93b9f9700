/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* list.h: intrusive doubly linked list with a head. A node that is on no list
 * points to itself, so list_del() may be called twice.
 */
#ifndef NOPIN_BASE_LIST_H
#define NOPIN_BASE_LIST_H

#include "base/check.h"

#include <stdbool.h>

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/** list_insert_after() - Put @node behind @pos (a head: at the front). */
static inline void list_insert_after(struct list *pos, struct list *node)
{
	node->prev = pos;
	node->next = pos->next;
	pos->next->prev = node;
	pos->next = node;
}

static inline void list_add_tail(struct list *head, struct list *node)
{
	list_insert_after(head->prev, node);
}

static inline void list_del(struct list *node)
{
	/* clang-tidy takes what a ring links to for freed */
	node->prev->next = node->next; /* NOLINT(clang-analyzer-unix.Malloc) */
	node->next->prev = node->prev;
	list_init(node);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)

#define list_for_each(pos, head)                                               \
	for (struct list *pos = (head)->next; pos != (head); pos = pos->next)

#define list_for_each_safe(pos, tmp, head)                                     \
	for (struct list *pos = (head)->next, *tmp = pos->next; pos != (head); \
	     pos = tmp, tmp = pos->next)

#endif
