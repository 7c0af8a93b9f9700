/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* node.c: the NIC of one simulated process, its application threads, and its
 * connections to others.
 */
#include "base/page.h"
#include "mem/dma.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "nic/arbiter.h"
#include "nic/completion.h"
#include "nic/config.h"
#include "nic/cq.h"
#include "nic/device.h"
#include "nic/handoff.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "nic/reg.h"
#include "oracle.h"
#include "os/run.h"
#include "shared.h"
#include "wire/roce.h"
#include "xport/peer.h"

#include <inttypes.h>

enum { CQ_ENTRIES = 4096 };

/* --- the NIC ----------------------------------------------------------------- */

static void hook_map(void *arg, uint64_t vpn, uint64_t pages, bool writable)
{
	struct nic *nic = ((struct node *)arg)->nic;

	handoff_lock(&nic->engine);
	spt_map(nic->mem, vpn, pages, writable, os_now(nic->os));
	handoff_unlock(&nic->engine);
}

static int hook_unmap(void *arg, uint64_t vpn, uint64_t pages)
{
	struct nic *nic = ((struct node *)arg)->nic;
	int err;

	handoff_lock(&nic->engine);
	err = spt_unmap(nic->mem, vpn, pages);
	handoff_unlock(&nic->engine);
	return err;
}

static int hook_protect(void *arg, uint64_t vpn, uint64_t pages)
{
	struct nic *nic = ((struct node *)arg)->nic;
	int err;

	handoff_lock(&nic->engine);
	err = spt_protect(nic->mem, vpn, pages);
	handoff_unlock(&nic->engine);
	return err;
}

static void hook_protect_all(void *arg)
{
	struct nic *nic = ((struct node *)arg)->nic;

	handoff_lock(&nic->engine);
	spt_protect_all(nic->mem);
	handoff_unlock(&nic->engine);
}

static struct nic_config node_config(const struct node *node)
{
	const struct world_config *cfg = &node->w->cfg;
	const uint32_t weight = cfg->weight[node->index];

	return (struct nic_config){
		.os = {.no_gso = cfg->no_gso,
		       .no_gro = cfg->no_gro,
		       .pagers = cfg->pagers},
		.log = LOG_WARN,
		.account = true,
		.account_own = true,
		.strategies = cfg->strategies,
		.reg = (enum reg_mode)cfg->reg,
		.pin_cache = cfg->pin_cache,
		.paths = cfg->paths,
		.spin_ns = cfg->spin_ns,
		.ahead = (enum ahead)cfg->ahead,
		.scatter = !cfg->no_scatter && cfg->reg != REG_COPY &&
			   !(cfg->strategies & STRATEGY_BIT(STRATEGY_BLOCK)),
		.pool_bytes = (uint64_t)cfg->slots * MTU_MAX,
		.entries = cfg->entries,
		.arbiter = (enum arbiter_rule)cfg->arbiter,
		.budget = cfg->budget,
		.weight = weight ? weight : 100,
		.tickets = cfg->tickets,
		.always_ready = cfg->always_ready,
		.exact = cfg->exact,
	};
}

/* Cells of atomics, open to every connection of the node. */
static void node_cells(struct node *node)
{
	struct mr_attr attr = {.pd = node->pd,
			       .length = PAGE_BYTES,
			       .access = ACCESS_LOCAL_WRITE |
					 ACCESS_REMOTE_ATOMIC |
					 ACCESS_ON_DEMAND};

	node->cells = area_add(node, AREA_CELLS, PAGE_BYTES, NULL);
	node->cell_iova = node->cells;
	attr.addr = attr.iova = node->cells;
	upcall_watch(node, &attr);
	EXPECT(node->w, nic_mr_reg(node->nic, &attr, &node->cells_key) == 0,
	       "nic_mr_reg of cells");
	node_registered(node, node->cells);
}

void node_open(struct node *node)
{
	const struct nic_config cfg = node_config(node);
	const struct sim_mmu_hook hook = {hook_map, hook_unmap, hook_protect,
					  hook_protect_all, node};
	struct world *w = node->w;
	int err;

	sim_host_use(node->os);
	err = nic_open(&node->nic, &cfg);
	EXPECT(w, err == 0, "nic_open: %d", err);
	node->nic->x.checked = true;
	if (w->cfg.exact)
		sim_mmu_hook(node->os, &hook);
	sim_watch(node->os, watch_write, node);
	sim_watch_drop(node->os, watch_drop, node);
	for (unsigned i = 0; i < NODE_CQS; i++) {
		err = nic_cq_create(node->nic, NULL, NULL, CQ_ENTRIES, NULL,
				    &node->cq[i]);
		EXPECT(w, err == 0, "nic_cq_create: %d", err);
	}
	err = nic_pd_alloc(node->nic, &node->pd);
	EXPECT(w, err == 0, "nic_pd_alloc: %d", err);
	upcall_open(node);
	node_cells(node);
	shared_open(node);
}

void node_close(struct node *node)
{
	static const struct sim_mmu_hook none;
	struct world *w = node->w;
	struct counters cnt;

	EXPECT(w, nic_mr_dereg(node->nic, node->cells_key) == 0, "dereg");
	shared_close(node);
	upcall_close(node);
	EXPECT(w, nic_pd_dealloc(node->nic, node->pd) == 0, "dealloc pd");
	for (unsigned i = 0; i < NODE_CQS; i++)
		EXPECT(w, nic_cq_destroy(node->cq[i]) == 0, "destroy cq");
	node_accounts(node, true);
	nic_counters(node->nic, &cnt);
	for (unsigned i = 0; i < CNT_NUM; i++)
		w->total.v[i] += cnt.v[i];
	sim_mmu_hook(node->os, &none);
	nic_close(node->nic);
	node->nic = NULL;
	EXPECT(w, !sim_locked_bytes(node->os),
	       "node %u: its NIC left %" PRIu64 " bytes locked", node->index,
	       sim_locked_bytes(node->os));
}

bool node_key_live(const struct node *node, uint32_t key, uint64_t iova)
{
	const struct dma d = {.pd = node->pd,
			      .key = key,
			      .iova = iova,
			      .len = 1,
			      .need = ACCESS_REMOTE_WRITE,
			      .write = true,
			      .remote = true};

	return dma_check(node->nic->mem, &d) == V_OK;
}

/* Each peer leaves the others a fifth of what it found free (win_slots()). */
void node_watch(const struct node *node)
{
	const struct nic *nic = node->nic;

	reg_watch(node);
	node_accounts(node, false);
	node_sums(node);
	node_live(node);
	list_for_each(l, &nic->peers.all) {
		const struct peer *p = list_entry(l, struct peer, link);

		EXPECT(node->w,
		       5 * p->lend.slots <= 4 * (node->w->cfg.slots + 1),
		       "node %u: I4: a peer holds %u slots of %u", node->index,
		       p->lend.slots, node->w->cfg.slots);
	}
}

uint64_t area_add(struct node *node, enum area_kind kind, uint64_t bytes,
		  struct flow *flow)
{
	struct area *a = &node->area[node->areas++];

	CHECK(node->areas <= AREAS_MAX);
	a->kind = kind;
	a->bytes = bytes;
	a->flow = flow;
	return a->addr = sim_mmap(node->os, bytes, node->w->cfg.backing,
				  SIM_READ | SIM_WRITE);
}

void node_registered(struct node *node, uint64_t addr)
{
	for (unsigned i = 0; i < node->areas; i++)
		node->area[i].regs += node->area[i].addr == addr;
}

void area_kill(struct node *node, uint64_t addr)
{
	for (unsigned i = 0; i < node->areas; i++) {
		if (node->area[i].addr == addr)
			node->area[i].kind = AREA_DEAD;
	}
}

/* --- applications ------------------------------------------------------------------ */

static struct end *end_find(struct node *node, uint32_t qpn)
{
	struct world *w = node->w;

	for (unsigned i = 0; i < w->cfg.conns * 2; i++) {
		struct end *e = &w->conn[i / 2].end[i % 2];

		if (e->node == node && e->qp && e->qpn == qpn)
			return e;
	}
	return NULL;
}

int node_poll(struct node *node, struct nic_cq *cq, unsigned max, struct cqe *e)
{
	const int n = nic_cq_poll(cq, max, e);

	for (int i = 0; i < n; i++) {
		const uint64_t fields[] = {
			node->index,	 e[i].wr_id,	 e[i].byte_len,
			e[i].imm,	 e[i].qpn,	 e[i].src_qpn,
			e[i].vendor_err, e[i].status,	 e[i].op,
			e[i].flags,	 e[i].solicited, e[i].met.ns,
			e[i].met.faults};

		sim_mix(node->w->sim, SIM_HASH_COMPLETIONS, fields,
			sizeof(fields));
	}
	return n;
}

/* Return: how many completions there were. */
static int poll_one(struct node *node, struct nic_cq *cq)
{
	struct cqe e[8];
	int n = node_poll(node, cq, (unsigned)sim_between(node->w->sim, 1, 8),
			  e);

	EXPECT(node->w, n >= 0, "nic_cq_poll: %d", n);
	for (int i = 0; i < n; i++) {
		struct end *end = end_find(node, e[i].qpn);

		EXPECT(node->w, end, "completion of QP %u, which is nobody's",
		       e[i].qpn);
		end_completion(end, &e[i]);
	}
	return n;
}

/* A program that now and then does something else for a while, and polls more
 * slowly when nothing comes.
 */
static void pause_some(struct node *node, unsigned idle)
{
	struct sim *sim = node->w->sim;

	if (sim_chance(sim, SIM_PPM / 100))
		sim_sleep(sim, sim_between(sim, 0, SIM_MS));
	else
		sim_sleep(sim, sim_between(sim, 100, (3 + idle) * SIM_US));
}

void application_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;
	unsigned idle = 0;

	while (!w->stop) {
		int got = 0;

		for (unsigned i = 0; i < w->cfg.conns * 2; i++) {
			struct end *e = &w->conn[i / 2].end[i % 2];

			if (e->node != node || !e->qp)
				continue;
			e->users++;
			flow_recv(e->in);
			count_check(e->in);
			flow_post(e->out);
			e->users--;
		}
		for (unsigned i = 0; i < NODE_CQS; i++)
			got += poll_one(node, node->cq[i]);
		idle = got ? 0 : MIN(idle + 1, 1000);
		pause_some(node, idle);
	}
}

/* --- connections ----------------------------------------------------------------------- */

void end_create(struct world *w, struct end *e, struct node *node)
{
	struct sim *sim = w->sim;
	struct nic_qp_init init = {
		.pd = node->pd,
		.send_cq = node->cq[sim_between(sim, 0, NODE_CQS - 1)],
		.recv_cq = node->cq[sim_between(sim, 0, NODE_CQS - 1)],
		.max_send_wr = (uint32_t)sim_between(sim, 6, FLOW_SLOTS),
		.max_recv_wr = FLOW_SLOTS,
		.max_send_sge = (uint32_t)sim_between(sim, 1, FLOW_SGES),
		.max_recv_sge = (uint32_t)sim_between(sim, 1, FLOW_SGES),
		.max_inline = (uint32_t)sim_between(sim, 0, 220),
		.sq_sig_all = sim_chance(sim, SIM_PPM / 10),
		.srq = shared_queue(node),
		.cookie = e,
	};
	int err;

	e->node = node;
	err = nic_qp_create(node->nic, NULL, &init, &e->qp, &e->qpn);
	EXPECT(w, err == 0, "nic_qp_create: %d", err);
	if (w->cfg.choose)
		EXPECT(w, nic_qp_set_fault(e->qp, world_strategy(w, true)) == 0,
		       "nic_qp_set_fault");
	e->init = init;
	/* The wrap of PSNs must not be rare. */
	e->sq_psn = (uint32_t)sim_rand(sim) & 0xffffff;
	if (sim_chance(sim, SIM_PPM / 3))
		e->sq_psn = 0xffffff - (uint32_t)sim_between(sim, 0, 40);
}

void end_modify(struct world *w, struct end *e, struct qp_attr *attr,
		enum qp_state state, uint32_t mask)
{
	int err;

	attr->state = state;
	err = nic_qp_modify(e->qp, attr, mask | QPA_STATE);
	EXPECT(w, err == 0, "nic_qp_modify to state %d: %d", state, err);
}

static void connect_at(struct world *w, struct end *e, const struct end *peer,
		       uint32_t rq_psn)
{
	const bool v6 = w->cfg.v6;
	struct qp_attr attr = {
		.access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
			  ACCESS_REMOTE_ATOMIC,
		.path_mtu = w->cfg.path_mtu,
		.rq_psn = rq_psn,
		.sq_psn = e->sq_psn,
		.dest_qpn = peer->qpn,
		.port = 1,
		.sgid_index = v6 ? 2 : 0,
		.dgid = sim_host_ip(peer->node->os, v6),
		.has_grh = true,
		.hop_limit = 64,
		.max_rd_atomic = w->cfg.rd_atomic,
		.max_dest_rd_atomic = MAX(w->cfg.rd_atomic, 1),
		.min_rnr_timer = w->cfg.rnr_timer,
		.timeout = w->cfg.timeout,
		.retry_cnt = w->cfg.retry_cnt,
		.rnr_retry = w->cfg.rnr_retry,
	};

	end_modify(w, e, &attr, QPS_INIT,
		   QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS);
	end_modify(w, e, &attr, QPS_RTR,
		   QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
			   QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER);
	end_modify(w, e, &attr, QPS_RTS,
		   QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN |
			   QPA_MAX_RD_ATOMIC);
}

void end_connect(struct world *w, struct end *e, const struct end *peer)
{
	connect_at(w, e, peer, peer->sq_psn);
}

void conn_open(struct world *w, struct conn *conn, struct node *a,
	       struct node *b)
{
	end_create(w, &conn->end[0], a);
	end_create(w, &conn->end[1], b);
	end_connect(w, &conn->end[0], &conn->end[1]);
	end_connect(w, &conn->end[1], &conn->end[0]);
}

void end_again(struct end *e, const struct end *peer, uint32_t rq_psn)
{
	struct qp_attr attr = {.state = QPS_RESET};
	struct world *w = e->node->w;

	end_modify(w, e, &attr, QPS_RESET, 0);
	connect_at(w, e, peer, rq_psn);
}

/* Programs must not post to a QP that they destroy; completions may come until
 * the call returns.
 */
void end_destroy(struct end *e)
{
	int err;

	if (!e->qp)
		return;
	while (e->users != 0)
		sim_sleep(e->node->w->sim, SIM_US);
	err = nic_qp_destroy(e->qp);
	EXPECT(e->node->w, err == 0, "nic_qp_destroy: %d", err);
	e->qp = NULL;
}
