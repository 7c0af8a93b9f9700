/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async.c: asynchronous events: a program's thread takes what events.c left there. */
#include "nic/async.h"
#include "base/heap.h"
#include "base/list.h"
#include "nic/cq.h"
#include "nic/device.h"
#include "nic/events.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/qp.h"
#include "nic/refused.h"
#include "nic/srq.h"
#include "os/wait.h"

#include <errno.h>

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
	list_init(&a->srqs);
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
		if (bit != NIC_EVENT_QP_LAST_WQE_REACHED || !--qp->lasts)
			qp->events &= ~(1u << bit);
		if (!qp->events)
			list_del(&qp->async_link);
	} else if (!list_empty(&a->cqs)) {
		struct nic_cq *cq = list_entry(a->cqs.next, struct nic_cq,
					       async_link);

		*ev = (struct nic_event){NIC_EVENT_CQ_ERR, cq->cookie};
		list_del(&cq->async_link);
	} else if (!list_empty(&a->srqs)) {
		struct nic_srq *srq = list_entry(a->srqs.next, struct nic_srq,
						 async_link);

		*ev = (struct nic_event){NIC_EVENT_SRQ_LIMIT_REACHED,
					 srq->cookie};
		list_del(&srq->async_link);
	} else {
		found = false;
	}
	if (!a->nown && list_empty(&a->qps) && list_empty(&a->cqs) &&
	    list_empty(&a->srqs))
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
