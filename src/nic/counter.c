/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counter.c: a counter that was raised wakes the threads whose value it has reached. */
#include "nic/counter.h"
#include "base/check.h"
#include "base/list.h"
#include "mem/eventcount.h"
#include "nic/device.h"
#include "os/run.h"
#include "os/wait.h"

static void wake(struct counter_user *u)
{
	__atomic_store_n(&u->woken, 1, __ATOMIC_RELEASE);
	if (u->thread == os_self())
		return; /* it runs the engine, and looks before it sleeps */
	u->set = u->fd >= 0;
	if (u->set)
		os_event_set(u->fd);
}

void counter_wake(struct nic_counter *c, uint64_t value)
{
	list_for_each(l, &c->users) {
		struct counter_user *u = list_entry(l, struct counter_user,
						    link);

		if (u->target <= value && !u->woken)
			wake(u);
	}
}

void counter_raised(struct eventcount *e)
{
	struct nic_counter *c = container_of(e, struct nic_counter, ec);

	pthread_mutex_lock(&c->lock);
	counter_wake(c, e->value);
	if (c->fd >= 0)
		os_event_set(c->fd);
	pthread_mutex_unlock(&c->lock);
}

void counter_raise(struct nic_counter *c)
{
	eventcount_raise(&c->ec, &c->nic->x.work.raised);
	list_del(&c->ec.link);
	counter_raised(&c->ec);
}
