/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stat.c: what `nopin stat` is told: the counters, and the account of faults of
 * the NIC, of each QP and of each region, as JSON (described in nopin-stat(1)).
 * It is copied under the engine lock, in pieces, and formatted without it.
 */
#include "nic/stat.h"
#include "base/account.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/list.h"
#include "base/strategy.h"
#include "mem/account.h"
#include "mem/mr.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/qp.h"
#include "nic/text.h"
#include "nic/trace.h"
#include "os/run.h"
#include "xport/attr.h"
#include "xport/qp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	STAT_QPS_MAX = 1024, /* the newest */
	STAT_MRS_MAX = 1024, /* with faults, if there are more */
	STAT_AT_ONCE = 64,
};

struct stat_qp {
	uint32_t qpn, dest_qpn;
	enum qp_state state;
	struct account account;
};

struct stat_mr {
	uint32_t key;
	struct mr_attr attr;
	struct account account;
};

/** struct stat_all - @qps_all, @mrs_all: how many there are, told or not. */
struct stat_all {
	struct counters cnt;
	struct account nic, no_qp, no_mr;
	struct stat_qp *qps;
	struct stat_mr *mrs;
	unsigned nqps, nmrs, qps_all, mrs_all;
};

static void add_hist(struct text *t, const char *name, const struct hist *h)
{
	text_add(t,
		 ",\"%s\":{\"count\":%" PRIu64 ",\"sum_ns\":%" PRIu64
		 ",\"max_ns\":%" PRIu64 ",\"buckets\":[",
		 name, h->count, h->sum_ns, h->max_ns);
	for (int i = 0; i < HIST_BUCKETS; i++)
		text_add(t, "%s%" PRIu64, i ? "," : "", h->bucket[i]);
	text_add(t, "]}");
}

static void add_account(struct text *t, const struct account *a)
{
	for (int i = 0; i < ACCT_NUM; i++)
		text_add(t, "%s\"%s\":%" PRIu64, i ? "," : "{",
			 account_info[i].name, a->n[i]);
	for (int i = STRATEGY_NONE + 1; i < STRATEGY_BLOCK; i++)
		text_add(t, "%s\"%s\":%" PRIu64,
			 i > STRATEGY_NONE + 1 ? "," : ",\"strategies\":{",
			 strategy_name((enum strategy)i), a->strategy[i]);
	text_add(t, "}");
	add_hist(t, "service", &a->service);
	add_hist(t, "delay", &a->delay);
	text_add(t, "}");
}

static void add_nic(struct text *t, const struct stat_all *s)
{
	text_add(t, "\"nic\":{\"counters\":");
	for (int i = 0; i < CNT_NUM; i++)
		text_add(t, "%s\"%s\":%" PRIu64, i ? "," : "{",
			 counter_info[i].name, s->cnt.v[i]);
	text_add(t, "},\"account\":");
	add_account(t, &s->nic);
	text_add(t, ",\"no_qp\":");
	add_account(t, &s->no_qp);
	text_add(t, ",\"no_region\":");
	add_account(t, &s->no_mr);
	text_add(t, "}");
}

static void add_qps(struct text *t, const struct stat_all *s)
{
	text_add(t, ",\"qps_total\":%u,\"qps\":[", s->qps_all);
	for (unsigned i = 0; i < s->nqps; i++) {
		const struct stat_qp *q = &s->qps[i];

		text_add(t,
			 "%s{\"qpn\":%" PRIu32 ",\"dest_qpn\":%" PRIu32
			 ",\"state\":\"%s\",\"account\":",
			 i ? "," : "", q->qpn, q->dest_qpn,
			 trace_state(q->state));
		add_account(t, &q->account);
		text_add(t, "}");
	}
	text_add(t, "]");
}

static void add_mrs(struct text *t, const struct stat_all *s)
{
	text_add(t, ",\"regions_total\":%u,\"regions\":[", s->mrs_all);
	for (unsigned i = 0; i < s->nmrs; i++) {
		const struct stat_mr *m = &s->mrs[i];

		/* the implicit region has no length that JSON could tell */
		text_add(t,
			 "%s{\"key\":\"0x%08" PRIx32 "\",\"addr\":\"0x%" PRIx64
			 "\",\"length\":%" PRIu64 ",\"account\":",
			 i ? "," : "", m->key, m->attr.addr,
			 MIN(m->attr.length, (uint64_t)INT64_MAX));
		add_account(t, &m->account);
		text_add(t, "}");
	}
	text_add(t, "]");
}

/* --- what there is --------------------------------------------------------- */

static void stat_copy_qps(struct nic *nic, struct stat_all *s)
{
	nic_lock(nic);
	s->qps_all = nic->qps.num;
	for (struct list *l = nic->qps.all.prev;
	     l != &nic->qps.all && s->nqps < STAT_QPS_MAX; l = l->prev) {
		const struct qp *qp = &list_entry(l, struct nic_qp, all)->qp;

		s->qps[s->nqps++] =
			(struct stat_qp){.qpn = qp->cfg.qpn,
					 .dest_qpn = qp->attr.dest_qpn,
					 .state = qp->state,
					 .account = account_copy(qp->account)};
	}
	nic_unlock(nic);
}

/* Those with faults; while there is room others too. */
static void note_mr(struct stat_all *s, const struct stat_mr *m)
{
	s->mrs_all++;
	if (s->nmrs < STAT_MRS_MAX) {
		s->mrs[s->nmrs++] = *m;
		return;
	}
	for (unsigned i = 0; m->account.n[ACCT_faults] && i < s->nmrs; i++)
		if (!s->mrs[i].account.n[ACCT_faults]) {
			s->mrs[i] = *m;
			return;
		}
}

static void copy_mrs(struct nic *nic, struct stat_all *s)
{
	uint32_t at = 0;
	bool more = true;

	while (more) {
		struct stat_mr m;

		nic_lock(nic);
		for (int i = 0; i < STAT_AT_ONCE && more; i++) {
			more = mr_account_next(nic->mem, &at, &m.key, &m.attr,
					       &m.account);
			if (more && m.key)
				note_mr(s, &m);
		}
		nic_unlock(nic);
	}
}

static void copy_nic(struct nic *nic, struct stat_all *s)
{
	nic_lock(nic);
	counters_copy(&s->cnt, &nic->cnt);
	mem_account_copy(nic->mem, &s->nic, &s->no_qp, &s->no_mr);
	nic_unlock(nic);
}

static void format(struct text *t, const struct stat_all *s, uint64_t now_ns)
{
	text_add(t, "{\"format\":1,\"time_ns\":%" PRIu64 ",\"bucket_le_ns\":[",
		 now_ns);
	for (unsigned i = 0; i < HIST_BUCKETS - 1; i++)
		text_add(t, "%s%" PRIu64, i ? "," : "", hist_le(i));
	text_add(t, "],");
	add_nic(t, s);
	add_qps(t, s);
	add_mrs(t, s);
	text_add(t, "}\n");
}

void stat_text(struct nic *nic, struct ctl_answer *a)
{
	struct stat_all *s = calloc(1, sizeof(*s));
	struct text t = {.p = NULL};

	if (!s)
		return;
	s->qps = malloc(STAT_QPS_MAX * sizeof(*s->qps));
	s->mrs = malloc(STAT_MRS_MAX * sizeof(*s->mrs));
	if (s->qps && s->mrs) {
		copy_nic(nic, s);
		stat_copy_qps(nic, s);
		copy_mrs(nic, s);
		format(&t, s, os_now(nic->os));
	}
	free(s->qps);
	free(s->mrs);
	free(s);
	text_answer(&t, a);
}
