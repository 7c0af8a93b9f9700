/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync.c: a semaphore and a wait queue at a home on the first node, and members on
 * the others, over a network that loses and reorders and memory that is evicted.
 * Members wait, give up, post, wake, and some lose their connection in the middle
 * of it, as their process is killed, their QP fails or the network is cut for long.
 *
 * Checked against what a sequential semaphore would do: there are never more
 * holders than units, also of those who are dead for the home and do not know; who
 * waits is served in the order in which the home took his request; everybody is
 * served who can be, in bounded time; and what is left in the end is what must be.
 *
 * This is what src/ext does with verbs, done with the NIC.
 */
#include "sync/sync.h"
#include "nic/impl.h"
#include "scenarios.h"

#include <errno.h>
#include <inttypes.h>

enum {
	MEMBERS = 6,
	SELF = MEMBERS, /* the connection of the home to itself */
	LINE = 64,
	SEM = 0,
	WAITQ = 1,
};

#define ALIVE_NS (20 * (uint64_t)SIM_MS)
#define BOUND_NS (30000 * (uint64_t)SIM_MS)
#define CUT_NS	 (20000 * (uint64_t)SIM_MS)

/** struct side - One end of a connection, and memory of its node for it. */
struct side {
	struct node *node;
	struct nic_qp *qp;
	uint32_t qpn;
	unsigned out;
	bool failed;
	uint64_t mem;
	uint32_t key;
	struct nic_counter *counter;
};

/* Where what is in memory: of a member, and of its box at the home. */
enum { M_ANSWER = 0, M_OLD = 8, M_CONFIRMED = 16, M_MSG = 32 };
enum { B_MSG = 0, B_CONFIRMED = 32, B_ANSWER = 64 };

struct member {
	struct sync_world *s;
	unsigned index, rounds;
	struct side here, home;
	int64_t guess[2];
	uint64_t sent, answers, since_ns, beat_ns, broken_ns;
	unsigned believes;
	bool active, gone;
};

struct sync_world {
	struct world *w;
	struct member m[MEMBERS];
	struct side self[2];
	uint64_t words;
	uint32_t words_key;
	struct nic_counter *bell;
	struct sync_home core;
	struct sync_seat seat[MEMBERS];
	struct sync_object object[2];
	unsigned queue[2][MEMBERS], queued[2];
	unsigned units, held, items, deaths, broken, active, first;
	bool stop;
	uint64_t longest_ns;
};

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
		int n = nic_cq_poll(node->cq[i], ARRAY_SIZE(e), e);

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

static void side_write(struct sync_world *s, struct side *from, uint64_t off,
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

static void read_mem(struct side *side, uint64_t off, void *to, uint64_t len)
{
	EXPECT(side->node->w,
	       sim_read(side->node->os, side->mem + off, to, len) == 0,
	       "sim_read");
}

static void write_mem(struct side *side, uint64_t off, const void *from,
		      uint64_t len)
{
	EXPECT(side->node->w,
	       sim_write(side->node->os, side->mem + off, from, len) == 0,
	       "sim_write");
}

/* Asleep, or as a program that polls now and then. */
static void await(struct sync_world *s, struct side *side,
		  struct nic_counter *c, uint64_t target, uint64_t ns)
{
	const uint64_t until = sim_now(s->w->sim) + ns;
	int err;

	if (sim_chance(s->w->sim, SIM_PPM / 2)) {
		err = nic_counter_wait(c, target, ns, NIC_WAIT_FUTEX);
		EXPECT(s->w, !err || err == -ETIMEDOUT, "nic_counter_wait: %d",
		       err);
	}
	while (counted(c) < target && sim_now(s->w->sim) < until) {
		reap(s, side->node);
		sim_sleep(s->w->sim, sim_between(s->w->sim, 1, 20 * SIM_US));
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
	read_mem(from, 0, &old, sizeof(old));
	return old;
}

static void port_answer(void *arg, uint32_t i, enum sync_result result)
{
	struct sync_world *s = arg;
	struct member *m = &s->m[i];
	const uint64_t word = result;

	queue_leave(s, s->seat[i].object, i, result == SYNC_OK);
	write_mem(&m->home, B_ANSWER, &word, sizeof(word));
	side_write(s, &m->home, B_ANSWER, 8, &m->here, M_ANSWER,
		   m->here.counter);
	m->beat_ns = sim_now(s->w->sim);
}

static void qp_break(struct nic_qp *qp)
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
	read_mem(&m->home, B_CONFIRMED, &confirmed, sizeof(confirmed));
	home_gone(&s->core, i, confirmed);
	s->deaths++;
	sim_say(s->w->sim, "member %u is gone", i);
}

static void take(struct sync_world *s, unsigned i)
{
	struct member *m = &s->m[i];
	struct sync_msg msg;

	while (s->seat[i].taken < counted(m->home.counter)) {
		read_mem(&m->home,
			 B_MSG + (s->seat[i].taken + 1) % 2 * sizeof(msg), &msg,
			 sizeof(msg));
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
		side_write(s, &m->home, 0, 0, &m->here, 0, NULL);
	}
	if (m->home.failed)
		expel(s, i);
}

static void home_thread(void *arg)
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

/* --- members -------------------------------------------------------------------------- */

static bool settle(struct member *m)
{
	while (m->here.out && !m->here.failed) {
		reap(m->s, m->here.node);
		sim_sleep(m->s->w->sim, 2 * SIM_US);
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
	read_mem(&m->here, M_OLD, old, sizeof(*old));
	return true;
}

static void say(struct member *m, const struct sync_msg *msg)
{
	const uint64_t off = ++m->sent % 2 * sizeof(*msg);

	write_mem(&m->here, M_MSG + off, msg, sizeof(*msg));
	side_write(m->s, &m->here, M_MSG + off, sizeof(*msg), &m->home,
		   B_MSG + off, m->home.counter);
	side_write(m->s, &m->here, 0, 0, &m->home, 0, m->s->bell);
}

static bool ask(struct member *m, const struct sync_msg *msg, uint64_t until_ns,
		uint64_t *number, enum sync_result *result)
{
	struct sim *sim = m->s->w->sim;
	bool cancelled = false;
	uint64_t word;

	say(m, msg);
	*number = m->sent;
	while (counted(m->here.counter) <= m->answers && !m->here.failed) {
		const uint64_t now = sim_now(sim);

		if (until_ns <= now && !cancelled) {
			const struct sync_msg cancel = {.op = SYNC_CANCEL};

			say(m, &cancel);
			cancelled = true;
		}
		await(m->s, &m->here, m->here.counter, m->answers + 1,
		      cancelled ? ALIVE_NS : MIN(until_ns - now, ALIVE_NS));
		if (!m->here.out)
			side_write(m->s, &m->here, 0, 0, &m->home, 0, NULL);
	}
	if (m->here.failed)
		return false;
	m->answers++;
	read_mem(&m->here, M_ANSWER, &word, sizeof(word));
	*result = (enum sync_result)word;
	return true;
}

static bool confirm(struct member *m, uint64_t number)
{
	write_mem(&m->here, M_CONFIRMED, &number, sizeof(number));
	side_write(m->s, &m->here, M_CONFIRMED, 8, &m->home, B_CONFIRMED, NULL);
	return settle(m);
}

/* Return: SYNC_PENDING: the connection failed. */
static enum sync_result call(struct member *m, enum call_kind kind,
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

/* --- programs ---------------------------------------------------------------------------- */

static uint64_t some_ns(struct sync_world *s, uint64_t most)
{
	return sim_between(s->w->sim, 1, most);
}

static void hold(struct member *m)
{
	struct sync_world *s = m->s;
	uint64_t none = 0;

	m->believes++;
	s->held++;
	EXPECT(s->w, s->held <= s->units, "%u holders of %u units", s->held,
	       s->units);
	sim_sleep(s->w->sim, some_ns(s, 300 * SIM_US));
	m->believes--;
	s->held--;
	call(m, CALL_SEM_POST, &none, 0);
}

static void use_sem(struct member *m, enum call_kind kind)
{
	struct sync_world *s = m->s;
	uint64_t none = 0, patience = 0;

	if (sim_chance(s->w->sim, SIM_PPM / 3))
		patience = some_ns(s, 500 * SIM_US);
	switch (call(m, kind, &none, patience)) {
	case SYNC_OK:
		if (!m->here.failed && m->broken_ns &&
		    sim_chance(s->w->sim, SIM_PPM / 2)) {
			/* it dies, and keeps what it has */
			m->believes++;
			s->held++;
			m->here.failed = true;
			qp_break(m->here.qp);
			return;
		}
		hold(m);
		break;
	case SYNC_LATE:
		EXPECT(s->w, patience || kind == CALL_SEM_TRY,
		       "who waits for ever is late");
		break;
	default:
		EXPECT(s->w, m->here.failed, "a call of a member failed");
	}
}

static void take_item(struct member *m)
{
	struct sync_world *s = m->s;
	uint64_t ticket = 0, patience = 0;

	if (sim_chance(s->w->sim, SIM_PPM / 3))
		patience = some_ns(s, 2 * SIM_MS);
	while (call(m, CALL_PREPARE, &ticket, 0) == SYNC_OK) {
		enum sync_result result;

		if (s->items) {
			s->items--;
			return;
		}
		result = call(m, CALL_WAIT, &ticket, patience);
		if (result == SYNC_LATE) {
			EXPECT(s->w, patience, "who waits for ever is late");
			return;
		}
		if (result != SYNC_OK)
			return;
	}
}

static void give(struct member *m, uint64_t num)
{
	call(m, CALL_WAKE, &num, 0);
}

static void use_any(struct member *m)
{
	switch (sim_between(m->s->w->sim, 0, 9)) {
	case 0:
	case 1:
	case 2:
	case 3:
		use_sem(m, CALL_SEM_WAIT);
		break;
	case 4:
		use_sem(m, CALL_SEM_TRY);
		break;
	case 5:
		m->s->items++;
		give(m, 1);
		break;
	default:
		take_item(m);
	}
}

static void member_thread(void *arg)
{
	struct member *m = arg;
	struct sync_world *s = m->s;

	while (m->rounds-- && !m->here.failed) {
		use_any(m);
		if (sim_chance(s->w->sim, SIM_PPM / 2))
			sim_sleep(s->w->sim, some_ns(s, SIM_MS));
	}
	m->active = false;
	s->active--;
}

/* The one that does not fail: gives what the others need to end, and has all look
 * again when one of them died, as programs have to. */
static void keeper_thread(void *arg)
{
	struct member *m = arg;
	struct sync_world *s = m->s;
	unsigned deaths = 0;

	while (s->active > 1) {
		sim_sleep(s->w->sim, some_ns(s, 2 * SIM_MS));
		if (deaths != s->deaths) {
			deaths = s->deaths;
			give(m, UINT64_MAX);
		} else if (!s->items) {
			s->items++;
			give(m, 1);
		} else {
			use_sem(m, CALL_SEM_WAIT);
		}
	}
	m->active = false;
	s->active--;
}

/* --- deaths ---------------------------------------------------------------------------- */

static void doom(struct member *m)
{
	if (!m->broken_ns) {
		m->broken_ns = sim_now(m->s->w->sim);
		m->s->broken++;
	}
}

static void doom_node(struct sync_world *s, const struct node *node)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		if (s->m[i].here.node == node)
			doom(&s->m[i]);
}

static void reaper_thread(void *arg)
{
	struct sync_world *s = arg;
	struct world *w = s->w;
	struct member *m = &s->m[sim_between(w->sim, 2, MEMBERS - 1)];

	sim_sleep(w->sim, some_ns(s, 8 * SIM_MS));
	w->expect_errors = true;
	switch (sim_between(w->sim, 0, 3)) {
	case 0:
		doom(m);
		qp_break(m->here.qp);
		break;
	case 1: /* when it has a unit, or loses it on the way */
		doom(m);
		sim_sleep(w->sim, some_ns(s, 2 * SIM_MS));
		qp_break(m->here.qp);
		break;
	case 2:
		doom_node(s, m->here.node);
		sim_kill(m->here.node->os);
		break;
	default:
		doom_node(s, m->here.node);
		sim_partition(w->sim, 1, m->here.node->index + 1, true);
		sim_sleep(w->sim, CUT_NS);
		sim_partition(w->sim, 1, m->here.node->index + 1, false);
	}
}

/* --- building ---------------------------------------------------------------------------- */

static void side_open(struct side *side, struct node *node,
		      const struct end *end, uint32_t access)
{
	struct mr_attr attr = {.pd = node->pd,
			       .length = PAGE_BYTES,
			       .access = ACCESS_LOCAL_WRITE | ACCESS_ON_DEMAND |
					 access};

	side->node = node;
	side->qp = end->qp;
	side->qpn = end->qpn;
	side->mem = area_add(node, AREA_SYNC, PAGE_BYTES, NULL);
	attr.addr = attr.iova = side->mem;
	EXPECT(node->w, nic_mr_reg(node->nic, &attr, &side->key) == 0,
	       "nic_mr_reg");
	node_registered(node, side->mem);
	EXPECT(node->w,
	       nic_counter_create(node->nic, node->pd, NULL, NULL,
				  &side->counter) == 0,
	       "nic_counter_create");
}

static void side_close(struct side *side)
{
	EXPECT(side->node->w, nic_counter_free(side->counter) == 0,
	       "nic_counter_free");
	EXPECT(side->node->w, nic_mr_dereg(side->node->nic, side->key) == 0,
	       "nic_mr_dereg");
}

static void member_open(struct sync_world *s, unsigned i)
{
	struct node *node = &s->w->node[1 + i / 2];
	struct conn *conn = &s->w->conn[i];
	struct member *m = &s->m[i];

	m->s = s;
	m->index = i;
	m->rounds = (unsigned)sim_between(s->w->sim, 4, 16);
	m->active = true;
	conn_open(s->w, conn, node, &s->w->node[0]);
	side_open(&m->here, node, &conn->end[0], ACCESS_REMOTE_WRITE);
	side_open(&m->home, &s->w->node[0], &conn->end[1], ACCESS_REMOTE_WRITE);
	home_join(&s->core, i);
}

static void home_open(struct sync_world *s)
{
	struct node *node = &s->w->node[0];
	struct conn *conn = &s->w->conn[SELF];
	int64_t word = s->units;

	conn_open(s->w, conn, node, node);
	side_open(&s->self[0], node, &conn->end[0], ACCESS_REMOTE_ATOMIC);
	side_open(&s->self[1], node, &conn->end[1], ACCESS_REMOTE_ATOMIC);
	s->bell = s->self[0].counter;
	s->words = s->self[1].mem;
	s->words_key = s->self[1].key;
	write_mem(&s->self[1], SEM * LINE, &word, sizeof(word));
	word = 0;
	write_mem(&s->self[1], WAITQ * LINE, &word, sizeof(word));
	s->core = (struct sync_home){.seat = s->seat,
				     .object = s->object,
				     .members = MEMBERS,
				     .objects = 2,
				     .port = {s, port_add, port_answer}};
	home_object(&s->core, SEM, SYNC_SEM);
	home_object(&s->core, WAITQ, SYNC_WAITQ);
}

static void draw(struct world *w)
{
	struct world_config *c = &w->cfg;
	struct sim *sim = w->sim;

	c->nodes = 1 + MEMBERS / 2;
	c->conns = MEMBERS + 1;
	c->ops = 0;
	c->mem.major_max_ns = sim_between(sim, 100, 1000) * SIM_US;
	c->evict_ns = sim_chance(sim, SIM_PPM / 2) ? 200 * SIM_US : 0;
	c->fork_ns = sim_chance(sim, SIM_PPM / 4) ? 3 * SIM_MS : 0;
	c->link.loss = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 50 : 0;
	c->link.reorder = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 10 : 0;
	c->link.dup = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 50 : 0;
	c->rd_atomic = 16;
}

/* --- running ----------------------------------------------------------------------------- */

static void check_stuck(struct sync_world *s)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		const struct member *m = &s->m[i];

		EXPECT(s->w,
		       !m->since_ns ||
			       sim_now(s->w->sim) - m->since_ns < BOUND_NS,
		       "member %u waits and is not woken", i);
	}
}

static void check_left(struct sync_world *s)
{
	const unsigned most = s->units - s->held;
	int64_t word;

	EXPECT(s->w, !s->queued[SEM] && !s->queued[WAITQ],
	       "a queue is not empty");
	sim_peek(s->self[1].node->os, s->words + SEM * LINE, &word, 8);
	EXPECT(s->w,
	       word >= 0 && word <= most && word + (int64_t)s->broken >= most,
	       "%" PRIi64 " units are left of %u, %u held by the dead", word,
	       s->units, s->held);
	sim_peek(s->self[1].node->os, s->words + WAITQ * LINE, &word, 8);
	EXPECT(s->w, word >= 0, "the wait queue's word says that who waits");
}

static void close_all(struct sync_world *s)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		side_close(&s->m[i].here);
		side_close(&s->m[i].home);
	}
	side_close(&s->self[0]);
	side_close(&s->self[1]);
}

static void start(struct sync_world *s, bool deaths)
{
	struct world *w = s->w;

	s->active = MEMBERS;
	node_thread(&w->node[0], home_thread, s);
	node_thread(&w->node[1], keeper_thread, &s->m[0]);
	for (unsigned i = 1; i < MEMBERS; i++)
		node_thread(s->m[i].here.node, member_thread, &s->m[i]);
	if (deaths)
		node_thread(&w->node[0], reaper_thread, s);
	chaos_start(w);
}

/* Of those who died the home must learn, too. */
static bool over(const struct sync_world *s)
{
	return !s->active && s->deaths == s->broken;
}

static void run(struct world *w)
{
	const bool deaths = w->seed % 2;
	struct sync_world s = {
		.w = w,
		.units = deaths ? 3 : (unsigned)sim_between(w->sim, 1, 2)};

	draw(w);
	world_nodes(w);
	home_open(&s);
	for (unsigned i = 0; i < MEMBERS; i++)
		member_open(&s, i);
	start(&s, deaths);
	w->busy = true;
	while (!over(&s)) {
		world_run(w, SIM_MS);
		check_stuck(&s);
		for (unsigned i = 0; i < w->cfg.nodes; i++)
			node_watch(&w->node[i]);
	}
	check_left(&s);
	s.stop = true;
	world_run(w, 2 * ALIVE_NS);
	close_all(&s);
	world_close(w);
	if (w->verbose)
		printf("%u dead, known after %" PRIu64 " ms at most\n",
		       s.deaths, s.longest_ns / SIM_MS);
}

static const char *never(const struct sim_stats *st)
{
	return st->evictions == 0   ? "an eviction"
	       : st->lost == 0	    ? "a packet that was lost"
	       : st->reordered == 0 ? "one that was overtaken"
				    : NULL;
}

const struct scenario scenario_sync = {
	.name = "sync",
	.run = run,
	.musts = 3,
	.must = {CNT_notified, CNT_retransmits, CNT_timeouts},
	.never = never,
};
