/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kept.h: descriptors that stay open until they are needed. */
#ifndef NOPIN_OS_KEPT_H
#define NOPIN_OS_KEPT_H

#include <stdbool.h>
#include <stdint.h>

/** struct fd_kept - Zero at first. @dev, @ino: what @fd was when it was opened */
struct fd_kept {
	bool kept;
	int fd;
	uint64_t dev, ino;
};

/**
 * fd_kept() - Open by @open(@arg), or return the one that was kept.
 * @keep:	it stays open until fd_drop(): to open takes the program's lowest number
 *		for a moment, so this is done once, on a thread of the program's
 * Return: a descriptor, for fd_unkept(), or what @open() returned. Callers take turns.
 */
int fd_kept(struct fd_kept *k, bool keep, int (*open)(int arg), int arg);
/** fd_unkept() - Close what fd_kept() returned, unless it is kept. */
void fd_unkept(const struct fd_kept *k, int fd);
void fd_drop(struct fd_kept *k);

/** fd_keep() - Keep @fd, which is open, in @k. Return: false: the kernel does not say
 * what it is. */
bool fd_keep(struct fd_kept *k, int fd);
/** fd_take() - Return: what was kept, the caller's now; -1: none. */
int fd_take(struct fd_kept *k);

#endif
