/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_member.c: what a member does, step by step: one atomic where nobody waits and
 * the word is what it was believed to be.
 */
#include "session/sync_member.h"
#include "base/check.h"
#include "session/sync.h"

#include <stdbool.h>
#include <stdint.h>

/* So often the word may be another than what was believed; then the home does it,
 * which no member can be ahead of. */
enum { TRIES = 4 };

static struct sync_step done(enum sync_result result)
{
	return (struct sync_step){.kind = TODO_DONE, .result = result};
}

static struct sync_step member_ask(const struct sync_call *c, enum sync_op op)
{
	return (struct sync_step){.kind = TODO_ASK,
				  .msg = {op, c->id, c->value}};
}

/* A word may hold anything. */
static int64_t plus(int64_t word, int64_t delta)
{
	return (int64_t)((uint64_t)word + (uint64_t)delta);
}

/* What the word becomes, if it is what we believe. */
static int64_t target(const struct sync_call *c)
{
	switch (c->kind) {
	case CALL_SEM_WAIT:
	case CALL_SEM_TRY:
		return plus(*c->guess, -1);
	case CALL_PREPARE:
		return *c->guess;
	default:
		return plus(*c->guess, 1);
	}
}

static struct sync_step member_swap(const struct sync_call *c)
{
	return (struct sync_step){
		.kind = TODO_SWAP, .compare = *c->guess, .swap = target(c)};
}

struct sync_step call_begin(struct sync_call *c, enum call_kind kind,
			    uint32_t id, uint64_t value, int64_t *guess)
{
	const bool takes = kind == CALL_SEM_WAIT || kind == CALL_SEM_TRY;

	*c = (struct sync_call){
		.kind = kind, .id = id, .value = value, .guess = guess};
	if (kind == CALL_WAIT)
		return member_ask(c, SYNC_WAIT);
	/* what would end it is no guess */
	*guess = MAX(*guess, (int64_t)takes);
	if (kind == CALL_SEM_POST)
		*guess = MIN(*guess, (int64_t)SYNC_UNITS_MAX - 1);
	return member_swap(c);
}

/* It was not what we believed, but nobody waits. */
static struct sync_step member_again(struct sync_call *c, enum sync_op op)
{
	return ++c->tries < TRIES ? member_swap(c) : member_ask(c, op);
}

static struct sync_step sem_swapped(struct sync_call *c, int64_t old)
{
	if (c->kind == CALL_SEM_POST) {
		if (old >= SYNC_UNITS_MAX)
			return done(SYNC_FULL);
		return old < 0 ? member_ask(c, SYNC_WAKE)
			       : member_again(c, SYNC_WAKE);
	}
	if (old > 0)
		return member_again(c, SYNC_WAIT);
	return c->kind == CALL_SEM_TRY ? done(SYNC_LATE)
				       : member_ask(c, SYNC_WAIT);
}

struct sync_step call_swapped(struct sync_call *c, int64_t old)
{
	const bool hit = old == *c->guess;

	*c->guess = hit ? target(c) : old;
	if (c->kind == CALL_PREPARE) {
		*c->guess = old & INT64_MAX;
		c->value = (uint64_t)*c->guess;
		return done(SYNC_OK);
	}
	if (hit)
		return done(SYNC_OK);
	if (c->kind != CALL_WAKE)
		return sem_swapped(c, old);
	/* somebody was woken last, then this is what the home made of it */
	if (old < 0)
		*c->guess = plus(old & INT64_MAX, 1);
	return old < 0 ? member_ask(c, SYNC_WAKE) : member_again(c, SYNC_WAKE);
}

struct sync_step call_answered(struct sync_call *c, enum sync_result result)
{
	const bool waits = c->kind != CALL_SEM_POST && c->kind != CALL_WAKE;

	if (result != SYNC_OK || !waits)
		return done(result);
	return (struct sync_step){.kind = TODO_CONFIRM};
}

struct sync_step call_confirmed(struct sync_call *c)
{
	(void)c;
	return done(SYNC_OK);
}
