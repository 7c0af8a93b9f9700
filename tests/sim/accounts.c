/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* accounts.c: I6: what is accounted of faults adds up, at any time: over QPs,
 * over regions, and against the counters of the NIC. And budgets, over QPs and peers.
 */
#include "mem/account.h"
#include "mem/mr.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/ticket.h"
#include "mem/waiter.h"
#include "nic/device.h"
#include "nic/nic.h"
#include "nic/qp.h"
#include "world.h"
#include "xport/peer.h"

#include <inttypes.h>

static void same(const struct node *node, const char *what, uint64_t a,
		 uint64_t b)
{
	EXPECT(node->w, a == b,
	       "node %u: %s: %" PRIu64 " here, %" PRIu64 " there", node->index,
	       what, a, b);
}

static void hist_same(const struct node *node, const char *what,
		      const struct hist *a, const struct hist *b)
{
	uint64_t sum = 0;

	same(node, what, a->count, b->count);
	same(node, what, a->sum_ns, b->sum_ns);
	for (int i = 0; i < HIST_BUCKETS; i++) {
		same(node, what, a->bucket[i], b->bucket[i]);
		sum += a->bucket[i];
	}
	same(node, "histogram", sum, a->count);
}

static void account_same(const struct node *node, const struct account *a,
			 const struct account *b)
{
	for (int i = 0; i < ACCT_NUM; i++)
		same(node, account_info[i].name, a->n[i], b->n[i]);
	for (int i = 0; i < STRATEGY_NUM; i++)
		same(node, strategy_name((enum strategy)i), a->strategy[i],
		     b->strategy[i]);
	hist_same(node, "service", &a->service, &b->service);
	hist_same(node, "delay", &a->delay, &b->delay);
}

static unsigned is_open(const struct waiter *w, struct account *a)
{
	a->n[ACCT_unanswered] += w->fault == 1;
	return w->fault != 0;
}

/* Faults of @qp that are not over; of these nobody answered a->unanswered. */
static unsigned open_faults(const struct qp *qp, struct account *a)
{
	return is_open(&qp->req.wait, a) + is_open(&qp->req.rsp_wait, a) +
	       is_open(&qp->resp.wait, a) + is_open(&qp->resp.replay.wait, a);
}

static void counters_same(const struct node *node, const struct account *a,
			  const struct counters *c)
{
	const struct {
		enum counter counter;
		uint64_t n;
	} t[] = {
		{CNT_faults, a->n[ACCT_faults]},
		{CNT_table_misses, a->n[ACCT_table_misses]},
		{CNT_tickets_merged, a->n[ACCT_merged]},
		{CNT_prefetch_pages, a->n[ACCT_prefetch_pages]},
		{CNT_prefetch_hits, a->n[ACCT_prefetch_hits]},
		{CNT_prefetch_waste, a->n[ACCT_prefetch_waste]},
		{CNT_redirected_bytes, a->n[ACCT_redirected_bytes]},
		{CNT_fault_park, a->strategy[STRATEGY_PARK]},
		{CNT_fault_inline, a->strategy[STRATEGY_INLINE]},
		{CNT_fault_overwrite, a->strategy[STRATEGY_OVERWRITE]},
		{CNT_fault_backup, a->strategy[STRATEGY_BACKUP]},
		{CNT_fault_redirect, a->strategy[STRATEGY_REDIRECT]},
		{CNT_fault_replay, a->strategy[STRATEGY_REPLAY]},
		{CNT_fault_resume, a->strategy[STRATEGY_RESUME]},
		{CNT_fault_drop, a->strategy[STRATEGY_DROP]},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		same(node, counter_info[t[i].counter].name, c->v[t[i].counter],
		     t[i].n);
	same(node, "tickets", c->v[CNT_tickets],
	     c->v[CNT_tickets_answered] + c->v[CNT_tickets_unasked] +
		     tickets_out(node->nic->mem));
}

/* @open: faults that are not over, and (unanswered) not answered either. */
static void faults_end(const struct node *node, const struct account *a,
		       unsigned open, uint64_t unanswered)
{
	const uint64_t answered = a->n[ACCT_minor] + a->n[ACCT_major] +
				  a->n[ACCT_access];

	same(node, "answers", a->service.count, answered);
	same(node, "faults by kind", a->n[ACCT_faults],
	     answered + a->n[ACCT_cheap] + a->n[ACCT_unanswered] + unanswered);
	EXPECT(node->w,
	       a->n[ACCT_copied_bytes] + a->n[ACCT_forgotten_bytes] <=
		       a->n[ACCT_redirected_bytes],
	       "node %u: I3: copied more than was redirected", node->index);
	/* moves that meet cheap faults may be out */
	EXPECT(node->w,
	       a->delay.count + a->n[ACCT_given_up] + open <= a->n[ACCT_faults],
	       "node %u: I6: a fault ended twice", node->index);
}

/* Pages that were fetched ahead, and nothing became of them yet. */
static uint64_t not_used(const struct spt *s)
{
	const uint64_t num = (s->sets.mask + 1) * SPT_WAYS;
	uint64_t n = 0;

	for (uint64_t i = 0; i < num; i++)
		n += s->e[i] >> 62 == SPT_AHEAD;
	return n;
}

static void account_mix(const struct node *node, uint32_t of,
			const struct account *a)
{
	static_assert(sizeof(*a) % sizeof(uint64_t) == 0, "of words only");
	sim_mix(node->w->sim, SIM_HASH_COUNTS, &of, sizeof(of));
	sim_mix(node->w->sim, SIM_HASH_COUNTS, a, sizeof(*a));
}

/* By name, so that one more that stays zero changes nothing. */
static void counters_mix(const struct node *node, const struct counters *c)
{
	for (unsigned i = 0; i < CNT_NUM; i++) {
		const char *name = counter_info[i].name;

		if (!c->v[i])
			continue;
		sim_mix(node->w->sim, SIM_HASH_COUNTS, name, strlen(name));
		sim_mix(node->w->sim, SIM_HASH_COUNTS, &c->v[i],
			sizeof(c->v[i]));
	}
}

/* What QPs have of a peer's, and peers of the NIC's. */
struct sums {
	uint32_t in_flight, out, reads, granted, lent, left, firsts;
};

static void peer_sums(const struct node *node, const struct peer *p,
		      struct sums *nic)
{
	uint32_t in_flight = 0, out = 0, firsts = 0;

	list_for_each(l, &node->nic->qps.all) {
		const struct qp *qp = &list_entry(l, struct nic_qp, all)->qp;
		const struct req_charge *c = &qp->req.charge;

		if (qp->peer != p)
			continue;
		in_flight += c->charged;
		out += c->out ? c->out - 1 : 0;
		nic->reads += c->reads;
		firsts += qp->req.win.first + qp->resp.win.first;
	}
	same(node, "bytes in flight", in_flight, p->flow.in_flight);
	same(node, "packets of a quota", out, p->quota.out);
	same(node, "first packets", firsts, p->lend.firsts);
	nic->granted += p->flow.granted;
	nic->lent += p->lend.lent;
	nic->left += p->lend.lent > p->lend.filled
			     ? p->lend.lent - p->lend.filled
			     : 0;
	nic->firsts += p->lend.firsts;
}

void node_sums(const struct node *node)
{
	const struct xport *x = &node->nic->x;
	struct sums sum = {.reads = 0};

	list_for_each(l, &node->nic->peers.all)
		peer_sums(node, list_entry(l, struct peer, link), &sum);
	same(node, "responses asked for", sum.reads, x->budget.read_out);
	same(node, "bytes granted", sum.granted, x->budget.granted);
	same(node, "slots lent", sum.lent, x->pool.lent);
	same(node, "slots lent and free", sum.left, x->pool.lent_left);
	same(node, "slots of first packets", sum.firsts, x->pool.firsts);
}

void node_mix(const struct node *node)
{
	const struct nic *nic = node->nic;
	struct counters cnt;
	struct account one;
	struct mr_attr attr;
	uint32_t at = 0, key;

	nic_counters(node->nic, &cnt);
	counters_mix(node, &cnt);
	list_for_each(l, &nic->qps.all) {
		const struct nic_qp *qp = list_entry(l, struct nic_qp, all);

		one = account_copy(qp->qp.account);
		account_mix(node, qp->qp.cfg.qpn, &one);
	}
	while (mr_account_next(nic->mem, &at, &key, &attr, &one))
		account_mix(node, key, &one);
}

void node_accounts(const struct node *node, bool over)
{
	struct account all, qps, mrs, one, waits = {.n = {0}};
	const struct nic *nic = node->nic;
	struct mr_attr attr;
	unsigned open = 0;
	uint32_t at = 0, key;

	mem_account_copy(nic->mem, &all, &qps, &mrs);
	list_for_each(l, &nic->qps.all) {
		const struct nic_qp *qp = list_entry(l, struct nic_qp, all);

		one = account_copy(qp->qp.account);
		account_add(&qps, &one);
		open += open_faults(&qp->qp, &waits);
	}
	account_same(node, &all, &qps);
	while (mr_account_next(nic->mem, &at, &key, &attr, &one))
		account_add(&mrs, &one);
	account_same(node, &all, &mrs);
	counters_same(node, &all, &nic->cnt);
	EXPECT(node->w,
	       all.n[ACCT_prefetch_hits] + all.n[ACCT_prefetch_waste] <=
		       all.n[ACCT_prefetch_pages],
	       "node %u: I6: more was of use than was fetched", node->index);
	faults_end(node, &all, open, waits.n[ACCT_unanswered]);
	if (!over)
		return;
	/* reads all of the table */
	same(node, "pages fetched ahead", all.n[ACCT_prefetch_pages],
	     all.n[ACCT_prefetch_hits] + all.n[ACCT_prefetch_waste] +
		     not_used(&nic->mem->spt));
	same(node, "faults that are over", all.n[ACCT_faults],
	     all.delay.count + all.n[ACCT_given_up]);
	same(node, "one copy of what was redirected",
	     all.n[ACCT_redirected_bytes],
	     all.n[ACCT_copied_bytes] + all.n[ACCT_forgotten_bytes]);
	node->w->forgotten += all.n[ACCT_forgotten_bytes];
}
