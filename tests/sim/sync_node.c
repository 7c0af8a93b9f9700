/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_node.c: messages, words and answers of sync.h on simulated NICs. */
#include "base/check.h"
#include "nic/event_counter.h"
#include "nic/post.h"
#include "sync.h"

#include <errno.h>
#include <inttypes.h>

/* --- connections ------------------------------------------------------------------ */

static struct side *side_of(struct sync_world *s, uint32_t qpn,
			    const struct node *node)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		if (s->m[i].here.qpn == qpn && s->m[i].here.node == node)
			return &s->m[i].here;
		if (s->m[i].home.qpn == qpn && s->m[i].home.node == node)
			return &s->m[i].home;
	}
	for (unsigned i = 0; i < 2; i++)
		if (s->self[i].qpn == qpn && s->self[i].node == node)
			return &s->self[i];
	world_fail(s->w, "a completion of QP %u, which is nobody's", qpn);
}

static void reap(struct sync_world *s, struct node *node)
{
	struct cqe e[8];

	for (unsigned i = 0; i < NODE_CQS; i++) {
		int n = node_poll(node, node->cq[i], ARRAY_SIZE(e), e);

		EXPECT(s->w, n >= 0, "nic_cq_poll: %d", n);
		for (int k = 0; k < n; k++) {
			struct side *side = side_of(s, e[k].qpn, node);

			EXPECT(s->w, side->out > 0, "a completion of nothing");
			side->out--;
			EXPECT(s->w, !e[k].status || s->broken,
			       "QP %u: status %u, vendor error %u", e[k].qpn,
			       e[k].status, e[k].vendor_err);
			side->failed |= e[k].status != WC_SUCCESS;
		}
	}
}

static void side_post(struct sync_world *s, struct side *side, struct wqe wqe,
		      uint64_t addr, uint32_t len)
{
	struct wqe *to = NULL;

	while (!nic_send_begin(side->qp)) {
		to = nic_send_slot(side->qp);
		if (to)
			break;
		nic_send_end(side->qp);
		reap(s, side->node);
		sim_sleep(s->w->sim, SIM_US);
	}
	if (!to) {
		side->failed = true;
		return;
	}
	wqe.flags = WQE_SIGNALED;
	wqe.num_sge = len > 0;
	wqe.length = len;
	*to = wqe;
	if (len)
		*wqe_sge(to) = (struct sge){addr, len, side->key};
	side->out++;
	nic_send_publish(side->qp);
	nic_send_end(side->qp);
}

static void side_send(struct sync_world *s, struct side *from, uint64_t off,
		      uint32_t len, const struct side *to, uint64_t to_off,
		      const struct nic_counter *counter)
{
	side_post(s, from,
		  (struct wqe){.op = counter ? WR_WRITE_NOTIFY : WR_WRITE,
			       .imm = counter ? nic_counter_id(counter) : 0,
			       .raddr = to->mem + to_off,
			       .rkey = to->key},
		  from->mem + off, len);
}

static uint64_t counted(const struct nic_counter *c)
{
	return __atomic_load_n(nic_counter_word(c), __ATOMIC_ACQUIRE);
}

void side_read(struct side *side, uint64_t off, void *to, uint64_t len)
{
	EXPECT(side->node->w,
	       sim_read(side->node->os, side->mem + off, to, len) == 0,
	       "sim_read");
}

void side_write(struct side *side, uint64_t off, const void *from, uint64_t len)
{
	EXPECT(side->node->w,
	       sim_write(side->node->os, side->mem + off, from, len) == 0,
	       "sim_write");
}

/* More slowly when nothing comes. */
static void pause_some(struct sync_world *s, unsigned *idle)
{
	*idle = MIN(*idle + 1, 1000);
	sim_sleep(s->w->sim, sim_between(s->w->sim, 1, (3 + *idle) * SIM_US));
}

/* Asleep, or as a program that polls now and then. */
static void await(struct sync_world *s, struct side *side,
		  struct nic_counter *c, uint64_t target, uint64_t ns)
{
	const uint64_t until = sim_now(s->w->sim) + ns;
	unsigned idle = 0;
	int err;

	if (sim_chance(s->w->sim, SIM_PPM / 2)) {
		err = nic_counter_wait(c, target, ns, NIC_WAIT_FUTEX);
		EXPECT(s->w, !err || err == -ETIMEDOUT, "nic_counter_wait: %d",
		       err);
	}
	while (counted(c) < target && sim_now(s->w->sim) < until) {
		reap(s, side->node);
		pause_some(s, &idle);
	}
	reap(s, side->node);
}

/* --- the home ------------------------------------------------------------------------ */

static void queue_leave(struct sync_world *s, unsigned object, unsigned i,
			bool granted)
{
	unsigned *q = s->queue[object];

	for (unsigned k = 0; k < s->queued[object]; k++) {
		if (q[k] != i)
			continue;
		EXPECT(s->w, k == 0 || !granted,
		       "member %u is served before member %u", i, q[0]);
		memmove(&q[k], &q[k + 1],
			(--s->queued[object] - k) * sizeof(*q));
		return;
	}
}

static int64_t port_add(void *arg, uint32_t object, int64_t delta)
{
	struct sync_world *s = arg;
	struct side *from = &s->self[0];
	int64_t old;

	side_post(s, from,
		  (struct wqe){.op = WR_FETCH_ADD,
			       .raddr = s->words + object * LINE,
			       .rkey = s->words_key,
			       .swap_add = (uint64_t)delta,
			       .compare = (uint64_t)delta},
		  from->mem, 8);
	while (from->out && !from->failed) {
		reap(s, from->node);
		sim_sleep(s->w->sim, SIM_US);
	}
	EXPECT(s->w, !from->failed, "the home cannot reach itself");
	side_read(from, 0, &old, sizeof(old));
	return old;
}

static void port_answer(void *arg, uint32_t i, enum sync_result result)
{
	struct sync_world *s = arg;
	struct member *m = &s->m[i];
	const uint64_t word = result;

	queue_leave(s, s->seat[i].object, i, result == SYNC_OK);
	side_write(&m->home, B_ANSWER, &word, sizeof(word));
	side_send(s, &m->home, B_ANSWER, 8, &m->here, M_ANSWER,
		  m->here.counter);
	m->beat_ns = sim_now(s->w->sim);
}

void qp_break(struct nic_qp *qp)
{
	const struct qp_attr attr = {.state = QPS_ERR};

	nic_qp_modify(qp, &attr, QPA_STATE);
}

static void expel(struct sync_world *s, unsigned i)
{
	struct member *m = &s->m[i];
	uint64_t confirmed, took;

	EXPECT(s->w, m->broken_ns, "member %u is alive and called dead", i);
	took = sim_now(s->w->sim) - m->broken_ns;
	s->longest_ns = MAX(s->longest_ns, took);
	EXPECT(s->w, took < BOUND_NS, "member %u was dead for %" PRIu64 " ms",
	       i, took / SIM_MS);
	m->home.failed = m->gone = true;
	qp_break(m->home.qp);
	if (s->seat[i].state == SEAT_WAITING)
		queue_leave(s, s->seat[i].object, i, false);
	side_read(&m->home, B_CONFIRMED, &confirmed, sizeof(confirmed));
	home_gone(&s->core, i, confirmed);
	s->deaths++;
	s->quiet_ns = sim_now(s->w->sim);
	sim_say(s->w->sim, "member %u is gone", i);
}

static void take(struct sync_world *s, unsigned i)
{
	struct member *m = &s->m[i];
	struct sync_msg msg;

	while (s->seat[i].taken < counted(m->home.counter)) {
		side_read(&m->home,
			  B_MSG + (s->seat[i].taken + 1) % SYNC_BOX *
					  sizeof(msg),
			  &msg, sizeof(msg));
		s->first = (i + 1) % MEMBERS;
		sim_note(s->w->sim, 'T', (uint64_t)i << 32 | msg.op);
		EXPECT(s->w, home_take(&s->core, i, &msg), "member %u lies: %u",
		       i, msg.op);
		if (s->seat[i].state == SEAT_WAITING && msg.op == SYNC_WAIT)
			s->queue[s->seat[i].object]
				[s->queued[s->seat[i].object]++] = i;
	}
}

static void look_at(struct sync_world *s, unsigned i)
{
	struct member *m = &s->m[i];

	if (m->gone)
		return;
	take(s, i);
	if (!m->home.out && sim_now(s->w->sim) - m->beat_ns >= ALIVE_NS) {
		m->beat_ns = sim_now(s->w->sim);
		side_send(s, &m->home, 0, 0, &m->here, 0, NULL);
	}
	if (m->home.failed)
		expel(s, i);
	for (unsigned k = 0; k < ARRAY_SIZE(s->queued); k++)
		EXPECT(s->w, s->object[k].num == s->queued[k],
		       "%u are in a queue of %u", s->object[k].num,
		       s->queued[k]);
}

void home_thread(void *arg)
{
	struct sync_world *s = arg;

	while (!s->stop) {
		const uint64_t rung = counted(s->bell);
		const unsigned first = s->first;

		for (unsigned i = 0; i < MEMBERS; i++)
			look_at(s, (first + i) % MEMBERS);
		await(s, &s->self[0], s->bell, rung + 1, ALIVE_NS / 4);
	}
}

struct sync_port home_port(struct sync_world *s)
{
	return (struct sync_port){s, port_add, port_answer};
}

/* --- members -------------------------------------------------------------------------- */

static bool settle(struct member *m)
{
	unsigned idle = 0;

	while (m->here.out && !m->here.failed) {
		reap(m->s, m->here.node);
		pause_some(m->s, &idle);
	}
	return !m->here.failed;
}

static bool swap(struct member *m, uint32_t object, const struct sync_step *st,
		 int64_t *old)
{
	side_post(m->s, &m->here,
		  (struct wqe){.op = WR_CMP_SWP,
			       .raddr = m->s->words + object * LINE,
			       .rkey = m->s->words_key,
			       .swap_add = (uint64_t)st->swap,
			       .compare = (uint64_t)st->compare},
		  m->here.mem + M_OLD, 8);
	if (!settle(m))
		return false;
	side_read(&m->here, M_OLD, old, sizeof(*old));
	return true;
}

static void say(struct member *m, const struct sync_msg *msg)
{
	const uint64_t off = ++m->sent % SYNC_BOX * sizeof(*msg);

	side_write(&m->here, M_MSG + off, msg, sizeof(*msg));
	side_send(m->s, &m->here, M_MSG + off, sizeof(*msg), &m->home,
		  B_MSG + off, m->home.counter);
	side_send(m->s, &m->here, 0, 0, &m->home, 0, m->s->bell);
}

/* The next @num answers. Return: false: they do not come, or not in time. */
static bool hear(struct member *m, uint64_t num, uint64_t until_ns)
{
	const uint64_t target = m->answers + num;

	while (counted(m->here.counter) < target && !m->here.failed) {
		const uint64_t now = sim_now(m->s->w->sim);

		if (until_ns <= now)
			return false;
		await(m->s, &m->here, m->here.counter, target,
		      MIN(until_ns - now, ALIVE_NS));
		if (!m->here.out)
			side_send(m->s, &m->here, 0, 0, &m->home, 0, NULL);
	}
	if (m->here.failed)
		return false;
	m->answers = target;
	return true;
}

void member_settle(struct member *m)
{
	if (hear(m, m->owed, UINT64_MAX))
		m->owed = 0;
}

/* Return: false: nor does it wait for the answer. */
static bool cancel(struct member *m)
{
	const struct sync_msg cancelled = {.op = SYNC_CANCEL};
	const struct sync_msg given_up = {.op = SYNC_GIVE_UP};
	struct sim *sim = m->s->w->sim;

	say(m, &cancelled);
	if (hear(m, 1, sim_now(sim) + sim_between(sim, 0, GRACE_NS)))
		return true;
	if (m->here.failed)
		return false;
	say(m, &given_up);
	m->owed = 2;
	m->s->given_up++;
	return false;
}

static bool ask(struct member *m, const struct sync_msg *msg, uint64_t until_ns,
		uint64_t *number, enum sync_result *result)
{
	uint64_t word = SYNC_LATE;

	if (hear(m, m->owed, until_ns)) {
		m->owed = 0;
		say(m, msg);
		*number = m->sent;
		if (hear(m, 1, until_ns) || (!m->here.failed && cancel(m)))
			side_read(&m->here, M_ANSWER, &word, sizeof(word));
	}
	*result = (enum sync_result)word;
	return !m->here.failed;
}

static bool confirm(struct member *m, uint64_t number)
{
	side_write(&m->here, M_CONFIRMED, &number, sizeof(number));
	side_send(m->s, &m->here, M_CONFIRMED, 8, &m->home, B_CONFIRMED, NULL);
	return settle(m);
}

enum sync_result member_call(struct member *m, enum call_kind kind,
			     uint64_t *value, uint64_t patience_ns)
{
	const uint32_t object = kind < CALL_PREPARE ? SEM : WAITQ;
	const uint64_t now = sim_now(m->s->w->sim);
	const uint64_t until = patience_ns ? now + patience_ns : UINT64_MAX;
	enum sync_result result = SYNC_PENDING;
	struct sync_call c;
	struct sync_step st = call_begin(
		&c, kind,
		sync_id(object == SEM ? SYNC_SEM : SYNC_WAITQ, object), *value,
		&m->guess[object]);
	uint64_t number = 0;
	int64_t old = 0;
	bool ok = true;

	m->since_ns = now;
	while (ok && st.kind != TODO_DONE) {
		if (st.kind == TODO_SWAP) {
			ok = swap(m, object, &st, &old);
			st = call_swapped(&c, old);
		} else if (st.kind == TODO_ASK) {
			ok = ask(m, &st.msg, until, &number, &result);
			if (ok)
				st = call_answered(&c, result);
		} else {
			ok = confirm(m, number);
			st = call_confirmed(&c);
		}
	}
	m->since_ns = 0;
	*value = c.value;
	return ok ? st.result : SYNC_PENDING;
}
