/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall.c: a program that believes what it is told: what the table knew of a page
 * when a NIC wrote to it, or when the program looked last, is so until an event says
 * otherwise. Pages are evicted, tables are small, the process forks, regions are
 * suspended, made and given up, and queues overflow. On an exact host whatever is
 * believed when the queue has been emptied must be in the table: an event that is
 * lost is noticed by the next look.
 */
#include "mem/upcall.h"
#include "base/page.h"
#include "base/range.h"
#include "mem/ageing.h"
#include "mem/mr.h"
#include "mem/state.h"
#include "mem/table.h"
#include "nic/device.h"
#include "nic/memory.h"
#include "nic/suspension.h"
#include "nic/upcall_queue.h"
#include "oracle.h"
#include "scenarios.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

/** struct watched - A region that is told of. @gone: deregistered. */
struct watched {
	struct watched *next;
	uint64_t addr, iova, length;
	bool gone;
};

struct watched *upcall_watch(struct node *node, struct mr_attr *attr)
{
	struct world *w = node->w;
	struct watched *r;

	if (!node->upcalls)
		return NULL;
	r = calloc(1, sizeof(*r));
	CHECK(r);
	r->addr = attr->addr;
	r->iova = attr->iova;
	r->length = attr->length;
	r->next = node->watched;
	node->watched = r;
	attr->upcalls = nic_upcalls_queue(node->upcalls);
	attr->cookie = r;
	attr->weight = (uint32_t)sim_between(w->sim, 0, 5);
	if (sim_chance(w->sim, SIM_PPM / 2))
		attr->minimum = (uint32_t)sim_between(w->sim, 1,
						      w->cfg.entries / 64);
	return r;
}

/* What struct area.believed says of a page: no more than this. */
enum { UNKNOWN, READABLE, WRITABLE };

static uint8_t known(const struct node *node, uint64_t vpn)
{
	const struct spt_view any = {{INT32_MAX, INT32_MAX}};
	const struct spt *s = &node->nic->mem->spt;

	return spt_ready(s, &any, vpn, true)	? WRITABLE
	       : spt_ready(s, &any, vpn, false) ? READABLE
						: UNKNOWN;
}

/* A page that the move itself brought in (STRATEGY_INLINE) was not known. */
void upcall_wrote(struct node *node, struct area *a, uint64_t addr,
		  uint64_t len)
{
	if (!a->believed)
		return;
	for (uint64_t p = page_of(addr); p <= page_of(addr + len - 1); p++)
		a->believed[p - page_of(a->addr)] = known(node, p);
}

void upcall_open(struct node *node)
{
	struct world *w = node->w;
	int fd;

	if (w->cfg.upcalls)
		EXPECT(w,
		       nic_upcalls_open(node->nic, w->cfg.upcalls,
					&node->upcalls, &fd) == 0,
		       "nic_upcalls_open");
}

/* With whatever is queued. */
void upcall_close(struct node *node)
{
	if (!node->upcalls)
		return;
	EXPECT(node->w, nic_upcalls_close(node->upcalls) == 0,
	       "a queue without regions cannot be closed");
	for (struct watched *r = node->watched, *next; r; r = next) {
		next = r->next;
		free(r);
	}
	for (unsigned i = 0; i < node->areas; i++)
		free(node->area[i].believed);
}

/* --- the program ----------------------------------------------------------------- */

/* Of pages of [addr, addr + len) no more than @most is believed any more. */
static void forget(struct node *node, uint64_t addr, uint64_t len, uint8_t most)
{
	const uint64_t end = sat_add(addr, len);

	for (unsigned i = 0; i < node->areas; i++) {
		struct area *a = &node->area[i];

		for (uint64_t off = 0; off < a->bytes; off += PAGE_BYTES) {
			uint8_t *b = &a->believed[off / PAGE_BYTES];

			if (a->addr + off < end &&
			    a->addr + off + PAGE_BYTES > addr)
				*b = MIN(*b, most);
		}
	}
}

static void told(struct node *node, const struct upcall *u)
{
	const struct watched *r = u->cookie;
	struct world *w = node->w;

	EXPECT(w, u->at_ns <= sim_now(w->sim), "an event from the future");
	if (u->reason == UPCALL_EVERYTHING) {
		EXPECT(w, !r && u->length == UINT64_MAX, "of a region");
		forget(node, 0, UINT64_MAX, UNKNOWN);
		return;
	}
	EXPECT(w, !r->gone, "node %u: told of a region that is gone",
	       node->index);
	EXPECT(w,
	       u->length > 0 && u->iova >= r->iova &&
		       range_ok(u->iova - r->iova, u->length, r->length),
	       "node %u: told of 0x%" PRIx64 " + %" PRIu64
	       ", beyond the region",
	       node->index, u->iova, u->length);
	forget(node, r->addr + (u->iova - r->iova), u->length,
	       u->reason == UPCALL_PROTECTED ? READABLE : UNKNOWN);
}

/* It looks. */
static void look(struct node *node)
{
	struct world *w = node->w;

	for (unsigned i = 0; i < node->areas; i++) {
		const struct area *a = &node->area[i];

		for (uint64_t p = 0; p < a->bytes / PAGE_BYTES; p++) {
			const uint8_t is = known(node, page_of(a->addr) + p);

			EXPECT(w, !w->cfg.exact || is >= a->believed[p],
			       "node %u: 0x%" PRIx64 " is not ready for %s any "
			       "more, and nobody said so",
			       node->index, a->addr + p * PAGE_BYTES,
			       a->believed[p] == WRITABLE ? "writing"
							  : "reading");
			a->believed[p] = is;
		}
	}
}

static void believe_nothing(struct node *node)
{
	for (unsigned i = 0; i < node->areas; i++) {
		struct area *a = &node->area[i];

		a->believed = calloc(a->bytes / PAGE_BYTES, 1);
		CHECK(a->believed);
	}
}

static void mix(const struct node *node, const struct upcall *u)
{
	const uint64_t fields[] = {node->index, u->reason, u->below,
				   u->iova,	u->length, u->at_ns};

	sim_mix(node->w->sim, SIM_HASH_COMPLETIONS, fields, sizeof(fields));
}

static void program(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;
	struct upcall u;
	int err;

	while (!w->stop) {
		sim_sleep(w->sim, sim_between(w->sim, 1, 300 * SIM_US));
		while (!(err = nic_upcalls_get(node->upcalls, &u))) {
			mix(node, &u);
			told(node, &u);
		}
		EXPECT(w, err == -EAGAIN, "nic_upcalls_get: %d", err);
		look(node);
	}
}

/* --- regions come and go ------------------------------------------------------------ */

static void churn_once(struct node *node)
{
	struct world *w = node->w;
	const struct area *a =
		&node->area[sim_between(w->sim, 0, node->areas - 1)];
	const uint64_t off = sim_between(w->sim, 0, a->bytes - 1);
	struct mr_attr attr = {.pd = node->pd,
			       .addr = a->addr + off,
			       .length = sim_between(w->sim, 1, a->bytes - off),
			       .access = ACCESS_LOCAL_WRITE};
	struct watched *r = upcall_watch(node, &attr);
	uint32_t key;
	int err;

	if (sim_chance(w->sim, SIM_PPM / 4))
		attr.minimum = w->cfg.entries / 4;
	err = nic_mr_reg(node->nic, &attr, &key);
	r->gone = err != 0;
	EXPECT(w, !err || (err == -ENOSPC && attr.minimum), "nic_mr_reg: %d",
	       err);
	sim_sleep(w->sim, sim_between(w->sim, 1, SIM_MS));
	if (err)
		return;
	if (sim_chance(w->sim, SIM_PPM / 2)) {
		EXPECT(w, nic_mr_suspend(node->nic, key, 0) == 0, "suspend");
		sim_sleep(w->sim, sim_between(w->sim, 1, 20 * SIM_US));
		EXPECT(w, nic_mr_resume(node->nic, key) == 0, "resume");
	}
	EXPECT(w, nic_upcalls_close(node->upcalls) == -EBUSY,
	       "a queue that is used was closed");
	EXPECT(w, nic_mr_dereg(node->nic, key) == 0, "dereg");
	r->gone = true;
}

static void churn_thread(void *arg)
{
	struct node *node = arg;

	while (!node->w->stop) {
		churn_once(node);
		sim_sleep(node->w->sim,
			  sim_between(node->w->sim, 1, 500 * SIM_US));
	}
}

static void run(struct world *w)
{
	struct sim *sim = w->sim;

	w->cfg.exact = sim_chance(sim, 3 * SIM_PPM / 4);
	w->cfg.upcalls = sim_chance(sim, SIM_PPM / 2)
				 ? (unsigned)sim_between(sim, 1, 8)
				 : 256;
	w->cfg.entries = sim_chance(sim, SIM_PPM / 2) ? 512 : 2048;
	w->cfg.backing = (enum sim_backing)sim_between(sim, SIM_CHEAP,
						       SIM_FILE);
	w->cfg.choose = sim_chance(sim, SIM_PPM / 2);
	w->cfg.evict_ns = 20 * SIM_US;
	w->cfg.force = !w->cfg.choose;
	w->cfg.fork_ns = sim_chance(sim, SIM_PPM / 3) ? SIM_MS : 0;
	w->cfg.mem.major_max_ns = sim_between(sim, 100, 1000) * SIM_US;
	world_build(w);
	for (unsigned i = 0; i < w->cfg.nodes; i++) {
		believe_nothing(&w->node[i]);
		node_thread(&w->node[i], program, &w->node[i]);
		node_thread(&w->node[i], churn_thread, &w->node[i]);
	}
	world_finish(w);
	world_close(w);
	EXPECT(w, !w->cfg.exact || w->stats.exact_misses == 0,
	       "I1: a move met an absent page on an exact host");
}

const struct scenario scenario_upcall = {
	.name = "upcall",
	.run = run,
	.musts = 7,
	.must = {CNT_upcalls, CNT_upcalls_merged, CNT_upcall_overflows,
		 CNT_spt_evictions, CNT_spt_spared, CNT_spt_below,
		 CNT_prefetch_hits},
};
