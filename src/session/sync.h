/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync.h: what a home and its members say to each other: the protocol of counting
 * semaphores and wait queues between processes. sync_home.h has what a message does at
 * their home, sync_member.h which step a member takes next. Nothing here moves words or
 * messages, does I/O, waits or knows the time: its caller does.
 *
 * Theory of operation. An object is a word in memory of one process, the home,
 * which all change with the NIC's atomics only; those of the NIC are not atomic
 * with the CPU's. While nobody waits, a member changes it itself, by one compare
 * and swap between values that are not negative: the whole operation, so a member
 * that dies between two of them leaves nothing half done; if its connection fails in
 * one, that was done or not, and nobody knows: a unit may be lost. A negative word says
 * that members wait: it is the home's alone then, which has the queue, and a member
 * that finds one asks the home to do what it wanted. So the home always knows which
 * members wait, a wake-up cannot pass a waiter by, and no member overtakes the queue.
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
#ifndef NOPIN_SESSION_SYNC_H
#define NOPIN_SESSION_SYNC_H

#include <stdint.h>

enum sync_kind { SYNC_NONE, SYNC_SEM, SYNC_WAITQ };

enum {
	SYNC_OBJECTS_MAX = 1 << 16,
	SYNC_MEMBERS_MAX = 1 << 14,
	SYNC_UNITS_MAX = INT32_MAX,
};
#define SYNC_WAITED INT64_MIN

/* A member that names an object says which kind it takes it for. */
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

#endif
