/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reads.c: READs of a connection are executed in the order in which they were posted,
 * whatever is lost. A program counts in its memory all the time, and no READ finds
 * less there than one before it: so a queue's head can be read ahead of what it is
 * the head of.
 */
#include "base/page.h"
#include "mem/mr.h"
#include "nic/device.h"
#include "nic/memory.h"
#include "nic/post.h"
#include "nic/qp.h"
#include "scenarios.h"
#include "wire/opcode.h"
#include "wire/psn.h"
#include "wire/roce.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WORDS = 2, WINDOW = 16, ALL = 300, HALF = 1 << 23 };

/**
 * struct reads - WORDS pages, of which each begins with a word that counts.
 * @mem:	at each end: where they are read to, WINDOW times; and they
 * @seen:	what the words were, to the READ before
 * @late:	there were many WRITEs before, and the first response is @lost
 */
struct reads {
	struct world *w;
	unsigned posted, done;
	uint64_t mem[2], ticks;
	uint32_t key[2];
	uint64_t seen[WORDS];
	bool late, lost;
	struct {
		unsigned first, words;
		uint32_t len;
	} op[WINDOW];
};

static void memory(struct reads *r, unsigned e)
{
	const uint64_t bytes = (e ? 1 : WINDOW) * WORDS * PAGE_BYTES;
	struct node *node = r->w->conn[0].end[e].node;
	struct mr_attr attr = {.pd = node->pd,
			       .length = bytes,
			       .access = ACCESS_LOCAL_WRITE |
					 ACCESS_REMOTE_READ};

	sim_watch(node->os, NULL, NULL);
	sim_watch_drop(node->os, NULL, NULL);
	r->mem[e] = sim_mmap(node->os, bytes, r->w->cfg.backing,
			     SIM_READ | SIM_WRITE);
	attr.addr = attr.iova = r->mem[e];
	EXPECT(r->w, nic_mr_reg(node->nic, &attr, &r->key[e]) == 0, "reg");
}

/* Return: false: there is no room. */
static bool post(struct reads *r)
{
	struct nic_qp *qp = r->w->conn[0].end[0].qp;
	const unsigned i = r->posted % WINDOW;
	const unsigned first = (unsigned)sim_between(r->w->sim, 0, WORDS - 1);
	const unsigned words = (unsigned)sim_between(r->w->sim, 1,
						     WORDS - first);
	struct wqe *w;

	r->op[i].first = first;
	r->op[i].words = words;
	r->op[i].len = (words - 1) * PAGE_BYTES + 8;
	EXPECT(r->w, nic_send_begin(qp) == 0, "nic_send_begin");
	w = nic_send_slot(qp);
	if (!w) {
		nic_send_end(qp);
		return false;
	}
	w->wr_id = r->posted++;
	w->op = WR_READ;
	w->flags = WQE_SIGNALED;
	w->length = r->op[i].len;
	w->num_sge = 1;
	w->raddr = r->mem[1] + first * PAGE_BYTES;
	w->rkey = r->key[1];
	wqe_sge(w)[0] = (struct sge){r->mem[0] + i * WORDS * PAGE_BYTES,
				     r->op[i].len, r->key[0]};
	nic_send_publish(qp);
	nic_send_end(qp);
	return true;
}

static void check(struct reads *r, uint64_t n)
{
	const unsigned i = n % WINDOW;

	for (unsigned k = 0; k < r->op[i].words; k++) {
		const unsigned word = r->op[i].first + k;
		uint64_t at = r->mem[0] + (i * WORDS + k) * PAGE_BYTES, v;

		EXPECT(r->w, sim_peek(r->w->node[0].os, at, &v, sizeof(v)) == 0,
		       "what READ %" PRIu64 " read is nowhere", n);
		EXPECT(r->w, v >= r->seen[word],
		       "READ %" PRIu64 " found %" PRIu64
		       ", and one before it %" PRIu64,
		       n, v, r->seen[word]);
		r->seen[word] = v;
	}
}

/* As behind half of all PSNs of WRITEs, of which the last is posted here: that a READ
 * was asked for again was so long ago that it seems to be still to come. */
static void write_for_long(struct world *w)
{
	struct end *e = &w->conn[0].end[0];
	struct cqe c;
	struct wqe *slot;

	e->qp->qp.req.reads.last_again_to = psn_add(e->qp->qp.req.psn.una,
						    HALF + 3);
	EXPECT(w, nic_send_begin(e->qp) == 0, "nic_send_begin");
	slot = nic_send_slot(e->qp);
	CHECK(slot);
	*slot = (struct wqe){.op = WR_WRITE, .flags = WQE_SIGNALED};
	nic_send_publish(e->qp);
	nic_send_end(e->qp);
	while (node_poll(e->node, e->init.send_cq, 1, &c) == 0)
		sim_sleep(w->sim, SIM_US);
	EXPECT(w, c.status == WC_SUCCESS, "the WRITE: %u", c.status);
}

static bool lose_first_response(void *arg, const uint8_t *bytes, uint32_t len)
{
	struct reads *r = arg;

	if (len < BTH_BYTES || r->lost || r->posted == 0 ||
	    bytes[0] < (OP_X_DATA | OP_READ_RESP_FIRST) ||
	    bytes[0] > (OP_X_DATA | OP_READ_RESP_ONLY))
		return true;
	r->lost = true;
	return false;
}

static void reader(void *arg)
{
	struct reads *r = arg;
	struct world *w = r->w;
	struct cqe c;

	if (r->late)
		write_for_long(w);
	while (r->done < ALL) {
		while (r->posted < ALL && r->posted < r->done + w->cfg.window &&
		       post(r))
			;
		while (node_poll(&w->node[0], w->conn[0].end[0].init.send_cq, 1,
				 &c) > 0) {
			EXPECT(w, c.status == WC_SUCCESS && c.wr_id == r->done,
			       "READ %" PRIu64 " ended in status %u", c.wr_id,
			       c.status);
			check(r, r->done++);
		}
		sim_sleep(w->sim, SIM_US);
	}
	w->busy = false;
}

static void counting(void *arg)
{
	struct reads *r = arg;
	struct world *w = r->w;
	struct cqe c;

	while (r->done < ALL) {
		r->ticks++;
		for (unsigned i = 0; i < WORDS; i++)
			sim_write(w->node[1].os, r->mem[1] + i * PAGE_BYTES,
				  &r->ticks, sizeof(r->ticks));
		(void)node_poll(&w->node[1], w->conn[0].end[1].init.send_cq, 1,
				&c);
		sim_sleep(w->sim, SIM_US);
	}
}

/* Pages of both ends go all the time. */
static void evicting(void *arg)
{
	struct reads *r = arg;
	struct sim *sim = r->w->sim;

	while (r->done < ALL) {
		const unsigned e = (unsigned)sim_between(sim, 0, 1);
		const unsigned n = (e ? 1 : WINDOW) * WORDS;

		sim_evict(r->w->node[e].os,
			  r->mem[e] + sim_between(sim, 0, n - 1) * PAGE_BYTES,
			  true);
		sim_sleep(sim, sim_between(sim, 1, r->w->cfg.evict_ns));
	}
}

static void run(struct world *w)
{
	struct reads *r = calloc(1, sizeof(*r));
	struct sim *sim = w->sim;

	CHECK(r);
	r->w = w;
	w->cfg.ops = 0;
	w->cfg.conns = 1;
	w->cfg.link.loss = world_some(sim, SIM_PPM / 20);
	w->cfg.link.burst_loss = world_some(sim, SIM_PPM / 20);
	w->cfg.standard = w->seed % 4 == 3;
	w->cfg.timeout = 10;
	w->cfg.mem.tear =
		0; /* of a word that changes, as of none that is aligned */
	world_build(w);
	for (unsigned e = 0; e < 2; e++)
		memory(r, e);
	w->busy = true;
	r->late = w->seed % 4 == 0;
	if (r->late) {
		w->cfg.window = WINDOW;
		sim_filter(w->sim, lose_first_response, r);
	}
	if (w->seed % 2 && w->cfg.backing != SIM_CHEAP) {
		w->cfg.evict_ns = 200 * SIM_US;
		w->cfg.timeout = 12;
		node_thread(&w->node[0], evicting, r);
	}
	node_thread(&w->node[0], reader, r);
	node_thread(&w->node[1], counting, r);
	world_finish(w);
	for (unsigned e = 0; e < 2; e++)
		EXPECT(w,
		       nic_mr_dereg(w->conn[0].end[e].node->nic, r->key[e]) ==
			       0,
		       "dereg");
	world_close(w);
	/* a response may come just when it is asked for again, but not often */
	EXPECT(w, w->total.v[CNT_losses_doubted] <= 3,
	       "%" PRIu64 " losses were none, and nothing is overtaken",
	       w->total.v[CNT_losses_doubted]);
	free(r);
}

const struct scenario scenario_reads = {
	.name = "reads",
	.run = run,
	.musts = 2,
	.must = {CNT_replays, CNT_read_restarts},
};
