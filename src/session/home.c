/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* home.c: the home of semaphores and wait queues on its queue pairs: sync_home.c
 * decides, this moves the messages, looks after the members' lives, and does the
 * atomics on the home's own words through a QP that is connected to itself.
 *
 * A member's message is in its box when the counter rises that is the member's own;
 * it raises the bell, too, which is what the home sleeps on. So those of whom the
 * home sees at one look that they came are taken by turns, beginning behind the
 * last one, and all others in the order of coming.
 * What a member wrote may change at any time: it is copied, then looked at.
 */
#include "session/session.h"
#include "session/sync_home.h"

#include <errno.h>
#include <stdlib.h>

enum { MEMBERS = 64, OBJECTS = 16 };

/** struct line - What is written by nobody else shares no cache line. */
struct line {
	uint64_t v;
	uint64_t pad[7];
};

/**
 * struct nopin_home
 * @word:	of each object; then @box and @answer of each member, @old: in one
 *		piece of memory
 * @waited:	of each member that is gone: the object it was waiting for, or 0
 * @mr:		of the words; @own: of @answer and @old, no peer's
 * @self:	connected to itself, for atomics on the words
 * @kinds:	objects so far
 * @broken:	@self is
 */
struct nopin_home {
	struct session session;
	struct sync_home core;
	struct link self;
	struct line *word, *answer, *old;
	struct box *box;
	uint32_t *waited;
	struct ibv_mr *mr, *own;
	uint32_t kinds;
	bool broken;
};

/* --- what the core wants ------------------------------------------------------- */

static int64_t word_add(void *arg, uint32_t object, int64_t delta)
{
	struct nopin_home *h = arg;
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic = {.remote_addr = (uintptr_t)&h->word[object],
			      .compare_add = (uint64_t)delta,
			      .rkey = h->mr->rkey}};

	if (!link_atomic(&h->self, wr, h->old, h->own->lkey))
		while (h->self.out && !h->self.failed)
			link_reap(&h->self);
	h->broken |= h->self.failed;
	return (int64_t)__atomic_load_n(&h->old->v, __ATOMIC_ACQUIRE);
}

static void home_answer(void *arg, uint32_t member, enum sync_result result)
{
	struct nopin_home *h = arg;
	struct seat *s = &h->session.seat[member];

	h->answer[member].v = result;
	link_reap(&s->link);
	seat_say(&h->session, s, &h->answer[member], 8, h->own->lkey,
		 s->theirs.mail);
}

/* --- making one ---------------------------------------------------------------- */

static int self_connect(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = qp->qp_num,
				.max_rd_atomic = 1,
				.max_dest_rd_atomic = 1,
				.timeout = 14,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.ah_attr = {.is_global = 1, .port_num = 1}};

	if (ibv_query_gid(qp->context, 1, 0, &a.ah_attr.grh.dgid) ||
	    ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_ACCESS_FLAGS))
		return EIO;
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER))
		return EIO;
	a.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC)
		       ? EIO
		       : 0;
}

static int self_open(struct nopin_home *h)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = LINK_DEPTH, .max_send_sge = 1}};

	init.send_cq = ibv_create_cq(h->session.pd->context, LINK_DEPTH, NULL,
				     NULL, 0);
	if (!init.send_cq)
		return errno;
	init.recv_cq = init.send_cq;
	h->self.qp = ibv_create_qp(h->session.pd, &init);
	if (!h->self.qp) {
		ibv_destroy_cq(init.send_cq);
		return errno;
	}
	return self_connect(h->self.qp);
}

static void self_close(struct nopin_home *h)
{
	struct ibv_cq *cq;

	if (!h->self.qp)
		return;
	cq = h->self.qp->send_cq;
	ibv_destroy_qp(h->self.qp);
	ibv_destroy_cq(cq);
}

static int home_memory_open(struct nopin_home *h)
{
	const size_t m = h->core.members, o = h->core.objects;
	const size_t lines = o + 3 * m + 1;

	h->waited = calloc(m, sizeof(*h->waited));
	h->core.seat = calloc(m, sizeof(*h->core.seat));
	h->core.object = calloc(o, sizeof(*h->core.object));
	h->word = aligned_alloc(LINE, lines * LINE);
	if (!h->waited || !h->core.seat || !h->core.object || !h->word)
		return ENOMEM;
	memset(h->word, 0, lines * LINE);
	h->box = (struct box *)(h->word + o);
	h->answer = (struct line *)(h->box + m);
	h->old = h->answer + m;
	h->mr = ibv_reg_mr(h->session.pd, h->word, o * LINE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	h->own = ibv_reg_mr(h->session.pd, h->answer, (m + 1) * LINE,
			    IBV_ACCESS_LOCAL_WRITE);
	return h->mr && h->own ? 0 : errno;
}

static void home_free(struct nopin_home *h)
{
	session_close(&h->session);
	self_close(h);
	if (h->own)
		ibv_dereg_mr(h->own);
	if (h->mr)
		ibv_dereg_mr(h->mr);
	free(h->word);
	free(h->core.object);
	free(h->core.seat);
	free(h->waited);
	free(h);
}

int nopin_home_create(struct ibv_pd *pd, const struct nopin_home_attr *attr,
		      struct nopin_home **home)
{
	const struct nopin_home_attr a =
		attr ? *attr : (struct nopin_home_attr){.members = 0};
	struct nopin_home *h;
	int rc;

	if (a.members > SYNC_MEMBERS_MAX || a.objects > SYNC_OBJECTS_MAX)
		return EINVAL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return ENOMEM;
	h->core.port = (struct sync_port){h, word_add, home_answer};
	h->core.members = a.members ? a.members : MEMBERS;
	h->core.objects = a.objects ? a.objects : OBJECTS;
	rc = session_open(&h->session, pd, h->core.members, a.alive_ns);
	if (!rc)
		rc = home_memory_open(h);
	if (!rc)
		rc = self_open(h);
	if (rc) {
		home_free(h);
		return rc;
	}
	*home = h;
	return 0;
}

int nopin_home_destroy(struct nopin_home *h)
{
	if (in_child(h->session.pd->context))
		return ENODEV;
	pthread_mutex_lock(&h->session.lock);
	if (h->session.serving) {
		pthread_mutex_unlock(&h->session.lock);
		return EBUSY;
	}
	session_finish(&h->session);
	pthread_mutex_unlock(&h->session.lock);
	home_free(h);
	return 0;
}

/* --- objects and members ------------------------------------------------------- */

static int object_create(struct nopin_home *h, enum sync_kind kind,
			 uint64_t word, uint32_t *id)
{
	int rc = ENOSPC;

	if (in_child(h->session.pd->context))
		return ENODEV;
	pthread_mutex_lock(&h->session.lock);
	if (h->kinds < h->core.objects) {
		__atomic_store_n(&h->word[h->kinds].v, word, __ATOMIC_RELEASE);
		home_object(&h->core, h->kinds, kind);
		*id = sync_id(kind, h->kinds++);
		rc = 0;
	}
	pthread_mutex_unlock(&h->session.lock);
	return rc;
}

int nopin_sem_create(struct nopin_home *home, uint32_t units, uint32_t *sem)
{
	if (units > SYNC_UNITS_MAX)
		return EINVAL;
	return object_create(home, SYNC_SEM, units, sem);
}

int nopin_waitq_create(struct nopin_home *home, uint32_t *waitq)
{
	return object_create(home, SYNC_WAITQ, 0, waitq);
}

int nopin_home_waiting(struct nopin_home *home, uint32_t object, uint32_t *num)
{
	int rc;

	if (in_child(home->session.pd->context))
		return ENODEV;
	pthread_mutex_lock(&home->session.lock);
	rc = -home_waiting(&home->core, object, num);
	pthread_mutex_unlock(&home->session.lock);
	return rc;
}

static int home_seat(struct nopin_home *h, struct ibv_qp *qp,
		     const struct nopin_card *theirs, struct nopin_card *ours)
{
	const uint32_t i = session_seat(&h->session);
	int rc;

	if (i == h->core.members)
		return EUSERS;
	h->box[i] = (struct box){.confirmed = 0};
	rc = session_join(&h->session, i, qp, theirs, &h->box[i],
			  sizeof(h->box[i]), ours);
	if (rc)
		return rc;
	h->waited[i] = 0;
	home_join(&h->core, i);
	ours->words = (uintptr_t)h->word;
	ours->words_rkey = h->mr->rkey;
	ours->objects = h->core.objects;
	return 0;
}

int nopin_home_join(struct nopin_home *home, struct ibv_qp *qp,
		    const struct nopin_card *theirs, struct nopin_card *ours)
{
	int rc = link_check(qp);

	if (rc || qp->pd != home->session.pd || theirs->objects != SYNC_BOX)
		return rc ? rc : EINVAL;
	pthread_mutex_lock(&home->session.lock);
	rc = home_seat(home, qp, theirs, ours);
	pthread_mutex_unlock(&home->session.lock);
	return rc;
}

/* --- serving ------------------------------------------------------------------- */

static void home_expel(struct nopin_home *h, uint32_t i, enum nopin_gone why)
{
	uint32_t object;

	seat_expel(&h->session.seat[i], why);
	object = home_gone(
		&h->core, i,
		__atomic_load_n(&h->box[i].confirmed, __ATOMIC_ACQUIRE));
	if (object != UINT32_MAX)
		h->waited[i] = sync_id(h->core.object[object].kind, object);
}

/* All that is in the member's box. Return: false: no member writes that. */
static bool home_take_mail(struct nopin_home *h, uint32_t i)
{
	const struct sync_seat *c = &h->core.seat[i];
	const uint64_t num = seat_rung(&h->session.seat[i]);
	struct sync_msg msg;

	while (c->taken < num) {
		if (num - c->taken > ARRAY_SIZE(h->box[i].msg))
			return false;
		memcpy(&msg, &h->box[i].msg[(c->taken + 1) % SYNC_BOX],
		       sizeof(msg));
		h->session.first = (i + 1) % h->core.members;
		if (!home_take(&h->core, i, &msg))
			return false;
	}
	return true;
}

static void home_look_at(struct nopin_home *h, uint32_t i, uint64_t now)
{
	struct seat *s = &h->session.seat[i];

	if (!seat_taken(s))
		return;
	if (!home_take_mail(h, i)) {
		home_expel(h, i, NOPIN_GONE_LIED);
		return;
	}
	if (s->link.out)
		link_reap(&s->link);
	seat_beat(&h->session, s, now);
	if (s->link.failed || h->core.seat[i].left)
		home_expel(h, i,
			   h->core.seat[i].left ? NOPIN_GONE_LEFT
						: NOPIN_GONE_DIED);
}

static bool home_report(struct nopin_home *h, struct nopin_home_event *event)
{
	struct seat was;
	const uint32_t i = session_report(&h->session, &was);

	if (i == h->core.members)
		return false;
	*event = (struct nopin_home_event){.qp = was.link.qp,
					   .index = i,
					   .gone = was.gone,
					   .waited = h->waited[i]};
	return true;
}

/* Return: 0: there is an event; EAGAIN: nothing to do. */
static int home_look(struct nopin_home *h, struct nopin_home_event *event)
{
	const uint32_t first = h->session.first;
	const uint64_t now = session_now(&h->session);

	for (uint32_t i = 0; i < h->core.members; i++)
		home_look_at(h, (first + i) % h->core.members, now);
	if (h->broken)
		return EIO;
	if (home_report(h, event))
		return 0;
	return h->session.stop ? ECANCELED : EAGAIN;
}

static int home_serve(struct nopin_home *h, enum nopin_wait how,
		      struct nopin_home_event *event)
{
	struct session *s = &h->session;
	int rc;

	for (;;) {
		const uint64_t rung = session_rung(s);

		pthread_mutex_lock(&s->lock);
		rc = home_look(h, event);
		pthread_mutex_unlock(&s->lock);
		if (rc != EAGAIN)
			return rc;
		rc = session_wait(s, rung, s->alive_ns / 4, how);
		if (rc)
			return rc;
	}
}

int nopin_home_serve(struct nopin_home *home, enum nopin_wait how,
		     struct nopin_home_event *event)
{
	int rc = session_enter(&home->session, 1);

	if (rc)
		return rc;
	rc = home_serve(home, how, event);
	session_leave(&home->session);
	return rc;
}

int nopin_home_stop(struct nopin_home *home)
{
	return session_stop(&home->session);
}
