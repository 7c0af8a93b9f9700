/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* events.c: completion channels and asynchronous events: what the engine found
 * becomes readable descriptors and queues that a program's thread empties.
 */
#include "nic/events.h"
#include "base/base.h"
#include "mem/eventcount.h"
#include "nic/async.h"
#include "nic/completion.h"
#include "nic/counter.h"
#include "nic/cq.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/qp.h"
#include "nic/refused.h"
#include "nic/upcall.h"
#include "os/wait.h"
#include "ring/ring.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/qp.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* Locked, and of the next too. */
static void channel_wake(struct nic_channel *ch)
{
	__atomic_store_n(&ch->woken, 1, __ATOMIC_RELEASE);
	os_event_set(ch->fd);
}

void channel_quiet(struct nic_channel *ch)
{
	if (!list_empty(&ch->ready))
		return;
	os_event_clear(ch->fd);
	__atomic_store_n(&ch->woken, 0, __ATOMIC_RELEASE);
}

static void fire(struct nic_cq *cq)
{
	struct nic_channel *ch = cq->channel;

	cq->cq.fired = false;
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	cq->pending++;
	if (list_empty(&cq->ready))
		list_add_tail(&ch->ready, &cq->ready);
	channel_wake(ch);
	pthread_mutex_unlock(&ch->lock);
}

static void overflowed(struct nic_cq *cq)
{
	struct nic_async *a = cq->async;

	log_error("completion queue of %u entries overflowed", cq->cq.limit);
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	if (list_empty(&cq->async_link))
		list_add_tail(&a->cqs, &cq->async_link);
	os_event_set(a->fd);
	pthread_mutex_unlock(&a->lock);
}

static void report(struct nic_qp *qp)
{
	struct nic_async *a = qp->async;
	uint32_t events = qp->qp.events;

	qp->qp.events = 0;
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	qp->events |= events;
	if (list_empty(&qp->async_link))
		list_add_tail(&a->qps, &qp->async_link);
	os_event_set(a->fd);
	pthread_mutex_unlock(&a->lock);
}

void events_deliver(struct nic *nic)
{
	list_for_each_safe(l, tmp, &nic->x.fired) {
		struct cq *cq = list_entry(l, struct cq, link);
		struct nic_cq *ncq = container_of(cq, struct nic_cq, cq);

		list_del(l);
		if (cq->overflow)
			overflowed(ncq);
		if (cq->fired)
			fire(ncq);
	}
	list_for_each_safe(l, tmp, &nic->x.raised) {
		list_del(l);
		counter_raised(list_entry(l, struct eventcount, link));
	}
	list_for_each_safe(l, tmp, &nic->x.errors) {
		struct qp *qp = list_entry(l, struct qp, err_link);

		list_del(l);
		report(container_of(qp, struct nic_qp, qp));
	}
	upcalls_deliver(nic);
}

/* One that waits already is the newer one's: of "down" and "up" the last that is
 * told is how it is. */
static void async_raise(struct nic_async *a, enum nic_event_type type)
{
	unsigned n = 0;

	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; i < a->nown; i++)
		if (a->own[i] != type)
			a->own[n++] = a->own[i];
	CHECK(n < ASYNC_OWN_MAX);
	a->own[n] = type;
	a->nown = n + 1;
	os_event_set(a->fd);
	pthread_mutex_unlock(&a->lock);
}

void events_raise(struct nic *nic, enum nic_event_type type)
{
	list_for_each(l, &nic->asyncs) {
		async_raise(list_entry(l, struct nic_async, all), type);
	}
}

void events_died(struct nic *nic, uint64_t now_ns)
{
	nic->dead = true;
	log_error("the program closed descriptors that it did not open: %s",
		  "no more RDMA");
	list_for_each(l, &nic->qps) {
		struct nic_qp *nq = list_entry(l, struct nic_qp, all);

		if (nq->qp.state >= QPS_RTR)
			qp_error(&nq->qp, now_ns);
	}
	events_raise(nic, NIC_EVENT_DEVICE_FATAL);
}

/* --- completion channels ------------------------------------------------------ */

int nic_channel_open(struct nic *nic, struct nic_channel **out, int *fd)
{
	struct nic_channel *ch;

	if (nic_child(nic))
		return -ENODEV;
	ch = heap_alloc(sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	ch->fd = os_event_open();
	if (ch->fd < 0) {
		int err = ch->fd;

		heap_free(ch);
		return err;
	}
	ch->nic = nic;
	pthread_mutex_init(&ch->lock, NULL);
	list_init(&ch->ready);
	*fd = ch->fd;
	*out = ch;
	return 0;
}

void nic_channel_close(struct nic_channel *ch)
{
	if (nic_child(ch->nic))
		return; /* it is not there */
	CHECK(list_empty(&ch->ready));
	os_event_close(ch->fd);
	pthread_mutex_destroy(&ch->lock);
	heap_free(ch);
}

static bool channel_take(struct nic_channel *ch, void **cookie)
{
	bool found = false;

	pthread_mutex_lock(&ch->lock);
	if (!list_empty(&ch->ready)) {
		struct nic_cq *cq = list_entry(ch->ready.next, struct nic_cq,
					       ready);

		list_del(&cq->ready);
		if (--cq->pending)
			list_add_tail(&ch->ready, &cq->ready);
		*cookie = cq->cookie;
		found = true;
	}
	channel_quiet(ch);
	pthread_mutex_unlock(&ch->lock);
	return found;
}

/* Return: 1: the caller is to wait. */
static int channel_try(struct nic_channel *ch, void **cq_cookie)
{
	if (nic_child(ch->nic))
		return -ENODEV;
	if (channel_take(ch, cq_cookie))
		return 0;
	return os_event_nonblock(ch->fd) || ch->nic->cfg.manual ? -EAGAIN : 1;
}

int nic_channel_get(struct nic_channel *ch, void **cq_cookie)
{
	struct os_signals sig = {.blocked = false};
	int rc = 0, err = 0;

	while (!err && (rc = channel_try(ch, cq_cookie)) > 0)
		err = progress_block(ch->nic, ch->fd, &ch->woken, TIME_NEVER,
				     &sig);
	os_signals_restore(&sig);
	return err ? err : rc;
}

/* --- asynchronous events -------------------------------------------------------- */

int nic_async_open(struct nic *nic, struct nic_async **out, int *fd)
{
	struct nic_async *a;

	if (nic_child(nic))
		return -ENODEV;
	a = heap_alloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->fd = os_event_open();
	if (a->fd < 0) {
		int err = a->fd;

		heap_free(a);
		return nic_refused(err);
	}
	a->nic = nic;
	pthread_mutex_init(&a->lock, NULL);
	list_init(&a->cqs);
	list_init(&a->qps);
	nic_lock(nic);
	list_add_tail(&nic->asyncs, &a->all);
	nic_unlock(nic);
	*fd = a->fd;
	*out = a;
	return 0;
}

void nic_async_close(struct nic_async *a)
{
	nic_lock(a->nic);
	list_del(&a->all);
	nic_unlock(a->nic);
	os_event_close(a->fd);
	pthread_mutex_destroy(&a->lock);
	heap_free(a);
}

static enum nic_event_type async_own(struct nic_async *a)
{
	const enum nic_event_type type = a->own[0];

	a->nown--;
	for (unsigned i = 0; i < a->nown; i++)
		a->own[i] = a->own[i + 1];
	return type;
}

static bool async_take(struct nic_async *a, struct nic_event *ev)
{
	bool found = true;

	pthread_mutex_lock(&a->lock);
	if (a->nown) {
		*ev = (struct nic_event){async_own(a), NULL};
	} else if (!list_empty(&a->qps)) {
		struct nic_qp *qp = list_entry(a->qps.next, struct nic_qp,
					       async_link);
		int bit = __builtin_ctz(qp->events);

		*ev = (struct nic_event){(enum nic_event_type)bit,
					 qp->init.cookie};
		qp->events &= ~(1u << bit);
		if (!qp->events)
			list_del(&qp->async_link);
	} else if (!list_empty(&a->cqs)) {
		struct nic_cq *cq = list_entry(a->cqs.next, struct nic_cq,
					       async_link);

		*ev = (struct nic_event){NIC_EVENT_CQ_ERR, cq->cookie};
		list_del(&cq->async_link);
	} else {
		found = false;
		os_event_clear(a->fd);
	}
	if (!a->nown && list_empty(&a->qps) && list_empty(&a->cqs))
		os_event_clear(a->fd);
	pthread_mutex_unlock(&a->lock);
	return found;
}

/* Return: 1: the caller is to wait. */
static int async_try(struct nic_async *a, struct nic_event *ev)
{
	if (nic_child(a->nic))
		return -ENODEV;
	if (async_take(a, ev))
		return 0;
	return os_event_nonblock(a->fd) || a->nic->cfg.manual ? -EAGAIN : 1;
}

int nic_async_get(struct nic_async *a, struct nic_event *ev)
{
	struct os_signals sig = {.blocked = false};
	int rc = 0, err = 0;

	/* what happens to the device others find out */
	while (!err && (rc = async_try(a, ev)) > 0) {
		err = os_event_wait(a->fd, &sig);
		progress_closed(a->nic);
	}
	return err ? err : rc;
}
