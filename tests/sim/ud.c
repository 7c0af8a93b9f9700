/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.c: datagrams from everybody to everybody, into receive rings that nobody ever
 * touched or whose pages are evicted all the time, with loss, duplication,
 * reordering, and what is sent with a wrong Q_Key or finds no receive. Each that is
 * delivered is whole, in the receive that was next, behind its header, once for
 * each copy on the wire, and in the order it was sent where the network keeps it.
 * Where the network loses nothing, every one is delivered or counted as dropped,
 * and none is dropped for a page while there is room to keep it.
 */
#include "base/page.h"
#include "base/range.h"
#include "mem/mr.h"
#include "nic/completion.h"
#include "nic/cq.h"
#include "nic/device.h"
#include "nic/memory.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "nic/qp.h"
#include "oracle.h"
#include "scenarios.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	ENDS_MAX = 6,
	PER_END = 150,
	ALL_MAX = ENDS_MAX * PER_END,
	RING = 32, /* receives, and sends, of an end */
	RECV_BYTES = 3 * PAGE_BYTES,
	SEND_BYTES = 2 * PAGE_BYTES,
	QKEY = 0x11111111,
};

/* One that was posted. Its number is its immediate data. */
struct gram {
	unsigned from, to;
	uint32_t len;
	struct ip_mark mark;
	bool foreign; /* its Q_Key is wrong */
	unsigned delivered;
};

struct post {
	uint64_t addr;
	uint32_t len;
};

struct udend {
	struct node *node;
	struct nic_qp *qp;
	struct nic_cq *cq;
	uint32_t qpn, recv_key, send_key, max_inline;
	uint64_t recv_mem, send_mem;
	struct post recv[RING];
	uint64_t recv_posted, recv_done, sent, completed;
	uint32_t last[ENDS_MAX]; /* number + 1 of what came last, by sender */
	bool lazy;
};

static struct uds {
	struct world *w;
	struct udend end[ENDS_MAX];
	unsigned ends;
	struct gram gram[ALL_MAX];
	uint32_t grams, delivered;
	bool keeps_order;
} u;

/* --- the watch ------------------------------------------------------------------ */

/* Is it where a receive is posted? */
static bool posted_at(uint64_t addr, uint64_t len, const struct node *node)
{
	for (unsigned i = 0; i < u.ends; i++) {
		const struct udend *e = &u.end[i];

		if (e->node != node)
			continue;
		for (uint64_t k = e->recv_done; k < e->recv_posted; k++) {
			const struct post *r = &e->recv[k % RING];

			if (addr >= r->addr &&
			    range_ok(addr - r->addr, len, r->len))
				return true;
		}
	}
	return false;
}

void ud_wrote(const struct node *node, uint64_t addr, uint64_t len)
{
	EXPECT(node->w, posted_at(addr, len, node),
	       "node %u: wrote %" PRIu64 " bytes at 0x%" PRIx64
	       ", where no receive is posted",
	       node->index, len, addr);
}

/* --- receiving ------------------------------------------------------------------- */

static void post_recvs(struct udend *e)
{
	struct sim *sim = e->node->w->sim;

	if (e->recv_posted - e->recv_done == RING ||
	    (e->lazy && sim_chance(sim, SIM_PPM / 10 * 9)))
		return;
	EXPECT(u.w, nic_recv_begin(e->qp) == 0, "nic_recv_begin");
	while (e->recv_posted - e->recv_done < RING) {
		const unsigned k = e->recv_posted % RING;
		struct post *r = &e->recv[k];
		struct wqe *w = nic_recv_slot(e->qp);
		/* what it carries may be a page */
		const bool whole = sim_chance(sim, SIM_PPM / 2);
		const uint32_t off = whole ? PAGE_BYTES - GRH_BYTES
					   : (uint32_t)sim_between(sim, 0,
								   PAGE_BYTES);
		const unsigned parts = whole ? 1
					     : (unsigned)sim_between(sim, 1, 3);
		uint32_t at = 0;

		r->addr = e->recv_mem + (uint64_t)k * RECV_BYTES + off;
		r->len = MTU_MAX + GRH_BYTES;
		if (sim_chance(sim, SIM_PPM / 100))
			r->len = (uint32_t)sim_between(sim, 1, 500);
		*w = (struct wqe){.wr_id = e->recv_posted, .length = r->len};
		for (unsigned i = 0; i < parts && at < r->len; i++) {
			const uint32_t n =
				i + 1 == parts ? r->len - at
					       : (uint32_t)sim_between(
							 sim, 1, r->len - at);

			wqe_sge(w)[w->num_sge++] = (struct sge){r->addr + at, n,
								e->recv_key};
			at += n;
		}
		e->recv_posted++;
		nic_recv_publish(e->qp);
	}
	nic_recv_end(e->qp);
}

/* What one that was passed on had is not known. */
static void check_mark(const struct gram *g, const uint8_t *grh)
{
	const bool v6 = u.w->cfg.v6;
	const struct ip_mark got = {v6 ? (uint8_t)(grh[0] << 4 | grh[1] >> 4)
				       : grh[21],
				    v6 ? grh[7] : grh[28]};
	const struct ip_mark usual = {0, 64};

	EXPECT(u.w,
	       ip_mark_eq(got, g->mark.hops ? g->mark : usual) ||
		       (u.w->cfg.standard && ip_mark_eq(got, usual)),
	       "class %u, %u hops came as %u, %u", g->mark.tclass, g->mark.hops,
	       got.tclass, got.hops);
}

static void check_grh(const struct udend *e, const struct gram *g,
		      const uint8_t *grh)
{
	const struct ipaddr src = sim_host_ip(u.end[g->from].node->os,
					      u.w->cfg.v6),
			    dst = sim_host_ip(e->node->os, u.w->cfg.v6);
	const bool ok = u.w->cfg.v6
				? grh[0] >> 4 == 6 &&
					  !memcmp(grh + 8, &src, 16) &&
					  !memcmp(grh + 24, &dst, 16)
				: grh[20] == 0x45 &&
					  !memcmp(grh + 32, src.b + 12, 4) &&
					  !memcmp(grh + 36, dst.b + 12, 4);

	EXPECT(u.w, ok, "the header in front of a datagram is wrong");
	check_mark(g, grh);
}

static void check_data(struct udend *e, uint32_t number, const struct post *r)
{
	uint8_t got[GRH_BYTES + MTU_MAX], want[MTU_MAX];
	const struct gram *g = &u.gram[number];

	EXPECT(u.w, g->len + GRH_BYTES <= r->len, "it does not fit");
	EXPECT(u.w, !sim_peek(e->node->os, r->addr, got, GRH_BYTES + g->len),
	       "sim_peek");
	check_grh(e, g, got);
	gen_bytes(number, 0, want, g->len);
	EXPECT(u.w, !memcmp(got + GRH_BYTES, want, g->len),
	       "datagram %u of %u bytes is not what was sent", number, g->len);
}

static void received(struct udend *e, const struct cqe *c)
{
	const struct post *r = &e->recv[e->recv_done % RING];
	struct gram *g = &u.gram[c->imm];

	EXPECT(u.w, c->wr_id == e->recv_done && e->recv_done < e->recv_posted,
	       "receive %" PRIu64 " completed, %" PRIu64 " is next", c->wr_id,
	       e->recv_done);
	EXPECT(u.w,
	       (c->flags & ~CQE_IP4) == (CQE_GRH | CQE_IMM) && c->imm < u.grams,
	       "what came was never sent");
	EXPECT(u.w, !(c->flags & CQE_IP4) == u.w->cfg.v6,
	       "datagram %u came by the other IP", c->imm);
	EXPECT(u.w,
	       &u.end[g->to] == e && c->src_qpn == u.end[g->from].qpn &&
		       c->byte_len == g->len + GRH_BYTES,
	       "datagram %u came as if it were another", c->imm);
	EXPECT(u.w, !g->foreign, "datagram %u has the wrong Q_Key", c->imm);
	check_data(e, c->imm, r);
	g->delivered++;
	u.delivered++;
	EXPECT(u.w, g->delivered <= (u.w->cfg.link.dup ? 2 : 1),
	       "datagram %u was delivered %u times", c->imm, g->delivered);
	EXPECT(u.w, !u.keeps_order || e->last[g->from] <= c->imm,
	       "datagram %u came after %u", c->imm, e->last[g->from] - 1);
	e->last[g->from] = c->imm + 1;
	e->recv_done++;
}

/* --- sending ---------------------------------------------------------------------- */

static void describe(struct udend *e, struct gram *g)
{
	struct sim *sim = u.w->sim;
	const uint32_t most = e->node->nic->iface.mtu;

	*g = (struct gram){
		.from = (unsigned)(e - u.end),
		.to = (unsigned)sim_between(sim, 0, u.ends - 1),
		.len = (uint32_t)sim_between(
			sim, 0, sim_chance(sim, SIM_PPM / 2) ? most : 200),
		.foreign = sim_chance(sim, SIM_PPM / 30)};
	if (sim_chance(sim, SIM_PPM / 4))
		g->len = most;
	if (sim_chance(sim, SIM_PPM / 8))
		g->mark = (struct ip_mark){(uint8_t)sim_between(sim, 1, 255),
					   (uint8_t)sim_between(sim, 1, 255)};
}

static void post_send(struct udend *e)
{
	struct sim *sim = u.w->sim;
	struct gram *g = &u.gram[u.grams];
	const struct udend *to;
	uint8_t data[MTU_MAX];
	struct wqe *w;

	if (e->sent == PER_END || e->sent - e->completed == RING)
		return;
	EXPECT(u.w, nic_send_begin(e->qp) == 0, "nic_send_begin");
	w = nic_send_slot(e->qp);
	describe(e, g);
	to = &u.end[g->to];
	gen_bytes(u.grams, 0, data, g->len);
	*w = (struct wqe){.wr_id = e->sent,
			  .op = WR_SEND_IMM,
			  .flags = WQE_SIGNALED,
			  .imm = u.grams,
			  .length = g->len,
			  .to = {.dgid = sim_host_ip(to->node->os, u.w->cfg.v6),
				 .local = sim_host_ip(e->node->os, u.w->cfg.v6),
				 .qpn = to->qpn,
				 .mark = g->mark,
				 .qkey = g->foreign ? QKEY + 1 : QKEY}};
	if (!g->foreign && sim_chance(sim, SIM_PPM / 4))
		w->to.qkey = UINT32_C(1) << 31; /* our own */
	if (g->len <= e->max_inline && sim_chance(sim, SIM_PPM / 2)) {
		w->flags |= WQE_INLINE;
		memcpy(wqe_inline(w), data, g->len);
	} else if (g->len) {
		const uint64_t at = e->send_mem + e->sent % RING * SEND_BYTES +
				    sim_between(sim, 0, PAGE_BYTES);

		sim_write(e->node->os, at, data, g->len);
		w->num_sge = 1;
		wqe_sge(w)[0] = (struct sge){at, g->len, e->send_key};
	}
	u.grams++;
	e->sent++;
	nic_send_publish(e->qp);
	nic_send_end(e->qp);
}

/* --- threads ----------------------------------------------------------------------- */

static void poll_end(struct udend *e)
{
	struct cqe c[8];
	const int n = node_poll(e->node, e->cq, 8, c);

	EXPECT(u.w, n >= 0, "nic_cq_poll: %d", n);
	for (int i = 0; i < n; i++) {
		EXPECT(u.w, c[i].status == WC_SUCCESS && c[i].qpn == e->qpn,
		       "a completion with status %u", c[i].status);
		if (c[i].op == WR_RECV) {
			received(e, &c[i]);
			continue;
		}
		EXPECT(u.w,
		       c[i].wr_id == e->completed && e->completed < e->sent,
		       "send %" PRIu64 " completed, %" PRIu64 " is next",
		       c[i].wr_id, e->completed);
		e->completed++;
	}
}

static void end_thread(void *arg)
{
	struct udend *e = arg;
	struct sim *sim = u.w->sim;

	while (!u.w->stop) {
		post_recvs(e);
		for (uint64_t n = sim_between(sim, 0, 6); n > 0; n--)
			post_send(e);
		poll_end(e);
		sim_sleep(sim, sim_between(sim, 0, 40 * SIM_US));
		if (sim_chance(sim, SIM_PPM / 50))
			sim_sleep(sim, sim_between(sim, 0, 2 * SIM_MS));
	}
}

/* --- the world ------------------------------------------------------------------------ */

static uint32_t reg(struct node *node, uint64_t addr, uint64_t bytes)
{
	const struct mr_attr attr = {.pd = node->pd,
				     .addr = addr,
				     .iova = addr,
				     .length = bytes,
				     .access = ACCESS_LOCAL_WRITE};
	uint32_t key;

	EXPECT(node->w, nic_mr_reg(node->nic, &attr, &key) == 0, "nic_mr_reg");
	node_registered(node, addr);
	return key;
}

static void end_open(struct udend *e, struct node *node)
{
	struct qp_attr attr = {.port = 1,
			       .qkey = QKEY,
			       .sq_psn = (uint32_t)sim_rand(u.w->sim)};
	static const uint32_t mask[] = {[QPS_INIT] = QPA_PKEY_INDEX | QPA_PORT |
						     QPA_QKEY,
					[QPS_RTR] = 0,
					[QPS_RTS] = QPA_SQ_PSN};
	struct nic_qp_init init = {.pd = node->pd,
				   .ud = true,
				   .max_send_wr = RING,
				   .max_recv_wr = RING,
				   .max_send_sge = 1,
				   .max_recv_sge = 3,
				   .max_inline = 200};

	*e = (struct udend){.node = node, .max_inline = init.max_inline};
	e->lazy = sim_chance(u.w->sim, SIM_PPM / 4);
	EXPECT(u.w,
	       !nic_cq_create(node->nic, NULL, NULL, 4 * RING, NULL, &e->cq),
	       "nic_cq_create");
	init.send_cq = init.recv_cq = e->cq;
	EXPECT(u.w, !nic_qp_create(node->nic, NULL, &init, &e->qp, &e->qpn),
	       "nic_qp_create");
	for (attr.state = QPS_INIT; attr.state <= QPS_RTS; attr.state++)
		EXPECT(u.w,
		       !nic_qp_modify(e->qp, &attr,
				      QPA_STATE | mask[attr.state]),
		       "nic_qp_modify to state %d", attr.state);
	e->recv_mem = area_add(node, AREA_DATAGRAMS, RING * RECV_BYTES, NULL);
	e->send_mem = area_add(node, AREA_LOCAL, RING * SEND_BYTES, NULL);
	e->recv_key = reg(node, e->recv_mem, RING * RECV_BYTES);
	e->send_key = reg(node, e->send_mem, RING * SEND_BYTES);
	if (u.w->cfg.choose)
		EXPECT(u.w, !nic_qp_set_fault(e->qp, world_strategy(u.w, true)),
		       "nic_qp_set_fault");
}

/* Slots may wait for pages that come, or not. */
static void end_close(struct udend *e)
{
	EXPECT(u.w, !nic_qp_destroy(e->qp), "nic_qp_destroy");
	EXPECT(u.w, !nic_cq_destroy(e->cq), "nic_cq_destroy");
	EXPECT(u.w, !nic_mr_dereg(e->node->nic, e->recv_key), "nic_mr_dereg");
	EXPECT(u.w, !nic_mr_dereg(e->node->nic, e->send_key), "nic_mr_dereg");
	area_kill(e->node, e->recv_mem);
}

static uint64_t sum_of(enum counter c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < u.w->cfg.nodes; i++)
		sum += u.w->node[i].nic->cnt.v[c];
	return sum;
}

/* Datagrams of which it is known what became. */
static uint64_t accounted_for(void)
{
	static const enum counter drops[] = {
		CNT_drop_qkey, CNT_drop_no_recv, CNT_drop_recv_short,
		CNT_drop_no_backup, CNT_fault_drop};
	uint64_t sum = u.delivered + sim_stats(u.w->sim)->kernel_drops;

	for (unsigned i = 0; i < ARRAY_SIZE(drops); i++)
		sum += sum_of(drops[i]);
	return sum;
}

static bool all_sent(void)
{
	for (unsigned i = 0; i < u.ends; i++)
		if (u.end[i].completed != PER_END)
			return false;
	return true;
}

static uint32_t waiting(void)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < u.ends; i++)
		sum += u.end[i].qp->qp.ud.held;
	return sum;
}

static void watch_bounds(void)
{
	for (unsigned i = 0; i < u.ends; i++) {
		const struct qp *qp = &u.end[i].qp->qp;

		EXPECT(u.w, 5 * qp->ud.held <= 4 * (qp->x->pool.slots + 1),
		       "I4: a QP holds %u slots of %u", qp->ud.held,
		       qp->x->pool.slots);
	}
	for (unsigned i = 0; i < u.w->cfg.nodes; i++)
		node_watch(&u.w->node[i]);
}

/* A network that loses nothing: until it is known what became of each. */
static void run_until_done(bool lossless)
{
	const uint64_t limit = sim_now(u.w->sim) + 60000 * (uint64_t)SIM_MS;

	while (!all_sent() || waiting() ||
	       (lossless && accounted_for() != u.grams)) {
		EXPECT(u.w, sim_now(u.w->sim) < limit,
		       "%u sent, %u delivered, %" PRIu64
		       " accounted for, %u waiting",
		       u.grams, u.delivered, accounted_for(), waiting());
		world_run(u.w, 100 * SIM_US);
		watch_bounds();
	}
	world_run(u.w, 5 * SIM_MS);
	EXPECT(u.w, !lossless || accounted_for() == u.grams,
	       "%u sent, %" PRIu64 " accounted for", u.grams, accounted_for());
}

static void draw(struct world *w)
{
	struct sim_link_config *l = &w->cfg.link;
	struct sim *sim = w->sim;

	w->cfg.conns = 0;
	w->cfg.nodes = (unsigned)sim_between(sim, 1, 3);
	w->cfg.backing = (enum sim_backing)sim_between(sim, SIM_CHEAP,
						       SIM_FILE);
	w->cfg.mem.major_max_ns = sim_between(sim, 100, 3000) * SIM_US;
	w->cfg.mtu = sim_chance(sim, SIM_PPM / 2) ? 1500 : 9000;
	w->cfg.strategies = strategy_set(sim_chance(sim, SIM_PPM / 6)
						 ? STRATEGY_DROP
						 : world_strategy(w, false));
	w->cfg.choose = sim_chance(sim, SIM_PPM / 4);
	w->cfg.standard = sim_chance(sim, SIM_PPM / 4);
	if (sim_chance(sim, SIM_PPM / 4 * 3))
		w->cfg.evict_ns = sim_between(sim, 20, 500) * SIM_US;
	w->cfg.force = sim_chance(sim, SIM_PPM / 2);
	w->cfg.full = sim_chance(sim, SIM_PPM / 4) ? SIM_PPM / 20 : 0;
	w->cfg.rcvbuf = sim_chance(sim, SIM_PPM / 4) ? 0 : 8 << 20;
	if (sim_chance(sim, SIM_PPM / 2))
		return;
	l->loss = (uint32_t)sim_between(sim, 0, SIM_PPM / 20);
	l->burst_loss = (uint32_t)sim_between(sim, 0, SIM_PPM / 50);
	l->dup = (uint32_t)sim_between(sim, 0, SIM_PPM / 20);
	l->reorder = (uint32_t)sim_between(sim, 0, SIM_PPM / 20);
	l->corrupt = (uint32_t)sim_between(sim, 0, SIM_PPM / 100);
}

static void open_ends(struct world *w)
{
	u.ends = (unsigned)sim_between(w->sim, w->cfg.nodes, ENDS_MAX);
	for (unsigned i = 0; i < u.ends; i++)
		end_open(&u.end[i], &w->node[i % w->cfg.nodes]);
	for (unsigned i = 0; i < u.ends; i++)
		node_thread(u.end[i].node, end_thread, &u.end[i]);
}

static void check_slots(void)
{
	for (unsigned i = 0; i < u.w->cfg.nodes; i++) {
		const struct nic *nic = u.w->node[i].nic;

		for (unsigned k = 0; k < ARRAY_SIZE(nic->x.pool.sources); k++)
			EXPECT(u.w, nic->x.pool.sources[k] == 0,
			       "%u slots of a source are left",
			       nic->x.pool.sources[k]);
		/* one source alone may have six of ten */
		EXPECT(u.w,
		       nic->cnt.v[CNT_slots_used_max] >=
				       nic->x.pool.slots / 2 ||
			       !nic->cnt.v[CNT_drop_no_backup],
		       "dropped %" PRIu64 " with most slots free",
		       nic->cnt.v[CNT_drop_no_backup]);
	}
}

/* Who drops keeps nothing for a page, and who keeps drops nothing. */
static void check_answers(const struct world *w)
{
	const bool drops = w->cfg.strategies & STRATEGY_BIT(STRATEGY_DROP);
	const enum counter never = drops ? CNT_fault_backup : CNT_fault_drop;

	EXPECT(u.w, w->cfg.choose || w->total.v[never] == 0, "%s is %" PRIu64,
	       counter_info[never].name, w->total.v[never]);
}

static void run(struct world *w)
{
	bool lossless, cut;

	draw(w);
	u = (struct uds){.w = w};
	lossless = !w->cfg.link.loss && !w->cfg.link.burst_loss &&
		   !w->cfg.link.dup && !w->cfg.link.corrupt;
	u.keeps_order = !w->cfg.link.reorder && !w->cfg.link.dup;
	world_build(w);
	open_ends(w);
	cut = sim_chance(w->sim, SIM_PPM / 8);
	if (cut)
		world_run(w, 3 * SIM_MS); /* and in the middle of it the end */
	else
		run_until_done(lossless);
	w->stop = true;
	while (w->threads)
		world_run(w, 100 * SIM_US);
	for (unsigned i = 0; i < u.ends; i++)
		end_close(&u.end[i]);
	check_slots();
	world_close(w);
	check_answers(w);
	if (!cut)
		EXPECT(w, 2 * w->forgotten <= w->total.v[CNT_redirected_bytes],
		       "I6: %" PRIu64 " bytes kept, %" PRIu64 " not received",
		       w->total.v[CNT_redirected_bytes], w->forgotten);
}

static const char *never(const struct sim_stats *st)
{
	return !st->duplicated	? "a packet that came twice"
	       : !st->reordered ? "a packet that was overtaken"
	       : !st->evictions ? "an eviction"
				: NULL;
}

const struct scenario scenario_ud = {
	.name = "ud",
	.run = run,
	.musts = 11,
	.must = {CNT_fault_backup, CNT_fault_drop, CNT_fault_inline,
		 CNT_fault_park, CNT_fault_overwrite, CNT_drop_qkey,
		 CNT_drop_no_recv, CNT_drop_recv_short, CNT_drop_no_backup,
		 CNT_drop_icrc, CNT_engine_majflt},
	.never = never,
};
