/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend.c: regions are suspended, moved to other memory and resumed while peers
 * use them, with loss, reordering and evictions. Nothing may touch a region that
 * is suspended, all data is right, and with the smallest budgets that programs ask
 * for no nopin times out; a standard peer survives 0.9 of what it was said to.
 */
#include "base/page.h"
#include "nic/device.h"
#include "nic/suspension.h"
#include "oracle.h"
#include "scenarios.h"

#include <errno.h>
#include <inttypes.h>

enum { LONGS_MAX = 1 };

#define LONG_NS (2500 * (uint64_t)SIM_MS)

/** struct choice - A region, and the memory that it is all of. */
struct choice {
	uint32_t key;
	uint64_t addr;
	struct flow *flow; /* or NULL: the cells of atomics */
	bool target;
};

static struct choice choose(struct node *node)
{
	struct world *w = node->w;
	struct flow *f = w->flow[sim_between(w->sim, 0, w->flows - 1)];

	if (sim_chance(w->sim, SIM_PPM / 10))
		return (struct choice){node->cells_key, node->cells, NULL,
				       false};
	if (f->from->node == node)
		return (struct choice){f->local_key, f->local, f, false};
	if (f->to->node != node)
		return (struct choice){.key = 0};
	if (sim_chance(w->sim, SIM_PPM / 3))
		return (struct choice){f->recv_key, f->recv_mem, f, false};
	return (struct choice){f->remote_key, f->target, f, true};
}

static struct area *area_at(struct node *node, uint64_t addr)
{
	for (unsigned i = 0; i < node->areas; i++)
		if (node->area[i].addr == addr)
			return &node->area[i];
	world_fail(node->w, "no area at 0x%" PRIx64, addr);
}

/* Its content goes elsewhere, and what was there is gone. */
static void move(struct node *node, struct choice *c)
{
	const uint64_t bytes = TARGET_BYTES + SOURCE_BYTES;
	struct area *a = area_at(node, c->addr);
	struct world *w = node->w;
	uint8_t page[PAGE_BYTES];
	uint64_t to;

	to = sim_mmap(node->os, bytes, w->cfg.backing, SIM_READ | SIM_WRITE);
	for (uint64_t off = 0; off < bytes; off += PAGE_BYTES) {
		sim_peek(node->os, c->addr + off, page, PAGE_BYTES);
		sim_write(node->os, to + off, page, PAGE_BYTES);
	}
	EXPECT(w,
	       nic_mr_update(node->nic, c->key, to, bytes - 1) == -EINVAL &&
		       nic_mr_update(node->nic, c->key, UINT64_C(1) << 40,
				     bytes) == -EFAULT,
	       "an update that cannot be is accepted");
	EXPECT(w, nic_mr_update(node->nic, c->key, to, bytes) == 0, "update");
	c->flow->target = a->addr = to;
	while (sim_munmap(node->os, c->addr))
		sim_sleep(w->sim, SIM_US);
	c->addr = to;
}

static void expect_state(struct node *node, const struct choice *c,
			 bool suspended)
{
	struct nic_suspension s;

	EXPECT(node->w, nic_mr_suspension(node->nic, c->key, &s) == 0, "query");
	EXPECT(node->w, s.suspended == suspended, "state of a suspension");
	if (suspended)
		EXPECT(node->w, nic_mr_suspend(node->nic, c->key, 0) == -EINVAL,
		       "suspended twice");
	else
		EXPECT(node->w, nic_mr_resume(node->nic, c->key) == -EINVAL,
		       "resumed twice");
}

static uint64_t draw_length(struct node *node, uint32_t key)
{
	struct world *w = node->w;
	struct nic_suspension s;

	EXPECT(w, nic_mr_suspension(node->nic, key, &s) == 0, "query");
	if (w->cfg.standard) {
		EXPECT(w, s.limit_ns != UINT64_MAX, "no limit");
		return sim_between(w->sim, 0, s.limit_ns / 10 * 9);
	}
	if (w->longs < LONGS_MAX && sim_chance(w->sim, SIM_PPM / 20)) {
		w->longs++;
		return LONG_NS;
	}
	return sim_between(w->sim, 0, 4 * SIM_MS);
}

static void suspend_once(struct node *node)
{
	struct choice c = choose(node);
	struct world *w = node->w;
	struct sim *sim = w->sim;
	struct area *a;
	uint64_t ns;
	int err;

	if (!c.key || w->expect_errors)
		return;
	ns = draw_length(node, c.key);
	/* what is announced may be wrong */
	err = nic_mr_suspend(node->nic, c.key,
			     sim_chance(sim, SIM_PPM / 2)
				     ? ns
				     : sim_between(sim, 0, 2 * SIM_MS));
	if (err == -EOPNOTSUPP)
		return;
	EXPECT(w, err == 0, "nic_mr_suspend: %d", err);
	a = area_at(node, c.addr);
	a->suspended = true;
	w->suspending++;
	w->busy = true;
	sim_say(sim, "node %u: suspended 0x%" PRIx64 " for %u us", node->index,
		c.addr, (unsigned)(ns / SIM_US));
	sim_sleep(sim, ns / 2);
	expect_state(node, &c, true);
	if (c.target && sim_chance(sim, SIM_PPM / 2))
		move(node, &c);
	sim_sleep(sim, ns / 2);
	a->suspended = false;
	w->busy = --w->suspending > 0;
	sim_say(sim, "node %u: resumed 0x%" PRIx64, node->index, c.addr);
	err = nic_mr_resume(node->nic, c.key);
	EXPECT(w, err == 0, "nic_mr_resume: %d", err);
	expect_state(node, &c, false);
}

/* A standard peer has all its retries again when it made progress, which may take
 * it a timeout. */
static void suspend_thread(void *arg)
{
	enum { SOON = SIM_MS, LATER = 200 * SIM_MS };
	struct node *node = arg;
	struct world *w = node->w;

	while (!w->stop) {
		sim_sleep(w->sim, w->cfg.standard
					  ? LATER
					  : sim_between(w->sim, 1, SOON));
		suspend_once(node);
	}
}

static void draw(struct world *w)
{
	struct sim *sim = w->sim;

	w->cfg.standard = sim_chance(sim, SIM_PPM / 4);
	w->cfg.recvs = 16;
	w->cfg.window = MIN(w->cfg.window, 8);
	w->cfg.polite = true;
	w->cfg.ops = w->cfg.standard ? 20 : 60;
	w->cfg.rnr_retry = 0;
	w->cfg.backing = (enum sim_backing)sim_between(sim, SIM_CHEAP,
						       SIM_FILE);
	w->cfg.mem.major_max_ns = sim_between(sim, 100, 1000) * SIM_US;
	w->cfg.evict_ns = sim_chance(sim, SIM_PPM / 2) ? 100 * SIM_US : 0;
	w->cfg.choose = sim_chance(sim, SIM_PPM / 2);
	w->cfg.big = SIM_PPM / 4;
	if (w->cfg.standard && sim_chance(sim, SIM_PPM / 2)) {
		w->cfg.backing = SIM_CHEAP;
		w->cfg.evict_ns = 0;
	} else if (w->cfg.standard) {
		w->cfg.rnr_retry = 6; /* pages may cost some */
	}
	if (w->cfg.standard)
		return;
	w->cfg.retry_cnt = 1;
	w->cfg.link.loss = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 50 : 0;
	w->cfg.link.reorder = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 20 : 0;
	w->cfg.link.dup = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 50 : 0;
}

static void run(struct world *w)
{
	draw(w);
	world_build(w);
	for (unsigned i = 0; i < w->cfg.nodes; i++)
		node_thread(&w->node[i], suspend_thread, &w->node[i]);
	world_finish(w);
	world_close(w);
	EXPECT(w, w->cfg.standard || w->total.v[CNT_timeouts] == 0,
	       "I2: %" PRIu64 " timeouts of nopins", w->total.v[CNT_timeouts]);
	EXPECT(w, !w->cfg.exact || w->stats.exact_misses == 0,
	       "I1: a move met an absent page on an exact host");
}

static const char *never(const struct sim_stats *st)
{
	return st->unmaps == 0 ? "a region that was moved"
	       : st->lost == 0 ? "a packet that was lost"
			       : NULL;
}

const struct scenario scenario_suspend = {
	.name = "suspend",
	.run = run,
	.musts = 9,
	.must = {CNT_suspensions, CNT_suspend_waits, CNT_suspend_asked,
		 CNT_suspend_heard, CNT_suspend_silence, CNT_fault_redirect,
		 CNT_fault_resume, CNT_fault_park, CNT_fault_silence},
	.never = never,
};
