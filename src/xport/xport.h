/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xport.h: façade of xport/: reliable connections and datagrams. Packets in, packets out,
 * next deadline; faults and their outcome travel as data. Pure: no clock, no
 * system call, no lock; every function is called with the engine lock held,
 * but moves and sends are executed between a plan and its commit without it.
 */
#ifndef NOPIN_XPORT_XPORT_H
#define NOPIN_XPORT_XPORT_H

#include "base/base.h"
#include "mem/dma.h"
#include "mem/waiter.h"
#include "ring/ring.h"
#include "wire/wire.h"
#include "xport/attr.h"
#include "xport/peer.h"
#include "xport/qp.h"

/* --- life ------------------------------------------------------------------ */

/**
 * struct xport - What all QPs of a NIC share.
 * @strategies:	what may answer a missing page, where QP and region do not
 *		choose
 * @push_budget: bytes of our own receive buffer that peers may push into
 * @granted:	of these told to peers == sum of peer.granted
 * @read_budget: bytes of our own receive buffer that READ responses may fill
 * @read_out:	of these asked for and not yet received
 * @slots:	of the redirect pool that there may be
 * @slots_short: since somebody looked, a peer or a packet found none
 * @lent:	slots that peers were lent == sum of peer.lent
 * @lent_left:	of these not filled: free
 * @firsts:	slots that hold first packets of QPs == sum of peer.firsts
 * @serial:	of the last quota told to any peer
 * @ack_delay_ns: how long an ACK may be owed
 * @sources:	slots that hold datagrams, by a hash of the address they are from
 */
struct xport {
	struct mem *mem;
	struct counters *cnt;
	struct rnd rnd;
	struct accepted *accepted; /* one for each slot of the redirect pool */
	uint32_t slots, lent, lent_left, firsts, serial;
	bool slots_short;
	strategies_t strategies;
	uint32_t push_budget, granted;
	uint32_t read_budget, read_out;
	uint64_t ack_delay_ns;
	uint32_t sources[64];
	struct list runnable; /* QPs with something to send */
	struct list drainable; /* QPs whose slots may be placeable now */
	struct list read_waiters; /* QPs that wait for read_budget */
	struct list idle_waiters; /* and for the moves in a revoked region */
	struct list opens; /* QPs with an OPEN to send (open.c) */
	struct list ack_peers; /* peers with ACKs owed to them */
	struct list fired; /* CQs with an event to deliver */
	struct list raised; /* counters whose waiters are to be told */
	struct list errors; /* QPs with an asynchronous event to deliver */
	struct timerq timers;
	unsigned peers; /* that share push_budget and the redirect pool */
	unsigned plain; /* QPs that nobody answered (open.c) */
	bool starved; /* a QP found no free ticket */
	uint64_t fresh_ns; /* os_fresh_after() of this step */
};

int xport_open(struct xport *x, struct mem *mem, struct counters *cnt,
	       uint32_t slots, const uint64_t seed[2]);
void xport_close(struct xport *x);

/** qp_init() - A QP in RESET; queues are the caller's and outlive it. */
int qp_init(struct qp *qp, struct xport *x, const struct qp_config *cfg);

/** qp_fini() - Forget everything. No burst or rx_run of it may be out. */
void qp_fini(struct qp *qp);

/**
 * qp_modify() - Check @mask against the state table (IBTA table 91 as verbs
 * programs know it) and apply. @peer: for RTR, already looked up.
 * Return: 0, -EINVAL, -ENOMEM.
 */
int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask,
	      struct peer *peer, uint64_t now_ns);

/** qp_modify_ok() - Would qp_modify() do it? */
bool qp_modify_ok(const struct qp *qp, const struct qp_attr *attr,
		  uint32_t mask);

void qp_query(const struct qp *qp, struct qp_attr *attr);

/** qp_error() - To ERR: flush both queues once nothing is moving. */
void qp_error(struct qp *qp, uint64_t now_ns);

/**
 * qp_abandon() - As qp_error(), for a QP that the program destroys or resets:
 * it has no completion any more. Ends with RESET.
 */
void qp_abandon(struct qp *qp, uint64_t now_ns);

/** qp_idle() - No burst and no rx_run of @qp is out: it may be freed. */
static inline bool qp_idle(const struct qp *qp)
{
	return !qp->tx_moving && !qp->rx_moving;
}

/** qp_receives() - Is @qp in a state that takes packets? */
static inline bool qp_receives(const struct qp *qp)
{
	return qp->state >= QPS_RTR && qp->state <= QPS_SQE;
}

/** qp_open() - Do @qp and its peer know each other's secret? */
static inline bool qp_open(const struct qp *qp)
{
	return qp->open.theirs != 0;
}

/** qp_admits() - Does @p come from the peer of @qp, of a connection? What has our
 * epoch does; without one it may, while we do not know better. */
static inline bool qp_admits(const struct qp *qp, const struct pkt *p)
{
	return p->ext ? p->epoch == qp->open.mine : !qp_open(qp);
}

/** open_waits() - Do requests wait until it is known who the peer is? */
bool open_waits(const struct qp *qp);

/**
 * enum live_wait - What the oldest request of a connection waits for; of several the
 * first.
 * LIVE_OWN: a page or a move of this host
 * LIVE_PAUSE: the peer had no receive, or our socket no room
 * LIVE_HOLD, LIVE_REGION: the peer misses a page, or has suspended a region
 * LIVE_WINDOW: others have the window
 * LIVE_EXPLAINED: the peer, which gave a reason when it was asked last
 * LIVE_STALLED: the peer, which answers, and neither moves nor gives any
 * LIVE_ANSWER: the peer
 */
enum live_wait {
	LIVE_NOTHING,
	LIVE_HELLO,
	LIVE_OWN,
	LIVE_PAUSE,
	LIVE_HOLD,
	LIVE_REGION,
	LIVE_WINDOW,
	LIVE_EXPLAINED,
	LIVE_STALLED,
	LIVE_ANSWER,
	LIVE_WAIT_NUM
};

/** live_waits() - @spent_at: when a retry is spent if nothing happens, or TIME_NEVER. */
enum live_wait live_waits(const struct qp *qp, uint64_t *spent_at);

/** ack_last() - @qp will be gone and cannot be asked again: if packets of its peer
 * were lost, owe what it was told last once more. false: nothing is owed. */
bool ack_last(struct qp *qp, uint64_t now_ns);

/** ack_leaving() - Is what @qp says on its way to the socket, or waits because
 * that was full? */
bool ack_leaving(const struct qp *qp, uint64_t now_ns);

/* --- receiving ---------------------------------------------------------------- */

/**
 * struct run_pkt - One packet of a run.
 * @before:	requests: the responder's place in the message before it
 * @move_end:	moves of the run up to and including this packet
 * @acc:	where it waited, or NULL
 * @more:	so many packets like it follow it, all received in place
 * @cqe:	valid if @completes
 * @counter:	identifier of the one to raise, if @notifies
 */
struct run_pkt {
	const struct pkt *pkt;
	const uint8_t *payload;
	struct accepted *acc;
	struct message before;
	unsigned move_end;
	uint32_t more;
	bool completes, notifies;
	uint32_t counter;
	struct cqe cqe;
};

enum { RUN_PKTS = 64 };

/**
 * struct rx_run - Consecutive packets to one half of one QP: planned together,
 * moved together, committed together. qp == NULL: empty.
 * @responses:	for the requester's half
 */
struct rx_run {
	struct qp *qp;
	bool responses;
	unsigned num;
	unsigned resources; /* READs and atomics among them */
	struct run_pkt pkt[RUN_PKTS];
	struct moves moves;
	struct holds holds;
	uint8_t grh[RUN_PKTS][GRH_BYTES];
};

void rx_run_init(struct rx_run *run);

enum rx_result {
	RX_NEXT, /* packet taken (or dropped, counted); go on with the next */
	RX_FULL, /* not taken: commit the run first, then give it again */
};

/**
 * qp_rx() - Take one packet whose CRC was already verified, and that @qp admits.
 * @payload:	stays valid until the run is committed
 * The run collects the moves; the caller executes them when the burst ends or
 * RX_FULL comes, and then calls qp_rx_commit() if run->qp is set.
 */
enum rx_result qp_rx(struct qp *qp, const struct pkt *pkt,
		     const uint8_t *payload, struct rx_run *run,
		     uint64_t now_ns);

/**
 * qp_rx_commit() - run->moves.done and .error say how it went. Empties @run.
 */
void qp_rx_commit(struct rx_run *run, uint64_t now_ns);

/**
 * qp_drain() - Place what waits in slots as far as pages are ready.
 * Return: true: @run has moves to execute and commit; then call again.
 */
bool qp_drain(struct qp *qp, struct rx_run *run, uint64_t now_ns);

/** qp_posted() - Sends or receives were posted. */
void qp_posted(struct qp *qp, uint64_t now_ns);

/**
 * struct scatter - A burst that is about to be received in place.
 * @first:	the header that was peeked at
 * @num:	packets of the burst, from the first, whose payload goes to
 *		@pieces; all but the last of them have the QP's MTU
 * @bytes:	payload of these == sum of the pieces
 */
struct scatter {
	struct qp *qp;
	struct pkt first;
	unsigned num;
	uint32_t bytes;
	struct moves *pieces;
	struct holds holds;
};

/**
 * qp_scatter_plan() - May the burst that begins with @p (at most @max packets)
 * be received in place? true: receive it, then qp_scatter_done(), then give
 * its packets to qp_rx(), those in place with pkt.placed set.
 * @sc: with @pieces set
 */
bool qp_scatter_plan(struct qp *qp, const struct pkt *p, unsigned max,
		     struct scatter *sc, uint64_t now_ns);

/** scatter_expects() - Is @p what was guessed to be packet @i? */
bool scatter_expects(const struct scatter *sc, unsigned i, const struct pkt *p);

/**
 * qp_rx_more() - After the last packet of @run came @n more of the middle of
 * the same message, all in place, as expected, and as long as the path MTU.
 * Return: false: give them to qp_rx() instead, each.
 */
bool qp_rx_more(struct rx_run *run, uint32_t n, uint64_t now_ns);

/** qp_scatter_done() - @ok: false: the pages could not be written. */
void qp_scatter_done(struct scatter *sc, bool ok, uint64_t now_ns);

/* --- sending -------------------------------------------------------------------- */

/**
 * struct seg - One packet of a burst. In burst.bytes there are from @hdr on:
 * @hdr_len bytes of headers (with inline payload behind them), then
 * @trailer_len bytes of pad and CRC. Between the two goes the payload, the next
 * @payload_len bytes of burst.gathers.
 * @inl_len:	inline payload
 */
struct seg {
	uint32_t hdr;
	uint16_t hdr_len, trailer_len, inl_len;
	uint32_t payload_len;
};

enum { BURST_SEGS = 64, BURST_MAX = 65000, BURST_BYTES = 16384 };

/**
 * struct burst_ack - One ACK or NAK in a burst.
 * @life:	of @qpn (resp.life)
 * @xack:	resp.xack that it says
 */
struct burst_ack {
	uint32_t qpn, life, xack;
	psn_t psn;
	uint8_t syndrome;
};

/**
 * struct burst - Packets for one send call, all to one peer; all but the last
 * have equal length.
 * @qp:		NULL when it holds only ACKs
 * @to:		extension packets: the port that QPNs name; datagrams: where @peer
 *		was when this was planned; all others: UDP 4791
 * @line:	one of peer.line then, if that is the way
 * @mark:	of all its packets: as the QP has it that they are of
 * @ext:	extension packets: their CRC is in place and the send gathers
 *		the payload; else payload is gathered first, and the ICRCs are
 *		still to be made
 * @opens:	an OPEN is in it
 * @request:	the requester's half (what -EFAULT means for whom)
 * @seg_len:	bytes of each packet but the last
 * @total:	bytes of all
 * @ahead:	bytes at the end of @gathers that belong to packets still to be
 *		appended; none once the burst is planned
 * @narrow:	a page of these is missing: packet by packet
 * @again:	what was lost is sent again
 * @ack:	what it says, and for whom (ack_commit())
 * @says:	a request of it carries @qp's ACK
 * @from, @max, @charge: requests: first PSN, req.max before, what flow_sent() took
 * @out:	requests: what credit_sent() took
 * @second:	PSN of the second packet, unless that is an extension packet
 * In a burst of standard packets no gather is for two of them.
 */
struct burst {
	struct qp *qp;
	struct peer *peer;
	struct endpoint to;
	int line;
	struct ip_mark mark;
	bool ext, request, opens, narrow, again, says;
	unsigned nsegs, nacks;
	uint32_t seg_len, total, ahead;
	psn_t second, from, max;
	uint32_t charge, out;
	uint32_t epoch;
	uint32_t res; /* responses: the resource it began with */
	struct seg seg[BURST_SEGS];
	struct burst_ack ack[BURST_SEGS];
	struct moves gathers;
	struct holds holds;
	uint32_t bytes_used;
	uint8_t bytes[BURST_BYTES];
};

/**
 * qp_tx() - Plan the next burst of @qp: READ responses and atomics first, then
 * requests; behind them an ACK owed to the same peer.
 * Return: true: @b is to be sent and committed. false: nothing to send now.
 */
bool qp_tx(struct qp *qp, struct burst *b, uint64_t now_ns);

/**
 * peer_ack_burst() - Make a burst of the ACKs owed to @peer; for a QP whose
 * burst is on its way, later. qp_tx() already appends one where it fits.
 * Return: false: nothing to send. No commit is needed.
 */
bool peer_ack_burst(struct xport *x, struct peer *peer, struct burst *b,
		    uint64_t now_ns);

/**
 * qp_tx_commit() - @error: 0; -EFAULT: nothing was sent, the payload cannot be
 * read (gathers.done tells which, if known); other: as if lost on the way.
 */
void qp_tx_commit(struct burst *b, int error, uint64_t now_ns);

/** flow_read_chunk() - Packets of one READ request of a QP with path MTU @mtu at most:
 * the most is that of the smallest. */
uint32_t flow_read_chunk(const struct xport *x, uint32_t mtu);

/** flow_share() - What each of our peers is to have of push_budget. */
uint32_t flow_share(const struct xport *x);

/** flow_grant() - What @p may have on the way from now on: it is told. */
uint32_t flow_grant(struct xport *x, struct peer *p);

/**
 * credit_lend() - Decide how many slots @p may fill.
 * Return: whether that is news for it: peer.told, with a new peer.serial.
 */
bool credit_lend(struct xport *x, struct peer *p);
/** credit_echoed() - @p keeps to the quota @serial. */
void credit_echoed(struct xport *x, struct peer *p, uint32_t serial);
/** credit_silent() - It does not answer: what it was lent beyond that is taken. */
void credit_silent(struct xport *x, struct peer *p);
/**
 * credit_bound() - There are @slots slots. What peers were lent of more comes back
 * when they say so: to be called again then.
 * Return: is that news? Then all peers are to be lent to anew.
 */
bool credit_bound(struct xport *x, uint32_t slots);
/** credit_settled() - It keeps to what it was told, and has its share. */
bool credit_settled(const struct peer *p);
/** credit_end() - @p goes. */
void credit_end(struct xport *x, struct peer *p);
/** credit_take() - @p lends us @slots. */
void credit_take(struct peer *p, uint32_t slots, uint32_t serial);
/**
 * credit_of() - Before what it says of quotas is taken: who says it.
 * @nonce:	that it gave out: with another one it is another NIC than before
 */
void credit_of(struct peer *p, uint32_t nonce);
/** credit_echo() - Return: the number of the newest quota that we keep to. */
uint32_t credit_echo(struct peer *p);

/**
 * ack_commit() - The burst that said @a for @qp (or one that had its QPN before)
 * left, or did not (@error). @again: then what is still so is owed again.
 */
void ack_commit(struct qp *qp, const struct burst_ack *a, int error, bool again,
		uint64_t now_ns);

/**
 * ack_credit() - Tell the peer of @qp soon what it may have on the way.
 * Return: false: not now, or never, through this QP.
 */
bool ack_credit(struct qp *qp, uint64_t now_ns);

/* --- datagrams: where to ------------------------------------------------------------ */

/**
 * ud_next() - Where the next datagram of @qp is to go: qp->peer has to be that NIC
 * before qp_tx(). NULL: nothing is to be sent, or that it is already.
 */
const struct wqe_to *ud_next(const struct qp *qp);

/**
 * ud_aim() - It goes to @peer.
 * Return: where the one before went, which @qp knows no more, or NULL.
 */
struct peer *ud_aim(struct qp *qp, const struct wqe_to *to, struct peer *peer);

/** ud_nowhere() - There is no such place: the request fails. */
void ud_nowhere(struct qp *qp, uint64_t now_ns);

/* --- suspension ------------------------------------------------------------- */

/**
 * hold_expected() - Does our responder wait for a region to be resumed? Then a
 * nopin peer is asked to hold for so long.
 */
bool hold_expected(const struct qp *qp, uint64_t *ns);

/**
 * qp_patience_ns() - How long may a region be suspended before a standard peer's
 * retries are used up, if it has the ACK timeout and the retries that @qp has?
 * UINT64_MAX for a nopin, and without a timeout.
 */
uint64_t qp_patience_ns(const struct qp *qp);

/* --- time and pages ---------------------------------------------------------------- */

/** qp_timeout() - qp->timer is due. */
void qp_timeout(struct qp *qp, uint64_t now_ns);

/** qp_wake() - @w (one of the QP's waiters) was woken by ticket_done(). */
void qp_wake(struct waiter *w, uint64_t now_ns);

/** peer_answered() - The hello was answered, or silence was (peers.c). */
void peer_answered(struct xport *x, struct peer *peer);

/**
 * xport_tickets_free() - After ticket_done(), for every QP while x->starved (a
 * page could not be asked for): try again.
 */
void xport_tickets_free(struct xport *x, struct qp *qp);

#endif
