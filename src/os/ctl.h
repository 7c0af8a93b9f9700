/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl.h: the control socket, as the door sees it. */
#ifndef NOPIN_OS_CTL_H
#define NOPIN_OS_CTL_H

#include <poll.h>
#include <stdint.h>

struct os;

/* What the door waits for, and does when it comes; on its thread only. */
/** ctl_watch() - Add to @fds[@n]. Return: how many there are now. */
unsigned ctl_watch(const struct os *os, struct pollfd *fds, unsigned n,
		   uint64_t now_ns, uint64_t *until_ns);
void ctl_heard(struct os *os);
void ctl_close(struct os *os);

/** ctl_listen() - Open the socket. Context: door_call(). */
int ctl_listen(struct os *os, void *arg);

#endif
