/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ahead.c: what is fetched before it is needed, in virtual time. One program sends
 * messages whose pages are slow, each its own page, at either end; how long that
 * takes says what was asked for meanwhile.
 */
#include "base/page.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "nic/device.h"
#include "nic/memory.h"
#include "nic/post.h"
#include "nic/qp.h"
#include "oracle.h"
#include "scenarios.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PAGES = 1024, LEN = 512, SLOW_NS = SIM_MS, BURST = 5 };

/* Whose pages are slow. */
enum site {
	SITE_NOWHERE,
	SITE_TARGET, /* WRITE: at the peer */
	SITE_READ, /* READ: at the peer */
	SITE_SOURCE, /* SEND: ours */
	SITE_RECEIVE, /* SEND: where the peer receives */
	SITE_INTO, /* READ: ours */
	SITE_KINDS
};

/**
 * struct run - @page: of message i; @window: messages outstanding
 * @mem, @fast: at each end: slow pages; and as many that are there
 */
struct run {
	struct world *w;
	enum site site;
	unsigned num, window, posted, done;
	uint32_t page[PAGES];
	uint64_t mem[2], fast[2], took_ns;
	uint32_t key[2];
	void (*between)(struct run *r);
};

static bool slow_end(enum site site)
{
	return site == SITE_TARGET || site == SITE_READ || site == SITE_RECEIVE;
}

static void fill(uint8_t *out, unsigned i)
{
	gen_bytes(i + 1, 0, out, LEN);
}

static uint64_t slow_at(const struct run *r, unsigned i)
{
	return r->mem[slow_end(r->site)] + r->page[i] * PAGE_BYTES + 8;
}

static uint64_t fast_at(const struct run *r, unsigned i)
{
	return r->fast[!slow_end(r->site)] + i % PAGES * PAGE_BYTES + 8;
}

/* From where the bytes of message @i come, and where they go. */
static bool slow_is_written(enum site site)
{
	return site == SITE_TARGET || site == SITE_RECEIVE || site == SITE_INTO;
}

static void memory(struct run *r, unsigned e)
{
	struct node *node = r->w->conn[0].end[e].node;
	const uint64_t bytes = PAGES * PAGE_BYTES;
	struct mr_attr attr = {.pd = node->pd,
			       .access = ACCESS_LOCAL_WRITE |
					 ACCESS_REMOTE_WRITE |
					 ACCESS_REMOTE_READ};
	const uint8_t zero[PAGE_BYTES] = {0};

	sim_watch(node->os, NULL, NULL);
	sim_watch_drop(node->os, NULL, NULL);
	/* one region: keys are the same */
	r->mem[e] = sim_mmap(node->os, bytes, SIM_FILE, SIM_READ | SIM_WRITE);
	r->fast[e] = sim_mmap(node->os, bytes, SIM_CHEAP, SIM_READ | SIM_WRITE);
	attr.addr = attr.iova = r->mem[e];
	attr.length = r->fast[e] + bytes - r->mem[e];
	EXPECT(r->w, nic_mr_reg(node->nic, &attr, &r->key[e]) == 0, "reg");
	for (unsigned p = 0; p < PAGES; p++)
		sim_write(node->os, r->fast[e] + p * PAGE_BYTES, zero,
			  PAGE_BYTES);
}

static void data(struct run *r)
{
	const bool from_slow = !slow_is_written(r->site);
	struct end *end = r->w->conn[0].end;
	uint8_t buf[LEN];

	for (unsigned i = 0; i < r->num; i++) {
		fill(buf, i);
		if (from_slow)
			sim_write(end[slow_end(r->site)].node->os,
				  slow_at(r, i), buf, LEN);
		else
			sim_write(end[!slow_end(r->site)].node->os,
				  fast_at(r, i), buf, LEN);
	}
	for (unsigned e = 0; e < 2; e++)
		for (unsigned p = 0; p < PAGES; p++) {
			const uint64_t at = r->mem[e] + p * PAGE_BYTES;

			sim_evict(end[e].node->os, at, true);
			sim_slow(end[e].node->os, at, SLOW_NS);
		}
}

static void check_data(struct run *r)
{
	const bool to_slow = slow_is_written(r->site);
	struct end *end = r->w->conn[0].end;
	uint8_t want[LEN], got[LEN];

	for (unsigned i = 0; i < r->num; i++) {
		bool slow = slow_end(r->site);

		fill(want, i);
		EXPECT(r->w,
		       sim_peek(end[to_slow ? slow : !slow].node->os,
				to_slow ? slow_at(r, i) : fast_at(r, i), got,
				LEN) == 0 &&
			       memcmp(got, want, LEN) == 0,
		       "message %u is not what was sent", i);
	}
}

static void post_receive(struct run *r, unsigned i)
{
	struct nic_qp *qp = r->w->conn[0].end[1].qp;
	const uint64_t at = r->site == SITE_RECEIVE ? slow_at(r, i)
						    : fast_at(r, i);
	struct wqe *w;

	EXPECT(r->w, nic_recv_begin(qp) == 0, "nic_recv_begin");
	w = nic_recv_slot(qp);
	EXPECT(r->w, w, "no room for a receive");
	w->wr_id = i;
	w->op = WR_RECV;
	w->flags = 0;
	w->length = LEN;
	w->num_sge = 1;
	wqe_sge(w)[0] = (struct sge){at, LEN, r->key[1]};
	nic_recv_publish(qp);
	nic_recv_end(qp);
}

static void post(struct run *r, unsigned i)
{
	const bool there = slow_end(r->site);
	struct nic_qp *qp = r->w->conn[0].end[0].qp;
	const bool sends = r->site == SITE_SOURCE || r->site == SITE_RECEIVE;
	struct wqe *w;

	if (sends)
		post_receive(r, i);
	EXPECT(r->w, nic_send_begin(qp) == 0, "nic_send_begin");
	w = nic_send_slot(qp);
	EXPECT(r->w, w, "no room for a request");
	w->wr_id = i;
	w->op = sends ? WR_SEND : r->site == SITE_TARGET ? WR_WRITE : WR_READ;
	w->flags = WQE_SIGNALED;
	w->length = LEN;
	w->num_sge = 1;
	w->raddr = there ? slow_at(r, i) : fast_at(r, i);
	w->rkey = r->key[1];
	wqe_sge(w)[0] = (struct sge){there ? fast_at(r, i) : slow_at(r, i), LEN,
				     r->key[0]};
	nic_send_publish(qp);
	nic_send_end(qp);
}

static unsigned poll(struct run *r, unsigned e)
{
	const struct end *end = &r->w->conn[0].end[e];
	struct cqe c[8];
	int n = node_poll(end->node, e ? end->init.recv_cq : end->init.send_cq,
			  8, c);

	EXPECT(r->w, n >= 0, "nic_cq_poll: %d", n);
	for (int i = 0; i < n; i++)
		EXPECT(r->w, c[i].status == WC_SUCCESS,
		       "message %u ended in status %u", (unsigned)c[i].wr_id,
		       c[i].status);
	return (unsigned)n;
}

/* The program at the other end polls, too. */
static void peer_thread(void *arg)
{
	struct run *r = arg;

	while (r->done < r->num) {
		poll(r, 1);
		sim_sleep(r->w->sim, SIM_US);
	}
}

static void thread(void *arg)
{
	struct run *r = arg;
	const uint64_t began = sim_now(r->w->sim);

	while (r->done < r->num) {
		while (r->posted < r->num && r->posted - r->done < r->window)
			post(r, r->posted++);
		r->done += poll(r, 0);
		if (r->between)
			r->between(r);
		sim_sleep(r->w->sim, SIM_US);
	}
	r->took_ns = sim_now(r->w->sim) - began;
	r->w->busy = false;
}

static void world(struct world *w, unsigned ahead)
{
	const struct sim_link_config link = {.latency_min_ns = SIM_US,
					     .latency_max_ns = 2 * SIM_US};

	w->cfg.ops = 0;
	w->cfg.conns = 1;
	w->cfg.link = link;
	w->cfg.pagers = 16;
	w->cfg.tickets = 64;
	w->cfg.slots = 256;
	w->cfg.entries = 1 << 16;
	w->cfg.ahead = ahead;
	w->cfg.path_mtu = 1024;
	w->cfg.rd_atomic = 16;
	w->cfg.mem.minor_max_ns = SIM_US;
	world_build(w);
}

/* One run in a world of its own, which is closed afterwards. */
static void run_one(struct run *r)
{
	struct world *w = r->w;

	for (unsigned e = 0; e < 2; e++)
		memory(r, e);
	data(r);
	/* the tick in which a region is made is no part of it */
	world_run(w, 3 * SIM_MS);
	w->busy = true;
	node_thread(&w->node[0], thread, r);
	node_thread(&w->node[1], peer_thread, r);
	world_finish(w);
	check_data(r);
	for (unsigned e = 0; e < 2; e++)
		EXPECT(w,
		       nic_mr_dereg(w->conn[0].end[e].node->nic, r->key[e]) ==
			       0,
		       "dereg");
	world_close(w);
}

/* --- many messages ------------------------------------------------------------ */

/* In no order that anybody could guess. */
static void scatter_pages(struct run *r)
{
	static const uint32_t page[BURST] = {700, 13, 511, 222, 900};

	r->num = r->window = BURST;
	memcpy(r->page, page, sizeof(page));
}

static void run_queue(struct world *w)
{
	const unsigned ahead = w->seed % 2 ? AHEAD_QUEUE : AHEAD_MESSAGE;
	struct run *r = calloc(1, sizeof(*r));

	CHECK(r);
	r->w = w;
	r->site = 1 + (enum site)(w->seed / 2 % (SITE_KINDS - 1));
	scatter_pages(r);
	/* READs of a peer that is not known yet are taken one by one */
	w->cfg.mute = 0;
	world(w, ahead);
	run_one(r);
	if (ahead == AHEAD_QUEUE)
		EXPECT(w, r->took_ns < 2 * SLOW_NS,
		       "%u messages to slow pages (site %d) took %" PRIu64
		       " us, not one page's time",
		       r->num, r->site, r->took_ns / SIM_US);
	else
		EXPECT(w, r->took_ns > (BURST - 1) * SLOW_NS,
		       "site %d: %" PRIu64 " us; does anything wait here?",
		       r->site, r->took_ns / SIM_US);
	free(r);
}

const struct scenario scenario_queue = {.name = "queue", .run = run_queue};

/* --- patterns ----------------------------------------------------------------- */

enum shape { SHAPE_STRIDE, SHAPE_BACK, SHAPE_RANDOM, SHAPE_KINDS };
enum { STRIDE = 3, EVICT_EVERY = 500 };

static void draw_pages(struct run *r, enum shape shape)
{
	r->num = PAGES / STRIDE;
	for (unsigned i = 0; i < r->num; i++)
		r->page[i] = shape == SHAPE_STRIDE ? STRIDE * i
			     : shape == SHAPE_BACK ? PAGES - 1 - STRIDE * i
						   : STRIDE * i + 1;
	for (unsigned i = r->num; shape == SHAPE_RANDOM && i > 1; i--) {
		unsigned k = (unsigned)sim_between(r->w->sim, 0, i - 1);
		uint32_t page = r->page[k];

		r->page[k] = r->page[i - 1];
		r->page[i - 1] = page;
	}
}

/* Now and then a page goes away, before or after it was of use. */
static void evict_some(struct run *r)
{
	struct node *node = r->w->conn[0].end[slow_end(r->site)].node;

	if (sim_between(r->w->sim, 0, EVICT_EVERY) == 0)
		sim_evict(node->os,
			  r->mem[slow_end(r->site)] +
				  sim_between(r->w->sim, 0, PAGES - 1) *
					  PAGE_BYTES,
			  false);
}

static void check_foreseen(const struct run *r, enum shape shape)
{
	const uint64_t *v = r->w->total.v;
	const uint64_t pages = v[CNT_prefetch_pages];

	EXPECT(r->w, v[CNT_engine_majflt] == 0 || !r->w->cfg.exact,
	       "a move met an absent page");
	EXPECT(r->w, v[CNT_prefetch_hits] + v[CNT_prefetch_waste] <= pages,
	       "pages are accounted for twice");
	if (shape == SHAPE_RANDOM) {
		/* and one that each access is for: far fewer than two */
		EXPECT(r->w, 4 * pages <= r->num,
		       "%" PRIu64 " pages foreseen for %u random accesses",
		       pages, r->num);
		return;
	}
	EXPECT(r->w, 10 * v[CNT_prefetch_hits] >= 8 * pages,
	       "of %" PRIu64 " pages only %" PRIu64 " were of use", pages,
	       v[CNT_prefetch_hits]);
	/* else it is often known before it is foreseen */
	EXPECT(r->w, r->window > 1 || 10 * v[CNT_prefetch_hits] >= 9 * r->num,
	       "only %" PRIu64 " of %u pages were foreseen",
	       v[CNT_prefetch_hits], r->num);
	EXPECT(r->w, r->took_ns < r->num * (uint64_t)SLOW_NS / 2,
	       "%u pages of %u us took %" PRIu64 " us", r->num,
	       SLOW_NS / SIM_US, r->took_ns / SIM_US);
}

static void run_prefetch(struct world *w)
{
	const enum shape shape = (enum shape)(w->seed % SHAPE_KINDS);
	struct run *r = calloc(1, sizeof(*r));

	CHECK(r);
	r->w = w;
	r->site = 1 + (enum site)(w->seed / SHAPE_KINDS % (SITE_KINDS - 1));
	r->window = (unsigned)sim_between(w->sim, 1, 4);
	draw_pages(r, shape);
	r->between = evict_some;
	world(w, AHEAD_PREFETCH);
	run_one(r);
	check_foreseen(r, shape);
	free(r);
}

const struct scenario scenario_prefetch = {
	.name = "prefetch",
	.run = run_prefetch,
	.musts = 3,
	.must = {CNT_prefetch_hits, CNT_prefetch_waste, CNT_faults},
};
