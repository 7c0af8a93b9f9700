/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reg.c: every registration mode while pages are evicted, and while a thread of
 * each process registers, deregisters and unmaps what it pleases, as far as the
 * memory lock limit allows. Data is right in all of them, and a page is locked
 * exactly while the mode promises it.
 */
#include "nic/reg.h"
#include "base/page.h"
#include "mem/mr.h"
#include "nic/device.h"
#include "nic/memory.h"
#include "oracle.h"
#include "scenarios.h"

#include <errno.h>
#include <inttypes.h>

enum { CHURN_PAGES = 48, SPARE_PAGES = 24 };

/* --- what must be locked ------------------------------------------------------ */

static bool mode_pins(const struct world *w)
{
	return w->cfg.reg == REG_PIN || w->cfg.reg == REG_PIN_CACHE;
}

static void expect_page(const struct node *node, uint64_t addr, bool must,
			bool may)
{
	const bool is = sim_locked(node->os, addr);

	EXPECT(node->w, is || !must,
	       "node %u: 0x%" PRIx64 " is registered and not locked",
	       node->index, addr);
	EXPECT(node->w, !is || may,
	       "node %u: 0x%" PRIx64 " is locked and nobody needs it",
	       node->index, addr);
}

static void watch_areas(const struct node *node)
{
	for (unsigned i = 0; i < node->areas; i++) {
		const struct area *a = &node->area[i];

		for (uint64_t off = 0; off < a->bytes; off += PAGE_BYTES)
			expect_page(node, a->addr + off, a->regs, a->regs);
	}
}

static void watch_churn(const struct node *node)
{
	const bool keeps = node->w->cfg.reg == REG_PIN_CACHE;
	const struct churn *c = &node->churn;

	if (!c->area)
		return;
	for (unsigned i = 0; i < CHURN_PAGES; i++) {
		const uint64_t at = c->area + i * PAGE_BYTES;
		const bool in = at + PAGE_BYTES > c->addr &&
				at < c->addr + c->bytes;

		if (c->moving)
			continue;
		expect_page(node, at, c->live && in && !(keeps && c->stale),
			    keeps || (c->live && in));
	}
}

static uint64_t bytes_needed(const struct node *node)
{
	uint64_t sum = (CHURN_PAGES + 1) * PAGE_BYTES;

	for (unsigned i = 0; i < node->areas; i++)
		if (node->area[i].regs)
			sum += node->area[i].bytes;
	return sum;
}

void reg_watch(const struct node *node)
{
	const struct world *w = node->w;

	if (w->cfg.reg == REG_PIN_OP)
		return; /* see run() */
	if (mode_pins(w)) {
		watch_areas(node);
		watch_churn(node);
		EXPECT(node->w,
		       sim_locked_bytes(node->os) <= bytes_needed(node),
		       "node %u: more is locked than there is", node->index);
	} else {
		EXPECT(node->w, sim_locked_bytes(node->os) == 0,
		       "node %u: memory is locked", node->index);
	}
}

/* --- churn ---------------------------------------------------------------------- */

static void churn_remap(struct node *node)
{
	struct churn *c = &node->churn;

	while (sim_munmap(node->os, c->area))
		sim_sleep(node->w->sim, SIM_US);
	EXPECT(node->w,
	       sim_mmap_at(node->os, c->area, CHURN_PAGES * PAGE_BYTES,
			   SIM_SWAP, SIM_READ | SIM_WRITE) == 0,
	       "cannot map it again");
	c->stale = true;
}

static void churn_once(struct node *node)
{
	struct churn *c = &node->churn;
	struct sim *sim = node->w->sim;
	const uint64_t off = sim_between(sim, 0, CHURN_PAGES * PAGE_BYTES - 1);
	struct mr_attr attr = {.pd = node->pd, .access = ACCESS_LOCAL_WRITE};
	uint32_t key;
	int err;

	attr.addr = attr.iova = c->area + off;
	attr.length = sim_between(sim, 1, CHURN_PAGES * PAGE_BYTES - off);
	c->addr = attr.addr;
	c->bytes = attr.length;
	c->moving = true;
	err = nic_mr_reg(node->nic, &attr, &key);
	c->live = err == 0;
	c->moving = false;
	EXPECT(node->w, !err || (mode_pins(node->w) && err == -ENOMEM),
	       "nic_mr_reg: %d", err);
	sim_sleep(sim, sim_between(sim, 1, 200 * SIM_US));
	if (!c->live)
		return;
	c->moving = true;
	err = nic_mr_dereg(node->nic, key);
	EXPECT(node->w, err == 0, "nic_mr_dereg: %d", err);
	c->live = c->moving = false;
}

static void churn_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;

	while (!w->stop) {
		churn_once(node);
		sim_sleep(w->sim, sim_between(w->sim, 1, 200 * SIM_US));
		if (sim_chance(w->sim, SIM_PPM / 50))
			churn_remap(node);
	}
}

/* --- the scenario ----------------------------------------------------------------- */

static void node_limit(struct node *node)
{
	const struct world *w = node->w;
	const uint64_t spare = SPARE_PAGES * PAGE_BYTES;

	node->churn.area = sim_mmap(node->os, CHURN_PAGES * PAGE_BYTES,
				    SIM_SWAP, SIM_READ | SIM_WRITE);
	if (w->cfg.reg == REG_PIN_OP)
		sim_lock_limit(node->os,
			       sim_between(w->sim, 0, 1) * 4 * PAGE_BYTES);
	else
		sim_lock_limit(node->os, sim_locked_bytes(node->os) + spare);
	node_thread(node, churn_thread, node);
}

static void run(struct world *w)
{
	struct sim *sim = w->sim;

	w->cfg.reg = (unsigned)sim_between(sim, REG_PIN, REG_NUM - 1);
	if (sim_chance(sim, SIM_PPM / 2))
		w->cfg.pin_cache = PAGE_BYTES * sim_between(sim, 1, 1000);
	w->cfg.backing = (enum sim_backing)sim_between(sim, SIM_SWAP, SIM_FILE);
	w->cfg.evict_ns = 20 * SIM_US;
	w->cfg.force = true;
	w->cfg.mem.tear = SIM_PPM / 10;
	world_build(w);
	for (unsigned i = 0; i < w->cfg.nodes; i++)
		node_limit(&w->node[i]);
	world_finish(w);
	for (unsigned i = 0; i < w->cfg.nodes; i++)
		EXPECT(w,
		       w->cfg.reg != REG_PIN_OP ||
			       !sim_locked_bytes(w->node[i].os),
		       "node %u: no move is out, and pages are locked", i);
	world_close(w);
}

const struct scenario scenario_reg = {
	.name = "reg",
	.run = run,
	.musts = 8,
	.must = {CNT_pin_bytes_max, CNT_pin_refused, CNT_pin_hits,
		 CNT_pin_misses, CNT_pin_evictions, CNT_pin_moves,
		 CNT_prefault_pages, CNT_bounced_bytes},
};
