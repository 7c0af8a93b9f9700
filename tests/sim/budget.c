/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* budget.c: one NIC memory for all processes of a host. Eight processes of a machine
 * share a budget by their weights; a program elsewhere READs and WRITEs their memory.
 * Most of them work on what fits their share; one or two touch a hundred times as
 * much, and are there first, so that they have all of it; one may have next to no
 * weight, but a region that is promised what it needs.
 * Whoever wants its share gets it, soon; what nobody wants is lent; together they
 * stay within the budget; what a killed process had comes back; data is right.
 */
#include "base/page.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/pool.h"
#include "mem/state.h"
#include "mem/table.h"
#include "nic/arbiter.h"
#include "nic/device.h"
#include "nic/memory.h"
#include "nic/post.h"
#include "oracle.h"
#include "scenarios.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	PROCESSES = NODES_MAX - 1,
	BUDGET = 1024,
	LARGE = 100, /* times what fits */
	LITTLE = 5, /* the weight of who is promised ... */
	PROMISE = 24, /* ... so many entries, which it needs */
	WINDOW = 4,
	LEN = 64,
};

/* By the seed; PROMISED: as the last one's. */
enum weights { EQUAL, DRAWN, PROMISED, WEIGHTS_NUM };

/* Two looks, each with a pause of the background thread before it, and what comes in
 * between of a lost CPU. */
#define TAKE_BACK_NS (40 * (uint64_t)SIM_MS)

/** struct out - A request that is not complete. */
struct out {
	bool used, write;
	uint32_t page;
	uint64_t stamp;
};

/** struct proc - A process of the machine, and who works on its memory. */
struct proc {
	struct end *end;
	struct node *node;
	uint64_t mem, local;
	uint32_t key, local_key, pages, share;
	bool work, quiet;
	unsigned outs;
	struct out out[WINDOW];
	uint64_t *stamp, done;
};

struct run {
	struct world *w;
	struct proc proc[PROCESSES];
	bool stop;
	uint64_t stamps, above_ns;
};

/* --- the program ----------------------------------------------------------------- */

static bool in_use(const struct proc *p, uint32_t page)
{
	for (unsigned i = 0; i < WINDOW; i++)
		if (p->out[i].used && p->out[i].page == page)
			return true;
	return false;
}

static void post(struct run *r, struct proc *p, unsigned i)
{
	const uint64_t at = p->local + i * PAGE_BYTES;
	struct sim *sim = r->w->sim;
	struct out *o = &p->out[i];
	uint64_t words[LEN / 8];
	struct wqe *w;

	o->page = (uint32_t)sim_between(sim, 0, p->pages - 1);
	if (in_use(p, o->page))
		return;
	o->used = true;
	o->write = sim_chance(sim, SIM_PPM / 2);
	o->stamp = o->write ? ++r->stamps : p->stamp[o->page];
	for (unsigned k = 0; k < LEN / 8; k++)
		words[k] = o->write ? o->stamp : UINT64_MAX;
	sim_write(p->end->node->os, at, words, LEN);
	EXPECT(r->w, nic_send_begin(p->end->qp) == 0, "nic_send_begin");
	w = nic_send_slot(p->end->qp);
	EXPECT(r->w, w, "no room for a request");
	w->wr_id = (uint64_t)(p - r->proc) * WINDOW + i;
	w->op = o->write ? WR_WRITE : WR_READ;
	w->flags = WQE_SIGNALED;
	w->length = LEN;
	w->num_sge = 1;
	w->raddr = p->mem + o->page * PAGE_BYTES + 128;
	w->rkey = p->key;
	wqe_sge(w)[0] = (struct sge){at, LEN, p->local_key};
	nic_send_publish(p->end->qp);
	nic_send_end(p->end->qp);
	p->outs++;
}

static void complete(struct run *r, const struct cqe *e)
{
	struct proc *p = &r->proc[e->wr_id / WINDOW];
	const unsigned i = (unsigned)(e->wr_id % WINDOW);
	struct out *o = &p->out[i];
	uint64_t words[LEN / 8];

	EXPECT(r->w, e->status == WC_SUCCESS,
	       "I7: a request to process %u ended in status %u",
	       (unsigned)(p - r->proc), e->status);
	if (o->write) {
		p->stamp[o->page] = o->stamp;
	} else {
		sim_peek(p->end->node->os, p->local + i * PAGE_BYTES, words,
			 LEN);
		for (unsigned k = 0; k < LEN / 8; k++)
			EXPECT(r->w, words[k] == o->stamp,
			       "page %u of process %u: read %" PRIu64
			       ", written was %" PRIu64,
			       o->page, (unsigned)(p - r->proc), words[k],
			       o->stamp);
	}
	o->used = false;
	p->outs--;
	p->done++;
}

static void program(void *arg)
{
	struct run *r = arg;
	struct node *node = &r->w->node[0];
	unsigned outs = 1;

	while (!r->stop || outs > 0) {
		outs = 0;
		for (unsigned i = 0; i < PROCESSES; i++) {
			struct proc *p = &r->proc[i];

			for (unsigned k = 0; k < WINDOW; k++)
				if (p->work && !r->stop && !p->out[k].used)
					post(r, p, k);
			outs += p->outs;
		}
		for (unsigned q = 0; q < NODE_CQS; q++) {
			struct cqe e[8];
			int n = node_poll(node, node->cq[q], 8, e);

			EXPECT(r->w, n >= 0, "nic_cq_poll: %d", n);
			for (int i = 0; i < n; i++)
				complete(r, &e[i]);
		}
		sim_sleep(r->w->sim, 2 * SIM_US);
	}
	r->w->busy = false;
}

/* --- who has what ---------------------------------------------------------------- */

static const struct spt *table(const struct proc *p)
{
	return &p->node->nic->mem->spt;
}

/* Slots and pagers as well; the smallest pool and a pager there always are. */
static void check_bounds(const struct run *r)
{
	for (unsigned i = 0; i < PROCESSES; i++) {
		const struct nic *nic = r->proc[i].node->nic;

		EXPECT(r->w,
		       nic->mem->tickets.asked <=
			       MAX(nic->arbiter.cap[ARB_PAGERS] / 1000, 1u),
		       "process %u has %u pagers", i, nic->mem->tickets.asked);
		EXPECT(r->w,
		       nic->mem->pool.bound <= nic->mem->cfg.slots &&
			       nic->x.pool.lent_left <= slots_free(nic->mem),
		       "process %u lent more slots than there are", i);
		EXPECT(r->w,
		       table(&r->proc[i])->live <=
			       table(&r->proc[i])->sets.used * SPT_WAYS,
		       "process %u has entries out of its table", i);
	}
}

static uint64_t entries_of_all(const struct run *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PROCESSES; i++)
		if (!r->proc[i].quiet)
			sum += table(&r->proc[i])->live;
	return sum;
}

/* Run for @ns, and see that they are never above the budget for long. */
static void watch(struct run *r, uint64_t ns)
{
	const uint64_t end = sim_now(r->w->sim) + ns;
	struct world *w = r->w;

	while (sim_now(w->sim) < end) {
		world_run(w, 100 * SIM_US);
		check_bounds(r);
		node_watch(&w->node[1]);
		if (entries_of_all(r) <= BUDGET)
			r->above_ns = sim_now(w->sim);
		EXPECT(w, sim_now(w->sim) - r->above_ns <= TAKE_BACK_NS,
		       "I4: %" PRIu64 " entries are in use, the budget is %d",
		       entries_of_all(r), BUDGET);
	}
}

static uint64_t evictions(const struct proc *p)
{
	return p->node->nic->cnt.v[CNT_spt_evictions];
}

static uint64_t size(const struct proc *p)
{
	return table(p)->sets.used * SPT_WAYS;
}

/* Everybody who wants no more than its share has what it wants. */
static void check_shares(struct run *r, unsigned larges, unsigned killed)
{
	uint64_t before[PROCESSES];
	struct world *w = r->w;

	for (unsigned i = larges; i < PROCESSES; i++)
		before[i] = evictions(&r->proc[i]);
	watch(r, 30 * SIM_MS);
	for (unsigned i = larges; i < PROCESSES; i++)
		EXPECT(w, evictions(&r->proc[i]) == before[i],
		       "process %u lost entries that are in its share", i);
	for (unsigned i = killed; i < larges; i++)
		EXPECT(w, size(&r->proc[i]) >= r->proc[i].share,
		       "process %u has %" PRIu64 " of %u", i, size(&r->proc[i]),
		       r->proc[i].share);
}

/* What they do not want is lent to the large one that is left, but for some to grow
 * into. */
static void check_lent(struct run *r, unsigned larges)
{
	const uint64_t large = size(&r->proc[larges - 1]);
	uint64_t small = 0;

	for (unsigned i = larges; i < PROCESSES; i++)
		small += r->proc[i].pages * 9 / 8 + 2 * BUDGET / 64;
	EXPECT(r->w, large + small >= BUDGET,
	       "%" PRIu64 " entries of %d are lent, %" PRIu64 " wanted", large,
	       BUDGET, small);
}

/* --- */

static enum weights weights_of(const struct world *w)
{
	return (enum weights)(w->seed / 2 % WEIGHTS_NUM);
}

static bool is_promised(const struct world *w, unsigned i)
{
	return weights_of(w) == PROMISED && i == PROCESSES - 1;
}

static void memory(struct run *r, unsigned i)
{
	struct proc *p = &r->proc[i];
	struct mr_attr attr = {.pd = p->node->pd,
			       .length = (uint64_t)p->pages * PAGE_BYTES,
			       .access = ACCESS_LOCAL_WRITE |
					 ACCESS_REMOTE_WRITE |
					 ACCESS_REMOTE_READ};

	if (is_promised(r->w, i))
		attr.minimum = PROMISE;
	sim_watch(p->node->os, NULL, NULL);
	sim_watch_drop(p->node->os, NULL, NULL);
	p->stamp = calloc(p->pages, sizeof(*p->stamp));
	CHECK(p->stamp);
	p->mem = attr.addr = attr.iova = sim_mmap(p->node->os, attr.length,
						  r->w->cfg.backing,
						  SIM_READ | SIM_WRITE);
	EXPECT(r->w, nic_mr_reg(p->node->nic, &attr, &p->key) == 0, "reg");
	attr.minimum = 0;
	attr.length = WINDOW * PAGE_BYTES;
	attr.pd = p->end->node->pd;
	p->local = attr.addr = attr.iova = sim_mmap(
		p->end->node->os, attr.length, SIM_CHEAP, SIM_READ | SIM_WRITE);
	EXPECT(r->w, nic_mr_reg(p->end->node->nic, &attr, &p->local_key) == 0,
	       "reg");
}

static void evict_some(void *arg)
{
	struct run *r = arg;
	struct world *w = r->w;

	while (!r->stop) {
		const struct proc *p =
			&r->proc[sim_between(w->sim, 0, PROCESSES - 1)];
		const uint64_t page = sim_between(w->sim, 0, p->pages - 1);

		sim_evict(p->node->os, p->mem + page * PAGE_BYTES, false);
		sim_sleep(w->sim, 100 * SIM_US);
	}
}

static void configure(struct world *w)
{
	struct world_config *c = &w->cfg;

	c->nodes = 1 + PROCESSES;
	c->conns = PROCESSES;
	c->neighbours = true;
	c->ops = 0;
	c->polite = true;
	c->entries = 4 * BUDGET;
	c->budget = BUDGET;
	c->arbiter = ARBITER_FAIR;
	c->slots = 64;
	c->no_gso = c->no_gro = false;
	c->standard = false;
	c->v6 = false;
	c->rd_atomic = 8;
	c->timeout = 21;
	/* foreseen pages are entries that nobody asked for */
	c->ahead = AHEAD_PAGE;
	c->mem.major_max_ns = 200 * SIM_US;
	/* of memory where faults are cheap nobody needs to know what is there */
	if (c->backing == SIM_CHEAP)
		c->backing = SIM_FILE;
}

/* Of the processes. Each is the share at least. */
static void draw_weights(struct world *w)
{
	uint32_t *weight = w->cfg.weight + 1;

	for (unsigned i = 0; i < PROCESSES; i++)
		weight[i] = BUDGET / PROCESSES;
	if (weights_of(w) == DRAWN) {
		const unsigned at = (unsigned)sim_between(w->sim, 0,
							  PROCESSES - 1);

		weight[at] *= 2;
		weight[(at + 1) % PROCESSES] /= 2;
		weight[(at + 3) % PROCESSES] /= 2;
	} else if (weights_of(w) == PROMISED) {
		weight[PROCESSES - 1] = LITTLE;
	}
}

static void start(struct run *r, unsigned larges)
{
	struct world *w = r->w;

	configure(w);
	draw_weights(w);
	world_nodes(w);
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct proc *p = &r->proc[i];

		conn_open(w, &w->conn[i], &w->node[0], &w->node[1 + i]);
		p->end = &w->conn[i].end[0];
		p->node = &w->node[1 + i];
		p->share = w->cfg.weight[1 + i];
		p->pages = p->share / 2 * (i < larges ? LARGE : 1);
		if (is_promised(w, i))
			p->pages = PROMISE;
		p->work = i < larges;
		memory(r, i);
	}
	sim_watch(w->node[0].os, NULL, NULL);
	sim_watch_drop(w->node[0].os, NULL, NULL);
	r->above_ns = sim_now(w->sim);
	w->busy = true;
	node_thread(&w->node[0], program, r);
}

/* What it had is for the others; they notice by themselves. */
static void kill_one(struct run *r, struct proc *p)
{
	p->work = false;
	while (p->outs)
		watch(r, SIM_MS);
	sim_kill(p->node->os);
	p->quiet = true;
	watch(r, 100 * SIM_MS);
}

static void finish(struct run *r)
{
	struct world *w = r->w;

	r->stop = true;
	world_finish(w);
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct proc *p = &r->proc[i];

		EXPECT(w, p->done, "process %u did nothing", i);
		EXPECT(w, nic_mr_dereg(p->node->nic, p->key) == 0, "dereg");
		EXPECT(w, nic_mr_dereg(w->node[0].nic, p->local_key) == 0,
		       "dereg");
		free(p->stamp);
	}
	world_close(w);
}

static void run(struct world *w)
{
	struct run *r = calloc(1, sizeof(*r));
	const unsigned larges = 1 + w->seed % 2;

	CHECK(r);
	r->w = w;
	start(r, larges);
	/* they are there first, and have everything */
	watch(r, 150 * SIM_MS);
	EXPECT(w, entries_of_all(r) >= BUDGET / 2, "nothing was lent");
	for (unsigned i = larges; i < PROCESSES; i++)
		r->proc[i].work = true;
	/* each touches all that it works on */
	watch(r, 60 * SIM_MS);
	check_shares(r, larges, 0);
	node_thread(&w->node[0], evict_some, r);
	watch(r, 20 * SIM_MS);
	if (larges > 1) {
		kill_one(r, &r->proc[0]);
		check_shares(r, larges, 1);
	} else {
		watch(r, 60 * SIM_MS);
	}
	check_lent(r, larges);
	finish(r);
	free(r);
}

const struct scenario scenario_budget = {
	.name = "budget",
	.run = run,
	.musts = 3,
	.must = {CNT_spt_evictions, CNT_table_misses, CNT_faults},
};
