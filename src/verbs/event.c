/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.c: completion and asynchronous events as programs fetch and acknowledge
 * them. Queueing them, and the descriptors, are nic/'s.
 *
 * Theory of operation: an event and the destruction of its object
 *
 * A thread that fetched an event from nic/ is about to touch an object that
 * another thread may be destroying. So events carry a cookie: index and
 * generation in a table. A thread that fetched one looks the cookie up and counts the
 * event as handed out in one critical section; a thread that destroys takes the
 * cookie out of the table first. Either the event was counted, and destroying
 * waits for its acknowledgement, or it is dropped and the next one is fetched.
 */
#include "verbs/event.h"
#include "base/heap.h"
#include "nic/async.h"
#include "nic/completion.h"
#include "verbs/object.h"
#include "verbs/query.h"
#include "verbs/verbs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/**
 * struct slot - @generation counts how often the slot was given out; with the
 * slot's number it makes the cookie.
 */
struct slot {
	struct tracked *user; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

/**
 * struct table - Of this process: a child has none of its parent's objects.
 * @lock:	a leaf
 * @first_free:	== @size: none
 */
struct table {
	pthread_mutex_t lock;
	struct slot *slot;
	uint32_t size;
	uint32_t first_free;
};

static void *table_place;
/* For leak checkers, which do not look for pointers where @table_place is. */
static void *slots_seen;

static_assert(sizeof(void *) == 8, "a cookie holds slot and generation");

static int grow(struct table *table)
{
	const uint32_t size = MAX(table->size * 2, 16);
	struct slot *bigger = realloc(table->slot, size * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	for (uint32_t i = table->size; i < size; i++)
		bigger[i] = (struct slot){.next_free = i + 1};
	table->slot = bigger;
	__atomic_store_n(&slots_seen, bigger, __ATOMIC_RELAXED);
	table->size = size;
	return 0;
}

int tracked_add(struct tracked *t)
{
	struct table *table = heap_own(&table_place, sizeof(*table));
	int rc = 0;

	if (!table)
		return -ENOMEM;
	pthread_mutex_lock(&table->lock);
	if (table->first_free == table->size)
		rc = grow(table);
	if (!rc) {
		const uint32_t i = table->first_free;
		struct slot *slot = &table->slot[i];

		table->first_free = slot->next_free;
		slot->user = t;
		slot->generation++;
		t->cookie = (void *)((uintptr_t)slot->generation << 32 |
				     (uintptr_t)(i + 1));
	}
	pthread_mutex_unlock(&table->lock);
	return rc;
}

void tracked_del(struct tracked *t)
{
	const uint32_t i = (uint32_t)(uintptr_t)t->cookie - 1;
	struct table *table = table_place;

	pthread_mutex_lock(&table->lock);
	CHECK(i < table->size && table->slot[i].user == t);
	table->slot[i].user = NULL;
	table->slot[i].next_free = table->first_free;
	table->first_free = i;
	pthread_mutex_unlock(&table->lock);
}

/* Count an event as handed out. Return: its object, or NULL: destroyed. */
static struct tracked *hand_out(void *cookie, bool comp)
{
	const uint32_t generation = (uint32_t)((uintptr_t)cookie >> 32);
	const uint32_t i = (uint32_t)(uintptr_t)cookie - 1;
	struct table *table = table_place;
	struct tracked *t = NULL;

	pthread_mutex_lock(&table->lock);
	if (i < table->size && table->slot[i].generation == generation)
		t = table->slot[i].user;
	if (t && comp)
		t->comp++;
	else if (t)
		t->async++;
	pthread_mutex_unlock(&table->lock);
	return t;
}

/* No call of ours is a cancellation point; waiting on a condition would be. */
void tracked_wait(pthread_mutex_t *mutex, pthread_cond_t *cond,
		  const uint32_t *acked, uint32_t handed_out)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(mutex);
	while (*acked != handed_out)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
	pthread_setcancelstate(cancel, &cancel);
}

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *acked,
		uint32_t n)
{
	pthread_mutex_lock(mutex);
	*acked += n;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **cq_context)
{
	struct vchannel *ch = container_of(channel, struct vchannel, base);
	struct tracked *t;
	void *cookie;
	int rc;

	do {
		rc = nic_channel_get(ch->nic, &cookie);
		if (rc) {
			errno = -rc;
			return -1;
		}
		t = hand_out(cookie, true);
	} while (!t);
	*cq = &container_of(t, struct vcq, events)->base;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (nevents)
		ack(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
}

/* What an event belongs to; its number says so, as in verbs. */
enum target { TARGET_DEVICE, TARGET_CQ, TARGET_QP, TARGET_SRQ };

static enum target event_target(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return TARGET_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return TARGET_QP;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return TARGET_SRQ;
	default:
		return TARGET_DEVICE;
	}
}

/* Return: false if what it is about was destroyed meanwhile. */
static bool event_to_verbs(const struct nic_event *ev,
			   struct ibv_async_event *event)
{
	const enum target target = event_target((enum ibv_event_type)ev->type);
	struct tracked *t = NULL;

	memset(event, 0, sizeof(*event));
	event->event_type = (enum ibv_event_type)ev->type;
	if (target == TARGET_DEVICE) {
		event->element.port_num = PORT_NUM;
		return true;
	}
	t = hand_out(ev->cookie, false);
	if (!t)
		return false;
	if (target == TARGET_CQ)
		event->element.cq = &container_of(t, struct vcq, events)->base;
	else if (target == TARGET_SRQ)
		event->element.srq =
			&container_of(t, struct vsrq, events)->base;
	else
		event->element.qp = &container_of(t, struct vqp, events)->base;
	return true;
}

int ibv_get_async_event(struct ibv_context *context,
			struct ibv_async_event *event)
{
	struct nic_event ev;

	do {
		const int rc = nic_async_get(vctx_of(context)->async, &ev);

		if (rc) {
			errno = -rc;
			return -1;
		}
	} while (!event_to_verbs(&ev, event));
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (event_target(event->event_type)) {
	case TARGET_CQ:
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
		break;
	case TARGET_QP:
		ack(&qp->mutex, &qp->cond, &qp->events_completed, 1);
		break;
	case TARGET_SRQ:
		ack(&srq->mutex, &srq->cond, &srq->events_completed, 1);
		break;
	case TARGET_DEVICE:
		break;
	}
}
