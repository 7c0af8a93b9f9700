/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* member.c: calls on semaphores and wait queues. sync_member.c says what is next;
 * this does it, on the member's queue pair, and waits.
 *
 * A member that waits asks every now and then whether the home lives; the answer is the
 * connection's. A wait that is late is over when the home says so, which may be
 * that it was not. If it says nothing, as its thread does not serve, the member goes
 * without an answer: what it was granted, or will be, the home takes back. Both
 * answers are read before it asks again.
 */
#include "session/caller.h"
#include "session/sync_member.h"

#include <errno.h>
#include <stdlib.h>

enum {
	SPINS = 5000, /* an atomic is there before, as a rule */
	GRACE_MS = 250, /* to say whether it was late */
};

/** struct mail - Of a member: the home writes @answer, the rest is read only. */
struct mail {
	uint64_t answer, old, confirmed, pad[5];
	struct sync_msg msg[SYNC_BOX];
};
static_assert(sizeof(struct mail) % LINE == 0, "shares no line");

/**
 * struct nopin_member
 * @mail:	that of @caller
 * @sent:	messages
 * @answers:	that came
 * @owed:	more of them that are of no interest
 * @guess:	what the words of objects were last
 * @signalled:	a signal is to end the call, if that may be
 */
struct nopin_member {
	struct caller caller;
	struct mail *mail;
	int64_t *guess;
	uint64_t sent, answers, owed;
	bool signalled;
};

/* --- life ------------------------------------------------------------------------ */

static void member_free(struct nopin_member *m)
{
	caller_close(&m->caller);
	free(m->guess);
	free(m);
}

int nopin_member_create(struct ibv_qp *qp, struct nopin_member **member,
			struct nopin_card *card)
{
	struct nopin_member *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return ENOMEM;
	rc = caller_open(&m->caller, qp, sizeof(*m->mail));
	if (rc) {
		member_free(m);
		return rc;
	}
	m->mail = m->caller.mail;
	*card = caller_card(&m->caller, &m->mail->answer);
	card->objects = SYNC_BOX;
	*member = m;
	return 0;
}

int nopin_member_start(struct nopin_member *m, const struct nopin_card *home)
{
	int64_t *guess;
	int rc = caller_enter(&m->caller);

	if (rc)
		return rc;
	guess = calloc(MIN(home->objects, SYNC_OBJECTS_MAX), sizeof(*guess));
	if (m->guess || !guess) {
		rc = m->guess ? EINVAL : ENOMEM;
		free(guess);
	} else {
		m->guess = guess;
		m->caller.peer = *home;
		m->caller.peer.objects = MIN(home->objects, SYNC_OBJECTS_MAX);
	}
	caller_leave(&m->caller);
	return rc;
}

/* --- steps ----------------------------------------------------------------------- */

/* Until all that was posted is done. The sleeps are short: no value ends them. */
static int member_settle(struct nopin_member *m)
{
	struct caller *c = &m->caller;

	for (unsigned n = 0; c->link.out && !c->link.failed; n++) {
		if (n > SPINS)
			m->signalled |=
				nopin_counter_wait(c->counter, UINT64_MAX, MS,
						   NOPIN_WAIT_FUTEX) == EINTR;
		link_reap(&c->link);
	}
	return c->link.failed ? ENOTCONN : 0;
}

static int swap(struct nopin_member *m, uint32_t id,
		const struct sync_step *step, int64_t *old)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = {.remote_addr = m->caller.peer.words +
					     (uint64_t)sync_index(id) * LINE,
			      .compare_add = (uint64_t)step->compare,
			      .swap = (uint64_t)step->swap,
			      .rkey = m->caller.peer.words_rkey}};
	int rc;

	if (link_atomic(&m->caller.link, wr, &m->mail->old, m->caller.mr->lkey))
		return caller_lost(&m->caller);
	rc = member_settle(m);
	*old = (int64_t)__atomic_load_n(&m->mail->old, __ATOMIC_ACQUIRE);
	return rc;
}

static int confirm(struct nopin_member *m, uint64_t number)
{
	m->mail->confirmed = number;
	if (link_write(&m->caller.link, &m->mail->confirmed, 8,
		       m->caller.mr->lkey,
		       m->caller.peer.mail + offsetof(struct box, confirmed),
		       m->caller.peer.mail_rkey, 0))
		return caller_lost(&m->caller);
	return member_settle(m);
}

/* Completions of earlier ones may not have been taken: of some there is room for. */
static int member_say(struct nopin_member *m, const struct sync_msg *msg)
{
	const unsigned i = ++m->sent % SYNC_BOX;

	m->mail->msg[i] = *msg;
	link_reap(&m->caller.link);
	if (m->caller.link.out + 2 > LINK_DEPTH)
		(void)member_settle(m);
	if (m->caller.link.failed)
		return caller_lost(&m->caller);
	return caller_ask(&m->caller, &m->mail->msg[i], sizeof(*msg),
			  m->caller.peer.mail + i * sizeof(*msg));
}

/**
 * struct member_wait - Of a call.
 * @ends:	a signal ends it
 * @late:	what it waits for was cancelled, for this reason; or 0
 */
struct member_wait {
	struct patience p;
	bool ends;
	int late;
};

/* One stretch of waiting for answer number @target. */
static int member_wait_some(struct nopin_member *m, uint64_t target,
			    const struct member_wait *w)
{
	int rc;

	if (w->ends && m->signalled && caller_now(&m->caller) < w->p.until_ns)
		return EINTR;
	rc = caller_wait(&m->caller, target, &w->p, CALLER_BEAT_MS * MS);
	return rc == EINTR && !w->ends ? 0 : rc;
}

/* The next @num answers. */
static int hear(struct nopin_member *m, uint64_t num,
		const struct member_wait *w)
{
	const uint64_t *word = nopin_counter_word(m->caller.counter);
	const uint64_t target = m->answers + num;
	int rc = 0;

	while (!rc && __atomic_load_n(word, __ATOMIC_ACQUIRE) < target)
		rc = member_wait_some(m, target, w);
	if (!rc)
		m->answers = target;
	return rc;
}

/* Those that earlier calls did not wait for: then the home has seen all messages. */
static int catch_up(struct nopin_member *m, const struct member_wait *w)
{
	int rc = hear(m, m->owed, w);

	if (!rc)
		m->owed = 0;
	return rc;
}

static int cancel(struct nopin_member *m, struct member_wait *w, int why)
{
	const struct sync_msg msg = {.op = SYNC_CANCEL};
	int rc = member_say(m, &msg);

	w->late = why;
	w->ends = false;
	w->p.until_ns = caller_now(&m->caller) + GRACE_MS * MS;
	return rc ? rc : hear(m, 1, w);
}

/* The home is to answer that and what was asked before. */
static int give_up(struct nopin_member *m, int why)
{
	const struct sync_msg msg = {.op = SYNC_GIVE_UP};
	int rc = member_say(m, &msg);

	m->owed = 2;
	return rc ? rc : why;
}

/* @number: of the message */
static int member_ask_home(struct nopin_member *m, const struct sync_msg *msg,
			   struct member_wait *w, uint64_t *number,
			   enum sync_result *result)
{
	int rc = catch_up(m, w);

	if (rc)
		return rc;
	rc = member_say(m, msg);
	*number = m->sent;
	if (!rc)
		rc = hear(m, 1, w);
	if (rc == ETIMEDOUT || rc == EINTR)
		rc = cancel(m, w, rc);
	if (rc == ETIMEDOUT)
		rc = give_up(m, w->late);
	if (rc)
		return rc;
	*result = (enum sync_result)__atomic_load_n(&m->mail->answer,
						    __ATOMIC_RELAXED);
	return *result > SYNC_PENDING && *result < SYNC_RESULT_NUM
		       ? 0
		       : caller_lost(&m->caller);
}

static int result_error(enum sync_result result, const struct member_wait *w)
{
	switch (result) {
	case SYNC_OK:
		return 0;
	case SYNC_LATE:
		return w->late ? w->late : EAGAIN;
	case SYNC_FULL:
		return EOVERFLOW;
	default:
		return EINVAL;
	}
}

/* --- calls ----------------------------------------------------------------------- */

static int run(struct nopin_member *m, struct sync_call *c,
	       struct sync_step step, struct member_wait *w)
{
	enum sync_result result;
	uint64_t number = 0;
	int64_t old = 0;
	int rc = m->caller.link.failed ? ENOTCONN : 0;

	while (!rc && step.kind != TODO_DONE) {
		if (step.kind == TODO_SWAP) {
			rc = swap(m, c->id, &step, &old);
			step = call_swapped(c, old);
		} else if (step.kind == TODO_ASK) {
			rc = member_ask_home(m, &step.msg, w, &number, &result);
			step = rc ? step : call_answered(c, result);
		} else {
			rc = confirm(m, number);
			step = call_confirmed(c);
		}
	}
	return rc ? rc : result_error(step.result, w);
}

static int call(struct nopin_member *m, enum call_kind kind, uint32_t id,
		uint64_t *value, struct member_wait *w)
{
	const enum sync_kind is = kind < CALL_PREPARE ? SYNC_SEM : SYNC_WAITQ;
	const uint32_t i = sync_index(id);
	struct sync_call c;
	int rc = caller_enter(&m->caller);

	if (rc)
		return rc;
	rc = EINVAL;
	m->signalled = false;
	if (m->guess && i < m->caller.peer.objects && id == sync_id(is, i)) {
		rc = run(m, &c, call_begin(&c, kind, id, *value, &m->guess[i]),
			 w);
		if (!rc)
			*value = c.value;
	}
	caller_leave(&m->caller);
	return rc;
}

static int call_timed(struct nopin_member *m, enum call_kind kind, uint32_t id,
		      uint64_t value, uint64_t timeout_ns, enum nopin_wait how)
{
	struct member_wait w = {
		.p = caller_patience(&m->caller, timeout_ns, how),
		.ends = true,
	};

	if ((unsigned)how > NOPIN_WAIT_FUTEX)
		return EINVAL;
	return call(m, kind, id, &value, &w);
}

/* As long as it takes. */
static int call_short(struct nopin_member *m, enum call_kind kind, uint32_t id,
		      uint64_t *value)
{
	struct member_wait w = {.p = {UINT64_MAX, NOPIN_WAIT_BLOCK}};

	return call(m, kind, id, value, &w);
}

int nopin_sem_wait(struct nopin_member *member, uint32_t sem,
		   uint64_t timeout_ns, enum nopin_wait how)
{
	return call_timed(member, CALL_SEM_WAIT, sem, 0, timeout_ns, how);
}

int nopin_sem_trywait(struct nopin_member *member, uint32_t sem)
{
	int rc = call_timed(member, CALL_SEM_TRY, sem, 0, 0, NOPIN_WAIT_BLOCK);

	return rc == ETIMEDOUT ? EAGAIN : rc;
}

int nopin_sem_post(struct nopin_member *member, uint32_t sem)
{
	uint64_t none = 0;

	return call_short(member, CALL_SEM_POST, sem, &none);
}

int nopin_waitq_prepare(struct nopin_member *member, uint32_t waitq,
			uint64_t *ticket)
{
	uint64_t wakes = 0;
	int rc = call_short(member, CALL_PREPARE, waitq, &wakes);

	if (!rc)
		*ticket = wakes;
	return rc;
}

int nopin_waitq_wait(struct nopin_member *member, uint32_t waitq,
		     uint64_t ticket, uint64_t timeout_ns, enum nopin_wait how)
{
	return call_timed(member, CALL_WAIT, waitq, ticket, timeout_ns, how);
}

int nopin_waitq_wake(struct nopin_member *member, uint32_t waitq, uint64_t num)
{
	return num ? call_short(member, CALL_WAKE, waitq, &num) : EINVAL;
}

/* If the home does not serve there is no room in its box, and it is to take the
 * member for dead. */
static void member_say_goodbye(struct nopin_member *m)
{
	const struct sync_msg msg = {.op = SYNC_LEAVE};
	const struct member_wait w = {.p = caller_patience(&m->caller,
							   GRACE_MS * MS,
							   NOPIN_WAIT_BLOCK)};

	if (catch_up(m, &w))
		link_fail(&m->caller.link);
	else if (!member_say(m, &msg))
		(void)member_settle(m);
}

int nopin_member_destroy(struct nopin_member *m)
{
	int rc = caller_enter(&m->caller);

	if (rc)
		return rc;
	if (m->guess && !m->caller.link.failed)
		member_say_goodbye(m);
	member_free(m);
	return 0;
}
