/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace.c: what the NIC tells about itself when `nopin trace PID` asks: every
 * QP with the last events of its flight recorder, and the counters. What is said
 * is copied under the engine lock and formatted without it, by the background
 * thread (ctl.c).
 */
#include "nic/trace.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/list.h"
#include "base/timerq.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/nic.h"
#include "nic/progress.h"
#include "nic/qp.h"
#include "nic/srq.h"
#include "nic/text.h"
#include "os/run.h"
#include "ring/wq.h"
#include "xport/attr.h"
#include "xport/qp.h"
#include "xport/waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	TRACE_QPS_MAX = 1024, /* the newest */
	TRACE_QP_BYTES = FLIGHT_EVENTS * 128 + 512,
	TRACE_COUNTERS_BYTES = CNT_NUM * 96,
};

static const char *const state_names[QPS_NUM] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

const char *trace_state(enum qp_state state)
{
	return state < QPS_NUM ? state_names[state] : "?";
}

static const char *const wait_names[LIVE_WAIT_NUM] = {
	[LIVE_NOTHING] = "nothing",
	[LIVE_HELLO] = "word whether its peer is a nopin",
	[LIVE_OWN] = "a page or a move of this host",
	[LIVE_PAUSE] = "the end of a pause (no receive, or a full socket)",
	[LIVE_HOLD] = "a page of the peer, which said hold",
	[LIVE_REGION] = "a region that the peer has suspended",
	[LIVE_WINDOW] = "room at the peer, which others have",
	[LIVE_EXPLAINED] = "the peer, which has it and says so",
	[LIVE_STALLED] = "the peer, which answers and moves nothing",
	[LIVE_ANSWER] = "an answer of the peer",
};

/* Append; what does not fit is cut. Return: the new length. */
__attribute__((format(printf, 4, 5))) static size_t add(char *buf, size_t size,
							size_t len,
							const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
	return MIN(len + (size_t)MAX(n, 0), size - 1);
}

static size_t add_flight(char *buf, size_t size, size_t len,
			 const struct flight *f, uint64_t now_ns)
{
	uint64_t i = f->next - MIN(f->next, FLIGHT_EVENTS);

	if (i)
		len = add(buf, size, len, "  (%" PRIu64 " events before)\n", i);
	for (; i < f->next; i++) {
		len = add(buf, size, len, "  ");
		len += flight_line(buf + len, size - len,
				   &f->ev[i % FLIGHT_EVENTS], now_ns);
		len = add(buf, size, len, "\n");
	}
	return len;
}

static size_t add_wait(char *buf, size_t size, size_t len,
		       const struct trace_qp *t, uint64_t now_ns)
{
	const uint64_t at = MAX(t->spent_at, now_ns);

	if (t->wait == LIVE_NOTHING)
		return len;
	len = add(buf, size, len, "  waits for %s; %u of %u retries left",
		  wait_names[t->wait], t->retries, t->retry_cnt);
	if (t->spent_at != TIME_NEVER)
		len = add(buf, size, len, ", one ends in %" PRIu64 " ms",
			  (at - now_ns) / 1000000);
	return add(buf, size, len, "\n");
}

void trace_copy(struct trace_qp *t, const struct nic_qp *nq)
{
	const struct qp *qp = &nq->qp;

	*t = (struct trace_qp){.qpn = qp->cfg.qpn,
			       .dest_qpn = qp->attr.dest_qpn,
			       .state = qp->state,
			       .una = qp->req.psn.una,
			       .acc = qp->req.psn.acc,
			       .snd = qp->req.psn.snd,
			       .max = qp->req.psn.max,
			       .head = qp->resp.win.head,
			       .next = qp->resp.win.next,
			       .sq = wq_end(&nq->sq) - nq->sq.cons,
			       .shared = nq->init.srq != NULL,
			       .rq = nq->init.srq ? srq_left(&nq->init.srq->srq)
						  : wq_end(&nq->rq.wq) -
							    nq->rq.wq.cons,
			       .retries = qp->req.retries,
			       .retry_cnt = qp->attr.retry_cnt,
			       .log = qp->log};
	t->wait = live_waits(qp, &t->spent_at);
}

size_t trace_format(char *buf, size_t size, const struct trace_qp *t,
		    uint64_t now_ns)
{
	size_t len = add(buf, size, 0,
			 "qp 0x%06" PRIx32 " %s, to qp 0x%06" PRIx32 "\n"
			 "  sends: %" PRIu32 " queued, una 0x%06" PRIx32
			 " acc 0x%06" PRIx32 " snd 0x%06" PRIx32
			 " max 0x%06" PRIx32 "\n"
			 "  receives: %" PRIu32 " queued%s, placed 0x%06" PRIx32
			 " accepted 0x%06" PRIx32 "\n",
			 t->qpn, trace_state(t->state), t->dest_qpn, t->sq,
			 t->una, t->acc, t->snd, t->max, t->rq,
			 t->shared ? " for several QPs" : "", t->head, t->next);

	len = add_wait(buf, size, len, t, now_ns);
	return add_flight(buf, size, len, &t->log, now_ns);
}

static size_t add_counters(char *buf, size_t size, const struct counters *c)
{
	size_t len = 0;

	for (int i = 0; i < CNT_NUM; i++)
		if (c->v[i])
			len = add(buf, size, len, "%s: %" PRIu64 " %s\n",
				  counter_info[i].name, c->v[i],
				  counter_info[i].unit);
	return len;
}

/* Nothing is allocated under the lock, so the number of QPs may have changed.
 * Return: how many were copied to @out, newest first.
 */
static unsigned trace_copy_qps(struct nic *nic, struct trace_qp **out)
{
	unsigned n = 0, max;

	nic_lock(nic);
	max = MIN(nic->qps.num, TRACE_QPS_MAX);
	nic_unlock(nic);
	*out = malloc(MAX(max, 1) * sizeof(**out));
	if (!*out)
		return 0;
	nic_lock(nic);
	for (struct list *l = nic->qps.all.prev; l != &nic->qps.all && n < max;
	     l = l->prev)
		trace_copy(&(*out)[n++], list_entry(l, struct nic_qp, all));
	nic_unlock(nic);
	return n;
}

void trace_text(struct nic *nic, struct ctl_answer *a)
{
	struct trace_qp *qps;
	struct counters cnt;
	size_t size, len = 0;
	uint64_t now;
	unsigned n;

	n = trace_copy_qps(nic, &qps);
	now = os_now(nic->os);
	nic_counters(nic, &cnt);
	size = TRACE_COUNTERS_BYTES + n * (size_t)TRACE_QP_BYTES;
	a->text = malloc(size);
	if (a->text) {
		len = add_counters(a->text, size, &cnt);
		while (n--)
			len += trace_format(a->text + len, size - len, &qps[n],
					    now);
	}
	a->len = len;
	free(qps);
}
