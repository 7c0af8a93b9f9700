/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open.c: a connection has a secret (design D15). Each life of a QP, from RTR on,
 * has an epoch of 32 random bits, and the peer puts it into every extension packet.
 * OPEN tells it: from the port that our QPN names to the port that the peer's QPN
 * names, never to where a packet came from. A port is one process, so no other
 * user of either host, and no attacker that only knows addresses, numbers and keys,
 * learns it. Whether an OPEN comes from there is checked by nic/.
 *
 * Theory of operation. A side that does not know the other's epoch asks: OPEN with
 * epoch 0. The answer carries the epoch of the question, and its own: that proves
 * the answer, and is believed. The third OPEN proves the same to the other side; it
 * leaves with the first data. A side that does not know asks again, one that does says the
 * third again, more and more rarely, until both know that both know (OPEN_ASK, OPEN_SURE).
 * What is not proved by our own epoch is a question, and no more: it is answered once,
 * and changes nothing of when and what we ask (or everybody could have two QPs answer
 * what neither asked). An open QP answers none (or everybody could ask it), and others
 * once a millisecond (or everybody could have us send). Many QPs spare a peer that
 * answers none (spare.h).
 *
 * A peer that does not answer is a standard one, or a process that does not run, or whose
 * QP is not in RTR yet. So requests go out as standard packets after half a second,
 * and the peer is asked on: a late answer still opens the connection. On this host, where
 * the process has said that it is a nopin, it is a second: its holder of port 4791 may
 * have to run first (roce_welcome()), and there are hardly cards. Not longer: a request
 * ends after two seconds of silence (live.c).
 */
#include "xport/open.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/list.h"
#include "base/rand.h"
#include "base/timerq.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/roce.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/deadline.h"
#include "xport/kick.h"
#include "xport/live.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/spare.h"
#include "xport/tx.h"
#include "xport/xport.h"

#include <stdint.h>

enum {
	OPEN_FIRST_NS = 1000 * 1000,
	OPEN_MAX_NS = 1000 * 1000 * 1000,
	OPEN_TELL_NS = 1000 * 1000, /* one question in that time is answered */
	OPEN_TRIES = 9, /* in half a second */
	OPEN_TRIES_HERE = 10, /* in a second */
	/* in 7 s: then a standard NIC is left in peace */
	OPEN_TRIES_STANDARD = 16,
};

static uint8_t open_tries_max(const struct qp *qp)
{
	const struct peer *p = qp->peer;

	return p->here && p->kind == PEER_NOPIN ? OPEN_TRIES_HERE : OPEN_TRIES;
}

static bool settled(const struct open *o)
{
	return o->theirs && o->known;
}

static void owe(struct qp *qp)
{
	if (list_empty(&qp->open.link))
		list_add_tail(&qp->x->work.opens, &qp->open.link);
}

/* Say an OPEN that is due by the clock, and not because one came. */
static void ask(struct qp *qp)
{
	struct peer *p = qp->peer;

	if (!spare_asks(&qp->open.spare, &p->opens, qp->x->now))
		return;
	spare_asked(&qp->open.spare, &p->opens, OPEN_FIRST_NS, qp->x->now);
	spared_asked(&p->opens, qp->x->now);
	owe(qp);
}

static void ask_in(struct qp *qp, uint64_t ns)
{
	qp->open.ask_ns = ns;
	qp->open.ask_at = qp->x->now + ns;
	qp_rearm(qp);
}

void open_begin(struct qp *qp)
{
	struct open *o = &qp->open;

	*o = (struct open){.ask_at = TIME_NEVER};
	list_init(&o->link);
	do
		o->mine = (uint32_t)rnd_next(&qp->x->rnd);
	while (!o->mine);
	open_restart(qp);
}

static void set_plain(struct qp *qp, bool plain)
{
	qp->x->plain += plain - qp->open.plain;
	qp->open.plain = plain;
}

void open_end(struct qp *qp)
{
	list_del(&qp->open.link);
	qp->open.ask_at = TIME_NEVER;
	set_plain(qp, false);
}

void open_restart(struct qp *qp)
{
	if (qp->open.theirs)
		return;
	qp->open.tries = 0;
	qp->open.spare.gap_ns = 0;
	ask(qp);
	ask_in(qp, OPEN_FIRST_NS);
}

bool open_insist(struct qp *qp)
{
	if (!qp->open.insisted) {
		qp->open.insisted = true;
		open_restart(qp);
	}
	return qp->open.tries < open_tries_max(qp);
}

/* Fill in the OPEN that is to be sent. @rides: with data, which is answered anyway. */
static void open_fill(struct qp *qp, struct pkt *p, bool rides)
{
	struct open *o = &qp->open;

	*p = (struct pkt){.opcode = OP_X_OPEN,
			  .ext = true,
			  .pkey = PKEY_DEFAULT,
			  .qpn = qp->attr.dest_qpn,
			  .src_qpn = qp->cfg.qpn,
			  .epoch = o->theirs ? o->theirs : o->heard,
			  .my_epoch = o->mine,
			  .open_flags = (o->theirs ? OPEN_SURE : 0) |
					(settled(o) || rides ? 0 : OPEN_ASK)};
}

struct qp *open_next(struct xport *x, struct pkt *p)
{
	struct qp *qp;

	if (list_empty(&x->work.opens))
		return NULL;
	qp = list_entry(x->work.opens.next, struct qp, open.link);
	open_fill(qp, p, false);
	qp->open.heard = 0;
	list_del(&qp->open.link);
	return qp;
}

/* It knows us: what waited for that goes on. */
void open_proved(struct qp *qp)
{
	qp->open.known = true;
	spared_heard(&qp->peer->opens, qp->x->now);
	if (!qp->open.theirs)
		open_restart(qp);
}

/* All that waits for the peer's epoch goes on. Packets that left before it was known may
 * have found no receiver. */
static void opened(struct qp *qp, uint32_t epoch)
{
	struct req *r = &qp->req;

	qp->open.theirs = epoch;
	set_plain(qp, false);
	list_del(&qp->on.waiting);
	qp_kick(qp);
	ack_again(qp);
	if (qp->state != QPS_RTS && qp->state != QPS_SQD)
		return;
	/* what it cost to take it for a standard NIC says nothing of this one */
	live_progress(qp);
	if (r->psn.una != r->psn.max)
		live_ask(qp);
}

static void take_question(struct qp *qp, const struct pkt *p)
{
	struct open *o = &qp->open;

	if (o->theirs ||
	    (o->told_ns && qp->x->now < o->told_ns + OPEN_TELL_NS)) {
		count(qp->x->cnt, CNT_drop_open);
		return;
	}
	o->heard = p->my_epoch;
	o->told_ns = qp->x->now;
	owe(qp);
}

bool open_take(struct qp *qp, const struct pkt *p)
{
	struct open *o = &qp->open;
	const bool news = !o->theirs;

	if (!p->my_epoch || (p->epoch && p->epoch != o->mine)) {
		count(qp->x->cnt, CNT_drop_epoch);
		return false;
	}
	if (!p->epoch) {
		take_question(qp, p);
		return false;
	}
	if (!news && p->my_epoch != o->theirs) {
		/* late, of a life that is over: this one never goes back */
		count(qp->x->cnt, CNT_drop_open);
		return false;
	}
	spared_heard(&qp->peer->opens, qp->x->now);
	o->known |= (p->open_flags & OPEN_SURE) != 0;
	if (news)
		opened(qp, p->my_epoch);
	if (news || (p->open_flags & OPEN_ASK))
		owe(qp);
	if (news && !settled(o)) {
		o->spare.gap_ns = 0;
		ask_in(qp, OPEN_FIRST_NS);
	}
	return news;
}

/* The peer has not answered for half a second (on this host: a second): go on as if it
 * never did. */
static void open_give_up(struct qp *qp)
{
	set_plain(qp, !qp->open.theirs);
	qp_kick(qp);
}

void open_timeout(struct qp *qp)
{
	struct open *o = &qp->open;

	if (qp->x->now < o->ask_at)
		return;
	o->ask_at = TIME_NEVER;
	if (settled(o) || (qp->state == QPS_ERR && !qp->resp.ack.nak.owed))
		return;
	if (++o->tries == open_tries_max(qp))
		open_give_up(qp);
	if (!o->theirs && !o->known && o->tries >= OPEN_TRIES_STANDARD &&
	    qp->peer->kind == PEER_STANDARD)
		return;
	ask(qp);
	ask_in(qp, MIN(2 * o->ask_ns, (uint64_t)OPEN_MAX_NS));
}

void open_append(struct burst *b)
{
	struct qp *qp = b->qp;
	struct pkt p;

	if (likely(list_empty(&qp->open.link)) || !b->ext || burst_full(b))
		return;
	open_fill(qp, &p, true);
	if (!burst_seg(b, &p, NULL))
		return;
	list_del(&qp->open.link);
	b->opens = true;
	b->way.line = 0; /* it is believed from the port of the QP only */
}
