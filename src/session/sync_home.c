/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_home.c: the home of semaphores and wait queues: which members wait, in the order
 * of coming, and which is next.
 *
 * Invariant: the word of an object is negative from the moment that its queue has a
 * member until it has none. All changes of a negative word are made here, and they
 * are additions, so that no traffic of members can hold the home up. A word that is
 * not what it must be was written by a member that does not keep to this: it is put
 * right, and nobody but those who share the object had harm.
 */
#include "session/sync_home.h"
#include "session/sync.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

enum { NOBODY = SYNC_MEMBERS_MAX };

/* --- the queue ----------------------------------------------------------------- */

static bool queue_empty(const struct sync_object *o)
{
	return o->head == NOBODY;
}

static void home_queue_add(struct sync_home *h, uint32_t object,
			   uint32_t member)
{
	struct sync_object *o = &h->object[object];
	struct sync_seat *s = &h->seat[member];

	s->state = SEAT_WAITING;
	s->object = object;
	s->wait = s->taken;
	s->next = NOBODY;
	s->prev = o->tail;
	if (queue_empty(o))
		o->head = member;
	else
		h->seat[o->tail].next = member;
	o->tail = member;
	o->num++;
}

static void queue_del(struct sync_home *h, uint32_t member)
{
	const struct sync_seat *s = &h->seat[member];
	struct sync_object *o = &h->object[s->object];

	if (s->prev == NOBODY)
		o->head = s->next;
	else
		h->seat[s->prev].next = s->next;
	if (s->next == NOBODY)
		o->tail = s->prev;
	else
		h->seat[s->next].prev = s->prev;
	o->num--;
}

static void grant(struct sync_home *h, uint32_t member)
{
	h->seat[member].state = SEAT_GRANTED;
	h->port.answer(h->port.arg, member, SYNC_OK);
}

static void grant_first(struct sync_home *h, uint32_t object)
{
	const uint32_t member = h->object[object].head;

	queue_del(h, member);
	grant(h, member);
}

/* --- the word ------------------------------------------------------------------ */

static int64_t home_word_add(struct sync_home *h, uint32_t object,
			     uint64_t delta)
{
	return h->port.add(h->port.arg, object, (int64_t)delta);
}

/* The last member that waited does not any more. @wakes: how often that was a wake-up. */
static void word_release(struct sync_home *h, uint32_t object, uint64_t wakes)
{
	const struct sync_object *o = &h->object[object];
	const bool sem = o->kind == SYNC_SEM;
	const uint64_t is = sem ? -UINT64_C(1)
				: (uint64_t)o->wakes | (uint64_t)SYNC_WAITED;
	const uint64_t to = sem ? 0 : (uint64_t)o->wakes + wakes;
	const uint64_t was = (uint64_t)home_word_add(h, object, to - is);

	if (was != is)
		home_word_add(h, object, is - was);
}

/* --- semaphores ---------------------------------------------------------------- */

static void sem_wait(struct sync_home *h, uint32_t object, uint32_t member)
{
	int64_t was = 0;

	if (queue_empty(&h->object[object]))
		was = home_word_add(h, object, -UINT64_C(1));
	if (was > 0) {
		h->seat[member].object = object;
		h->seat[member].wait = h->seat[member].taken;
		grant(h, member);
		return;
	}
	if (was < 0)
		home_word_add(h, object, -(uint64_t)was);
	home_queue_add(h, object, member);
}

/* One that is too many is taken away again: members may change the word meanwhile. */
static enum sync_result sem_post(struct sync_home *h, uint32_t object)
{
	if (queue_empty(&h->object[object])) {
		if (home_word_add(h, object, 1) < SYNC_UNITS_MAX)
			return SYNC_OK;
		home_word_add(h, object, -UINT64_C(1));
		return SYNC_FULL;
	}
	grant_first(h, object);
	if (queue_empty(&h->object[object]))
		word_release(h, object, 0);
	return SYNC_OK;
}

/* --- wait queues --------------------------------------------------------------- */

/* Was there no wake-up after the first @wakes? If so the word says that a member
 * waits. */
static bool waitq_enter(struct sync_home *h, uint32_t object, uint64_t wakes)
{
	struct sync_object *o = &h->object[object];
	int64_t was;

	if (!queue_empty(o))
		return (uint64_t)o->wakes == wakes;
	was = home_word_add(h, object, (uint64_t)SYNC_WAITED);
	o->wakes = was & INT64_MAX;
	if (was < 0)
		home_word_add(h, object, (uint64_t)SYNC_WAITED);
	if ((uint64_t)o->wakes == wakes)
		return true;
	word_release(h, object, 0);
	return false;
}

static void waitq_wait(struct sync_home *h, uint32_t object, uint32_t member,
		       uint64_t wakes)
{
	if (waitq_enter(h, object, wakes)) {
		home_queue_add(h, object, member);
		return;
	}
	h->seat[member].state = SEAT_IDLE;
	h->port.answer(h->port.arg, member, SYNC_OK);
}

/* A member that has looked and not come yet must not sleep: the number of wake-ups
 * rises unless all of this one went to members that were here before. */
static void waitq_wake(struct sync_home *h, uint32_t object, uint64_t num)
{
	struct sync_object *o = &h->object[object];

	if (queue_empty(o)) {
		home_word_add(h, object, num > 0);
		return;
	}
	while (num-- && !queue_empty(o))
		grant_first(h, object);
	if (queue_empty(o))
		word_release(h, object, 1);
}

/* --- messages ------------------------------------------------------------------ */

static enum sync_result home_wake(struct sync_home *h, uint32_t object,
				  uint64_t num)
{
	if (h->object[object].kind == SYNC_SEM)
		return sem_post(h, object);
	waitq_wake(h, object, num);
	return SYNC_OK;
}

static void home_unqueue(struct sync_home *h, uint32_t member)
{
	const uint32_t object = h->seat[member].object;

	queue_del(h, member);
	if (queue_empty(&h->object[object]))
		word_release(h, object, 0);
}

static void home_cancel(struct sync_home *h, uint32_t member)
{
	struct sync_seat *s = &h->seat[member];

	if (s->state != SEAT_WAITING)
		return; /* the wake-up was first */
	home_unqueue(h, member);
	s->state = SEAT_IDLE;
	h->port.answer(h->port.arg, member, SYNC_LATE);
}

/* It did not wait for the answer, and does not know that it was granted something. */
static void home_give_up(struct sync_home *h, uint32_t member,
			 enum seat_state was)
{
	if (was == SEAT_GRANTED)
		(void)home_wake(h, h->seat[member].object, 1);
	h->port.answer(h->port.arg, member, SYNC_OK);
}

static bool home_is_known(uint32_t op)
{
	return op == SYNC_WAIT || op == SYNC_WAKE || op == SYNC_GIVE_UP ||
	       op == SYNC_LEAVE;
}

static bool is_object(const struct sync_home *h, uint32_t id)
{
	const uint32_t object = sync_index(id);

	return object < h->objects && h->object[object].kind &&
	       id == sync_id(h->object[object].kind, object);
}

bool home_take(struct sync_home *h, uint32_t member, const struct sync_msg *msg)
{
	const uint32_t object = sync_index(msg->id);
	struct sync_seat *s = &h->seat[member];
	const enum seat_state was = s->state;

	s->taken++;
	if (msg->op == SYNC_CANCEL) {
		home_cancel(h, member);
		return true;
	}
	if (was == SEAT_WAITING || s->left || !home_is_known(msg->op))
		return false;
	s->state = SEAT_IDLE; /* one that asks again has confirmed */
	if (msg->op == SYNC_LEAVE) {
		s->left = true;
	} else if (msg->op == SYNC_GIVE_UP) {
		home_give_up(h, member, was);
	} else if (!is_object(h, msg->id)) {
		h->port.answer(h->port.arg, member, SYNC_INVALID);
	} else if (msg->op == SYNC_WAKE) {
		h->port.answer(h->port.arg, member,
			       home_wake(h, object, msg->arg));
	} else if (h->object[object].kind == SYNC_SEM) {
		sem_wait(h, object, member);
	} else {
		waitq_wait(h, object, member, msg->arg);
	}
	return true;
}

uint32_t home_gone(struct sync_home *h, uint32_t member, uint64_t confirmed)
{
	struct sync_seat *s = &h->seat[member];
	const enum seat_state was = s->state;

	s->state = SEAT_FREE;
	if (was == SEAT_GRANTED && confirmed != s->wait)
		(void)home_wake(h, s->object, 1);
	if (was != SEAT_WAITING)
		return UINT32_MAX;
	home_unqueue(h, member);
	return s->object;
}

int home_waiting(const struct sync_home *h, uint32_t id, uint32_t *num)
{
	if (!is_object(h, id))
		return -EINVAL;
	*num = h->object[sync_index(id)].num;
	return 0;
}

void home_join(struct sync_home *h, uint32_t member)
{
	h->seat[member] = (struct sync_seat){.state = SEAT_IDLE};
}

void home_object(struct sync_home *h, uint32_t object, enum sync_kind kind)
{
	h->object[object] = (struct sync_object){
		.kind = kind, .head = NOBODY, .tail = NOBODY};
}
