/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adaptive.c: the same work under each strategy, in virtual time: a table of work,
 * time of a fault and loss. The strategy `adaptive` chooses for each fault; it may
 * never be much worse than the best of those that do not choose. A seed is a row of
 * the table; sim_run --table prints it.
 */
#include "base/check.h"
#include "base/page.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "nic/memory.h"
#include "nic/post.h"
#include "oracle.h"
#include "scenarios.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * What is done in a row. WRITEs to cold memory of the peer, READs of it, READs into
 * cold memory of one's own, SENDs into cold receive buffers; MIX: all of these in
 * turns; BESIDE: large WRITEs to cold memory, while another QP of the same peer
 * writes to memory that is there, and how long that takes; BOTH: until all of it
 * is done.
 */
enum work {
	WORK_SMALL,
	WORK_64K,
	WORK_1M,
	WORK_READ_FROM,
	WORK_READ_TO,
	WORK_SEND,
	WORK_MIX,
	WORK_BESIDE,
	WORK_BOTH,
	WORK_NUM
};

static const struct {
	const char *name;
	unsigned ops;
	uint32_t len;
	enum wr_op wr;
} work_info[WORK_NUM] = {
	[WORK_SMALL] = {"WRITE 512 B", 48, 512, WR_WRITE},
	[WORK_64K] = {"WRITE 64 KiB", 24, 64 << 10, WR_WRITE},
	[WORK_1M] = {"WRITE 1 MiB", 6, 1 << 20, WR_WRITE},
	[WORK_READ_FROM] = {"READ from cold", 24, 64 << 10, WR_READ},
	[WORK_READ_TO] = {"READ to cold", 24, 64 << 10, WR_READ},
	[WORK_SEND] = {"SEND 16 KiB", 48, 16 << 10, WR_SEND},
	[WORK_MIX] = {"mix", 36, 0, WR_NONE},
	[WORK_BESIDE] = {"warm beside 1 MiB cold", 6, 1 << 20, WR_WRITE},
	[WORK_BOTH] = {"both of them", 6, 1 << 20, WR_WRITE},
};

/* Memory: never touched, or stored and as slow as this. */
enum cold { COLD_MINOR, COLD_SWAP, COLD_FILE, COLD_1MS, COLD_10MS, COLD_NUM };

static const struct {
	const char *name;
	enum sim_backing backing;
	uint64_t min_ns, max_ns;
} cold_info[COLD_NUM] = {
	[COLD_MINOR] = {"minor", SIM_CHEAP, 500, 2 * SIM_US},
	[COLD_SWAP] = {"swap", SIM_SWAP, 5 * SIM_US, 20 * SIM_US},
	[COLD_FILE] = {"file", SIM_FILE, 80 * SIM_US, 160 * SIM_US},
	[COLD_1MS] = {"1 ms", SIM_FILE, SIM_MS, SIM_MS + SIM_MS / 10},
	[COLD_10MS] = {"10 ms", SIM_FILE, 10 * SIM_MS, 11 * SIM_MS},
};

static const uint32_t losses[] = {0, SIM_PPM / 1000, SIM_PPM / 100};

/* ADAPTIVE last. */
static const enum strategy compared[] = {
	STRATEGY_INLINE, STRATEGY_OVERWRITE, STRATEGY_REDIRECT,
	STRATEGY_RESUME, STRATEGY_RNR,	     STRATEGY_ADAPTIVE,
};

enum {
	COMPARED = ARRAY_SIZE(compared),
	REDIRECT = 2, /* in compared[] */
	ADAPTIVE = COMPARED - 1,
	LOSSES = ARRAY_SIZE(losses),
	ROWS = WORK_NUM * COLD_NUM * LOSSES *
	       2, /* nopin peers, standard ones */
	/* Where more is lost, or a timer decides, chance does. */
	ASSERTED = WORK_NUM * COLD_NUM * 2,
	WINDOW = 6,
	SPAN = 6 << 20, /* of cold memory */
	WARM = 1 << 20,
};

struct row {
	enum work work;
	enum cold cold;
	uint32_t loss;
	bool standard;
};

static struct row row_of(uint64_t n)
{
	return (struct row){(enum work)(n % WORK_NUM),
			    (enum cold)(n / WORK_NUM % COLD_NUM),
			    losses[n / WORK_NUM / COLD_NUM % LOSSES],
			    n / WORK_NUM / COLD_NUM / LOSSES % 2};
}

/**
 * struct bench - One run of a row.
 * @cold:	at either end; @warm likewise
 * @beside:	operations of the second QP that completed
 * @done_ns:	when all was
 */
struct bench {
	struct world *w;
	struct row row;
	uint64_t cold[2], warm[2];
	uint32_t cold_key[2], warm_key[2];
	unsigned posted[2], done[2], received;
	uint64_t began_ns, done_ns, warm_ns;
};

/* --- memory ----------------------------------------------------------------- */

static uint32_t reg(struct node *node, uint64_t addr, uint64_t bytes)
{
	const struct mr_attr attr = {
		.pd = node->pd,
		.addr = addr,
		.iova = addr,
		.length = bytes,
		.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			  ACCESS_REMOTE_READ | ACCESS_ON_DEMAND,
	};
	uint32_t key;

	EXPECT(node->w, nic_mr_reg(node->nic, &attr, &key) == 0, "nic_mr_reg");
	return key;
}

static void fill(struct node *node, uint64_t addr, uint64_t bytes, bool evict)
{
	static const uint8_t page[PAGE_BYTES] = {1};

	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES) {
		EXPECT(node->w,
		       sim_write(node->os, addr + at, page, PAGE_BYTES) == 0,
		       "sim_write");
		if (evict)
			sim_evict(node->os, addr + at, true);
	}
}

static void memory_open(struct bench *b, unsigned i)
{
	struct node *node = &b->w->node[i];
	const enum sim_backing backing = cold_info[b->row.cold].backing;

	sim_watch(node->os, NULL, NULL);
	sim_watch_drop(node->os, NULL, NULL);
	b->warm[i] = sim_mmap(node->os, WARM, SIM_CHEAP, SIM_READ | SIM_WRITE);
	b->cold[i] = sim_mmap(node->os, SPAN, backing, SIM_READ | SIM_WRITE);
	fill(node, b->warm[i], WARM, false);
	if (backing != SIM_CHEAP)
		fill(node, b->cold[i], SPAN, true);
	b->warm_key[i] = reg(node, b->warm[i], WARM);
	b->cold_key[i] = reg(node, b->cold[i], SPAN);
}

/* --- work ------------------------------------------------------------------- */

struct job {
	enum wr_op wr;
	uint32_t len;
	uint64_t local, remote;
	uint32_t lkey, rkey;
};

/* Whole pages far from each other: no message warms up the next one's. */
static uint64_t place(unsigned n, uint32_t len)
{
	const uint64_t room = SPAN / MAX(len, 4 * PAGE_BYTES);

	return n * 7 % room * MAX(len, 4 * PAGE_BYTES);
}

static struct job job_of(const struct bench *b, unsigned qp, unsigned n)
{
	static const enum work turns[] = {WORK_SMALL,	  WORK_64K,
					  WORK_READ_FROM, WORK_SEND,
					  WORK_READ_TO,	  WORK_SMALL};
	enum work work = b->row.work;
	struct job j;
	uint64_t at;

	if (work == WORK_MIX)
		work = turns[n % ARRAY_SIZE(turns)];
	j = (struct job){.wr = work_info[work].wr,
			 .len = work_info[work].len,
			 .lkey = b->warm_key[0],
			 .local = b->warm[0],
			 .rkey = b->cold_key[1]};
	if (qp == 1)
		j.len = 4096;
	at = place(n, j.len);
	j.remote = b->cold[1] + at;
	if (work == WORK_READ_TO) {
		j.local = b->cold[0] + at;
		j.lkey = b->cold_key[0];
	}
	if (work == WORK_READ_TO || qp == 1) {
		j.remote = b->warm[1] + at % (WARM / 2);
		j.rkey = b->warm_key[1];
	}
	return j;
}

static unsigned work_ops(const struct bench *b, unsigned qp)
{
	const unsigned slow = b->row.cold >= COLD_1MS ? 4 : 1;

	if (qp == 1)
		return b->row.work >= WORK_BESIDE ? 1000 : 0;
	return DIV_ROUND_UP(work_info[b->row.work].ops, slow);
}

static unsigned work_sends(const struct bench *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < work_ops(b, 0); i++)
		n += job_of(b, 0, i).wr == WR_SEND;
	return n;
}

static bool post(struct bench *b, unsigned qp)
{
	struct nic_qp *q = b->w->conn[qp].end[0].qp;
	const struct job j = job_of(b, qp, b->posted[qp]);
	struct wqe *wqe;

	EXPECT(b->w, nic_send_begin(q) == 0, "nic_send_begin");
	wqe = nic_send_slot(q);
	if (wqe) {
		wqe->wr_id = qp;
		wqe->op = (uint8_t)j.wr;
		wqe->flags = WQE_SIGNALED;
		wqe->length = j.len;
		wqe->raddr = j.remote;
		wqe->rkey = j.rkey;
		wqe->num_sge = 1;
		wqe_sge(wqe)[0] = (struct sge){j.local, j.len, j.lkey};
		nic_send_publish(q);
		b->posted[qp]++;
	}
	nic_send_end(q);
	return wqe;
}

/* Receive buffers are cold, and posted as far as there will be messages. */
static void post_receives(struct bench *b, unsigned *posted)
{
	const uint32_t len = work_info[WORK_SEND].len;
	struct nic_qp *q = b->w->conn[0].end[1].qp;
	struct wqe *wqe;

	EXPECT(b->w, nic_recv_begin(q) == 0, "nic_recv_begin");
	while (*posted < work_sends(b) && (wqe = nic_recv_slot(q))) {
		wqe->op = WR_RECV;
		wqe->flags = 0;
		wqe->length = len;
		wqe->num_sge = 1;
		wqe_sge(wqe)[0] =
			(struct sge){b->cold[1] + SPAN / 2 +
					     place(*posted, len) % (SPAN / 2),
				     len, b->cold_key[1]};
		nic_recv_publish(q);
		++*posted;
	}
	nic_recv_end(q);
}

static int poll_all(struct node *node, struct bench *b)
{
	struct cqe e[8];
	int all = 0;

	for (unsigned i = 0; i < NODE_CQS; i++) {
		const int n = node_poll(node, node->cq[i], 8, e);

		EXPECT(b->w, n >= 0, "nic_cq_poll: %d", n);
		for (int k = 0; k < n; k++) {
			EXPECT(b->w, e[k].status == WC_SUCCESS, "status %u",
			       e[k].status);
			if (e[k].op == WR_RECV)
				b->received++;
			else
				b->done[e[k].wr_id]++;
		}
		all += n;
	}
	return all;
}

static void nap(struct bench *b, unsigned *idle, bool got)
{
	const uint64_t most = MAX(cold_info[b->row.cold].max_ns / 50,
				  20 * SIM_US);

	*idle = got ? 0 : *idle + 1;
	sim_sleep(b->w->sim, MIN((1 + *idle) * SIM_US, most));
}

static void requester(void *arg)
{
	struct bench *b = arg;
	unsigned idle = 0;

	b->began_ns = sim_now(b->w->sim);
	while (b->done[0] + b->done[1] < work_ops(b, 0) + work_ops(b, 1)) {
		for (unsigned qp = 0; qp < 2; qp++)
			while (b->posted[qp] < work_ops(b, qp) &&
			       b->posted[qp] - b->done[qp] < WINDOW &&
			       post(b, qp))
				;
		nap(b, &idle, poll_all(&b->w->node[0], b) > 0);
		if (!b->warm_ns && b->done[1] && b->done[1] == work_ops(b, 1))
			b->warm_ns = sim_now(b->w->sim);
	}
	b->done_ns = sim_now(b->w->sim);
}

static void target(void *arg)
{
	struct bench *b = arg;
	unsigned idle = 0, posted = 0;

	while (b->done_ns == 0 || b->received < work_sends(b)) {
		post_receives(b, &posted);
		nap(b, &idle, poll_all(&b->w->node[1], b) > 0);
	}
}

/* --- a run ------------------------------------------------------------------ */

static void configure(struct world *w, const struct row *row,
		      enum strategy strategy)
{
	struct world_config *c = &w->cfg;

	world_config_draw(w);
	c->conns = row->work >= WORK_BESIDE ? 2 : 1;
	c->link = (struct sim_link_config){.latency_min_ns = 5 * SIM_US,
					   .latency_max_ns = 6 * SIM_US,
					   .bytes_per_us = 2000,
					   .loss = row->loss};
	c->mem = (struct sim_mem_config){
		.minor_min_ns = 500,
		.minor_max_ns = 2 * SIM_US,
		.major_min_ns = cold_info[row->cold].min_ns,
		.major_max_ns = cold_info[row->cold].max_ns,
		.delay_max_ns = SIM_US / 2,
	};
	c->exact = c->no_gso = c->no_gro = c->no_scatter = c->v6 = false;
	c->path_mtu = 4096;
	/* A first touch takes CPU time and nothing else: pagers do no more of
	 * them at once than there are CPUs; one of ours gets half of them. */
	c->pagers = row->cold == COLD_MINOR ? 4 : 16;
	c->slots = 512;
	c->tickets = 1024;
	c->ahead = AHEAD_PREFETCH;
	c->entries = 1 << 16;
	c->rd_atomic = 16;
	c->standard = row->standard;
	c->strategies = strategy_set(strategy);
}

static void bench_close(struct bench *b)
{
	for (unsigned i = 0; i < 2; i++) {
		struct nic *nic = b->w->node[i].nic;

		if (i < b->w->cfg.conns) {
			end_destroy(&b->w->conn[i].end[0]);
			end_destroy(&b->w->conn[i].end[1]);
		}
		EXPECT(b->w, nic_mr_dereg(nic, b->cold_key[i]) == 0, "dereg");
		EXPECT(b->w, nic_mr_dereg(nic, b->warm_key[i]) == 0, "dereg");
	}
	world_close(b->w);
}

/* Return: how long the work took. */
static uint64_t bench(struct world *w, const struct row *row,
		      enum strategy strategy, uint64_t seed)
{
	struct bench b = {.w = w, .row = *row};
	const struct world before = *w;

	*w = (struct world){.scenario = before.scenario,
			    .seed = before.seed,
			    .verbose = before.verbose,
			    .hash_all = before.hash_all};
	memcpy(w->hash, before.hash, sizeof(w->hash));
	world_sim(w, seed);
	configure(w, row, strategy);
	world_nodes(w);
	for (unsigned i = 0; i < 2; i++) {
		if (i < w->cfg.conns)
			conn_open(w, &w->conn[i], &w->node[0], &w->node[1]);
		memory_open(&b, i);
	}
	node_thread(&w->node[0], requester, &b);
	node_thread(&w->node[1], target, &b);
	while (!b.done_ns || w->threads) {
		world_run(w, SIM_MS);
		EXPECT(w, sim_now(w->sim) < 600000 * (uint64_t)SIM_MS,
		       "the work does not end");
	}
	bench_close(&b);
	return (row->work == WORK_BESIDE ? b.warm_ns : b.done_ns) - b.began_ns;
}

/* Of each that is compared: what the work takes on the average, in ns. */
static void row_run(struct world *w, const struct row *row, uint64_t *ns)
{
	const unsigned turns = row->cold < COLD_1MS ? 5 : 2;

	for (unsigned s = 0; s < COMPARED; s++) {
		ns[s] = 0;
		for (uint64_t turn = 1; turn <= turns; turn++)
			ns[s] += bench(w, row, compared[s], turn) / turns;
	}
}

static uint64_t best_of(const uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (unsigned s = 0; s < ADAPTIVE; s++)
		best = MIN(best, ns[s]);
	return best;
}

static void row_name(const struct row *row, char *name, size_t size)
{
	snprintf(name, size, "%-23s %-6s %4.1f %% %s",
		 work_info[row->work].name, cold_info[row->cold].name,
		 row->loss / 1e4, row->standard ? "standard" : "nopin");
}

/*
 * In percent of the best. Four things are as they are:
 * - here pagers have CPUs of their own, and where messages are large that beats a
 *   NIC that takes its first touches itself. On a host of two cores it does not
 *   (experiments/b_fault);
 * - what is to be sent waits the same way whatever was chosen: which of its pages
 *   were foreseen is chance;
 * - that pages are slow has to be learned from one of them;
 * - pages of 0.1 ms are answered as fast ones are, for where packets are lost
 *   asking again costs more than what others lose.
 */
static uint64_t limit(const struct row *row)
{
	const bool large = row->work == WORK_64K || row->work == WORK_1M ||
			   row->work >= WORK_BESIDE;

	if (row->cold == COLD_MINOR && large)
		return 145;
	if (row->work == WORK_READ_FROM)
		return 130;
	if (row->work == WORK_BESIDE)
		return row->cold == COLD_FILE ? 200 : 150;
	return 115;
}

static void run(struct world *w)
{
	const struct row row = row_of(w->seed * 37 % ASSERTED);
	uint64_t ns[COMPARED], best, most;
	char name[80];

	sim_close(w->sim);
	row_run(w, &row, ns);
	row_name(&row, name, sizeof(name));
	best = best_of(ns);
	most = best * limit(&row) / 100 + 100 * SIM_US;
	/* a lost RESUME: the requester waits 100 ms before it looks itself */
	if (row.loss && row.cold >= COLD_1MS)
		most += 110 * SIM_MS;
	EXPECT(w, ns[ADAPTIVE] <= most,
	       "%s: adaptive takes %" PRIu64 " us, another %" PRIu64 " us",
	       name, ns[ADAPTIVE] / SIM_US, best / SIM_US);
}

void adaptive_table(void)
{
	struct world *w = calloc(1, sizeof(*w));
	unsigned within = 0;

	CHECK(w);
	w->scenario = "adaptive";
	printf("%-45s", "us");
	for (unsigned s = 0; s < COMPARED; s++)
		printf(" %10s", strategy_name(compared[s]));
	printf("  of the best\n");
	for (uint64_t n = 0; n < ROWS; n++) {
		const struct row row = row_of(n);
		uint64_t ns[COMPARED];
		char name[80];
		double ratio;

		row_run(w, &row, ns);
		row_name(&row, name, sizeof(name));
		printf("%-45s", name);
		for (unsigned s = 0; s < COMPARED; s++)
			printf(" %10" PRIu64, ns[s] / SIM_US);
		ratio = (double)ns[ADAPTIVE] / (double)best_of(ns);
		within += ratio <= 1.1;
		printf("  %.2f\n", ratio);
		fflush(stdout);
	}
	printf("within 10 %% of the best: %u of %u\n", within, ROWS);
	free(w);
}

const struct scenario scenario_adaptive = {
	.name = "adaptive",
	.run = run,
	.musts = 5,
	.must = {CNT_fault_park, CNT_fault_inline, CNT_fault_overwrite,
		 CNT_fault_redirect, CNT_fault_resume},
};
