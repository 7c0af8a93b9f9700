/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* impl.h: what the files of xport/ share. */
#ifndef NOPIN_XPORT_IMPL_H
#define NOPIN_XPORT_IMPL_H

#include "mem/dma.h"
#include "mem/waiter.h"
#include "xport/xport.h"

/* qp.c */
void qp_kick(struct qp *qp);
/** qp_kick_again() - Unless it surely has nothing to send. */
void qp_kick_again(struct qp *qp);
void qp_set_state(struct qp *qp, enum qp_state to, uint64_t now_ns);
void qp_rearm(struct qp *qp);
void qp_event(struct qp *qp, unsigned event);
void qp_push_cqe(struct qp *qp, struct cq *cq, const struct cqe *e,
		 uint64_t now_ns);
/** qp_fail() - To ERR as soon as nothing moves; @event or QP_NO_EVENT. */
void qp_fail(struct qp *qp, uint8_t event, uint64_t now_ns);
/** qp_blame() - The same; for @cause (enum wc_cause), if it was for none before. */
void qp_blame(struct qp *qp, uint16_t cause, uint8_t event, uint64_t now_ns);
void qp_drainable(struct qp *qp);
/** qp_flush() - In ERR and when nothing moves: complete everything. */
void qp_flush(struct qp *qp, uint64_t now_ns);
void run_begin(struct rx_run *run, struct qp *qp, bool responses);
/** qp_rx_moved() - Moves of the receiving half ended: what waited goes on. */
void qp_rx_moved(struct qp *qp, uint64_t now_ns);

/* The numbers of nic_event_type that xport raises. */
enum {
	QP_EVENT_FATAL = 1,
	QP_EVENT_REQ_ERR = 2,
	QP_EVENT_ACCESS_ERR = 3,
	QP_EVENT_COMM_EST = 4,
	QP_EVENT_SQ_DRAINED = 5,
	QP_NO_EVENT = 0xff,
};

/* window.c */
void win_reset(struct xport *x, struct window *w, psn_t psn);
bool win_has(const struct window *w, psn_t psn);
/** win_has_all() - Are all of [@from, @to) kept, of one PSN each? */
bool win_has_all(const struct window *w, psn_t from, psn_t to);
/** win_slots() - Count the slots more that a peer may take, of those that are lent to
 * nobody, that holds @held of them (I4). */
uint32_t win_slots(const struct xport *x, uint32_t held);
/** win_room() - Count the packets more that could be kept in @w. */
uint32_t win_room(const struct xport *x, const struct window *w);
/** win_spare() - Count the slots more that what can be asked for again may take. Requests
 * that were not lent one are to find some. */
uint32_t win_spare(const struct xport *x, const struct window *w);
/** win_keep() - Keep a packet, its payload in a slot. Return: 0, -EAGAIN: no slot. */
int win_keep(struct xport *x, struct window *w, const struct pkt *pkt,
	     const uint8_t *payload, uint64_t now_ns);
/**
 * win_keep_run() - Keep the packets of @run from the @i-th on that have no slot yet.
 * Return: the first that finds none: it and all behind it are forgotten; or NULL.
 */
const struct pkt *win_keep_run(struct xport *x, struct window *w,
			       const struct rx_run *run, unsigned i,
			       uint64_t now_ns);
/** win_advance() - Move @next over what is waiting contiguously. */
void win_advance(struct window *w, uint32_t mtu);
/** win_at() - The packet with @psn if it is waiting, else NULL. */
struct accepted *win_at(const struct window *w, psn_t psn);
void win_drop(struct xport *x, struct window *w, struct accepted *a);
/** win_data() - Its payload; NULL: it has none. */
const uint8_t *win_data(const struct xport *x, const struct accepted *a);
/**
 * win_copied() - The moves of run->pkt[@i] were made: count what they copied out of
 * a slot.
 */
void win_copied(const struct rx_run *run, unsigned i);
/** win_placed() - Its payload is in application memory: count, then drop. */
void win_placed(struct xport *x, struct window *w, struct accepted *a,
		uint64_t now_ns);
/** win_behind() - Does a packet wait that is behind no gap? */
bool win_behind(const struct window *w);
/** win_sack() - Bit i: next + 1 + i is waiting. */
uint64_t win_sack(const struct window *w);
/** win_truncate() - Forget all packets from @psn on; next = psn. */
void win_truncate(struct xport *x, struct window *w, psn_t psn);

/* req.c */
bool req_tx(struct qp *qp, struct burst *b, uint64_t now_ns);
void req_reset(struct qp *qp);
/** req_unsent() - A burst of requests never left: go back. */
void req_unsent(struct qp *qp, const struct burst *b, int error,
		uint64_t now_ns);
/** wqe_packets() - Count the PSNs that the message of @w takes. */
uint32_t wqe_packets(const struct qp *qp, const struct wqe *w);
/** wqe_is_read() - Is it answered with data: a READ or an atomic? */
bool wqe_is_read(const struct wqe *w);
bool wqe_is_atomic(const struct wqe *w);
/** req_wqe_at() - The started WQE that @psn belongs to. false: none. */
bool req_wqe_at(const struct qp *qp, psn_t psn, uint32_t *index);
/** sge_dma() - The access to [off, off + len) of an SGE. */
struct dma sge_dma(const struct qp *qp, const struct sge *s, uint64_t off,
		   uint32_t len, bool write);
/** remote_dma() - The peer's access by R_Key, with the right that it needs. */
struct dma remote_dma(const struct qp *qp, uint32_t key, uint64_t va,
		      uint64_t len, uint32_t need);

/* --- ahead.c --- */
/** ahead_sges() - The first @len bytes of a list will be needed. */
void ahead_sges(const struct qp *qp, const struct wqe *w, uint64_t len,
		bool write, uint64_t now_ns);
/** ahead_request() - @p came, and something before it waits for a page. */
void ahead_request(const struct qp *qp, const struct pkt *p, uint64_t now_ns);
/** ahead_sources() - The request at req.cur waits for its source. */
void ahead_sources(struct qp *qp, uint64_t now_ns);
/** ahead_reads() - A response waits; @from: index of the next request. */
void ahead_reads(const struct qp *qp, uint32_t from, uint64_t now_ns);
/** ahead_responses() - The answer to a READ waits for its source. */
void ahead_responses(const struct qp *qp, uint64_t now_ns);

/**
 * sge_walk() - Resolve [off, off + len) of a WQE's SGEs into moves.
 * @rest:	bytes that will be written behind them, as far as is known
 */
enum verdict sge_walk(struct qp *qp, const struct wqe *w, uint64_t off,
		      uint32_t len, uint64_t rest, bool write, uint8_t *nic,
		      uint16_t token, struct waiter *wait, struct moves *mv,
		      struct holds *h, uint64_t now_ns);

/** qp_kick_all() - What QPs waited for on this list, by peer_link, happened. */
void qp_kick_all(struct list *waiting);
/** qp_moves_ended() - Those may go on who wait for moves in a revoked region. */
void qp_moves_ended(struct xport *x);
/**
 * qp_invalidate() - Nobody gets at the region of @key from now on; when what
 * moves there has ended, it is done.
 * @revoked:	the caller's, of one invalidation; false to begin with
 *
 * Return: V_OK; V_WAIT, call again when kicked or drained; V_PROT.
 */
enum verdict qp_invalidate(struct qp *qp, uint32_t key, bool *revoked);

/** burst_payload() - Bytes of payload in all its packets. */
uint64_t burst_payload(const struct burst *b);

/* burst.c */
void burst_reset(struct burst *b, struct qp *qp, struct peer *peer, bool ext);
/**
 * burst_seg() - Append a packet. Return: NULL when it does not fit this burst.
 * With @inl the payload is copied behind the header.
 */
struct seg *burst_seg(struct burst *b, struct pkt *pkt, const uint8_t *inl);
bool burst_full(const struct burst *b);
/**
 * burst_mark() - Its packets are to be marked as those of @qp, or (NULL) as what is no
 * QP's.
 */
void burst_mark(struct burst *b, const struct qp *qp);
/** burst_suits() - Would packets of @qp, a connection, be marked in the same way? */
bool burst_suits(const struct burst *b, const struct qp *qp);
/**
 * burst_spray() - @b, of requests or responses, takes the next of the paths to its
 * peer. What is said to it alone (ACKs, questions) always takes the same: little,
 * soon, and of no use when others overtake it.
 */
void burst_spray(struct burst *b);
/** burst_open() - If an OPEN is to be sent, let it leave with @b, of requests. */
void burst_open(struct burst *b);
/**
 * burst_next() - Append the middle packet of a message whose previous packet is
 * the last of @b: extension packets, no inline payload. Return: as burst_seg().
 */
struct seg *burst_next(struct burst *b, uint8_t opcode, psn_t psn,
		       uint32_t payload_len);
/**
 * burst_gather() - Resolve the payload of the packet that was just appended.
 * Of the d->ahead bytes behind it as much is resolved with it as may follow in
 * this burst; burst_trim() gives back what did not.
 */
enum verdict burst_gather(struct burst *b, const struct dma *d,
			  struct waiter *wait, uint64_t now_ns);
void burst_trim(struct burst *b);
/** burst_unseg() - Take the last packet back, and what it resolved: the holds
 * from @hold and the moves from @move on. */
void burst_unseg(struct burst *b, uint32_t hold, uint32_t move);
/** gso_sent() - @b leaves: watch whether it arrives as a whole. */
void gso_sent(struct gso_watch *g, const struct burst *b);
/** gso_passed() - All before @reached has arrived. */
void gso_passed(struct gso_watch *g, psn_t reached);
/** gso_missing() - The peer misses what begins at @missing. */
void gso_missing(struct qp *qp, struct gso_watch *g, psn_t missing);
/** flow_charge() - What packets cost the receiver (design D14). */
/** flow_whole() - Do bursts to @p arrive as one piece? */
bool flow_whole(const struct peer *p);
/** flow_even() - @p accepted so many @packets more; @gaps: others before them are
 * missing. */
void flow_even(struct peer *p, uint32_t packets, bool gaps);
uint32_t flow_charge(bool gso, uint32_t packets, uint32_t bytes);

/* flow.c */
/** flow_shares() - Into how many parts what all peers share is cut. */
uint32_t flow_shares(const struct xport *x);
bool flow_may_send(struct qp *qp, uint32_t charge);
/** flow_wait() - @qp waits for budget or slots of its peer. Return: false. */
bool flow_wait(struct qp *qp);
void flow_sent(struct qp *qp, psn_t end, uint32_t charge);
/** flow_again() - Copies of [@from, @to) left, which cost @charge: what was not copied
 * before is charged once more, until all that was sent before is accepted and
 * the copies can be no more on their way. */
void flow_again(struct qp *qp, psn_t from, psn_t to, uint32_t charge);
/** flow_unsent() - What was charged last, from @from on, did not leave. */
void flow_unsent(struct qp *qp, psn_t from, uint32_t charge);
void flow_accepted(struct qp *qp, psn_t accepted, uint64_t now_ns);
/** flow_copies_came() - Time is up for those that are late. */
void flow_copies_came(struct qp *qp, uint64_t now_ns);
void flow_forget(struct qp *qp);
/** flow_held() - The peer forgets what is on the way, when it comes to it. */
void flow_held(struct qp *qp);
/** flow_resumed() - It may not have come to it yet. */
void flow_resumed(struct qp *qp);
bool flow_may_read(struct qp *qp, uint32_t charge);
void flow_read(struct qp *qp, uint32_t charge);
/** flow_read_again() - What ends at @to was asked for again, and is charged once more
 * until it is answered (flow_answered()). */
void flow_read_again(struct qp *qp, psn_t to, uint32_t charge);
void flow_answered(struct qp *qp, psn_t before);
/** flow_read_forget() - None of what was asked for is waited for. */
void flow_read_forget(struct qp *qp);
void flow_read_done(struct qp *qp, uint32_t charge);

/* credit.c */
/** credit_left() - Slots that @p was lent and has not filled. */
uint32_t credit_left(const struct peer *p);
/** credit_rest() - Slots that are free and not left so for anybody. */
uint32_t credit_rest(const struct xport *x);
/** credit_first() - The first packet with payload of @w takes a slot of those that
 * are left for such (false: there is none for it), or @on is false: gives it back. */
bool credit_first(struct xport *x, struct window *w, bool on);
/** credit_fill() - @p fills one slot @more, or one less. */
void credit_fill(struct xport *x, struct peer *p, bool more);
/** credit_allows() - May @more new packets leave that are not counted yet? */
bool credit_allows(const struct qp *qp, uint32_t more);
/** credit_allows_again() - May what is next leave once more? */
bool credit_allows_again(struct qp *qp);
void credit_sent(struct qp *qp, uint32_t packets);
/** credit_placed() - So many are, or never will be. */
void credit_placed(struct qp *qp, uint32_t packets);
/** credit_leave() - The QP ends, whatever of its requests is not placed. */
void credit_leave(struct qp *qp);

/* comp.c */
void comp_placed(struct qp *qp, psn_t target, uint64_t now_ns);
void comp_reap(struct qp *qp, uint64_t now_ns);
/** comp_oldest() - The oldest request ended as @status and @cause (enum wc_cause)
 * say. */
void comp_oldest(struct qp *qp, enum wc_status status, uint16_t cause,
		 uint64_t now_ns);
void comp_drained(struct qp *qp);
bool comp_reads_pending(const struct qp *qp);
void comp_fail_wqe(struct qp *qp, uint32_t index, enum wc_status status,
		   uint16_t cause, uint64_t now_ns);
void comp_flush(struct qp *qp, uint64_t now_ns);
/** wqe_end() - Return the PSN behind its last. */
psn_t wqe_end(const struct wqe *w);
/** wqe_passed() - Are all its PSNs before @at? */
bool wqe_passed(const struct wqe *w, psn_t at);

/* reply.c */
enum rx_result reply_rx(struct qp *qp, const struct pkt *pkt,
			const uint8_t *payload, struct rx_run *run,
			uint64_t now_ns);
bool reply_more(struct qp *qp, psn_t psn, uint32_t n);
void reply_commit(struct rx_run *run, uint64_t now_ns);
bool reply_drain(struct qp *qp, struct rx_run *run, uint64_t now_ns);
/** reply_page_came() - If a response was dropped for want of it, ask again. */
void reply_page_came(struct qp *qp, uint64_t now_ns);
/** reply_timeout() - A response that others overtook may be lost by now. */
void reply_timeout(struct qp *qp, uint64_t now_ns);
/** reply_carried() - What a request of the peer says of what it placed. */
void reply_carried(struct qp *qp, const struct pkt *request, uint64_t now_ns);
/**
 * reply_read_again() - The peer executes the READ @w again, of which something is not
 * here yet: forget what READs behind it have read. They are to be executed after it
 * (IBTA 10.8, ordering of work requests).
 */
void reply_read_again(struct qp *qp, const struct wqe *w);
/** reply_wqe() - The READ whose next response is @psn, or NULL. */
struct wqe *reply_wqe(struct qp *qp, psn_t psn);
/** reply_chunk_end() - Where the READ request that asks for packet @k of @w ends. */
uint32_t reply_chunk_end(const struct qp *qp, const struct wqe *w, uint32_t k);
uint32_t reply_chunk_charge(const struct qp *qp, const struct wqe *w,
			    uint32_t k);

/* retry.c */
void retry_rewind(struct qp *qp, enum flight_kind why, uint64_t now_ns);
/** retry_unsent() - Nothing of @b left: go on where it began. */
void retry_unsent(struct qp *qp, const struct burst *b, uint64_t now_ns);
/** retry_ask_again() - Send what was asked for in [@due, @end) again. */
void retry_ask_again(struct qp *qp, psn_t due, psn_t end);
/** retry_forget() - What the peer has and lacks is not known any more. */
void retry_forget(struct req *r);
/** retry_news() - The peer was heard of; @progress: and is further than before. */
void retry_news(struct qp *qp, bool progress);
void retry_timeout(struct qp *qp, uint64_t now_ns);
/** retry_rnr() - @fault: a nopin says that a page is missing: costs nothing. */
void retry_rnr(struct qp *qp, uint8_t code, bool fault, uint64_t now_ns);
void retry_sack(struct qp *qp, const struct pkt *p, bool probed,
		uint64_t now_ns);
/** retry_twice() - The peer has something that came twice. */
void retry_twice(struct qp *qp, uint64_t now_ns);
void retry_hold(struct qp *qp, uint64_t now_ns);
void retry_resume(struct qp *qp, uint64_t now_ns);
/** retry_may() - Is something lost, and may it be sent before the peer is heard
 * of again? */
bool retry_may(const struct req *r);
bool retry_is_lost(const struct qp *qp, psn_t psn);
void retry_resent(struct qp *qp, psn_t psn);
bool retry_next_lost(struct qp *qp, psn_t *psn);

/* live.c */
void live_reset(struct req *r);
/** live_start() - It is the peer's turn: the clocks that stand run. */
void live_start(struct qp *qp, uint64_t now_ns);
/** live_stop() - It is not; the next question is the first. */
void live_stop(struct qp *qp, uint64_t now_ns);
/** live_restart() - What was sent is to be sent again. */
void live_restart(struct qp *qp, uint64_t now_ns);
/** live_wait_open() - A request has to wait until it is known who the peer is. */
void live_wait_open(struct qp *qp, uint64_t now_ns);
/** live_sent() - Requests leave (@first: and none were on their way);
 * live_none_sent(): none can. */
void live_sent(struct qp *qp, bool first, uint64_t now_ns);
void live_none_sent(struct qp *qp, uint64_t now_ns);
/** live_reload() - It has all its retries again. */
void live_reload(struct qp *qp);
/** live_spend() - One retry. false: none was left, the QP failed for @cause, if it
 * was not that packets are too large. */
bool live_spend(struct qp *qp, enum wc_cause cause, uint64_t now_ns);
/** live_moved() - Is it further than it ever was, since this was asked last? */
bool live_moved(struct qp *qp);
void live_progress(struct qp *qp, uint64_t now_ns);
/** live_heard() - @p came and is no progress; @answer: to our newest question. */
void live_heard(struct qp *qp, const struct pkt *p, bool answer,
		uint64_t now_ns);
/** live_page_came() - A response waited for it, and may be asked for anew: the peer,
 * which has answered once and says so, has an ACK timeout from now. */
void live_page_came(struct qp *qp, uint64_t now_ns);
/** live_ask() - Where is the peer? Now, and from then on as if nobody had asked. */
void live_ask(struct qp *qp, uint64_t now_ns);
/** live_asked() - That is about to leave. */
void live_asked(struct qp *qp, uint64_t now_ns);
/** live_repeats() - Is the oldest packet to be sent again? live_repeated(): it was;
 * live_unsent(): what begins at @from was not. */
bool live_repeats(const struct req *r);
void live_repeated(struct qp *qp, uint64_t now_ns);
void live_unsent(struct qp *qp, psn_t from);
void live_timeout(struct qp *qp, uint64_t now_ns);
/** live_next() - When it is to be called next. */
uint64_t live_next(const struct req *r);

/* reorder.c */
/** late_came() - A gap was filled after @ns by what had been sent first. */
void late_came(struct lateness *l, uint64_t ns);
/** late_doubted() - What was sent again after a gap, which came @ns later or earlier
 * than that, was not lost. */
void late_doubted(struct lateness *l, uint64_t ns);
/** late_gap() - One more gap is over, however it was filled. */
void late_gap(struct lateness *l);

/* resp.c */
void resp_reset(struct qp *qp);
/** request_psns() - How many PSNs a request packet takes. */
uint32_t request_psns(const struct qp *qp, const struct pkt *p);
enum rx_result resp_rx(struct qp *qp, const struct pkt *pkt,
		       const uint8_t *payload, struct rx_run *run,
		       uint64_t now_ns);
/** resp_more(), reply_more() - See qp_rx_more(); from @psn on. */
bool resp_more(struct qp *qp, psn_t psn, uint32_t n);
void resp_commit(struct rx_run *run, uint64_t now_ns);
bool resp_drain(struct qp *qp, struct rx_run *run, uint64_t now_ns);
/** resp_settle() - A failed check takes effect, if nothing moves or waits that
 * came before it.
 */
void resp_settle(struct qp *qp, uint64_t now_ns);
void resp_flush(struct qp *qp, uint64_t now_ns);
void resp_timeout(struct qp *qp, uint64_t now_ns);

/* exec.c: the checks and the plan of one request at the head of the window */
/* EXEC_FULL: commit the run first; EXEC_WAIT: a page is missing */
enum exec_result {
	EXEC_OK,
	EXEC_FULL,
	EXEC_WAIT,
	EXEC_RNR,
	EXEC_NAK,
	EXEC_DROP, /* no room: as if it had been lost */
};
/** request_allowed() - Does the QP allow it at all? */
bool request_allowed(const struct qp *qp, const struct pkt *p);
enum exec_result resp_execute(struct qp *qp, const struct pkt *pkt,
			      const uint8_t *payload, struct rx_run *run,
			      uint64_t now_ns);

/* open.c */
/** open_begin() - A life of @qp begins: make its epoch, ask for the peer's. */
void open_begin(struct qp *qp, uint64_t now_ns);
/** open_end() - And ends. */
void open_end(struct qp *qp);
/** open_fill() - Make the OPEN that is to be sent. @rides: with data. */
void open_fill(struct qp *qp, struct pkt *p, bool rides);
void open_timeout(struct qp *qp, uint64_t now_ns);

/* replay.c */
bool replay_tx(struct qp *qp, struct burst *b, uint64_t now_ns);
void replay_unsent(struct qp *qp, const struct burst *b, int error,
		   uint64_t now_ns);
/** replay_pending() - READs and atomics not answered whole; @room: in the ring. */
uint32_t replay_pending(const struct qp *qp, uint32_t *room);
void replay_add(struct qp *qp, const struct pkt *pkt, uint64_t original);
void replay_duplicate(struct qp *qp, const struct pkt *pkt, uint64_t now_ns);
static inline bool replay_busy(const struct qp *qp)
{
	return qp->resp.res_at != qp->resp.res_next;
}

/* ack.c */
void ack_owe(struct qp *qp, uint64_t now_ns);
/**
 * ack_received() - A receive completed. Who sees that may end the connection, or the
 * program, at once: so the ACK leaves before the engine gives the thread back. Only
 * where a request has followed each receive so far it goes with the next.
 */
void ack_received(struct qp *qp, uint64_t now_ns);
/** ack_answered() - A new request leaves. */
void ack_answered(struct resp *r);
/** ack_repeat() - What came moves nothing on: of that, or of what it tells of gaps, one
 * ACK in xport.ack_delay_ns is enough, or packets that are overtaken all the time
 * are answered by as many ACKs, which nothing limits. */
void ack_repeat(struct qp *qp, uint64_t now_ns);
/** ack_repeat_timeout() - One that had to wait for that may go. */
void ack_repeat_timeout(struct qp *qp, uint64_t now_ns);
void ack_nak(struct qp *qp, uint8_t syndrome, psn_t psn, uint64_t now_ns);
/** ack_page_rnr() - RNR for @psn, whose page is missing. */
void ack_page_rnr(struct qp *qp, uint8_t code, psn_t psn, uint64_t now_ns);
/** ack_say() - Tell a nopin peer @xack_flags as soon as possible. */
void ack_say(struct qp *qp, uint32_t xack_flags, uint64_t now_ns);
/** ack_answer() - It was asked where we are: say that, or that it is not known while
 * something of @qp moves, and then that. */
void ack_answer(struct qp *qp, uint16_t question, uint64_t now_ns);
/** ack_headers() - What a request says of what is placed here. */
void ack_headers(const struct qp *qp, struct pkt *p);
/** ack_first() - Does a request to a peer that is no nopin, which says nothing of what
 * is placed, have to wait for an ACK? That leaves now. */
bool ack_first(struct qp *qp, uint64_t now_ns);
/** ack_carry() - A plain ACK that is owed is said by the headers of @b, of requests. */
void ack_carry(struct qp *qp, struct burst *b, uint64_t now_ns);
/** ack_append() - Put ACKs owed to b->peer behind what is in @b. */
bool ack_append(struct qp *qp, struct burst *b, uint64_t now_ns);
void ack_cancel(struct qp *qp);
/** ack_rest() - Owe what an ACK could not say because of the READ answered now. */
void ack_rest(struct qp *qp, uint64_t now_ns);
/** ack_again() - What an owed ACK had to wait for may be over. */
void ack_again(struct qp *qp);

/* ud_rx.c: qp.resp, where a datagram's number, which stands for a PSN in
 * everything that counts by these, is the index of the receive that it takes */
enum rx_result ud_rx(struct qp *qp, const struct pkt *pkt,
		     const uint8_t *payload, struct rx_run *run,
		     uint64_t now_ns);
bool ud_drain(struct qp *qp, struct rx_run *run, uint64_t now_ns);
void ud_rx_commit(struct rx_run *run, uint64_t now_ns);

/* ud_tx.c: qp.req */
bool ud_tx(struct qp *qp, struct burst *b, uint64_t now_ns);
/** ud_tx_commit() - As qp_tx_commit(); the holds are released already. */
void ud_tx_commit(struct qp *qp, const struct burst *b, int error,
		  uint64_t now_ns);
void ud_timeout(struct qp *qp, uint64_t now_ns);

/* fault_backup.c */
/**
 * backup_keep() - Keep a datagram in a slot, as number @number.
 * Return: false: no slot is free, or its sender or @qp has too many.
 */
bool backup_keep(struct qp *qp, const struct pkt *pkt, const uint8_t *payload,
		 psn_t number, uint64_t now_ns);

/* fault.c */
/** fault_datagram() - A datagram met a missing page. true: it is kept as win.next. */
bool fault_datagram(struct qp *qp, const struct pkt *pkt,
		    const uint8_t *payload, uint64_t now_ns);
/** fault_request() - A request at win.next met a missing page. */
void fault_request(struct qp *qp, const struct pkt *pkt, const uint8_t *payload,
		   uint64_t now_ns);
/** fault_forget() - It is not kept; whoever sent it is told to wait. */
void fault_forget(struct qp *qp, const struct pkt *pkt, uint64_t now_ns);
/**
 * fault_crowds() - Is @pkt, which comes while a page is missing that is needed
 * before it, better not kept either?
 */
bool fault_crowds(struct qp *qp, const struct pkt *pkt, uint64_t now_ns);
/** fault_waiting() - A request in a slot did. */
void fault_waiting(struct qp *qp, uint64_t now_ns);
/** fault_source() - A page to be sent is missing, of a READ response or not. */
void fault_source(struct qp *qp, psn_t psn, bool response, uint64_t now_ns);
/** fault_response() - A READ response did. Return: true if it was kept. */
bool fault_response(struct qp *qp, const struct pkt *pkt,
		    const uint8_t *payload, uint64_t now_ns);
/** fault_forgiven() - What was forgotten came again: who holds may go on. */
void fault_forgiven(struct qp *qp, uint64_t now_ns);
void fault_resolved(struct qp *qp, uint64_t now_ns);
void fault_silence_over(struct qp *qp, uint64_t now_ns);

/* hold.c */
/** hold_ask() - What just had to wait may wait for a region: ask to hold. */
void hold_ask(struct qp *qp, uint64_t now_ns);
/** hold_extend() - What an ACK says of that; hold_said(): it did. */
void hold_extend(struct qp *qp, struct pkt *p);
void hold_said(struct qp *qp);
/** resume_say() - Who holds may go on: said again if what was held does not come. */
void resume_say(struct qp *qp, uint64_t now_ns);
/** resume_heard() - It came. */
void resume_heard(struct qp *qp);
void resume_timeout(struct qp *qp, uint64_t now_ns);
/** hold_over() - A waiter of the responder was woken: who holds may go on. */
void hold_over(struct qp *qp, uint64_t now_ns);
/** hold_silent_until() - So long a standard peer bears it, or 0. */
uint64_t hold_silent_until(const struct qp *qp);
/** hold_heard() - The requester hears an ACK. */
void hold_heard(struct qp *qp, const struct pkt *p, uint64_t now_ns);
/** hold_ask_ns() - How often we ask whether it still takes. */
uint64_t hold_ask_ns(const struct req *r);
void hold_timeout(struct qp *qp, uint64_t now_ns);

/** qp_strategies() - What may answer a missing page, but for the region. */
strategies_t qp_strategies(const struct qp *qp);

/* REQ_PSNS_AHEAD: no request is started so far behind the oldest */
/* PAUSE_FULL_NS: after the socket's send buffer was full */
enum { PAUSE_FULL_NS = 100 * 1000 };
enum { SGE_MAX = 32, REQ_PSNS_AHEAD = 1 << 21 };

#endif
