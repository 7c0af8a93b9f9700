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
 */
#include "sync.h"
#include "base/counters.h"
#include "base/page.h"
#include "mem/mr.h"
#include "nic/event_counter.h"
#include "nic/memory.h"
#include "scenarios.h"

#include <inttypes.h>

/* --- programs ---------------------------------------------------------------------------- */

static uint64_t some_ns(struct sync_world *s, uint64_t most)
{
	return sim_between(s->w->sim, 1, most);
}

static void doom(struct member *m)
{
	if (!m->broken_ns) {
		m->broken_ns = sim_now(m->s->w->sim);
		m->s->broken++;
	}
}

/* Who dies with a unit keeps it, as one may who was cut off and does not know. */
static void hold(struct member *m)
{
	struct sync_world *s = m->s;
	uint64_t none = 0;

	m->believes++;
	s->held++;
	s->quiet_ns = sim_now(s->w->sim);
	EXPECT(s->w, s->held <= s->units, "%u holders of %u units", s->held,
	       s->units);
	sim_sleep(s->w->sim, some_ns(s, 300 * SIM_US));
	if (m->dies_holding && !m->broken_ns) {
		doom(m);
		qp_break(m->here.qp);
	}
	if (m->broken_ns) {
		m->here.failed = true;
		return;
	}
	m->believes--;
	s->held--;
	member_call(m, CALL_SEM_POST, &none, 0);
}

static void use_sem(struct member *m, enum call_kind kind)
{
	struct sync_world *s = m->s;
	uint64_t none = 0, patience = 0;

	if (sim_chance(s->w->sim, SIM_PPM / 3))
		patience = some_ns(s, 500 * SIM_US);
	switch (member_call(m, kind, &none, patience)) {
	case SYNC_OK:
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
	while (member_call(m, CALL_PREPARE, &ticket, 0) == SYNC_OK) {
		enum sync_result result;

		if (s->items) {
			s->items--;
			return;
		}
		result = member_call(m, CALL_WAIT, &ticket, patience);
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
	member_call(m, CALL_WAKE, &num, 0);
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
	member_settle(m);
	m->active = false;
	s->active--;
}

/* Units went with members that died, and nobody has any: the program finds that
 * out, and puts them back. */
static void put_back(struct member *m)
{
	struct sync_world *s = m->s;
	uint64_t none = 0;
	int64_t word;

	if (!s->deaths || s->deaths != s->broken ||
	    sim_now(s->w->sim) - s->quiet_ns < LOST_NS)
		return;
	sim_peek(s->self[1].node->os, s->words + SEM * LINE, &word, 8);
	if (word > 0)
		return;
	for (unsigned i = 0; i < MEMBERS; i++) {
		if (!s->m[i].gone)
			continue;
		s->held -= s->m[i].believes;
		s->m[i].believes = 0;
	}
	EXPECT(s->w, s->lost++ < s->broken, "more units are lost than members");
	s->quiet_ns = sim_now(s->w->sim);
	member_call(m, CALL_SEM_POST, &none, 0);
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
			use_sem(m, CALL_SEM_TRY);
		}
		put_back(m);
	}
	m->active = false;
	s->active--;
}

/* --- deaths ---------------------------------------------------------------------------- */

static void doom_node(struct sync_world *s, const struct node *node)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		if (s->m[i].here.node == node)
			doom(&s->m[i]);
}

static void await_state(struct sync_world *s, const struct member *m,
			enum seat_state state)
{
	while (s->seat[m->index].state != state && m->active)
		sim_sleep(s->w->sim, SIM_US);
	sim_sleep(s->w->sim, some_ns(s, 20 * SIM_US));
}

/* In the queue; when it has just been served; with a unit; anywhere; as its process
 * is killed; or it cannot be reached any more. */
static void reaper_thread(void *arg)
{
	struct sync_world *s = arg;
	struct world *w = s->w;
	struct member *m = &s->m[sim_between(w->sim, 2, MEMBERS - 1)];
	const unsigned how = (unsigned)sim_between(w->sim, 0, 6);

	sim_sleep(w->sim, some_ns(s, 10 * SIM_MS));
	w->expect_errors = true;
	if (how == 0)
		m->dies_holding = true;
	else if (how < 3)
		await_state(s, m, how == 1 ? SEAT_WAITING : SEAT_GRANTED);
	if (how < 4 && !m->dies_holding && m->active) {
		doom(m);
		qp_break(m->here.qp);
	} else if (how == 4) {
		doom_node(s, m->here.node);
		sim_kill(m->here.node->os);
	} else if (how > 4) {
		if (how == 6)
			await_state(s, m, SEAT_GRANTED);
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
	m->rounds = (unsigned)sim_between(s->w->sim, 10, 60);
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
	side_write(&s->self[1], SEM * LINE, &word, sizeof(word));
	word = 0;
	side_write(&s->self[1], WAITQ * LINE, &word, sizeof(word));
	s->core = (struct sync_home){.seat = s->seat,
				     .object = s->object,
				     .members = MEMBERS,
				     .objects = 2,
				     .port = home_port(s)};
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
	const unsigned most = s->units + s->lost - s->held;
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
	struct sync_world s = {.w = w,
			       .units = (unsigned)sim_between(w->sim, 1, 2)};

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
		printf("%u dead, known after %" PRIu64
		       " ms at most; %u calls given up\n",
		       s.deaths, s.longest_ns / SIM_MS, s.given_up);
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
	.long_soak = true,
	.musts = 3,
	.must = {CNT_notified, CNT_retransmits, CNT_timeouts},
	.never = never,
};
