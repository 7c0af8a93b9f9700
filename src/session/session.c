/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* session.c: seats of users, looking after their lives, and the threads that serve. */
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t alive_ns_of(uint64_t asked_ns)
{
	enum { ALIVE_MS = 500, NS_PER_MS = 1000000 };

	return asked_ns ? MAX(asked_ns, (uint64_t)NS_PER_MS)
			: (uint64_t)ALIVE_MS * NS_PER_MS;
}

int session_open(struct session *s, struct ibv_pd *pd, uint32_t seats,
		 uint64_t alive_ns)
{
	int rc;

	s->pd = pd;
	s->alive_ns = alive_ns_of(alive_ns);
	pthread_mutex_init(&s->lock, NULL);
	s->seat = calloc(seats, sizeof(*s->seat));
	if (!s->seat)
		return ENOMEM;
	s->seats = seats;
	rc = nopin_counter_create(pd, NULL, NULL, &s->bell);
	return rc ? rc : ext_counter_reserve(s->bell);
}

static void seat_free(struct seat *s)
{
	if (s->mr)
		ibv_dereg_mr(s->mr);
	if (s->counter)
		nopin_counter_destroy(s->counter);
	*s = (struct seat){.mr = NULL};
}

void session_close(struct session *s)
{
	for (uint32_t i = 0; i < s->seats; i++)
		seat_free(&s->seat[i]);
	if (s->bell)
		nopin_counter_destroy(s->bell);
	pthread_mutex_destroy(&s->lock);
	free(s->seat);
}

void session_finish(struct session *s)
{
	for (uint32_t i = 0; i < s->seats; i++)
		if (seat_taken(&s->seat[i]))
			link_fail(&s->seat[i].link);
}

uint32_t session_seat(const struct session *s)
{
	uint32_t i = 0;

	while (i < s->seats && s->seat[i].link.qp)
		i++;
	return i;
}

int session_join(struct session *s, uint32_t i, struct ibv_qp *qp,
		 const struct nopin_card *theirs, void *mail, size_t bytes,
		 struct nopin_card *ours)
{
	struct seat *seat = &s->seat[i];
	int rc = nopin_counter_create(s->pd, NULL, NULL, &seat->counter);

	if (rc)
		return rc;
	seat->mr = ibv_reg_mr(s->pd, mail, bytes,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!seat->mr) {
		rc = errno;
		seat_free(seat);
		return rc;
	}
	seat->theirs = *theirs;
	seat->beat_ns = session_now(s);
	seat->link.qp = qp;
	*ours = (struct nopin_card){.mail = (uintptr_t)mail,
				    .mail_rkey = seat->mr->rkey,
				    .counter = nopin_counter_id(seat->counter),
				    .bell = nopin_counter_id(s->bell),
				    .index = i};
	return 0;
}

uint64_t seat_rung(const struct seat *s)
{
	return __atomic_load_n(nopin_counter_word(s->counter),
			       __ATOMIC_ACQUIRE);
}

void seat_say(struct session *s, struct seat *seat, const void *from,
	      uint32_t len, uint32_t lkey, uint64_t to)
{
	if (link_write(&seat->link, from, len, lkey, to, seat->theirs.mail_rkey,
		       seat->theirs.counter))
		seat->link.failed = true;
	seat->beat_ns = session_now(s);
}

void seat_beat(struct session *s, struct seat *seat, uint64_t now_ns)
{
	/* before the QP is connected nobody can know */
	if (seat->link.out || now_ns - seat->beat_ns < s->alive_ns)
		return;
	seat->beat_ns = now_ns;
	(void)link_ask(&seat->link);
}

void seat_expel(struct seat *seat, enum nopin_gone why)
{
	link_fail(&seat->link);
	seat->gone = why;
}

uint32_t session_report(struct session *s, struct seat *was)
{
	uint32_t i = 0;

	while (i < s->seats && (!s->seat[i].gone || s->seat[i].busy))
		i++;
	if (i < s->seats) {
		*was = s->seat[i];
		seat_free(&s->seat[i]);
	}
	return i;
}

int session_enter(struct session *s, uint32_t most)
{
	bool enter;

	if (in_child(s->pd->context))
		return ENODEV;
	pthread_mutex_lock(&s->lock);
	enter = s->serving < most;
	s->serving += enter;
	pthread_mutex_unlock(&s->lock);
	return enter ? 0 : EBUSY;
}

void session_leave(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	s->serving--;
	pthread_mutex_unlock(&s->lock);
}

uint64_t session_rung(const struct session *s)
{
	return __atomic_load_n(nopin_counter_word(s->bell), __ATOMIC_ACQUIRE);
}

int session_wait(struct session *s, uint64_t rung, uint64_t most_ns,
		 enum nopin_wait how)
{
	int rc = nopin_counter_wait(s->bell, rung + 1, most_ns, how);

	return rc == ETIMEDOUT ? 0 : rc;
}

int session_stop(struct session *s)
{
	if (in_child(s->pd->context))
		return ENODEV;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	/* with the lock: a thread that has seen it may destroy all of this */
	ext_counter_raise(s->bell);
	pthread_mutex_unlock(&s->lock);
	return 0;
}
