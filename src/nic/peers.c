/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peers.c: other NICs: "are you a nopin?" (design D4, D5) and the shares of our
 * receive budget (D14). The question goes to the port that the peer's QPN
 * names; a port unreachable or silence for 3 x 20 ms means a standard peer on
 * 4791. On this host, where a port that nobody has is unreachable at once, silence
 * says that a process does not run, and for a second it is asked. If that is wrong
 * (nobody scheduled it, the network was down) it is asked again when it shows by its
 * packets that it is a nopin. The nonce that we hand out is a keyed hash of the
 * asker's address, so that answering costs no state and only a process that can receive
 * there learns it.
 *
 * A nopin peer is told in the same packets how many slots of the redirect pool it
 * may fill (xport/credit.c), again and again until it says that it keeps to that.
 */
#include "nic/peers.h"
#include "base/addr.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/timerq.h"
#include "nic/device.h"
#include "nic/nic.h"
#include "nic/qp.h"
#include "nic/roce.h"
#include "os/net.h"
#include "ring/wqe.h"
#include "wire/ext.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/roce.h"
#include "xport/aim.h"
#include "xport/attr.h"
#include "xport/lend.h"
#include "xport/open.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/tx.h"

#include <errno.h>
#include <stdlib.h>

enum {
	HELLO_TRIES = 3,
	INSIST_TRIES = 50, /* in a second */
	HELLO_NS = 20 * 1000 * 1000,
	TELL_MIN_NS = 1000 * 1000,
	TELL_MAX_NS = 1000 * 1000 * 1000,
	REMINDERS = 16, /* in 7 s */
	LINES_MAX = 64, /* peers with a descriptor of their own */
	SPRAY_MAX = 64, /* descriptors beyond the first of each peer */
	IPV4_BYTES = 28, /* with UDP */
	IPV6_BYTES = 48,
	DESTS_MAX = 256, /* that are remembered while nothing is sent there */
};

uint32_t peers_nonce(const struct nic *nic, const struct endpoint *ep)
{
	uint64_t hi, lo;
	uint32_t nonce;

	memcpy(&hi, ep->ip.b, 8);
	memcpy(&lo, ep->ip.b + 8, 8);
	hi = siphash_u64(nic->nonce_key[0], nic->nonce_key[1], hi);
	lo = siphash_u64(hi, nic->nonce_key[0], lo);
	nonce = (uint32_t)siphash_u64(lo, nic->nonce_key[1], ep->port);
	return nonce ? nonce : 1;
}

/* A peer that has more than its share may be idle and would keep it for ever. One that
 * has less is told when it uses it. */
static void tell_shares(struct nic *nic)
{
	uint32_t share = flow_share(&nic->x);
	bool any = false;

	list_for_each(l, &nic->peers.all) {
		struct peer *p = list_entry(l, struct peer, link);

		p->flow.shrinks = p->flow.granted > share;
		any |= p->flow.shrinks;
	}
	if (!any)
		return;
	list_for_each(l, &nic->qps.all) {
		struct qp *qp = &list_entry(l, struct nic_qp, all)->qp;

		if (qp->peer && qp->peer->flow.shrinks && ack_credit(qp))
			qp->peer->flow.shrinks = false;
	}
}

/* Send @p, which has no payload, from @port. */
static void send_control(struct nic *nic, struct pkt *p,
			 const struct endpoint *to, const struct ipaddr *from,
			 struct ip_mark mark, int port)
{
	uint8_t bytes[PKT_HDR_MAX + ICRC_BYTES];
	struct iovec iov = {bytes, 0};
	struct os_tx tx = {.dst = *to,
			   .src = *from,
			   .mark = mark,
			   .port = port,
			   .iov = &iov,
			   .niov = 1};
	unsigned n = pkt_build(p, bytes);

	iov.iov_len = n + ICRC_BYTES;
	icrc_store(xcrc(bytes, n), bytes + n);
	os_send(nic->os, &tx);
}

/* @mark: of a peer whose QPs have one. @known: what is said to it besides who we are;
 * NULL: it will not be kept. @proved: it is heard, or asked again: else any host may be
 * asking, and what it had been granted is repeated. */
static void send_hello(struct nic *nic, uint8_t opcode,
		       const struct endpoint *to, const struct ipaddr *from,
		       struct ip_mark mark, int port, uint32_t nonce,
		       struct peer *known, bool proved)
{
	struct pkt p = {.opcode = opcode,
			.ext = true,
			.pkey = PKEY_DEFAULT,
			.version = WIRE_VERSION,
			.nonce = nonce,
			.features = HELLO_SUSPEND | HELLO_NOTIFY |
				    (os_gro(nic->os) ? HELLO_GRO : 0),
			.read_chunk = flow_read_chunk(&nic->x, MTU_MIN),
			.my_nonce = peers_nonce(nic, to)};

	if (known) {
		p.credit = proved || !known->flow.granted
				   ? flow_grant(&nic->x, known)
				   : known->flow.granted;
		p.slots = known->lend.told;
		p.serial = known->lend.serial;
		p.echo = credit_echo(known);
	}
	send_control(nic, &p, to, from, mark, port);
}

static void ask_once(struct nic *nic, struct peer *p)
{
	const bool known = p->kind == PEER_NOPIN && !p->datagrams;

	send_hello(nic, OP_X_HELLO, &p->asked, &p->local, p->mark, p->port,
		   known ? p->nonce : 0, known ? p : NULL, true);
	p->hello.asked_ns = nic->x.now;
}

/* What @p may fill of the redirect pool: said when it is news. */
static void lend(struct nic *nic, struct peer *p)
{
	bool news;

	if (p->kind != PEER_NOPIN || p->datagrams)
		return;
	news = credit_lend(&nic->x, p);
	if (news) {
		p->hello.tell_ns = TELL_MIN_NS;
		p->lend.reminded = 0;
		ask_once(nic, p);
	}
	if (credit_settled(p) && p->nonce)
		timerq_set(&nic->peers.timers, &p->hello.timer, TIME_NEVER);
	else if (news || p->hello.timer.at_ns == TIME_NEVER)
		timerq_set(&nic->peers.timers, &p->hello.timer,
			   nic->x.now + p->hello.tell_ns);
}

void peers_lend(struct nic *nic)
{
	list_for_each(l, &nic->peers.all) {
		lend(nic, list_entry(l, struct peer, link));
	}
}

/* It did not say yet that it keeps to that, or is to have more. */
static void remind(struct nic *nic, struct peer *p)
{
	if (p->lend.echoed != p->lend.serial || !p->nonce) {
		ask_once(nic, p);
		p->lend.reminded += p->nonce != 0;
	}
	p->hello.tell_ns = MIN(MAX(2 * p->hello.tell_ns, (uint64_t)TELL_MIN_NS),
			       (uint64_t)TELL_MAX_NS);
	lend(nic, p);
	if (p->lend.reminded == REMINDERS) {
		credit_silent(&nic->x, p);
		peers_lend(nic);
	}
}

static void peers_ask(struct nic *nic, struct peer *p)
{
	ask_once(nic, p);
	p->hello.tries++;
	timerq_set(&nic->peers.timers, &p->hello.timer, nic->x.now + HELLO_NS);
}

static struct peer *peers_find(const struct list *peers,
			       const struct endpoint *ep,
			       const struct ipaddr *local)
{
	list_for_each(l, peers) {
		struct peer *p = list_entry(l, struct peer, link);

		if (ipaddr_eq(&p->local, local) && endpoint_eq(&p->asked, ep))
			return p;
	}
	return NULL;
}

static bool line_left(const struct nic *nic, const struct peer *p)
{
	return p->path.lines ? nic->peers.sprayed < SPRAY_MAX
			     : nic->peers.lined < LINES_MAX;
}

/* By the port's own socket it can be sent to in any case. */
static void connect_lines(struct nic *nic, struct peer *p)
{
	const unsigned paths = MAX(nic->cfg.paths, 1);

	if (p->kind != PEER_NOPIN || p->datagrams || p->path.lines)
		return;
	while (p->path.lines < paths && line_left(nic, p)) {
		const int line = os_connect(nic->os, &p->local, &p->ep,
					    p->mark);

		if (!line)
			break;
		nic->peers.lined += p->path.lines == 0;
		nic->peers.sprayed += p->path.lines != 0;
		p->path.line[p->path.lines++] = line;
	}
	if (paths == 1 || p->path.lines == paths)
		return;
	count_add(&nic->cnt, CNT_paths_missing, paths - MAX(p->path.lines, 1));
	log_info("port %u is reached by %u paths instead of %u", p->ep.port,
		 MAX(p->path.lines, 1), paths);
}

static void disconnect_lines(struct nic *nic, struct peer *p)
{
	while (p->path.lines) {
		os_disconnect(nic->os, p->path.line[--p->path.lines]);
		nic->peers.sprayed -= p->path.lines != 0;
		nic->peers.lined -= p->path.lines == 0;
	}
}

static void peers_answered(struct nic *nic, struct peer *p, enum peer_kind kind)
{
	timerq_set(&nic->peers.timers, &p->hello.timer, TIME_NEVER);
	p->kind = kind;
	nic->peers.standard += kind == PEER_STANDARD;
	if (kind == PEER_STANDARD)
		log_info("the NIC on port %u is taken for a standard one",
			 p->asked.port);
	p->ep.port = kind == PEER_STANDARD ? ROCE_PORT : p->asked.port;
	connect_lines(nic, p);
	peer_answered(&nic->x, p);
}

/* See peers.h. */
void peer_deny(struct nic *nic, struct peer *p)
{
	p->hello.denied = true;
	if (p->kind == PEER_PROBING) {
		peers_answered(nic, p, PEER_STANDARD);
		return;
	}
	timerq_set(&nic->peers.timers, &p->hello.timer, TIME_NEVER);
	peer_answered(&nic->x, p);
}

void peers_insist(struct nic *nic, struct peer *p)
{
	if (p->kind != PEER_STANDARD || p->hello.denied ||
	    p->hello.timer.at_ns != TIME_NEVER)
		return;
	p->hello.tries = 0;
	peers_ask(nic, p);
}

static void peers_begin(struct nic *nic, struct peer *p)
{
	roce_claim(nic);
	if (nic->cfg.standard)
		peer_deny(nic, p);
	else
		peers_ask(nic, p);
}

/* Where the NIC is that @to names. */
static struct endpoint locate(const struct wqe_to *to)
{
	return (struct endpoint){
		.ip = to->dgid,
		.port = (uint16_t)(QPN_PORT_BASE + (to->qpn >> 10)),
		.scope = to->scope};
}

/* Not asked yet, and in no list. NULL: no memory. */
static struct peer *new_peer(struct nic *nic, const struct endpoint *ep,
			     const struct wqe_to *to, const struct qp *qp)
{
	struct peer *p;

	if (timerq_reserve(&nic->peers.timers,
			   nic->x.peers + nic->peers.ndests + 1))
		return NULL;
	p = heap_alloc(sizeof(*p));
	if (!p)
		return NULL;
	peer_init(p, ep, &to->local);
	p->here = roce_here(nic, &ep->ip);
	p->mark = to->mark;
	p->path.gso = os_gso(nic->os);
	p->port = qp->cfg.port;
	return p;
}

static int find_or_ask(struct nic *nic, const struct wqe_to *to,
		       const struct qp *qp, struct peer **out)
{
	const struct endpoint ep = locate(to);
	struct peer *p = peers_find(&nic->peers.all, &ep, &to->local);

	if (!p) {
		p = new_peer(nic, &ep, to, qp);
		if (!p)
			return -ENOMEM;
		list_add_tail(&nic->peers.all, &p->link);
		nic->x.peers++;
		tell_shares(nic);
		peers_lend(nic);
		peers_begin(nic, p);
	}
	p->refs++;
	*out = p;
	return 0;
}

int peer_get(struct nic *nic, const struct qp_attr *attr,
	     const struct nic_qp *qp, struct peer **out)
{
	struct wqe_to to;
	int err = nic_path(nic, attr->sgid_index, &attr->dgid, &to);

	if (err)
		return err;
	to.qpn = attr->dest_qpn;
	to.mark = (struct ip_mark){attr->traffic_class, attr->hop_limit};
	return find_or_ask(nic, &to, &qp->qp, out);
}

static void free_peer(struct nic *nic, struct peer *p)
{
	CHECK(list_empty(&p->acks.owed) && list_empty(&p->stalled));
	timerq_set(&nic->peers.timers, &p->hello.timer, TIME_NEVER);
	list_del(&p->link);
	list_del(&p->acks.link);
	nic->peers.standard -= p->kind == PEER_STANDARD;
	disconnect_lines(nic, p);
	heap_free(p);
}

void peer_put(struct nic *nic, struct peer *p)
{
	if (--p->refs || p->datagrams)
		return;
	nic->x.peers--;
	nic->x.budget.granted -= p->flow.granted;
	credit_end(&nic->x, p);
	free_peer(nic, p);
	if (nic->x.peers & (nic->x.peers - 1))
		return; /* no share grew */
	list_for_each(l, &nic->peers.all) {
		p = list_entry(l, struct peer, link);
		if (p->kind == PEER_NOPIN) /* when time is */
			timerq_set(&nic->peers.timers, &p->hello.timer, 0);
	}
}

/* Forget destinations that are not used now, the least used of late first, while there
 * are more than @max. */
static void forget_dests(struct nic *nic, unsigned max)
{
	struct list *l = nic->peers.dests.prev, *before;

	for (; l != &nic->peers.dests && nic->peers.ndests > max; l = before) {
		struct peer *p = list_entry(l, struct peer, link);

		before = l->prev;
		if (p->refs)
			continue;
		nic->peers.ndests--;
		free_peer(nic, p);
	}
}

void peers_close(struct nic *nic)
{
	forget_dests(nic, 0);
}

/* Of where one datagram went another is likely to go: it is kept, and not asked
 * again, when nobody refers to it. */
static struct peer *dest_get(struct nic *nic, const struct wqe_to *to,
			     const struct qp *qp)
{
	const struct endpoint ep = locate(to);
	struct peer *p = peers_find(&nic->peers.dests, &ep, &to->local);

	if (ipaddr_is_any(&to->dgid))
		return NULL;
	if (p) {
		list_del(&p->link);
	} else {
		forget_dests(nic, DESTS_MAX - 1);
		p = new_peer(nic, &ep, to, qp);
		if (!p)
			return NULL;
		p->datagrams = true;
		nic->peers.ndests++;
		peers_begin(nic, p);
	}
	list_insert_after(&nic->peers.dests, &p->link);
	p->refs++;
	return p;
}

void peer_aim(struct nic *nic, struct qp *qp)
{
	const struct wqe_to *to = ud_next(qp);
	struct peer *p;

	if (!to)
		return;
	p = dest_get(nic, to, qp);
	if (!p) {
		ud_nowhere(qp);
		return;
	}
	p = ud_aim(qp, to, p);
	if (p)
		peer_put(nic, p);
}

/* What @p says of its pool and of ours. */
static void take_credit(struct nic *nic, struct peer *peer, const struct pkt *p)
{
	const uint32_t lent = peer->lend.lent;

	credit_of(peer, p->my_nonce);
	credit_take(peer, p->slots, p->serial);
	credit_echoed(&nic->x, peer, p->echo);
	if (peer->lend.lent < lent) /* for others that wait for more */
		peers_lend(nic);
	else
		lend(nic, peer);
}

/* It is a nopin, which was not known. */
static void is_nopin(struct nic *nic, struct peer *p)
{
	const bool mistaken = p->kind == PEER_STANDARD;

	nic->peers.standard -= mistaken;
	p->quota.unasked = mistaken;
	p->hello.denied = false;
	peers_answered(nic, p, PEER_NOPIN);
	if (!mistaken || p->datagrams)
		return;
	list_for_each(l, &nic->qps.all) {
		struct qp *qp = &list_entry(l, struct nic_qp, all)->qp;

		if (qp->peer == p && qp->connected)
			open_restart(qp);
	}
}

/* Return: whether that is news. */
static bool take_answer(struct nic *nic, struct peer *peer, const struct pkt *p)
{
	const bool news = !peer->nonce;

	peer->nonce = p->my_nonce;
	peer->flow.budget = p->credit;
	peer->features = p->features;
	peer->read_chunk = p->read_chunk;
	if (peer->kind != PEER_NOPIN)
		is_nopin(nic, peer);
	else if (news) /* it proved it before */
		peer_answered(&nic->x, peer);
	return news;
}

static void take_reply(struct nic *nic, const struct pkt *p,
		       const struct os_rx *rx)
{
	struct peer *peer = peers_find(&nic->peers.all, &rx->src, &rx->dst);
	struct peer *dest = peers_find(&nic->peers.dests, &rx->src, &rx->dst);

	if ((!peer && !dest) || p->nonce != peers_nonce(nic, &rx->src)) {
		count(&nic->cnt, CNT_drop_nonce);
		return;
	}
	if (dest)
		take_answer(nic, dest, p);
	if (!peer)
		return;
	if (take_answer(nic, peer, p))
		tell_shares(nic); /* it could not be told before */
	take_credit(nic, peer, p);
}

/* A NIC that asks before we know it has nothing yet: answering costs no state. */
static void reply(struct nic *nic, const struct pkt *p, const struct os_rx *rx)
{
	struct peer *asker = peers_find(&nic->peers.all, &rx->src, &rx->dst);
	const bool proved = p->nonce == peers_nonce(nic, &rx->src);

	if (asker && proved)
		take_credit(nic, asker, p);
	send_hello(nic, OP_X_HELLO_REPLY, &rx->src, &rx->dst,
		   asker ? asker->mark : (struct ip_mark){0}, rx->port,
		   p->my_nonce, asker, proved);
}

/* What belongs to its NIC is asked for (lend()) until it says it. */
void peers_proved(struct nic *nic, struct peer *p)
{
	if (p->kind == PEER_NOPIN)
		return;
	is_nopin(nic, p);
	p->hello.tell_ns = TELL_MIN_NS;
	tell_shares(nic);
	lend(nic, p);
}

/* Only from the port that the QPN of its peer names, on the host that it is
 * connected to: a port is one process. */
static bool from_peer_port(const struct qp *qp, const struct pkt *p,
			   const struct os_rx *rx)
{
	return p->src_qpn == qp->attr.dest_qpn &&
	       endpoint_eq(&qp->peer->asked, &rx->src) &&
	       ipaddr_eq(&qp->peer->local, &rx->dst);
}

void peers_open(struct nic *nic, struct nic_qp *nq, const struct pkt *p,
		const struct os_rx *rx)
{
	if (nic->cfg.standard)
		count(&nic->cnt, CNT_drop_ext);
	else if (nq->init.ud)
		count(&nic->cnt, CNT_drop_opcode);
	else if (!nq->qp.open.mine)
		count(&nic->cnt, CNT_drop_open);
	else if (!from_peer_port(&nq->qp, p, rx))
		count(&nic->cnt, CNT_drop_peer);
	else if (open_take(&nq->qp, p))
		peers_proved(nic, nq->qp.peer);
}

void peers_say_open(struct nic *nic)
{
	struct pkt p;
	struct qp *qp;

	while ((qp = open_next(&nic->x, &p)))
		if (!nic->cfg.standard)
			send_control(nic, &p, &qp->peer->asked,
				     &qp->peer->local,
				     (struct ip_mark){qp->attr.traffic_class,
						      qp->attr.hop_limit},
				     qp->cfg.port);
}

void peers_hello(struct nic *nic, const struct pkt *p, const struct os_rx *rx)
{
	if (p->version != WIRE_VERSION) {
		count(&nic->cnt, CNT_drop_ext);
		return;
	}
	if (p->opcode == OP_X_HELLO_REPLY)
		take_reply(nic, p, rx);
	else
		reply(nic, p, rx);
}

/* How often @p is asked before its silence is an answer. Datagrams to others wait behind
 * those to it. */
static unsigned hello_tries_max(const struct peer *p)
{
	const bool patient = p->here && !p->datagrams;

	return p->kind == PEER_STANDARD || patient ? INSIST_TRIES : HELLO_TRIES;
}

void peers_timers(struct nic *nic)
{
	struct timer *t;

	if (nic->peers.standard || nic->qps.ud || nic->x.plain)
		roce_needed(nic);
	while ((t = timerq_pop(&nic->peers.timers, nic->x.now))) {
		struct peer *p = container_of(t, struct peer, hello.timer);

		if (p->kind == PEER_NOPIN)
			remind(nic, p);
		else if (p->hello.tries < hello_tries_max(p))
			peers_ask(nic, p);
		else if (p->kind == PEER_STANDARD)
			peer_deny(nic, p);
		else
			peers_answered(nic, p, PEER_STANDARD);
	}
}

void peers_too_large(struct nic *nic, struct peer *p, uint32_t bytes)
{
	if (p->path.too_large)
		return;
	p->path.too_large = bytes +
			    (ipaddr_is_v4(&p->ep.ip) ? IPV4_BYTES : IPV6_BYTES);
	__atomic_store_n(&nic->peers.too_large, true, __ATOMIC_RELAXED);
}
