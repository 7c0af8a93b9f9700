/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flood.c: I4: a peer that touches cold, slow pages all the time hurts only itself.
 * Of three NICs the first is the target. The second works on pages of it that take
 * 10 ms, or that nobody sees come, through as many QPs as there are; the third
 * does ordinary work on pages that are cold too, but come soon. Each seed runs
 * without the flood first: that is what the third may expect of the target.
 */
#include "base/check.h"
#include "base/counters.h"
#include "base/page.h"
#include "oracle.h"
#include "scenarios.h"

#include <inttypes.h>
#include <stdlib.h>

enum { FLOODERS = 6, PEERS = 2 };

#define SLACK_NS (2 * (uint64_t)SIM_MS)

/** struct took - How long the third NIC's work took, and its longest operation. */
struct took {
	uint64_t all_ns, longest_ns;
};

/** struct chaos - Of one run: whose pages go, until it is over. */
struct chaos {
	struct node *node;
	bool stop;
};

static bool of_flooder(const struct flow *f)
{
	return f->from->node->index == 1 || f->to->node->index == 1;
}

static void evict_range(struct node *node, uint64_t addr, uint64_t bytes)
{
	for (uint64_t off = 0; off < bytes; off += PAGE_BYTES)
		sim_evict(node->os, addr + off, false);
}

/* No page of the flood stays longer than pages do that are in use; of the others
 * one run at a time goes. */
static void evict_thread(void *arg)
{
	const struct chaos *chaos = arg;
	struct node *node = chaos->node;
	struct world *w = node->w;

	while (!chaos->stop) {
		for (unsigned i = 0; i < w->flows; i++) {
			const struct flow *f = w->flow[i];
			uint64_t page = sim_between(w->sim, 0, 90);

			if (f->to->node != node)
				continue;
			if (of_flooder(f))
				evict_range(node, f->target,
					    TARGET_BYTES + SOURCE_BYTES);
			else
				evict_range(node, f->target + page * PAGE_BYTES,
					    4 * PAGE_BYTES);
		}
		sim_sleep(w->sim, 50 * SIM_US);
	}
}

/* @ns: what each page takes; 0: what pages take as a rule */
static void slow_pages(const struct flow *f, uint64_t ns)
{
	const uint64_t end = f->target + TARGET_BYTES + SOURCE_BYTES;

	for (uint64_t at = f->target; at < end; at += PAGE_BYTES)
		sim_slow(f->to->node->os, at, ns);
}

/* Return: is the third NIC done? */
static bool peers_done(const struct world *w)
{
	for (unsigned i = 0; i < w->flows; i++)
		if (!of_flooder(w->flow[i]) && !flow_done(w->flow[i]))
			return false;
	return true;
}

static struct took peers_took(struct world *w)
{
	const uint64_t since = sim_now(w->sim);
	const uint64_t limit = since + 2000 * (uint64_t)SIM_MS;
	struct took took = {0};

	while (!peers_done(w)) {
		EXPECT(w, sim_now(w->sim) < limit,
		       "I4: who does not flood waits for ever");
		world_run(w, 10 * SIM_US);
		node_watch(&w->node[0]);
	}
	took.all_ns = sim_now(w->sim) - since;
	for (unsigned i = 0; i < w->flows; i++)
		if (!of_flooder(w->flow[i]))
			took.longest_ns = MAX(took.longest_ns,
					      w->flow[i]->longest_ns);
	return took;
}

static void configure(struct world *w)
{
	struct world_config *c = &w->cfg;

	c->nodes = 3;
	c->hub = FLOODERS;
	c->conns = FLOODERS + PEERS;
	c->backing = SIM_FILE;
	c->mem.major_min_ns = 60 * SIM_US;
	c->mem.major_max_ns = 300 * SIM_US;
	c->pagers = (unsigned)sim_between(w->sim, 8, 16);
	c->slots = 512;
	c->entries = 1 << 16;
	c->window = 8;
	c->recvs = 16;
	c->polite = true;
	c->big = 0;
	c->standard = w->seed % 4 == 3;
	c->timeout = 21;
	/* A forged "port unreachable" ends the question whether it is a nopin, and how
	 * soon in each of the two runs is not for us to compare. */
	c->attack_ns = 0;
	if (w->seed % 2)
		c->tickets = 12; /* fewer than the flood has use for */
}

static struct took play(struct world *w, uint64_t flood_ns)
{
	struct chaos chaos = {.node = &w->node[0]};
	struct took took;

	configure(w);
	world_build(w);
	for (unsigned i = 0; i < w->flows; i++) {
		struct flow *f = w->flow[i];

		if (!of_flooder(f))
			continue;
		if (!flood_ns || f->to != &w->conn[i / 2].end[0])
			f->all = 0;
		slow_pages(f, flood_ns);
	}
	node_thread(chaos.node, evict_thread, &chaos);
	took = peers_took(w);
	for (unsigned i = 0; i < w->flows; i++)
		slow_pages(w->flow[i], 0);
	chaos.stop = true;
	world_finish(w);
	world_close(w);
	return took;
}

static void run(struct world *w)
{
	struct world *alone = calloc(1, sizeof(*alone));
	struct took want, took;

	CHECK(alone);
	*alone = (struct world){.scenario = w->scenario,
				.seed = w->seed,
				.verbose = w->verbose,
				.hash_all = w->hash_all};
	world_sim(alone, w->seed);
	world_config_draw(alone);
	want = play(alone, 0);
	memcpy(w->hash, alone->hash, sizeof(w->hash));
	free(alone);
	took = play(w, w->seed % 3 ? 10 * SIM_MS : 1000 * (uint64_t)SIM_MS);
	/* Of two shares each gets a third of the pagers and tickets, alone it would
	 * get half: 1.5 times. The rest is what is drawn anew, the times of the
	 * pages and the packets, which made up to 1.3 times in 435 seeds. */
	EXPECT(w, took.all_ns <= 2 * want.all_ns + SLACK_NS,
	       "I4: %" PRIu64 " us of work took %" PRIu64 " us in the flood",
	       want.all_ns / SIM_US, took.all_ns / SIM_US);
	EXPECT(w, took.longest_ns <= 2 * want.longest_ns + SLACK_NS,
	       "I4: an operation took %" PRIu64 " us, without flood %" PRIu64,
	       took.longest_ns / SIM_US, want.longest_ns / SIM_US);
}

const struct scenario scenario_flood = {
	.name = "flood",
	.run = run,
	.musts = 3,
	.must = {CNT_fault_redirect, CNT_ticket_waits, CNT_fault_park},
};
