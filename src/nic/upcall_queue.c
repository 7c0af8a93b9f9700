/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall_queue.c: queues of upcalls: mem/ fills them, a program's thread empties them,
 * woken as by a completion channel.
 */
#include "nic/upcall_queue.h"
#include "base/heap.h"
#include "base/timerq.h"
#include "mem/upcall.h"
#include "nic/attend.h"
#include "nic/counter.h"
#include "nic/device.h"
#include "nic/handoff.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/upcall.h"
#include "os/wait.h"

#include <errno.h>

int nic_upcalls_open(struct nic *nic, uint32_t events, struct nic_upcalls **out,
		     int *fd)
{
	struct nic_upcalls *u;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	u = heap_alloc(sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->nic = nic;
	err = upcalls_init(&u->q, events);
	if (err)
		goto free;
	u->fd = os_event_open();
	if (u->fd < 0) {
		err = u->fd;
		upcalls_fini(&u->q);
		goto free;
	}
	*fd = u->fd;
	*out = u;
	return 0;
free:
	heap_free(u);
	return err;
}

int nic_upcalls_close(struct nic_upcalls *u)
{
	bool used;

	if (nic_child(u->nic))
		return -ENODEV;
	nic_lock(u->nic);
	used = u->q.regions > 0;
	if (!used)
		upcalls_fini(&u->q);
	nic_unlock(u->nic);
	if (used)
		return -EBUSY;
	os_event_close(u->fd);
	heap_free(u);
	return 0;
}

struct upcalls *nic_upcalls_queue(struct nic_upcalls *u)
{
	return &u->q;
}

/* An empty queue costs no lock. With what was taken one returns at once: what others
 * left meanwhile is not for a thread that has news, which may be old by then. */
static bool upcall_queue_take(struct nic_upcalls *u, struct upcall *out)
{
	struct nic *nic = u->nic;
	bool got;

	if (!__atomic_load_n(&u->q.waiting, __ATOMIC_RELAXED))
		return false;
	nic_lock(nic);
	got = upcalls_take(nic->mem, &u->q, out);
	if (got)
		__atomic_store_n(&u->looked, false, __ATOMIC_RELAXED);
	if (!u->q.waiting)
		os_event_clear(u->fd);
	handoff_unlock(&nic->engine);
	if (handoff_left(&nic->engine) && !nic->cfg.manual)
		os_kick(nic->os);
	return got;
}

bool nic_upcalls_try(struct nic_upcalls *u, struct upcall *out)
{
	return !nic_child(u->nic) && upcall_queue_take(u, out);
}

void nic_upcalls_count(struct nic_upcalls *u, struct nic_counter *c)
{
	nic_lock(u->nic);
	u->counter = c;
	nic_unlock(u->nic);
}

/* A thread that looks again and again is polling, and runs the engine (D9). One that looks
 * once, when it has taken all there was, is about to sleep: nothing must be taken for
 * looked after on its account. */
static bool upcall_queue_look_again(struct nic_upcalls *u, struct upcall *out)
{
	if (!__atomic_exchange_n(&u->looked, true, __ATOMIC_RELAXED))
		return false;
	attend_poll(u->nic);
	return upcall_queue_take(u, out);
}

/* Return: 1: the caller is to wait. */
static int get_now(struct nic_upcalls *u, struct upcall *out)
{
	if (nic_child(u->nic))
		return -ENODEV;
	if (upcall_queue_take(u, out))
		return 0;
	if (!os_event_nonblock(u->fd) && !u->nic->cfg.manual)
		return 1;
	return upcall_queue_look_again(u, out) ? 0 : -EAGAIN;
}

int nic_upcalls_get(struct nic_upcalls *u, struct upcall *out)
{
	struct os_signals sig = {.blocked = false};
	int rc = 0, err = 0;

	while (!err && (rc = get_now(u, out)) > 0)
		err = attend_block(u->nic, u->fd, &u->q.waiting, TIME_NEVER,
				   &sig);
	os_signals_restore(&sig);
	return err ? err : rc;
}
