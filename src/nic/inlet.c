/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inlet.c: receiving, and what is known by that: until when nothing can be left that a
 * timer should have waited for. */
#include "nic/inlet.h"
#include "nic/closed.h"
#include "nic/device.h"
#include "nic/handoff.h"
#include "nic/lock.h"
#include "nic/scatter.h"
#include "nic/step.h"
#include "os/net.h"
#include "os/wait.h"
#include "xport/rx.h"

#include <errno.h>
#include <string.h>

static void rx_begin(struct step *s)
{
	s->kind = STEP_RX;
	s->taken = 0;
	s->at = 0;
	s->npkts = 0;
	s->majflt = 0;
	s->scatter.qp = NULL;
	s->lost = s->efault = false;
	rx_run_init(&s->run);
}

bool inlet_receive(struct nic *nic, struct step *s)
{
	struct iovec iov = {s->buf, sizeof(s->buf)};
	int n;

	rx_begin(s);
	/* the numbers may be somebody else's by now */
	if (closed_noted(nic))
		return false;
	if (__atomic_load_n(&nic->rx.peek, __ATOMIC_RELAXED) &&
	    scatter_receive(nic, s))
		return true;
	s->rx = (struct os_rx){.port = -1};
	n = os_recv(nic->os, &iov, 1, &s->rx, OS_TAKE);
	if (n == -EBADF)
		closed_note(nic);
	if (n <= 0)
		return false;
	if (nic->cfg.scatter && s->rx.len > 2 * s->rx.seg &&
	    s->rx.seg >= SCATTER_MIN + SIDE_BYTES)
		__atomic_store_n(&nic->rx.peek, 1, __ATOMIC_RELAXED);
	return true;
}

void inlet_rest(struct nic *nic, struct step *s)
{
	if (s->at < s->rx.len)
		__atomic_store_n(&nic->rx.rest, s, __ATOMIC_RELAXED);
	else if (nic->rx.rest == s)
		__atomic_store_n(&nic->rx.rest, NULL, __ATOMIC_RELAXED);
}

static bool take_rest(struct nic *nic, struct step *s)
{
	struct step *from = nic->rx.rest;

	if (!from)
		return false;
	rx_begin(s);
	s->rx = from->rx;
	s->taken = s->rx.len = from->rx.len - from->at;
	memcpy(s->buf, from->buf + from->at, s->rx.len);
	from->at = from->rx.len;
	__atomic_store_n(&nic->rx.rest, NULL, __ATOMIC_RELAXED);
	return true;
}

bool inlet_inherit(struct nic *nic, struct step *s)
{
	bool got;

	if (!__atomic_load_n(&nic->rx.rest, __ATOMIC_RELAXED))
		return false;
	handoff_lock(&nic->engine);
	got = take_rest(nic, s);
	handoff_leave(&nic->engine);
	handoff_unlock(&nic->engine);
	return got;
}

/* A thread that is overtaken in here may still count its bytes to the next holder's: that
 * is as good as having received them a little later.
 */
void inlet_taken(struct nic *nic, uint64_t mine, uint32_t bytes)
{
	uint64_t all, from, from_ns = mine >> 1;

	if (__atomic_load_n(&nic->rx.token, __ATOMIC_RELAXED) != mine)
		return; /* it was taken over */
	all = __atomic_add_fetch(&nic->rx.hear_bytes, bytes, __ATOMIC_RELAXED);
	if (bytes && all < nic->rcvbuf)
		return;
	from = bytes ? __atomic_load_n(&nic->rx.hear_from, __ATOMIC_RELAXED)
		     : from_ns;
	__atomic_store_n(&nic->rx.heard, from, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->rx.hear_from, from_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->rx.hear_bytes, 0, __ATOMIC_RELAXED);
}

uint64_t inlet_heard(const struct nic *nic)
{
	return __atomic_load_n(&nic->rx.heard, __ATOMIC_RELAXED);
}
