/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace.c: what the flight recorder holds, for people: `nopin trace PID` asks
 * the NIC through a control socket (os/ctl.c), and at NOPIN_LOG=debug a QP that
 * fails says its own.
 *
 * A question is connecting, the answer is text until the end. Everything is
 * copied under the engine lock, one QP at a time, and formatted and sent
 * without it. The background thread serves one client at a time and never waits
 * for it: what the client's socket does not take now is tried again at the next
 * turn, and a client that is too slow, or asks too often, is dropped.
 */
#include "nic/impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	TRACE_QPS_MAX = 256, /* the newest */
	TRACE_QP_BYTES = FLIGHT_EVENTS * 160 + 512,
	TRACE_HEAD_BYTES = CNT_NUM * 80 + 256,
	TRACE_PERIOD_NS = 50 * 1000 * 1000,
	TRACE_PATIENCE_NS = 2000 * 1000 * 1000,
	TRACE_TRY_NS = 5 * 1000 * 1000,
};

/** struct trace - One answer on its way to the client @fd (-1: none). */
struct trace {
	int listener, fd;
	uint64_t next_ns, give_up_ns;
	char *text;
	size_t len, sent;
};

static const char *const state_names[QPS_NUM] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

/* --- text ------------------------------------------------------------------ */

/* Append; what does not fit is cut. Return: the new length. */
__attribute__((format(printf, 4, 5))) static size_t
add(char *buf, size_t size, size_t len, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
	return n < 0 ? len : MIN(len + (size_t)n, size - 1);
}

static const char *state_name(uint64_t s)
{
	return s < QPS_NUM ? state_names[s] : "?";
}

size_t trace_event(char *buf, size_t size, const struct flight_event *e,
		   uint64_t now_ns)
{
	const struct flight_info *info =
		&flight_info[e->kind < FLIGHT_NUM ? e->kind : FLIGHT_NONE];
	const uint64_t ago = now_ns > e->at_ns ? now_ns - e->at_ns : 0;
	size_t len = add(buf, size, 0,
			 "  -%" PRIu64 ".%03" PRIu64 " us %-8s psn 0x%06" PRIx32,
			 ago / 1000, ago % 1000, info->name, e->psn);

	if (e->kind == FLIGHT_STATE)
		return add(buf, size, len, "  %s -> %s", state_name(e->a),
			   state_name(e->b));
	return add(buf, size, len, "  %s 0x%x  %s %" PRIu64, info->a, e->a,
		   info->b, e->b);
}

size_t trace_flight(char *buf, size_t size, const struct flight *f,
		    uint64_t now_ns)
{
	uint64_t i = f->next - MIN(f->next, FLIGHT_EVENTS);
	size_t len = 0;

	buf[0] = '\0';
	if (i)
		len = add(buf, size, len, "  (%" PRIu64 " before)\n", i);
	for (; i < f->next; i++) {
		len += trace_event(buf + len, size - len,
				   &f->ev[i % FLIGHT_EVENTS], now_ns);
		len = add(buf, size, len, "\n");
	}
	return len;
}

size_t trace_counters(char *buf, size_t size, const struct counters *c)
{
	size_t len = 0;

	buf[0] = '\0';
	for (int i = 0; i < CNT_NUM; i++)
		if (c->v[i])
			len = add(buf, size, len, "%s: %" PRIu64 " %s\n",
				  counter_info[i].name, c->v[i],
				  counter_info[i].unit);
	return len;
}

/* --- copies ---------------------------------------------------------------- */

/** struct trace_qp - What is copied of a QP under the lock. */
struct trace_qp {
	uint32_t qpn, dest_qpn;
	enum qp_state state;
	psn_t una, acc, snd, max;
	psn_t head, next;
	uint32_t sq, rq;
	struct flight log;
};

static void copy_qp(struct trace_qp *t, const struct nic_qp *nq)
{
	const struct qp *qp = &nq->qp;

	*t = (struct trace_qp){.qpn = qp->cfg.qpn,
			       .dest_qpn = qp->attr.dest_qpn,
			       .state = qp->state,
			       .una = qp->req.una,
			       .acc = qp->req.acc,
			       .snd = qp->req.snd,
			       .max = qp->req.max,
			       .head = qp->resp.win.head,
			       .next = qp->resp.win.next,
			       .sq = wq_end(&nq->sq) - nq->sq.cons,
			       .rq = wq_end(&nq->rq) - nq->rq.cons,
			       .log = qp->log};
}

static size_t format_qp(char *buf, size_t size, const struct trace_qp *t,
			uint64_t now_ns)
{
	size_t len = add(
		buf, size, 0,
		"qp 0x%06" PRIx32 " %s, to qp 0x%06" PRIx32 "\n"
		"  sends: %" PRIu32 " queued, una 0x%06" PRIx32
		" acc 0x%06" PRIx32 " snd 0x%06" PRIx32 " max 0x%06" PRIx32 "\n"
		"  receives: %" PRIu32 " queued, placed 0x%06" PRIx32
		" accepted 0x%06" PRIx32 "\n",
		t->qpn, state_name(t->state), t->dest_qpn, t->sq, t->una,
		t->acc, t->snd, t->max, t->rq, t->head, t->next);

	return len + trace_flight(buf + len, size - len, &t->log, now_ns);
}

/* Allocates without the lock, so the number of QPs may change meanwhile.
 * Return: how many were copied to @out.
 */
static unsigned copy_qps(struct nic *nic, struct trace_qp **out)
{
	unsigned n = 0, max;

	nic_lock(nic);
	max = MIN(nic->nqps, TRACE_QPS_MAX);
	nic_unlock(nic);
	*out = calloc(MAX(max, 1), sizeof(**out));
	if (!*out)
		return 0;
	nic_lock(nic);
	for (struct list *l = nic->qps.prev; l != &nic->qps && n < max;
	     l = l->prev)
		copy_qp(&(*out)[n++], list_entry(l, struct nic_qp, all));
	nic_unlock(nic);
	return n;
}

size_t trace_text(struct nic *nic, char **out)
{
	const uint64_t now = os_now(nic->os);
	struct trace_qp *qps = NULL;
	struct counters cnt;
	size_t size, len = 0;
	unsigned n;

	n = copy_qps(nic, &qps);
	nic_counters(nic, &cnt);
	size = TRACE_HEAD_BYTES + n * (size_t)TRACE_QP_BYTES;
	*out = malloc(size);
	if (*out) {
		len = trace_counters(*out, size, &cnt);
		while (n--)
			len += format_qp(*out + len, size - len, &qps[n], now);
	}
	free(qps);
	return len;
}

void trace_error(const struct nic_qp *nq, uint64_t now_ns)
{
	const struct flight *f = &nq->qp.log;
	char line[256];

	if (log_get() < LOG_DEBUG)
		return;
	log_debug("qp 0x%06" PRIx32 " failed; what happened before:",
		  nq->qp.cfg.qpn);
	for (uint64_t i = f->next - MIN(f->next, FLIGHT_EVENTS); i < f->next;
	     i++) {
		trace_event(line, sizeof(line), &f->ev[i % FLIGHT_EVENTS],
			    now_ns);
		log_debug("%s", line);
	}
}

/* --- the control socket ---------------------------------------------------- */

int trace_open(struct nic *nic)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->fd = -1;
	t->listener = os_ctl_open(nic->os);
	nic->trace = t;
	return 0;
}

static void drop_client(struct trace *t)
{
	os_ctl_end(t->fd);
	free(t->text);
	t->fd = -1;
	t->text = NULL;
}

void trace_close(struct nic *nic)
{
	struct trace *t = nic->trace;

	if (!t)
		return;
	if (t->fd >= 0)
		drop_client(t);
	if (t->listener >= 0)
		os_ctl_close(nic->os, t->listener);
	free(t);
	nic->trace = NULL;
}

static void send_some(struct trace *t, uint64_t now_ns)
{
	ssize_t n = 0;

	while (t->sent < t->len &&
	       (n = os_ctl_send(t->fd, t->text + t->sent, t->len - t->sent)) >
		       0)
		t->sent += (size_t)n;
	if (t->sent == t->len || (n < 0 && n != -EAGAIN) ||
	    now_ns >= t->give_up_ns)
		drop_client(t);
}

uint64_t trace_turn(struct nic *nic, uint64_t now_ns)
{
	struct trace *t = nic->trace;

	if (!t || t->listener < 0)
		return TIME_NEVER;
	if (t->fd < 0 && os_ctl_asked(nic->os)) {
		if (now_ns < t->next_ns)
			return t->next_ns;
		t->fd = os_ctl_accept(nic->os, t->listener);
		if (t->fd >= 0) {
			t->next_ns = now_ns + TRACE_PERIOD_NS;
			t->give_up_ns = now_ns + TRACE_PATIENCE_NS;
			t->len = trace_text(nic, &t->text);
			t->sent = 0;
		}
	}
	if (t->fd < 0)
		return TIME_NEVER;
	send_some(t, now_ns);
	return now_ns + TRACE_TRY_NS;
}
