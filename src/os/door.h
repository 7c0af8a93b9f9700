/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* door.h: what is asked of the thread that lets others in. */
#ifndef NOPIN_OS_DOOR_H
#define NOPIN_OS_DOOR_H

#include "os/kept.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct os;
struct os_thread;

/**
 * struct os_door - The thread that lets others in (doorman.c).
 * @thread:	NULL: none, so a caller does itself what is to be done there
 * @wake, @ear:	a pair of sockets: what is sent into @wake wakes the door at @ear
 * @apart:	its descriptors are its own (the thread's)
 * @handed:	the descriptor that came last, until the door takes it; -1: none
 * @lock:	of callers, one of which has written @fn and @arg and waits for @state
 */
struct os_door {
	struct os_thread *thread;
	struct fd_kept wake, ear;
	bool apart;
	int handed;
	bool stop; /* atomic */
	pthread_mutex_t lock;
	uint32_t state; /* atomic; a futex */
	int (*fn)(struct os *os, void *arg);
	void *arg;
	int ret;
};

/**
 * door_call() - Let it do @fn(@os, @arg), which does not block.
 * @os:	NULL, or without a door: the caller does
 * Return: what @fn returned. Callers take turns.
 */
int door_call(struct os *os, int (*fn)(struct os *os, void *arg), void *arg);
/**
 * door_hand() - Hand the door a copy of @fd, then let it do @fn(@os, @arg), which
 * calls door_take().
 * Return: what @fn returned, or -errno.
 */
int door_hand(struct os *os, int fd, int (*fn)(struct os *os, void *arg),
	      void *arg);
/**
 * door_take() - Take over the copy, on the door's thread. It has a lower number than
 * all that is opened there later. Return: -EOPNOTSUPP: the door has no descriptors of
 * its own, or no copy came.
 */
int door_take(struct os *os);
/** door_ear() - Return the descriptor at which it hears; -1: the program has closed it. */
int door_ear(const struct os_door *d);
/** door_hear() - Read what came, with the descriptor that came with it: no number of the
 * program's is taken for that, so without a table of its own the kernel closes it again.
 * Return: false: nothing came. Context: the door's thread. */
bool door_hear(struct os_door *d);
/** door_serve() - Do what a caller waits for, if there is one.
 * Context: the door's thread. */
void door_serve(struct os *os);
/** door_send() - Send the door a message with @fd, or -1. One that finds no room is not
 * missed: the door has others to read.
 * Return: as sendmsg(2); -EBADF: the program has closed its end. */
int door_send(const struct os_door *d, int fd);
/** door_keep() - Note that @fd is open there for long: no child of fork() may keep it
 * alive. door_drop() closes it. */
void door_keep(const struct os *os, int fd);
void door_drop(const struct os *os, int fd);

#endif
