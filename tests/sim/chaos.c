/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* chaos.c: evicts pages, forks, pauses processes, cuts the network and takes
 * addresses away, at random moments while the applications of a world run.
 */
#include "base/page.h"
#include "nic/device.h"
#include "nic/follow.h"
#include "nic/gids.h"
#include "oracle.h"
#include "os/net.h"

#include <errno.h>

/* Exponential would be nicer to a statistician; uniform is enough here. */
static void wait_about(struct world *w, uint64_t mean_ns)
{
	sim_sleep(w->sim, sim_between(w->sim, 1, 2 * mean_ns));
}

/* Runs of pages are hit too, so that a message meets more than one. */
static void evict_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;

	while (!w->stop) {
		const struct area *a =
			&node->area[sim_between(w->sim, 0, node->areas - 1)];
		const uint64_t pages = a->bytes / PAGE_BYTES;
		const uint64_t first = sim_between(w->sim, 0, pages - 1);
		const uint64_t num = sim_between(w->sim, 1, 8);

		for (uint64_t i = first; i < MIN(first + num, pages); i++)
			sim_evict(node->os, a->addr + i * PAGE_BYTES,
				  w->cfg.force);
		wait_about(w, w->cfg.evict_ns);
	}
}

/* Everything that is there, at once: as after a long pause. Where this happens
 * more often than a few pages can be brought in, nobody could make progress; they are
 * gone then before what was forgotten for them comes again.
 */
static void flush_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;
	const uint64_t seldom = MAX(100 * w->cfg.evict_ns,
				    20 * w->cfg.mem.major_max_ns);
	const uint64_t mean = w->cfg.flush_ns ? w->cfg.flush_ns : seldom;

	while (!w->stop) {
		for (unsigned i = 0; i < node->areas; i++) {
			const struct area *a = &node->area[i];

			for (uint64_t off = 0; off < a->bytes;
			     off += PAGE_BYTES)
				sim_evict(node->os, a->addr + off,
					  w->cfg.force);
		}
		wait_about(w, mean);
	}
}

static void fork_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;

	while (!w->stop) {
		wait_about(w, w->cfg.fork_ns);
		sim_fork(node->os);
	}
}

static void pause_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;

	while (!w->stop) {
		wait_about(w, w->cfg.pause_ns);
		sim_pause(node->os, sim_between(w->sim, 1, 5 * SIM_MS));
	}
}

static void cut_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;
	unsigned a, b;

	while (!w->stop) {
		wait_about(w, w->cfg.cut_ns);
		a = (unsigned)sim_between(w->sim, 1, w->cfg.nodes);
		b = (unsigned)sim_between(w->sim, 1, w->cfg.nodes);
		sim_partition(w->sim, a, b, true);
		sim_sleep(w->sim, sim_between(w->sim, 1, 20 * SIM_MS));
		sim_partition(w->sim, a, b, false);
	}
}

/* The address that the connections of @node are from goes, or comes back, to the slot
 * that it had. */
static void away(struct node *node, bool is)
{
	const bool v6 = node->w->cfg.v6;
	const struct os_addr *a;
	int err;

	sim_addr_set(node->os, v6, !is);
	sim_sleep(node->w->sim, 10 * SIM_MS); /* they are looked at no sooner */
	net_turn(node->nic, TIME_NEVER);
	err = gids_at(&node->nic->gids, v6 ? 2 : 0, &a);
	EXPECT(node->w, err == (is ? -ENODATA : 0),
	       "the GID of an address that %s: %d",
	       is ? "is away" : "came back", err);
}

static void away_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;

	while (!w->stop) {
		wait_about(w, w->cfg.away_ns);
		away(node, true);
		sim_sleep(w->sim, sim_between(w->sim, 1, 10 * SIM_MS));
		away(node, false);
	}
}

void chaos_start(struct world *w)
{
	const struct world_config *c = &w->cfg;

	for (unsigned i = 0; i < c->nodes; i++) {
		struct node *node = &w->node[i];

		if (c->evict_ns != 0) {
			node_thread(node, evict_thread, node);
			node_thread(node, flush_thread, node);
		}
		if (c->fork_ns != 0)
			node_thread(node, fork_thread, node);
		if (c->pause_ns != 0)
			node_thread(node, pause_thread, node);
	}
	if (c->cut_ns != 0)
		node_thread(&w->node[0], cut_thread, &w->node[0]);
	if (c->away_ns != 0)
		node_thread(&w->node[0], away_thread, &w->node[0]);
}
