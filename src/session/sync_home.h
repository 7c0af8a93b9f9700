/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_home.h: the home of counting semaphores and wait queues (sync.h). */
#ifndef NOPIN_SESSION_SYNC_HOME_H
#define NOPIN_SESSION_SYNC_HOME_H

#include "session/sync.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * enum seat_state
 * SEAT_FREE:	no member
 * SEAT_IDLE:	it has its answer
 * SEAT_WAITING: it is in the queue of object
 * SEAT_GRANTED: it was answered what it waited for, number @wait, and may not
 *		have seen that
 */
enum seat_state { SEAT_FREE, SEAT_IDLE, SEAT_WAITING, SEAT_GRANTED, SEAT_NUM };

/** struct sync_seat - @taken: messages so far. @wait: the number of its WAIT. */
struct sync_seat {
	enum seat_state state;
	bool left;
	uint32_t object, next, prev;
	uint64_t taken, wait;
};

/** struct sync_object - @head, @tail: seats, SYNC_MEMBERS_MAX: none. @num: all. */
struct sync_object {
	enum sync_kind kind;
	uint32_t head, tail, num;
	int64_t wakes; /* of a wait queue that is waited in, when that began */
};

/**
 * struct sync_port - What the home does.
 * @add:	to the word of an object, with the NIC. Return: what it was
 * @answer:	a member's request
 */
struct sync_port {
	void *arg;
	int64_t (*add)(void *arg, uint32_t object, int64_t delta);
	void (*answer)(void *arg, uint32_t member, enum sync_result result);
};

/** struct sync_home - Of @members and @objects, memory of the caller. */
struct sync_home {
	struct sync_seat *seat;
	struct sync_object *object;
	uint32_t members, objects;
	struct sync_port port;
};

/** home_object() - Make @object one of @kind. The caller sets its word. */
void home_object(struct sync_home *h, uint32_t object, enum sync_kind kind);
/** home_waiting() - Count the queue. Return: 0; -EINVAL: there is no such @id. */
int home_waiting(const struct sync_home *h, uint32_t id, uint32_t *num);
/** home_join() - Give a free seat to a new member. */
void home_join(struct sync_home *h, uint32_t member);
/**
 * home_take() - Take the next message of a member, which may be anything at all.
 * Return: false: no member sends that. It did nothing; home_gone() is to follow.
 */
bool home_take(struct sync_home *h, uint32_t member,
	       const struct sync_msg *msg);
/**
 * home_gone() - Remove a member. No message of it comes any more, and none reaches it.
 * @confirmed:	the number that it confirmed last
 * Return: the object that it was waiting for, or UINT32_MAX.
 */
uint32_t home_gone(struct sync_home *h, uint32_t member, uint64_t confirmed);

#endif
