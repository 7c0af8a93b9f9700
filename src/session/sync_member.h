/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_member.h: a member's calls, step by step (sync.h). */
#ifndef NOPIN_SESSION_SYNC_MEMBER_H
#define NOPIN_SESSION_SYNC_MEMBER_H

#include "session/sync.h"

#include <stdint.h>

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
 * enum sync_todo - The next thing to do, and the function that is told what came out.
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
/** call_swapped() - Choose the step after TODO_SWAP. @old: the word before; the swap
 * happened if that was @compare. */
struct sync_step call_swapped(struct sync_call *c, int64_t old);
struct sync_step call_answered(struct sync_call *c, enum sync_result result);
struct sync_step call_confirmed(struct sync_call *c);

#endif
