/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* caller.h: what member.c and cache.c share: a user of a home or an owner, which asks and
 * waits for answers.
 */
#ifndef NOPIN_SESSION_CALLER_H
#define NOPIN_SESSION_CALLER_H

#include "ext/ext.h"
#include "session/link.h"

#define MS UINT64_C(1000000)

/* CALLER_BEAT_MS: a call that waits asks so often whether the other end lives. */
enum { CALLER_BEAT_MS = 250 };

/**
 * struct caller - @counter: what the other end raises for each answer
 * @mail:	what the other end writes, and what is sent to it
 * @peer:	card of the other end
 * @busy:	a thread is in a call
 */
struct caller {
	struct link link;
	struct nopin_counter *counter;
	void *mail;
	struct ibv_mr *mr;
	struct nopin_card peer;
	bool busy;
};

/** struct patience - How long a call waits, and how. */
struct patience {
	uint64_t until_ns;
	enum nopin_wait how;
};

/**
 * caller_open() - Initialize @c, which is all zero, for calls on @qp. Also after an error
 * caller_close() is to follow.
 * @bytes:	of its mail, zeroed
 * Return: 0; EINVAL: not what @qp must be; ENOMEM, EMFILE, ENODEV.
 */
int caller_open(struct caller *c, struct ibv_qp *qp, size_t bytes);
void caller_close(struct caller *c);

/**
 * caller_card() - Return what the other end is to know of @c.
 * @mail:	where answers go
 */
struct nopin_card caller_card(const struct caller *c, const void *mail);

/** caller_enter() - Begin a call. Return: 0; EBUSY: another thread is in one; ENODEV. */
int caller_enter(struct caller *c);
void caller_leave(struct caller *c);

/** caller_now() - Return the time that calls wait by, in nanoseconds. */
static inline uint64_t caller_now(const struct caller *c)
{
	return ext_now(c->link.qp->context);
}

/** caller_patience() - Return the patience for @timeout_ns from now on, waiting as @how. */
struct patience caller_patience(const struct caller *c, uint64_t timeout_ns,
				enum nopin_wait how);

/** caller_lost() - End the connection. Return: ENOTCONN. */
int caller_lost(struct caller *c);

/**
 * caller_ask() - WRITE @len bytes at @from, of the mail, to @to at the other end, raise
 * its counter for us, and ring its bell.
 * Return: 0; ENOTCONN.
 */
int caller_ask(struct caller *c, const void *from, uint32_t len, uint64_t to);

/**
 * caller_wait() - Wait for one stretch until @target answers came; @most_ns at most.
 * A call that never waits is to find out, too, that the other end is gone.
 * Return: 0: look again; ETIMEDOUT, EINTR, ENOTCONN.
 */
int caller_wait(struct caller *c, uint64_t target, const struct patience *p,
		uint64_t most_ns);

#endif
