/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owner.c: the owner of memory that others write to: it makes ranges ready that
 * users ask for, and tells all users what is ready no longer. news.c decides
 * what is said and in which order; this moves it, and looks after the users' lives
 * as home.c does.
 *
 * Upcalls raise the bell as requests do, so that one wait is for both. Whoever takes
 * an upcall holds the lock until it is in all rows; whoever answers holds it, too. So
 * what a request made ready and was lost since stands behind its answer, or is taken
 * later. Pages are waited for without the lock.
 * What a user wrote may change at any time: it is copied, then looked at.
 */
#include "base/page.h"
#include "base/range.h"
#include "session/link.h"

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
 * struct seat - Of a user.
 * @theirs.mail: where its row is, theirs.words: bytes of its blocks
 * @taken:	requests so far
 * @beat_ns:	when something was sent last
 * @gone:	not 0: to be reported
 * @busy:	a thread works at its request
 */
struct seat {
	struct link link;
	struct nopin_counter *counter;
	struct ibv_mr *mr;
	struct nopin_card theirs;
	struct news_row row;
	uint64_t taken, beat_ns;
	enum nopin_gone gone;
	bool busy, left;
};

/**
 * struct nopin_owner
 * @ask:	of each user; then its row, in one piece of memory
 * @own:	of the rows, no peer's
 * @first:	whom to look at first
 * @serving:	threads
 */
struct nopin_owner {
	struct ibv_context *context;
	struct ibv_pd *pd;
	pthread_mutex_t lock;
	struct nopin_counter *bell;
	struct nopin_upcalls *upcalls;
	struct seat *seat;
	struct ask *ask;
	struct news *news;
	struct ibv_mr *own;
	struct area *area;
	uint64_t alive_ns;
	uint32_t users, areas, first, serving;
	bool stop;
};

/** struct job - A request, and how far it is. addr..last: what the user named. */
struct job {
	struct seat *s;
	uint64_t addr, last, from, to;
	uint32_t area;
};

/* --- making one ------------------------------------------------------------------ */

static int owner_memory_open(struct nopin_owner *o)
{
	const size_t n = o->users, row = NEWS * sizeof(struct news);

	o->seat = calloc(n, sizeof(*o->seat));
	o->ask = aligned_alloc(LINE, n * (LINE + row));
	if (!o->seat || !o->ask)
		return ENOMEM;
	memset(o->ask, 0, n * (LINE + row));
	o->news = (struct news *)(o->ask + n);
	o->own = ibv_reg_mr(o->pd, o->news, n * row, IBV_ACCESS_LOCAL_WRITE);
	return o->own ? 0 : errno;
}

static void owner_seat_free(struct seat *s)
{
	if (s->mr)
		ibv_dereg_mr(s->mr);
	if (s->counter)
		nopin_counter_destroy(s->counter);
	*s = (struct seat){.mr = NULL};
}

/* The queue of upcalls is not used by any region. */
static void owner_free(struct nopin_owner *o)
{
	for (uint32_t i = 0; o->seat && i < o->users; i++)
		owner_seat_free(&o->seat[i]);
	if (o->own)
		ibv_dereg_mr(o->own);
	if (o->bell)
		nopin_counter_destroy(o->bell);
	pthread_mutex_destroy(&o->lock);
	free(o->area);
	free(o->ask);
	free(o->seat);
	free(o);
}

static int owner_attr_take(struct nopin_owner *o,
			   const struct nopin_owner_attr *attr)
{
	static const struct nopin_owner_attr none;
	const struct nopin_owner_attr *a = attr ? attr : &none;

	if (a->users > SYNC_MEMBERS_MAX || a->reserved)
		return EINVAL;
	o->users = a->users ? a->users : USERS;
	o->alive_ns = link_alive_ns(a->alive_ns);
	return 0;
}

int nopin_owner_create(struct ibv_pd *pd, const struct nopin_owner_attr *attr,
		       struct nopin_owner **owner)
{
	struct nopin_owner *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return ENOMEM;
	o->pd = pd;
	o->context = pd->context;
	pthread_mutex_init(&o->lock, NULL);
	rc = owner_attr_take(o, attr);
	if (!rc)
		rc = nopin_counter_create(pd, NULL, NULL, &o->bell);
	if (!rc)
		rc = ext_counter_reserve(o->bell);
	if (!rc)
		rc = owner_memory_open(o);
	if (!rc)
		rc = nopin_upcalls_open(pd->context, UPCALLS, &o->upcalls);
	if (rc) {
		owner_free(o);
		return rc;
	}
	ext_upcalls_count(o->upcalls, o->bell);
	*owner = o;
	return 0;
}

int nopin_owner_destroy(struct nopin_owner *o)
{
	int rc;

	if (in_child(o->pd->context))
		return ENODEV;
	pthread_mutex_lock(&o->lock);
	rc = o->serving ? EBUSY : nopin_upcalls_close(o->upcalls);
	for (uint32_t i = 0; !rc && i < o->users; i++)
		if (o->seat[i].link.qp && !o->seat[i].gone)
			link_fail(&o->seat[i].link);
	pthread_mutex_unlock(&o->lock);
	if (!rc)
		owner_free(o);
	return rc;
}

/* --- telling --------------------------------------------------------------------- */

/* As much as may be under way. */
static void push(struct nopin_owner *o, struct seat *s)
{
	uint32_t at, num;

	link_reap(&s->link);
	while (!s->link.failed && s->link.out < LINK_DEPTH &&
	       row_send(&s->row, &at, &num)) {
		if (link_write(&s->link, &s->row.slot[at],
			       num * (uint32_t)sizeof(struct news),
			       o->own->lkey,
			       s->theirs.mail + at * sizeof(struct news),
			       s->theirs.mail_rkey, s->theirs.counter))
			s->link.failed = true;
		s->beat_ns = ext_now(o->context);
	}
}

static bool is_user(const struct seat *s)
{
	return s->link.qp && !s->gone;
}

static void owner_lost(struct nopin_owner *o, uint64_t addr, uint64_t last)
{
	for (uint32_t i = 0; i < o->users; i++)
		if (is_user(&o->seat[i]))
			row_lost(&o->seat[i].row, addr, last);
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

/* What is new is not ready, whatever was there before. */
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
	mr = nopin_reg(o->pd, attr, sizeof(*attr));
	if (!mr)
		return NULL;
	*a = (struct area){mr, addr, addr + (attr->length - 1), mr->lkey};
	owner_lost(o, a->addr, a->last);
	ext_counter_raise(o->bell);
	return mr;
}

struct ibv_mr *nopin_owner_reg(struct nopin_owner *owner,
			       const struct nopin_reg_attr *attr, size_t size)
{
	struct nopin_reg_attr a = {.weight = 0};
	struct ibv_mr *mr;

	if (in_child(owner->pd->context)) {
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
	pthread_mutex_lock(&owner->lock);
	mr = reg(owner, &a);
	pthread_mutex_unlock(&owner->lock);
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
	ext_counter_raise(o->bell);
	return 0;
}

int nopin_owner_dereg(struct nopin_owner *owner, struct ibv_mr *mr)
{
	int rc;

	if (in_child(owner->pd->context))
		return ENODEV;
	if (!mr)
		return EINVAL;
	pthread_mutex_lock(&owner->lock);
	rc = dereg(owner, mr);
	pthread_mutex_unlock(&owner->lock);
	return rc;
}

/* --- users ------------------------------------------------------------------------ */

static int seat_take(struct nopin_owner *o, uint32_t i, struct ibv_qp *qp,
		     const struct nopin_card *theirs)
{
	struct seat *s = &o->seat[i];
	int rc = nopin_counter_create(o->pd, NULL, NULL, &s->counter);

	if (rc)
		return rc;
	o->ask[i] = (struct ask){.op = ASK_NONE};
	s->mr = ibv_reg_mr(o->pd, &o->ask[i], sizeof(o->ask[i]),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!s->mr) {
		owner_seat_free(s);
		return ENOMEM;
	}
	s->theirs = *theirs;
	s->beat_ns = ext_now(o->context);
	row_init(&s->row, &o->news[(size_t)i * NEWS], NEWS);
	s->link.qp = qp;
	return 0;
}

static int owner_join(struct nopin_owner *o, struct ibv_qp *qp,
		      const struct nopin_card *theirs, struct nopin_card *ours)
{
	uint32_t i = 0;
	int rc;

	while (i < o->users && o->seat[i].link.qp)
		i++;
	if (i == o->users)
		return EUSERS;
	rc = seat_take(o, i, qp, theirs);
	if (!rc)
		*ours = (struct nopin_card){
			.mail = (uintptr_t)&o->ask[i],
			.mail_rkey = o->seat[i].mr->rkey,
			.counter = nopin_counter_id(o->seat[i].counter),
			.bell = nopin_counter_id(o->bell),
			.index = i};
	return rc;
}

static bool is_block(uint64_t bytes)
{
	return bytes >= PAGE_BYTES && bytes <= READY_MAX &&
	       !(bytes & (bytes - 1));
}

int nopin_owner_join(struct nopin_owner *owner, struct ibv_qp *qp,
		     const struct nopin_card *theirs, struct nopin_card *ours)
{
	int rc = link_check(qp);

	if (rc || qp->pd != owner->pd || theirs->objects != NEWS ||
	    !is_block(theirs->words))
		return rc ? rc : EINVAL;
	pthread_mutex_lock(&owner->lock);
	rc = owner_join(owner, qp, theirs, ours);
	pthread_mutex_unlock(&owner->lock);
	return rc;
}

static void owner_expel(struct seat *s, enum nopin_gone why)
{
	link_fail(&s->link);
	s->gone = why;
}

/* --- requests ---------------------------------------------------------------------- */

/* Of its user's request. Return: false: no user asks for that. */
static bool begin(struct nopin_owner *o, struct seat *s, struct job *job)
{
	struct ask a;

	memcpy(&a, &o->ask[s - o->seat], sizeof(a));
	s->taken++;
	row_consumed(&s->row, a.consumed);
	if (a.op == ASK_LEAVE) {
		s->left = true;
		return row_answer(&s->row, RESULT_READY);
	}
	if (a.op != ASK_READY || a.addr > a.last ||
	    a.last - a.addr >= READY_MAX)
		return false;
	*job = (struct job){.s = s,
			    .addr = a.addr,
			    .last = a.last,
			    .from = a.addr & ~(s->theirs.words - 1),
			    .to = a.last | (s->theirs.words - 1)};
	row_ask(&s->row, job->from, job->to);
	s->busy = true;
	return true;
}

/* Return: false: no user does that. */
static bool owner_take(struct nopin_owner *o, struct seat *s, struct job *job)
{
	const uint64_t num = __atomic_load_n(nopin_counter_word(s->counter),
					     __ATOMIC_ACQUIRE);

	row_consumed(&s->row, __atomic_load_n(&o->ask[s - o->seat].consumed,
					      __ATOMIC_RELAXED));
	if (num == s->taken)
		return true;
	return num - s->taken == 1 && !s->busy && !s->left && begin(o, s, job);
}

static bool in_region(struct nopin_owner *o, const struct job *job)
{
	bool found = false;

	pthread_mutex_lock(&o->lock);
	for (uint32_t i = 0; i < o->areas && !found; i++)
		found = o->area[i].mr && o->area[i].addr <= job->addr &&
			job->last <= o->area[i].last;
	pthread_mutex_unlock(&o->lock);
	return found;
}

/* The next region that has some of the blocks. */
static bool next_part(struct nopin_owner *o, struct job *job,
		      struct ibv_sge *sge)
{
	bool found = false;

	pthread_mutex_lock(&o->lock);
	while (job->area < o->areas && !found) {
		const struct area *a = &o->area[job->area++];
		const uint64_t from = MAX(a->addr, job->from);
		const uint64_t to = MIN(a->last, job->to);

		found = a->mr && from <= to;
		*sge = (struct ibv_sge){from, (uint32_t)(to - from + 1),
					a->lkey};
	}
	pthread_mutex_unlock(&o->lock);
	return found;
}

static enum news_result make_ready(struct nopin_owner *o, struct job *job)
{
	struct ibv_sge sge;

	if (!in_region(o, job))
		return RESULT_NO_REGION;
	job->area = 0;
	while (next_part(o, job, &sge))
		if (ibv_advise_mr(o->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				  IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1))
			return RESULT_FAILED;
	return RESULT_READY;
}

/* Was some of it found absent meanwhile? That was before it was made ready, as a
 * rule: another look shows. */
static bool again(struct nopin_owner *o, struct job *job)
{
	struct seat *s = job->s;
	bool doubt;

	pthread_mutex_lock(&o->lock);
	take_upcalls(o);
	doubt = s->row.doubt;
	if (doubt)
		row_ask(&s->row, job->from, job->to);
	pthread_mutex_unlock(&o->lock);
	return doubt;
}

static void work(struct nopin_owner *o, struct job *job)
{
	enum news_result result = make_ready(o, job);
	struct seat *s = job->s;

	for (int i = 1; i < TRIES && result == RESULT_READY && again(o, job);
	     i++)
		result = make_ready(o, job);
	pthread_mutex_lock(&o->lock);
	s->busy = false;
	if (!s->gone && !row_answer(&s->row, result))
		owner_expel(s, NOPIN_GONE_LIED);
	if (!s->gone)
		push(o, s);
	pthread_mutex_unlock(&o->lock);
}

/* --- serving ----------------------------------------------------------------------- */

static void owner_look_at(struct nopin_owner *o, struct seat *s,
			  struct job *job, uint64_t now)
{
	if (!is_user(s))
		return;
	if (!job->s && !owner_take(o, s, job)) {
		owner_expel(s, NOPIN_GONE_LIED);
		return;
	}
	push(o, s);
	link_beat(&s->link, &s->beat_ns, o->alive_ns, now);
	if (s->link.failed ||
	    (s->left && !s->link.out && s->row.sent == s->row.written))
		owner_expel(s, s->left ? NOPIN_GONE_LEFT : NOPIN_GONE_DIED);
}

static bool owner_report(struct nopin_owner *o, struct nopin_owner_event *event)
{
	for (uint32_t i = 0; i < o->users; i++) {
		struct seat *s = &o->seat[i];

		if (!s->gone || s->busy)
			continue;
		*event = (struct nopin_owner_event){s->link.qp, i, s->gone};
		owner_seat_free(s);
		return true;
	}
	return false;
}

/* Return: EAGAIN: there is a job, or else nothing to do; what the program is told. */
static int owner_look(struct nopin_owner *o, struct nopin_owner_event *event,
		      struct job *job)
{
	const uint32_t first = o->first;
	const uint64_t now = ext_now(o->context);

	*job = (struct job){.s = NULL};
	if (o->stop)
		return ECANCELED;
	if (owner_report(o, event))
		return 0;
	take_upcalls(o);
	for (uint32_t i = 0; i < o->users; i++)
		owner_look_at(o, &o->seat[(first + i) % o->users], job, now);
	if (job->s) {
		o->first = (uint32_t)(job->s - o->seat + 1) % o->users;
		return EAGAIN;
	}
	return owner_report(o, event) ? 0 : EAGAIN;
}

/* What did not fit into the queue of sends goes as soon as there is room, which
 * raises nothing. */
static uint64_t patience(struct nopin_owner *o)
{
	bool left = false;

	pthread_mutex_lock(&o->lock);
	for (uint32_t i = 0; i < o->users; i++)
		left |= is_user(&o->seat[i]) &&
			(o->seat[i].row.sent < o->seat[i].row.written ||
			 o->seat[i].left);
	pthread_mutex_unlock(&o->lock);
	return left ? MIN(o->alive_ns / 4, (uint64_t)NS_PER_MS)
		    : o->alive_ns / 4;
}

static int owner_serve(struct nopin_owner *o, enum nopin_wait how,
		       struct nopin_owner_event *event)
{
	const uint64_t *bell = nopin_counter_word(o->bell);
	struct job job;
	int rc;

	for (;;) {
		uint64_t rung = __atomic_load_n(bell, __ATOMIC_ACQUIRE);

		pthread_mutex_lock(&o->lock);
		rc = owner_look(o, event, &job);
		pthread_mutex_unlock(&o->lock);
		if (rc != EAGAIN)
			return rc;
		if (job.s) {
			work(o, &job);
			continue;
		}
		rc = nopin_counter_wait(o->bell, rung + 1, patience(o), how);
		if (rc && rc != ETIMEDOUT)
			return rc;
	}
}

int nopin_owner_serve(struct nopin_owner *owner, enum nopin_wait how,
		      struct nopin_owner_event *event)
{
	int rc;

	if (in_child(owner->pd->context))
		return ENODEV;
	pthread_mutex_lock(&owner->lock);
	owner->serving++;
	pthread_mutex_unlock(&owner->lock);
	rc = owner_serve(owner, how, event);
	pthread_mutex_lock(&owner->lock);
	owner->serving--;
	pthread_mutex_unlock(&owner->lock);
	return rc;
}

int nopin_owner_stop(struct nopin_owner *owner)
{
	if (in_child(owner->pd->context))
		return ENODEV;
	pthread_mutex_lock(&owner->lock);
	owner->stop = true;
	pthread_mutex_unlock(&owner->lock);
	ext_counter_raise(owner->bell);
	return 0;
}
