/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync.h: façade of sync/, the protocol of counting semaphores and wait queues
 * between processes: what a message does at their home, and which step a member
 * takes next. Whoever drives it moves the words and the messages; nothing here
 * does I/O, waits or knows the time.
 *
 * Theory of operation. An object is a word in memory of one process, the home,
 * which all change with the NIC's atomics only; those of the NIC are not atomic
 * with the CPU's. While nobody waits, a member changes it itself, by one compare
 * and swap between values that are not negative: the whole operation, so a member
 * that dies between two of them leaves nothing half done; if its connection fails in
 * one, that was done or not, and nobody knows: a unit may be lost. A negative word says
 * that members wait: it is the home's alone then, which has the queue, and who
 * finds one asks the home to do what he wanted. So the home always knows who
 * waits, a wake-up cannot pass a waiter by, and nobody overtakes the queue.
 *
 *   semaphore:  units that are free, or -1: members wait
 *   wait queue: wake-ups so far, and SYNC_WAITED if members wait
 *
 * A wait queue's member reads the number of wake-ups, looks whether it has to wait,
 * and names the number in its WAIT, which the home answers at once if there was a
 * wake-up meanwhile.
 *
 * A member that was granted something confirms it before it goes on. The home asks
 * for that when the member's connection failed, and then only: what was confirmed
 * is the member's, everything else goes to the next. A member that does not wait for
 * the answer any more says so, and the home takes back what it granted.
 */
#ifndef NOPIN_SYNC_SYNC_H
#define NOPIN_SYNC_SYNC_H

#include <stdbool.h>
#include <stdint.h>

enum sync_kind { SYNC_NONE, SYNC_SEM, SYNC_WAITQ, SYNC_KIND_NUM };

enum {
	SYNC_OBJECTS_MAX = 1 << 16,
	SYNC_MEMBERS_MAX = 1 << 14,
	SYNC_UNITS_MAX = INT32_MAX,
};
#define SYNC_WAITED INT64_MIN

/* Who names an object says what it takes it for. */
static inline uint32_t sync_id(enum sync_kind kind, uint32_t index)
{
	return (uint32_t)kind << 24 | index;
}

static inline uint32_t sync_index(uint32_t id)
{
	return id & 0xffffff;
}

/**
 * enum sync_op - What a member asks its home for. One thing at a time, which is
 * answered; but SYNC_CANCEL follows SYNC_WAIT, and only that is answered; and
 * SYNC_GIVE_UP, which is answered too, follows that if it is not answered soon.
 * SYNC_WAIT:	for a unit; or for a wake-up after the first arg
 * SYNC_WAKE:	give a unit back; or wake up to arg members
 * SYNC_GIVE_UP: it has what it waited for no use: what it was granted is the next's
 * SYNC_LEAVE:	be none any more; no answer
 */
enum sync_op {
	SYNC_OP_NONE,
	SYNC_WAIT,
	SYNC_WAKE,
	SYNC_CANCEL,
	SYNC_GIVE_UP,
	SYNC_LEAVE,
	SYNC_OP_NUM
};

/* How many of a member's messages the home may not have seen: the cancelling of one
 * that was granted, which came too late and is not answered; the next one, its
 * cancelling, and that it was given up. */
enum { SYNC_BOX = 4 };

struct sync_msg {
	uint32_t op, id;
	uint64_t arg;
};

enum sync_result {
	SYNC_PENDING,
	SYNC_OK,
	SYNC_LATE, /* cancelled, or there is no unit */
	SYNC_INVALID, /* no such object */
	SYNC_FULL, /* SYNC_UNITS_MAX */
	SYNC_RESULT_NUM
};

/* --- the home ---------------------------------------------------------------- */

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

/** home_object() - Now it is one. The word is @word, the caller puts it there. */
void home_object(struct sync_home *h, uint32_t object, enum sync_kind kind);
/** home_waiting() - Count the queue. Return: 0; -EINVAL: there is no such @id. */
int home_waiting(const struct sync_home *h, uint32_t id, uint32_t *num);
/** home_join() - A free seat has a member. */
void home_join(struct sync_home *h, uint32_t member);
/**
 * home_take() - The next message of a member, which may be anything at all.
 * Return: false: no member sends that. It did nothing; home_gone() is to follow.
 */
bool home_take(struct sync_home *h, uint32_t member,
	       const struct sync_msg *msg);
/**
 * home_gone() - No message of the member comes any more, and none reaches it.
 * @confirmed:	the number that it confirmed last
 * Return: the object that it was waiting for, or UINT32_MAX.
 */
uint32_t home_gone(struct sync_home *h, uint32_t member, uint64_t confirmed);

/* --- members ------------------------------------------------------------------ */

enum call_kind {
	CALL_NONE,
	CALL_SEM_WAIT,
	CALL_SEM_TRY,
	CALL_SEM_POST,
	CALL_PREPARE, /* value: what CALL_WAIT is told */
	CALL_WAIT,
	CALL_WAKE,
	CALL_NUM
};

/**
 * enum sync_todo - What is to be done next, and who is told what came out.
 * TODO_SWAP:	@compare against the word of id, becoming @swap: call_swapped()
 * TODO_ASK:	@msg to the home, until it answers: call_answered()
 * TODO_CONFIRM: the number of the message that was answered: call_confirmed()
 * TODO_DONE:	nothing, @result it is
 */
enum sync_todo { TODO_NONE, TODO_SWAP, TODO_ASK, TODO_CONFIRM, TODO_DONE };

struct sync_step {
	enum sync_todo kind;
	enum sync_result result;
	int64_t compare, swap;
	struct sync_msg msg;
};

/**
 * struct sync_call - A call of a member, from call_begin() to TODO_DONE.
 * @guess:	what the word of the object may be: of the last call, kept by the
 *		member for each object
 */
struct sync_call {
	enum call_kind kind;
	uint32_t id;
	unsigned tries;
	int64_t *guess;
	uint64_t value;
};

struct sync_step call_begin(struct sync_call *c, enum call_kind kind,
			    uint32_t id, uint64_t value, int64_t *guess);
/** call_swapped() - @old: what the word was; the swap happened if it was that. */
struct sync_step call_swapped(struct sync_call *c, int64_t old);
struct sync_step call_answered(struct sync_call *c, enum sync_result result);
struct sync_step call_confirmed(struct sync_call *c);

#endif
