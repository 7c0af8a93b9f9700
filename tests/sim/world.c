/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* world.c: builds a world from a seed, runs it until everything that was posted
 * is done, looks at what is left, and takes it down.
 */
#include "base/page.h"
#include "mem/mem.h"
#include "nic/device.h"
#include "nic/qp.h"
#include "oracle.h"
#include "wire/opcode.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#define STUCK_NS (5000 * (uint64_t)SIM_MS)

/* --- drawing ------------------------------------------------------------------ */

static uint32_t draw_mtu(struct sim *sim)
{
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

	return mtus[sim_between(sim, 0, ARRAY_SIZE(mtus) - 1)];
}

static void draw_memory(struct sim *sim, struct world_config *c)
{
	c->mem = (struct sim_mem_config){
		.minor_min_ns = 500,
		.minor_max_ns = 3 * SIM_US,
		.major_min_ns = 60 * SIM_US,
		.major_max_ns = sim_between(sim, 100, 3000) * SIM_US,
		.tear = (uint32_t)sim_between(sim, 0, SIM_PPM / 10),
		.delay_max_ns = sim_between(sim, 0, 3) * SIM_US,
	};
	c->exact = sim_chance(sim, SIM_PPM / 2);
	c->backing = (enum sim_backing)sim_between(sim, SIM_CHEAP, SIM_FILE);
	c->pagers = (unsigned)sim_between(sim, 2, 8);
	c->slots = (unsigned)sim_between(sim, 16, 256);
	c->entries = sim_chance(sim, SIM_PPM / 4) ? 512 : 1 << 16;
}

enum strategy world_strategy(struct world *w, bool none)
{
	enum strategy s;

	do
		s = (enum strategy)sim_between(w->sim, none ? 0 : 1,
					       STRATEGY_NUM - 1);
	while (s == STRATEGY_BLOCK || s == STRATEGY_DROP);
	return s;
}

uint32_t world_some(struct sim *sim, uint32_t most)
{
	return sim_chance(sim, SIM_PPM / 2)
		       ? (uint32_t)sim_between(sim, 0, most)
		       : 0;
}

void world_config_draw(struct world *w)
{
	struct world_config *c = &w->cfg;
	struct sim *sim = w->sim;

	*c = (struct world_config){
		.nodes = 2,
		.conns = (unsigned)sim_between(sim, 1, 3),
		.ops = 60,
		.window = (unsigned)sim_between(sim, 1, FLOW_SLOTS - 1),
		.recvs = (unsigned)sim_between(sim, 1, FLOW_SLOTS),
		.recv_lazy = SIM_PPM,
		.mix = {[OPK_SEND] = 2,
			[OPK_SEND_IMM] = 1,
			[OPK_SEND_INV] = 1,
			[OPK_WRITE] = 5,
			[OPK_WRITE_IMM] = 1,
			[OPK_READ] = 2,
			[OPK_READ_BACK] = 2,
			[OPK_RELAY] = 1,
			[OPK_FETCH_ADD] = 2,
			[OPK_CMP_SWP] = 1},
		.big = SIM_PPM / 20,
		.link = {.latency_min_ns = 1 * SIM_US,
			 .latency_max_ns = sim_between(sim, 1, 20) * SIM_US,
			 .reorder_ns = 30 * SIM_US},
		.no_gso = sim_chance(sim, SIM_PPM / 4),
		.no_gro = sim_chance(sim, SIM_PPM / 4),
		.no_scatter = w->seed % 8 == 7,
		.v6 = sim_chance(sim, SIM_PPM / 4),
		.mtu = 9000,
		.path_mtu = draw_mtu(sim),
		.strategies = strategy_set(STRATEGY_ADAPTIVE),
		.ahead = w->seed % 8 < 5 ? AHEAD_PREFETCH : w->seed % 8 - 4,
		.spin_ns = w->seed % 8 == 2 ? 50 * SIM_US : 0,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.rnr_timer = 12,
		.rd_atomic = (uint8_t)sim_between(sim, 1, 16),
	};
	draw_memory(sim, c);
	c->tickets = w->seed % 4 == 1 ? 12 : 1024;
	/* by what is not used above */
	c->attack_ns = w->seed % 3 == 2 ? 300 * SIM_US : 0;
	c->mute = w->seed % 5 == 4 ? (unsigned)(w->seed / 5 % 8) : 0;
}

/* --- building -------------------------------------------------------------------- */

static void flow_new(struct world *w, struct end *from, struct end *to)
{
	struct flow *f = calloc(1, sizeof(*f));

	CHECK(f);
	from->out = to->in = f;
	flow_open(f, w, from, to, w->flows);
	w->flow[w->flows++] = f;
}

static void node_new(struct world *w, unsigned i)
{
	const struct sim_host_config host = {
		.machine = w->cfg.neighbours && i ? 2 : i + 1,
		.v6 = w->cfg.v6,
		.mtu = w->cfg.mtu,
		.rcvbuf = w->cfg.rcvbuf,
		.exact = w->cfg.exact,
	};
	struct node *node = &w->node[i];

	node->w = w;
	node->index = i;
	node->os = sim_host_add(w->sim, &host);
	sim_mem_set(node->os, &w->cfg.mem);
	node_open(node);
}

/* What was filled in for READs is not to be there when they come. */
static void evict_all(struct world *w)
{
	for (unsigned i = 0; i < w->flows; i++) {
		const struct flow *f = w->flow[i];
		const uint64_t end = f->target + TARGET_BYTES + SOURCE_BYTES;

		for (uint64_t at = f->target; at < end; at += PAGE_BYTES)
			sim_evict(f->to->node->os, at, true);
	}
}

struct thread_start {
	struct node *node;
	void (*fn)(void *arg);
	void *arg;
};

static void thread_run(void *arg)
{
	struct thread_start s = *(struct thread_start *)arg;

	free(arg);
	s.fn(s.arg);
	s.node->w->threads--;
}

void node_thread(struct node *node, void (*fn)(void *arg), void *arg)
{
	struct thread_start *s = malloc(sizeof(*s));
	struct world *w = node->w;

	CHECK(s);
	*s = (struct thread_start){node, fn, arg};
	w->threads++;
	sim_spawn(node->os, thread_run, s, sim_between(w->sim, 0, 50 * SIM_US));
}

/* "Are you a nopin?" is never heard: all are standard peers then. */
static bool no_hello(void *arg, const uint8_t *bytes, uint32_t len)
{
	(void)arg;
	return len == 0 || (bytes[0] != OP_X_HELLO && bytes[0] != OP_X_OPEN);
}

static bool late_hello(void *arg, const uint8_t *bytes, uint32_t len)
{
	struct world *w = arg;
	unsigned *left;

	if (no_hello(NULL, bytes, len))
		return true;
	left = bytes[0] == OP_X_HELLO ? &w->cfg.deaf : &w->cfg.mute;
	if (*left == 0)
		return true;
	--*left;
	return false;
}

void world_sim(struct world *w, uint64_t seed)
{
	w->sim = sim_open(seed);
	if (w->hash_all)
		sim_hash_all(w->sim);
}

void world_nodes(struct world *w)
{
	const struct world_config *c = &w->cfg;

	w->strangers = c->standard || c->deaf;
	/* Over IPv4 one in 2^16 damaged packets passes the ICRC (doc/wire.md), and the
	 * checksum of UDP, which sees nearly all, is not simulated. */
	if (w->strangers && c->link.corrupt)
		w->cfg.v6 = true;
	if (c->standard)
		sim_filter(w->sim, no_hello, NULL);
	else if (c->deaf != 0 || c->mute != 0)
		sim_filter(w->sim, late_hello, w);
	sim_link_default(w->sim, &c->link);
	sim_preempt(w->sim, c->preempt, c->preempt_ns);
	sim_full(w->sim, c->full);
	for (unsigned i = 0; i < c->nodes; i++)
		node_new(w, i);
}

void world_build(struct world *w)
{
	const struct world_config *c = &w->cfg;

	world_nodes(w);
	for (unsigned i = 0; i < c->conns; i++) {
		struct conn *conn = &w->conn[i];
		const unsigned a = c->hub ? 0 : i % c->nodes;
		const unsigned b = !c->hub ? (a + 1) % c->nodes
					   : 1 + (i >= c->hub);

		conn_open(w, conn, &w->node[a], &w->node[b]);
		if (!c->ops)
			continue;
		flow_new(w, &conn->end[0], &conn->end[1]);
		flow_new(w, &conn->end[1], &conn->end[0]);
	}
	if (c->evict_ns != 0)
		evict_all(w);
	for (unsigned i = 0; i < c->nodes && c->ops; i++) {
		struct node *node = &w->node[i];

		node_thread(node, application_thread, node);
		if (sim_chance(w->sim, SIM_PPM / 3))
			node_thread(node, application_thread, node);
	}
	chaos_start(w);
	/* a flood is one where nobody reads */
	if (c->attack_ns != 0 && c->preempt == 0 && c->conns != 0)
		attack_start(w);
}

/* --- running ---------------------------------------------------------------------------- */

static bool all_done(const struct world *w)
{
	for (unsigned i = 0; i < w->flows; i++) {
		if (!flow_done(w->flow[i]))
			return false;
	}
	return !w->busy;
}

static void say_stuck(const struct world *w)
{
	for (unsigned i = 0; i < w->flows; i++) {
		struct flow *f = w->flow[i];
		const struct op *op = op_at(f, f->completed);

		if (flow_done(f))
			continue;
		fprintf(stderr,
			"  flow %u (QP %u to %u): completed %" PRIu64
			", posted %" PRIu64 " of %" PRIu64 ", received %" PRIu64
			" of %" PRIu64 ", oldest: %s of %u bytes, %" PRIu64
			" us old\n",
			i, f->from->qpn, f->to->qpn, f->completed, f->posted,
			f->all, f->recv_done, f->expected,
			op ? op_kind_name(op->kind) : "none", op ? op->len : 0,
			op ? (sim_now(w->sim) - op->posted_ns) / SIM_US : 0);
	}
}

void world_run(struct world *w, uint64_t ns)
{
	sim_run(w->sim, sim_now(w->sim) + ns);
}

/* Changes with each work request that completes, and with each packet of one that
 * is acknowledged: a large message over a small MTU takes long where threads lose
 * the CPU all the time. */
static uint64_t progress(const struct world *w)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < w->flows; i++)
		sum += w->flow[i]->completed + w->flow[i]->recv_done;
	for (unsigned i = 0; i < 2 * w->cfg.conns; i++) {
		const struct nic_qp *qp = w->conn[i / 2].end[i % 2].qp;

		if (qp)
			sum += (uint64_t)qp->qp.req.psn.una << 16;
	}
	return sum;
}

void world_finish(struct world *w)
{
	uint64_t since = sim_now(w->sim), last = 0;

	while (!all_done(w)) {
		if (w->busy || progress(w) != last)
			since = sim_now(w->sim);
		last = progress(w);
		if (sim_now(w->sim) - since > STUCK_NS) {
			say_stuck(w);
			world_fail(w, "I1: nothing completes any more");
		}
		world_run(w, 100 * SIM_US);
		for (unsigned i = 0; i < w->cfg.nodes; i++)
			node_watch(&w->node[i]);
	}
	/* What is late, comes now. */
	world_run(w, 5 * SIM_MS);
	for (unsigned i = 0; i < w->flows; i++)
		flow_final(w->flow[i]);
}

static void threads_join(struct world *w)
{
	const uint64_t limit = sim_now(w->sim) + 60000 * (uint64_t)SIM_MS;

	w->stop = true;
	for (unsigned i = 0; i < w->flows; i++)
		count_stop(w->flow[i]);
	while (w->threads != 0) {
		EXPECT(w, sim_now(w->sim) < limit,
		       "a thread does not end: it waits in a verb");
		world_run(w, 100 * SIM_US);
	}
}

void world_close(struct world *w)
{
	threads_join(w);
	for (unsigned i = 0; i < w->cfg.nodes; i++) {
		node_mix(&w->node[i]);
		sim_mix_memory(w->node[i].os);
	}
	for (unsigned i = 0; i < w->cfg.conns; i++) {
		end_destroy(&w->conn[i].end[0]);
		end_destroy(&w->conn[i].end[1]);
	}
	for (unsigned i = 0; i < w->flows; i++) {
		flow_close(w->flow[i]);
		free(w->flow[i]);
	}
	for (unsigned i = 0; i < w->cfg.nodes; i++)
		node_close(&w->node[i]);
	w->stats = *sim_stats(w->sim);
	attack_watch(w);
	for (unsigned i = 0; i < SIM_HASHES; i++)
		w->hash[i] = w->hash[i] * 31 +
			     sim_hash(w->sim, (enum sim_hash)i);
	EXPECT(w, w->total.v[CNT_engine_majflt] >= w->stats.major,
	       "I6: %" PRIu64 " moves met absent pages, %" PRIu64
	       " are counted",
	       w->stats.major, w->total.v[CNT_engine_majflt]);
	EXPECT(w, w->total.v[CNT_engine_minflt] >= w->stats.minor,
	       "I6: %" PRIu64 " moves met absent pages, %" PRIu64
	       " are counted",
	       w->stats.minor, w->total.v[CNT_engine_minflt]);
	EXPECT(w, !w->total.v[CNT_beyond_credit] || w->total.v[CNT_quota_left],
	       "I4: %" PRIu64 " packets were beyond what was lent",
	       w->total.v[CNT_beyond_credit]);
	EXPECT(w,
	       w->stats.lock_waits == 0 ||
		       w->cfg.strategies & STRATEGY_BIT(STRATEGY_BLOCK),
	       "a lock was held across a call that may block, %" PRIu64
	       " times",
	       w->stats.lock_waits);
	sim_close(w->sim);
	w->sim = NULL;
}

void world_fail(struct world *w, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s, seed %" PRIu64 ", at %.3f us: ", w->scenario,
		w->seed, w->sim ? (double)sim_now(w->sim) / SIM_US : 0);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr,
		"\n  again: sim_run --scenario %s --seed %" PRIu64
		" --verbose\n",
		w->scenario, w->seed);
	if (w->verbose && w->sim)
		say_stuck(w);
	fflush(NULL);
	exit(1);
}
