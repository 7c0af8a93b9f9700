/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* session.h: what home.c and owner.c share: they serve other processes, each of which
 * has a seat.
 */
#ifndef NOPIN_SESSION_SESSION_H
#define NOPIN_SESSION_SESSION_H

#include "ext/ext.h"
#include "session/link.h"

#include <pthread.h>

/**
 * struct seat - The place of a user; link.qp is NULL while it is free.
 * @counter:	what the user raises for each request
 * @mr:		what the user may write
 * @theirs:	where the user looks for answers
 * @beat_ns:	when something was sent to the user last
 * @gone:	not 0: the program is to be told
 * @busy:	a thread works at a request: the program is told later
 */
struct seat {
	struct link link;
	struct nopin_counter *counter;
	struct ibv_mr *mr;
	struct nopin_card theirs;
	uint64_t beat_ns;
	enum nopin_gone gone;
	bool busy;
};

/**
 * struct session - @lock is that of all of a home or an owner.
 * @bell:	what users raise, too: the threads that serve sleep on it
 * @seat:	@seats of them
 * @alive_ns:	a user that nothing was sent to for so long is asked whether it lives
 * @first:	the seat to look at first
 * @serving:	threads
 * @stop:	they are to end
 */
struct session {
	struct ibv_pd *pd;
	pthread_mutex_t lock;
	struct nopin_counter *bell;
	struct seat *seat;
	uint64_t alive_ns;
	uint32_t seats, first, serving;
	bool stop;
};

/**
 * session_open() - Initialize @s, which is all zero. Also after an error session_close() is
 * to follow.
 * @alive_ns:	as a program asks for it; 0: 500 ms; at least 1 ms
 * Return: 0; ENOMEM, EMFILE, ENODEV.
 */
int session_open(struct session *s, struct ibv_pd *pd, uint32_t seats,
		 uint64_t alive_ns);

/** session_close() - Free all that @s has. No thread is in a call. Peers are not told. */
void session_close(struct session *s);

/**
 * session_finish() - End all connections: nothing of any user arrives from the return on.
 * Lock held.
 */
void session_finish(struct session *s);

/** session_seat() - Find a free seat. Lock held. Return: s->seats: there is none. */
uint32_t session_seat(const struct session *s);

/**
 * session_join() - Give the free seat @i to the user at the other end of @qp. Lock held.
 * @mail:	what the user writes, @bytes
 * @ours:	what the user is to know of that
 * Return: 0, or an errno of what it needs: the seat is still free.
 */
int session_join(struct session *s, uint32_t i, struct ibv_qp *qp,
		 const struct nopin_card *theirs, void *mail, size_t bytes,
		 struct nopin_card *ours);

/** seat_taken() - Has it a user that is not gone? */
static inline bool seat_taken(const struct seat *s)
{
	return s->link.qp && !s->gone;
}

/** seat_rung() - Return how many requests the user announced. */
uint64_t seat_rung(const struct seat *s);

/** seat_say() - WRITE @len bytes at @from, with key @lkey, to @to at the user, and raise
 * the user's counter. */
void seat_say(struct session *s, struct seat *seat, const void *from,
	      uint32_t len, uint32_t lkey, uint64_t to);

/** seat_beat() - Ask whether the user lives, if nothing was sent for long. */
void seat_beat(struct session *s, struct seat *seat, uint64_t now_ns);

/** seat_expel() - End the connection to a user, which is gone then, as @why says: from the
 * return on nothing of it arrives. */
void seat_expel(struct seat *seat, enum nopin_gone why);

/**
 * session_report() - Find a user that is gone. Its seat is free then. Lock held.
 * @was:	what it was
 * Return: the seat, or s->seats: there is none to be told.
 */
uint32_t session_report(struct session *s, struct seat *was);

/**
 * session_enter() - Begin to serve on the calling thread, if at most @most do then.
 * Return: 0; EBUSY; ENODEV.
 */
int session_enter(struct session *s, uint32_t most);
void session_leave(struct session *s);

/** session_rung() - Read the bell before a look. */
uint64_t session_rung(const struct session *s);

/**
 * session_wait() - Sleep until the bell was rung since it was @rung, or @most_ns.
 * Return: 0; what ends the call of the program.
 */
int session_wait(struct session *s, uint64_t rung, uint64_t most_ns,
		 enum nopin_wait how);

/** session_stop() - Have all threads that serve return. Return: 0; ENODEV. */
int session_stop(struct session *s);

/** session_now() - Return the time that beats are judged by, in nanoseconds. */
static inline uint64_t session_now(const struct session *s)
{
	return ext_now(s->pd->context);
}

#endif
