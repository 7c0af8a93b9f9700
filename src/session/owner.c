/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owner.c: the owner of memory that others write to: it makes ranges ready that
 * users ask for, and tells all users what is ready no longer. news.c decides
 * what is said and in which order; this moves it, and looks after the users' lives
 * as home.c does.
 *
 * Upcalls raise the bell as requests do, so that one wait is for both. A thread that
 * takes an upcall holds the lock until it is in all rows; one that answers holds it, too.
 * So what a request made ready and was lost since stands behind its answer, or is taken
 * later. Pages are waited for without the lock.
 * What a user wrote may change at any time: it is copied, then looked at.
 */
#include "base/range.h"
#include "session/news.h"
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>

enum {
	USERS = 64,
	NS_PER_MS = 1000000,
	UPCALLS = 1024,
	TRIES = 2,
};

/** struct area - A region. @mr: NULL: of nobody. addr..last: what it has. */
struct area {
	struct ibv_mr *mr;
	uint64_t addr, last;
	uint32_t lkey;
};

/**
 * struct user - Besides its seat, of which theirs.mail is where its row is, and
 * theirs.words the bytes of its blocks.
 * @taken:	requests so far
 * @left:	it is to be none any more
 */
struct user {
	struct news_row row;
	uint64_t taken;
	bool left;
};

/**
 * struct nopin_owner
 * @ask:	of each user; then its row, in one piece of memory
 * @own:	of the rows, no peer's
 */
struct nopin_owner {
	struct session session;
	struct nopin_upcalls *upcalls;
	struct user *user;
	struct ask *ask;
	struct news *news;
	struct ibv_mr *own;
	struct area *area;
	uint32_t areas;
};

/** struct job - A request of user @i, and how far it is. addr..last: what was named. */
struct job {
	bool begun;
	uint32_t i, area;
	uint64_t addr, last, from, to;
};

/* --- making one ------------------------------------------------------------------ */

static int owner_memory_open(struct nopin_owner *o)
{
	const size_t n = o->session.seats, row = NEWS * sizeof(struct news);

	o->user = calloc(n, sizeof(*o->user));
	o->ask = aligned_alloc(LINE, n * (LINE + row));
	if (!o->user || !o->ask)
		return ENOMEM;
	memset(o->ask, 0, n * (LINE + row));
	o->news = (struct news *)(o->ask + n);
	o->own = ibv_reg_mr(o->session.pd, o->news, n * row,
			    IBV_ACCESS_LOCAL_WRITE);
	return o->own ? 0 : errno;
}

/* The queue of upcalls is not used by any region. */
static void owner_free(struct nopin_owner *o)
{
	session_close(&o->session);
	if (o->own)
		ibv_dereg_mr(o->own);
	free(o->area);
	free(o->ask);
	free(o->user);
	free(o);
}

int nopin_owner_create(struct ibv_pd *pd, const struct nopin_owner_attr *attr,
		       struct nopin_owner **owner)
{
	const struct nopin_owner_attr a =
		attr ? *attr : (struct nopin_owner_attr){.users = 0};
	struct nopin_owner *o;
	int rc;

	if (a.users > SYNC_MEMBERS_MAX || a.reserved)
		return EINVAL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return ENOMEM;
	rc = session_open(&o->session, pd, a.users ? a.users : USERS,
			  a.alive_ns);
	if (!rc)
		rc = owner_memory_open(o);
	if (!rc)
		rc = nopin_upcalls_open(pd->context, UPCALLS, &o->upcalls);
	if (rc) {
		owner_free(o);
		return rc;
	}
	ext_upcalls_count(o->upcalls, o->session.bell);
	*owner = o;
	return 0;
}

int nopin_owner_destroy(struct nopin_owner *o)
{
	int rc;

	if (in_child(o->session.pd->context))
		return ENODEV;
	pthread_mutex_lock(&o->session.lock);
	rc = o->session.serving ? EBUSY : nopin_upcalls_close(o->upcalls);
	if (!rc)
		session_finish(&o->session);
	pthread_mutex_unlock(&o->session.lock);
	if (!rc)
		owner_free(o);
	return rc;
}

/* --- telling --------------------------------------------------------------------- */

/* As much as may be under way. */
static void push(struct nopin_owner *o, uint32_t i)
{
	struct seat *s = &o->session.seat[i];
	struct news_row *row = &o->user[i].row;
	uint32_t at, num;

	link_reap(&s->link);
	while (!s->link.failed && s->link.out < LINK_DEPTH &&
	       row_send(row, &at, &num))
		seat_say(&o->session, s, &row->slot[at],
			 num * (uint32_t)sizeof(struct news), o->own->lkey,
			 s->theirs.mail + at * sizeof(struct news));
}

static void owner_lost(struct nopin_owner *o, uint64_t addr, uint64_t last)
{
	for (uint32_t i = 0; i < o->session.seats; i++)
		if (seat_taken(&o->session.seat[i]))
			row_lost(&o->user[i].row, addr, last);
}

static void take_upcalls(struct nopin_owner *o)
{
	struct nopin_upcall u;

	while (ext_upcalls_try(o->upcalls, &u))
		owner_lost(o, u.addr, sat_add(u.addr, u.length - 1));
}

/* --- regions ----------------------------------------------------------------------- */

/* Lock held. A place for one more, or NULL. */
static struct area *area_room(struct nopin_owner *o)
{
	struct area *all;

	for (uint32_t i = 0; i < o->areas; i++)
		if (!o->area[i].mr)
			return &o->area[i];
	all = realloc(o->area, (o->areas + 1) * sizeof(*all));
	if (!all)
		return NULL;
	o->area = all;
	all[o->areas] = (struct area){.mr = NULL};
	return &all[o->areas++];
}

/* A new region is not ready, even if one that was there before was. */
static struct ibv_mr *reg(struct nopin_owner *o,
			  const struct nopin_reg_attr *attr)
{
	const uint64_t addr = (uintptr_t)attr->addr;
	struct area *a = area_room(o);
	struct ibv_mr *mr;

	if (!a) {
		errno = ENOMEM;
		return NULL;
	}
	mr = nopin_reg(o->session.pd, attr, sizeof(*attr));
	if (!mr)
		return NULL;
	*a = (struct area){mr, addr, addr + (attr->length - 1), mr->lkey};
	owner_lost(o, a->addr, a->last);
	ext_counter_raise(o->session.bell);
	return mr;
}

struct ibv_mr *nopin_owner_reg(struct nopin_owner *owner,
			       const struct nopin_reg_attr *attr, size_t size)
{
	struct nopin_reg_attr a = {.weight = 0};
	struct ibv_mr *mr;

	if (in_child(owner->session.pd->context)) {
		errno = ENODEV;
		return NULL;
	}
	if (size <= sizeof(a))
		memcpy(&a, attr, size);
	if (!size || size > sizeof(a) || a.upcalls ||
	    !(a.access & IBV_ACCESS_REMOTE_WRITE) ||
	    a.access & IBV_ACCESS_ZERO_BASED) {
		errno = EINVAL;
		return NULL;
	}
	a.upcalls = owner->upcalls;
	pthread_mutex_lock(&owner->session.lock);
	mr = reg(owner, &a);
	pthread_mutex_unlock(&owner->session.lock);
	return mr;
}

static int dereg(struct nopin_owner *o, struct ibv_mr *mr)
{
	struct area *a = o->area;
	int rc;

	while (a < o->area + o->areas && a->mr != mr)
		a++;
	if (a == o->area + o->areas)
		return EINVAL;
	rc = ibv_dereg_mr(mr);
	if (rc)
		return rc;
	a->mr = NULL;
	owner_lost(o, a->addr, a->last);
	ext_counter_raise(o->session.bell);
	return 0;
}

int nopin_owner_dereg(struct nopin_owner *owner, struct ibv_mr *mr)
{
	int rc;

	if (in_child(owner->session.pd->context))
		return ENODEV;
	if (!mr)
		return EINVAL;
	pthread_mutex_lock(&owner->session.lock);
	rc = dereg(owner, mr);
	pthread_mutex_unlock(&owner->session.lock);
	return rc;
}

/* --- users ------------------------------------------------------------------------ */

static int owner_join(struct nopin_owner *o, struct ibv_qp *qp,
		      const struct nopin_card *theirs, struct nopin_card *ours)
{
	const uint32_t i = session_seat(&o->session);
	int rc;

	if (i == o->session.seats)
		return EUSERS;
	o->ask[i] = (struct ask){.op = ASK_NONE};
	rc = session_join(&o->session, i, qp, theirs, &o->ask[i],
			  sizeof(o->ask[i]), ours);
	if (rc)
		return rc;
	o->user[i] = (struct user){.taken = 0};
	row_init(&o->user[i].row, &o->news[(size_t)i * NEWS], NEWS);
	return 0;
}

int nopin_owner_join(struct nopin_owner *owner, struct ibv_qp *qp,
		     const struct nopin_card *theirs, struct nopin_card *ours)
{
	int rc = link_check(qp);

	if (rc || qp->pd != owner->session.pd || theirs->objects != NEWS ||
	    !is_block(theirs->words))
		return rc ? rc : EINVAL;
	pthread_mutex_lock(&owner->session.lock);
	rc = owner_join(owner, qp, theirs, ours);
	pthread_mutex_unlock(&owner->session.lock);
	return rc;
}

/* --- requests ---------------------------------------------------------------------- */

/* Return: false: no user asks for that. */
static bool begin(struct nopin_owner *o, uint32_t i, struct job *job)
{
	struct seat *s = &o->session.seat[i];
	struct user *u = &o->user[i];
	struct ask a;

	memcpy(&a, &o->ask[i], sizeof(a));
	u->taken++;
	row_consumed(&u->row, a.consumed);
	if (a.op == ASK_LEAVE) {
		u->left = true;
		return row_answer(&u->row, RESULT_READY);
	}
	if (a.op != ASK_READY || a.addr > a.last ||
	    a.last - a.addr >= READY_MAX)
		return false;
	*job = (struct job){.begun = true,
			    .i = i,
			    .addr = a.addr,
			    .last = a.last,
			    .from = a.addr & ~(s->theirs.words - 1),
			    .to = a.last | (s->theirs.words - 1)};
	row_ask(&u->row, job->from, job->to);
	s->busy = true;
	return true;
}

/* Return: false: no user does that. */
static bool owner_take(struct nopin_owner *o, uint32_t i, struct job *job)
{
	const struct seat *s = &o->session.seat[i];
	struct user *u = &o->user[i];
	const uint64_t num = seat_rung(s);

	row_consumed(&u->row,
		     __atomic_load_n(&o->ask[i].consumed, __ATOMIC_RELAXED));
	if (num == u->taken)
		return true;
	return num - u->taken == 1 && !s->busy && !u->left && begin(o, i, job);
}

static bool in_region(struct nopin_owner *o, const struct job *job)
{
	bool found = false;

	pthread_mutex_lock(&o->session.lock);
	for (uint32_t i = 0; i < o->areas && !found; i++)
		found = o->area[i].mr && o->area[i].addr <= job->addr &&
			job->last <= o->area[i].last;
	pthread_mutex_unlock(&o->session.lock);
	return found;
}

/* The next region that has some of the blocks. */
static bool next_part(struct nopin_owner *o, struct job *job,
		      struct ibv_sge *sge)
{
	bool found = false;

	pthread_mutex_lock(&o->session.lock);
	while (job->area < o->areas && !found) {
		const struct area *a = &o->area[job->area++];
		const uint64_t from = MAX(a->addr, job->from);
		const uint64_t to = MIN(a->last, job->to);

		found = a->mr && from <= to;
		*sge = (struct ibv_sge){from, (uint32_t)(to - from + 1),
					a->lkey};
	}
	pthread_mutex_unlock(&o->session.lock);
	return found;
}

static enum news_result make_ready(struct nopin_owner *o, struct job *job)
{
	struct ibv_sge sge;

	if (!in_region(o, job))
		return RESULT_NO_REGION;
	job->area = 0;
	while (next_part(o, job, &sge))
		if (ibv_advise_mr(o->session.pd,
				  IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				  IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1))
			return RESULT_FAILED;
	return RESULT_READY;
}

/* Was some of it found absent meanwhile? That was before it was made ready, as a
 * rule: another look shows. */
static bool again(struct nopin_owner *o, struct job *job)
{
	struct news_row *row = &o->user[job->i].row;
	bool doubt;

	pthread_mutex_lock(&o->session.lock);
	take_upcalls(o);
	doubt = row->doubt;
	if (doubt)
		row_ask(row, job->from, job->to);
	pthread_mutex_unlock(&o->session.lock);
	return doubt;
}

static void work(struct nopin_owner *o, struct job *job)
{
	enum news_result result = make_ready(o, job);
	struct seat *s = &o->session.seat[job->i];

	for (int i = 1; i < TRIES && result == RESULT_READY && again(o, job);
	     i++)
		result = make_ready(o, job);
	pthread_mutex_lock(&o->session.lock);
	s->busy = false;
	if (!s->gone && !row_answer(&o->user[job->i].row, result))
		seat_expel(s, NOPIN_GONE_LIED);
	if (!s->gone)
		push(o, job->i);
	pthread_mutex_unlock(&o->session.lock);
}

/* --- serving ----------------------------------------------------------------------- */

static void owner_look_at(struct nopin_owner *o, uint32_t i, struct job *job,
			  uint64_t now)
{
	struct seat *s = &o->session.seat[i];
	const struct user *u = &o->user[i];

	if (!seat_taken(s))
		return;
	if (!job->begun && !owner_take(o, i, job)) {
		seat_expel(s, NOPIN_GONE_LIED);
		return;
	}
	push(o, i);
	seat_beat(&o->session, s, now);
	if (s->link.failed ||
	    (u->left && !s->link.out && u->row.sent == u->row.written))
		seat_expel(s, u->left ? NOPIN_GONE_LEFT : NOPIN_GONE_DIED);
}

static bool owner_report(struct nopin_owner *o, struct nopin_owner_event *event)
{
	struct seat was;
	const uint32_t i = session_report(&o->session, &was);

	if (i == o->session.seats)
		return false;
	*event = (struct nopin_owner_event){was.link.qp, i, was.gone};
	return true;
}

/* Return: EAGAIN: there is a job, or else nothing to do; what the program is told. */
static int owner_look(struct nopin_owner *o, struct nopin_owner_event *event,
		      struct job *job)
{
	const uint32_t first = o->session.first, num = o->session.seats;
	const uint64_t now = session_now(&o->session);

	*job = (struct job){.begun = false};
	if (o->session.stop)
		return ECANCELED;
	if (owner_report(o, event))
		return 0;
	take_upcalls(o);
	for (uint32_t i = 0; i < num; i++)
		owner_look_at(o, (first + i) % num, job, now);
	if (job->begun) {
		o->session.first = (job->i + 1) % num;
		return EAGAIN;
	}
	return owner_report(o, event) ? 0 : EAGAIN;
}

/* What did not fit into the queue of sends goes as soon as there is room, which
 * raises nothing. */
static uint64_t owner_patience(struct nopin_owner *o)
{
	const uint64_t most = o->session.alive_ns / 4;
	bool left = false;

	pthread_mutex_lock(&o->session.lock);
	for (uint32_t i = 0; i < o->session.seats; i++) {
		const struct user *u = &o->user[i];

		left |= seat_taken(&o->session.seat[i]) &&
			(u->row.sent < u->row.written || u->left);
	}
	pthread_mutex_unlock(&o->session.lock);
	return left ? MIN(most, (uint64_t)NS_PER_MS) : most;
}

static int owner_serve(struct nopin_owner *o, enum nopin_wait how,
		       struct nopin_owner_event *event)
{
	struct session *s = &o->session;
	struct job job;
	int rc;

	for (;;) {
		const uint64_t rung = session_rung(s);

		pthread_mutex_lock(&s->lock);
		rc = owner_look(o, event, &job);
		pthread_mutex_unlock(&s->lock);
		if (rc != EAGAIN)
			return rc;
		if (job.begun) {
			work(o, &job);
			continue;
		}
		rc = session_wait(s, rung, owner_patience(o), how);
		if (rc)
			return rc;
	}
}

int nopin_owner_serve(struct nopin_owner *owner, enum nopin_wait how,
		      struct nopin_owner_event *event)
{
	int rc = session_enter(&owner->session, UINT32_MAX);

	if (rc)
		return rc;
	rc = owner_serve(owner, how, event);
	session_leave(&owner->session);
	return rc;
}

int nopin_owner_stop(struct nopin_owner *owner)
{
	return session_stop(&owner->session);
}
