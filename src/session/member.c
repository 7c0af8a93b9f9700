/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* member.c: calls on semaphores and wait queues. sync_member.c says what is next;
 * this does it, on the member's queue pair, and waits.
 *
 * Who waits asks every now and then whether the home lives; the answer is the
 * connection's. A wait that is late is over when the home says so, which may be
 * that it was not. If it says nothing, as its thread does not serve, the member goes
 * without an answer: what it was granted, or will be, the home takes back. Both
 * answers are read before it asks again.
 */
#include "session/link.h"
#include "session/sync_member.h"

#include <errno.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)

enum {
	SPINS = 5000, /* an atomic is there before, as a rule */
	ALIVE_MS = 250,
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
 * @sent:	messages
 * @answers:	that came
 * @owed:	more of them that are of no interest
 * @guess:	what the words of objects were last
 * @signalled:	a signal is to end the call, if that may be
 * @busy:	a thread is in a call
 */
struct nopin_member {
	struct link link;
	struct ibv_context *context;
	struct nopin_counter *counter;
	struct mail *mail;
	struct ibv_mr *mr;
	struct nopin_card home;
	int64_t *guess;
	uint64_t sent, answers, owed;
	bool signalled, busy;
};

/* --- life ------------------------------------------------------------------------ */

static void member_free(struct nopin_member *m)
{
	if (m->mr)
		ibv_dereg_mr(m->mr);
	if (m->counter)
		nopin_counter_destroy(m->counter);
	free(m->mail);
	free(m->guess);
	free(m);
}

static int member_open(struct nopin_member *m)
{
	struct ibv_pd *pd = m->link.qp->pd;
	int rc = link_check(m->link.qp);

	if (!rc)
		rc = nopin_counter_create(pd, NULL, NULL, &m->counter);
	if (!rc)
		rc = ext_counter_reserve(m->counter);
	if (rc)
		return rc;
	m->mail = aligned_alloc(LINE, sizeof(*m->mail));
	if (!m->mail)
		return ENOMEM;
	memset(m->mail, 0, sizeof(*m->mail));
	m->mr = ibv_reg_mr(pd, m->mail, sizeof(*m->mail),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return m->mr ? 0 : errno;
}

int nopin_member_create(struct ibv_qp *qp, struct nopin_member **member,
			struct nopin_card *card)
{
	struct nopin_member *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return ENOMEM;
	m->link.qp = qp;
	m->context = qp->context;
	rc = member_open(m);
	if (rc) {
		member_free(m);
		return rc;
	}
	*card = (struct nopin_card){.mail = (uintptr_t)&m->mail->answer,
				    .mail_rkey = m->mr->rkey,
				    .objects = SYNC_BOX,
				    .counter = nopin_counter_id(m->counter)};
	*member = m;
	return 0;
}

static bool member_enter(struct nopin_member *m)
{
	return !__atomic_exchange_n(&m->busy, true, __ATOMIC_ACQUIRE);
}

static void member_leave(struct nopin_member *m)
{
	__atomic_store_n(&m->busy, false, __ATOMIC_RELEASE);
}

int nopin_member_start(struct nopin_member *m, const struct nopin_card *home)
{
	int64_t *guess;
	int rc = 0;

	if (in_child(m->link.qp->context))
		return ENODEV;
	if (!member_enter(m))
		return EBUSY;
	guess = calloc(MIN(home->objects, SYNC_OBJECTS_MAX), sizeof(*guess));
	if (m->guess || !guess) {
		rc = m->guess ? EINVAL : ENOMEM;
		free(guess);
	} else {
		m->guess = guess;
		m->home = *home;
		m->home.objects = MIN(home->objects, SYNC_OBJECTS_MAX);
	}
	member_leave(m);
	return rc;
}

/* --- steps ----------------------------------------------------------------------- */

static int member_lost(struct nopin_member *m)
{
	link_fail(&m->link);
	return ENOTCONN;
}

/* Until all that was posted is done. The sleeps are short: no value ends them. */
static int member_settle(struct nopin_member *m)
{
	for (unsigned n = 0; m->link.out && !m->link.failed; n++) {
		if (n > SPINS)
			m->signalled |=
				nopin_counter_wait(m->counter, UINT64_MAX, MS,
						   NOPIN_WAIT_FUTEX) == EINTR;
		link_reap(&m->link);
	}
	return m->link.failed ? ENOTCONN : 0;
}

static int swap(struct nopin_member *m, uint32_t id,
		const struct sync_step *step, int64_t *old)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = {.remote_addr = m->home.words +
					     (uint64_t)sync_index(id) * LINE,
			      .compare_add = (uint64_t)step->compare,
			      .swap = (uint64_t)step->swap,
			      .rkey = m->home.words_rkey}};
	int rc;

	if (link_atomic(&m->link, wr, &m->mail->old, m->mr->lkey))
		return member_lost(m);
	rc = member_settle(m);
	*old = (int64_t)__atomic_load_n(&m->mail->old, __ATOMIC_ACQUIRE);
	return rc;
}

static int confirm(struct nopin_member *m, uint64_t number)
{
	m->mail->confirmed = number;
	if (link_write(&m->link, &m->mail->confirmed, 8, m->mr->lkey,
		       m->home.mail + offsetof(struct box, confirmed),
		       m->home.mail_rkey, 0))
		return member_lost(m);
	return member_settle(m);
}

/* Completions of earlier ones may not have been taken: of some there is room for. */
static int member_say(struct nopin_member *m, const struct sync_msg *msg)
{
	const unsigned i = ++m->sent % SYNC_BOX;

	m->mail->msg[i] = *msg;
	link_reap(&m->link);
	if (m->link.out + 2 > LINK_DEPTH)
		(void)member_settle(m);
	if (m->link.failed ||
	    link_write(&m->link, &m->mail->msg[i], sizeof(*msg), m->mr->lkey,
		       m->home.mail + i * sizeof(*msg), m->home.mail_rkey,
		       m->home.counter) ||
	    link_write(&m->link, NULL, 0, 0, 0, 0, m->home.bell))
		return member_lost(m);
	return 0;
}

/**
 * struct patience - Of a call.
 * @ends:	a signal ends it
 * @late:	what it waits for was cancelled, for this reason; or 0
 */
struct patience {
	uint64_t until_ns;
	enum nopin_wait how;
	bool ends;
	int late;
};

/* One stretch of waiting for answer number @target. */
static int member_wait_some(struct nopin_member *m, uint64_t target,
			    const struct patience *p)
{
	const uint64_t now = ext_now(m->context);
	const uint64_t left = p->until_ns > now ? p->until_ns - now : 0;
	int rc;

	if (!left) {
		/* who never waits is to find out, too, that nobody is there */
		rc = link_probe(&m->link);
		return rc ? rc : ETIMEDOUT;
	}
	if (p->ends && m->signalled)
		return EINTR;
	rc = nopin_counter_wait(m->counter, target, MIN(left, ALIVE_MS * MS),
				p->how);
	if (rc == EINTR && !p->ends)
		rc = 0;
	return rc == ETIMEDOUT ? link_probe(&m->link) : rc;
}

/* The next @num answers. */
static int hear(struct nopin_member *m, uint64_t num, const struct patience *p)
{
	const uint64_t *word = nopin_counter_word(m->counter);
	const uint64_t target = m->answers + num;
	int rc = 0;

	while (!rc && __atomic_load_n(word, __ATOMIC_ACQUIRE) < target)
		rc = member_wait_some(m, target, p);
	if (!rc)
		m->answers = target;
	return rc;
}

/* Those that earlier calls did not wait for: then the home has seen all messages. */
static int catch_up(struct nopin_member *m, const struct patience *p)
{
	int rc = hear(m, m->owed, p);

	if (!rc)
		m->owed = 0;
	return rc;
}

static int cancel(struct nopin_member *m, struct patience *p, int why)
{
	const struct sync_msg msg = {.op = SYNC_CANCEL};
	int rc = member_say(m, &msg);

	p->late = why;
	p->ends = false;
	p->until_ns = ext_now(m->context) + GRACE_MS * MS;
	return rc ? rc : hear(m, 1, p);
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
			   struct patience *p, uint64_t *number,
			   enum sync_result *result)
{
	int rc = catch_up(m, p);

	if (rc)
		return rc;
	rc = member_say(m, msg);
	*number = m->sent;
	if (!rc)
		rc = hear(m, 1, p);
	if (rc == ETIMEDOUT || rc == EINTR)
		rc = cancel(m, p, rc);
	if (rc == ETIMEDOUT)
		rc = give_up(m, p->late);
	if (rc)
		return rc;
	*result = (enum sync_result)__atomic_load_n(&m->mail->answer,
						    __ATOMIC_RELAXED);
	return *result > SYNC_PENDING && *result < SYNC_RESULT_NUM
		       ? 0
		       : member_lost(m);
}

static int result_error(enum sync_result result, const struct patience *p)
{
	switch (result) {
	case SYNC_OK:
		return 0;
	case SYNC_LATE:
		return p->late ? p->late : EAGAIN;
	case SYNC_FULL:
		return EOVERFLOW;
	default:
		return EINVAL;
	}
}

/* --- calls ----------------------------------------------------------------------- */

static int run(struct nopin_member *m, struct sync_call *c,
	       struct sync_step step, struct patience *p)
{
	enum sync_result result;
	uint64_t number = 0;
	int64_t old = 0;
	int rc = m->link.failed ? ENOTCONN : 0;

	while (!rc && step.kind != TODO_DONE) {
		if (step.kind == TODO_SWAP) {
			rc = swap(m, c->id, &step, &old);
			step = call_swapped(c, old);
		} else if (step.kind == TODO_ASK) {
			rc = member_ask_home(m, &step.msg, p, &number, &result);
			step = rc ? step : call_answered(c, result);
		} else {
			rc = confirm(m, number);
			step = call_confirmed(c);
		}
	}
	return rc ? rc : result_error(step.result, p);
}

static int call(struct nopin_member *m, enum call_kind kind, uint32_t id,
		uint64_t *value, struct patience *p)
{
	const enum sync_kind is = kind < CALL_PREPARE ? SYNC_SEM : SYNC_WAITQ;
	const uint32_t i = sync_index(id);
	struct sync_call c;
	int rc = EINVAL;

	if (in_child(m->link.qp->context))
		return ENODEV;
	if (!member_enter(m))
		return EBUSY;
	m->signalled = false;
	if (m->guess && i < m->home.objects && id == sync_id(is, i)) {
		rc = run(m, &c, call_begin(&c, kind, id, *value, &m->guess[i]),
			 p);
		if (!rc)
			*value = c.value;
	}
	member_leave(m);
	return rc;
}

static int call_timed(struct nopin_member *m, enum call_kind kind, uint32_t id,
		      uint64_t value, uint64_t timeout_ns, enum nopin_wait how)
{
	const uint64_t now = ext_now(m->context);
	struct patience p = {.until_ns = timeout_ns < UINT64_MAX - now
						 ? now + timeout_ns
						 : UINT64_MAX,
			     .how = how,
			     .ends = true};

	if ((unsigned)how > NOPIN_WAIT_FUTEX)
		return EINVAL;
	return call(m, kind, id, &value, &p);
}

/* As long as it takes. */
static int call_short(struct nopin_member *m, enum call_kind kind, uint32_t id,
		      uint64_t value)
{
	struct patience p = {UINT64_MAX, NOPIN_WAIT_BLOCK, false, 0};

	return call(m, kind, id, &value, &p);
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
	return call_short(member, CALL_SEM_POST, sem, 0);
}

int nopin_waitq_prepare(struct nopin_member *member, uint32_t waitq,
			uint64_t *ticket)
{
	struct patience p = {UINT64_MAX, NOPIN_WAIT_BLOCK, false, 0};
	uint64_t wakes = 0;
	int rc = call(member, CALL_PREPARE, waitq, &wakes, &p);

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
	return num ? call_short(member, CALL_WAKE, waitq, num) : EINVAL;
}

/* If the home does not serve there is no room in its box, and it is to take the
 * member for dead. */
static void member_say_goodbye(struct nopin_member *m)
{
	const struct sync_msg msg = {.op = SYNC_LEAVE};
	const struct patience p = {ext_now(m->context) + GRACE_MS * MS,
				   NOPIN_WAIT_BLOCK, false, 0};

	if (catch_up(m, &p))
		link_fail(&m->link);
	else if (!member_say(m, &msg))
		(void)member_settle(m);
}

int nopin_member_destroy(struct nopin_member *m)
{
	if (in_child(m->link.qp->context))
		return ENODEV;
	if (!member_enter(m))
		return EBUSY;
	if (m->guess && !m->link.failed)
		member_say_goodbye(m);
	member_free(m);
	return 0;
}
