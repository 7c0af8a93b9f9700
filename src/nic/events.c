/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* events.c: completion channels and asynchronous events: what the engine found
 * becomes readable descriptors and queues, which channel.c and async.c empty.
 */
#include "nic/events.h"
#include "base/check.h"
#include "base/list.h"
#include "base/log.h"
#include "mem/eventcount.h"
#include "nic/async.h"
#include "nic/counter.h"
#include "nic/cq.h"
#include "nic/device.h"
#include "nic/qp.h"
#include "nic/srq.h"
#include "nic/upcall.h"
#include "os/wait.h"
#include "ring/cq.h"
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

/* Lock of @a held: let it be fetched of the object with @link, on @list of @a. */
static void async_queue(struct nic_async *a, struct list *list,
			struct list *link)
{
	if (list_empty(link))
		list_add_tail(list, link);
	os_event_set(a->fd);
}

static void overflowed(struct nic_cq *cq)
{
	struct nic_async *a = cq->async;

	log_error("completion queue of %u entries overflowed", cq->cq.limit);
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	async_queue(a, &a->cqs, &cq->async_link);
	pthread_mutex_unlock(&a->lock);
}

static void events_report(struct nic_qp *qp)
{
	struct nic_async *a = qp->async;
	uint32_t events = qp->qp.events;

	qp->qp.events = 0;
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	qp->events |= events;
	qp->lasts += events >> NIC_EVENT_QP_LAST_WQE_REACHED & 1;
	async_queue(a, &a->qps, &qp->async_link);
	pthread_mutex_unlock(&a->lock);
}

static void srq_report(struct nic_srq *srq)
{
	struct nic_async *a = srq->async;

	srq->attr.limit = 0;
	list_del(&srq->armed);
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	async_queue(a, &a->srqs, &srq->async_link);
	pthread_mutex_unlock(&a->lock);
}

void events_srqs(struct nic *nic)
{
	list_for_each_safe(l, tmp, &nic->armed) {
		struct nic_srq *srq = list_entry(l, struct nic_srq, armed);

		if (srq_left(&srq->srq) < srq->attr.limit)
			srq_report(srq);
	}
}

void events_deliver(struct nic *nic)
{
	list_for_each_safe(l, tmp, &nic->x.work.fired) {
		struct cq *cq = list_entry(l, struct cq, link);
		struct nic_cq *ncq = container_of(cq, struct nic_cq, cq);

		list_del(l);
		if (cq->overflow)
			overflowed(ncq);
		if (cq->fired)
			fire(ncq);
	}
	list_for_each_safe(l, tmp, &nic->x.work.raised) {
		list_del(l);
		counter_raised(list_entry(l, struct eventcount, link));
	}
	list_for_each_safe(l, tmp, &nic->x.work.errors) {
		struct qp *qp = list_entry(l, struct qp, on.errors);

		list_del(l);
		events_report(container_of(qp, struct nic_qp, qp));
	}
	events_srqs(nic);
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

void events_died(struct nic *nic)
{
	nic->dead = true;
	log_error("the program closed descriptors that it did not open: %s",
		  "no more RDMA");
	list_for_each(l, &nic->qps.all) {
		struct nic_qp *nq = list_entry(l, struct nic_qp, all);

		if (nq->qp.state >= QPS_RTR)
			qp_error(&nq->qp);
	}
	events_raise(nic, NIC_EVENT_DEVICE_FATAL);
}
