/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.c: queue pairs for the API edge: creation, teardown, posting. */
#include "nic/pair.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/timerq.h"
#include "mem/mr.h"
#include "nic/cq.h"
#include "nic/demux.h"
#include "nic/device.h"
#include "nic/events.h"
#include "nic/holder.h"
#include "nic/lock.h"
#include "nic/nic.h"
#include "nic/peers.h"
#include "nic/post.h"
#include "nic/posted.h"
#include "nic/progress.h"
#include "nic/qp.h"
#include "nic/roce.h"
#include "nic/srq.h"
#include "os/net.h"
#include "os/run.h"
#include "os/wait.h"
#include "ring/cq.h"
#include "ring/rq.h"
#include "ring/wq.h"
#include "ring/wqe.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/transport.h"
#include "xport/tx.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static bool init_ok(const struct nic_qp_init *i)
{
	return i->max_send_wr <= NIC_MAX_QP_WR &&
	       i->max_recv_wr <= NIC_MAX_QP_WR &&
	       i->max_send_sge <= NIC_MAX_SGE &&
	       i->max_recv_sge <= NIC_MAX_SGE &&
	       i->max_inline <= NIC_MAX_INLINE && i->send_cq && i->recv_cq;
}

static int queues_init(struct nic_qp *qp)
{
	struct nic_qp_init *i = &qp->init;
	int err;

	err = wq_init(&qp->sq, i->max_send_wr, i->max_send_sge, i->max_inline);
	if (err)
		return err;
	err = rq_init(&qp->rq, i->max_recv_wr, i->max_recv_sge, i->pd);
	if (err)
		wq_fini(&qp->sq);
	return err;
}

/* What comes before a datagram tells of the IP header that it had. */
static void ud_marks(struct nic *nic, int port)
{
	os_port_marks(nic->os, port);
	if (nic->roce.port >= 0)
		os_port_marks(nic->os, nic->roce.port);
}

/* Lock held: everything that other objects know of the QP. */
static int attach(struct nic *nic, struct nic_qp *qp, uint32_t *qpn)
{
	struct nic_srq *srq = qp->init.srq;
	struct qp_config cfg = {
		.pd = qp->init.pd,
		.sq = &qp->sq,
		.rq = srq ? NULL : &qp->rq,
		.receives = srq ? &srq->srq.source : &qp->rq.source,
		.send_cq = &qp->init.send_cq->cq,
		.recv_cq = &qp->init.recv_cq->cq,
		.sq_sig_all = qp->init.sq_sig_all,
		.transport = qp->init.ud ? &transport_ud : &transport_rc,
		.mtu = qp->init.ud ? qp->init.max_message : nic->iface.mtu};
	int err;

	err = timerq_reserve(&nic->x.timers, nic->qps.num + 1);
	if (!err)
		err = nic->qps.num == NIC_MAX_QP ? -ENOMEM
						 : demux_add(nic, qp, qpn);
	if (err)
		return err;
	cfg.qpn = *qpn;
	cfg.port = qp->port->os_port;
	qp_init(&qp->qp, &nic->x, &cfg);
	list_add_tail(&nic->qps.all, &qp->all);
	nic->qps.num++;
	nic->qps.ud += qp->init.ud;
	if (qp->init.ud)
		ud_marks(nic, cfg.port);
	pd_get(nic->mem, qp->init.pd);
	qp->init.send_cq->refs++;
	qp->init.recv_cq->refs++;
	if (srq)
		srq->refs++;
	return 0;
}

int nic_qp_create(struct nic *nic, struct nic_async *async,
		  struct nic_qp_init *init, struct nic_qp **out, uint32_t *qpn)
{
	struct nic_qp *qp;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	if (init->srq)
		init->max_recv_wr = init->max_recv_sge = 0;
	if (!init_ok(init))
		return -EINVAL;
	qp = heap_alloc(sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->nic = nic;
	qp->async = async;
	init->max_message = init->ud ? __atomic_load_n(&nic->iface.mtu,
						       __ATOMIC_RELAXED)
				     : NIC_MAX_MESSAGE;
	qp->init = *init;
	err = queues_init(qp);
	if (err) {
		heap_free(qp);
		return err;
	}
	pthread_mutex_init(&qp->sq_lock, NULL);
	pthread_mutex_init(&qp->rq_lock, NULL);
	list_init(&qp->async_link);
	nic_lock(nic);
	err = attach(nic, qp, qpn);
	/* a holder that passes on to us has said so when the QP is connected */
	if (!err && init->ud)
		roce_needed(nic);
	else if (!err)
		roce_claim(nic);
	nic_unlock(nic);
	if (err) {
		wq_fini(&qp->sq);
		rq_fini(&qp->rq);
		heap_free(qp);
		return err;
	}
	*out = qp;
	return 0;
}

/* Lock held. The QP can be found by nobody any more; moves may still be out. */
static void detach(struct nic *nic, struct nic_qp *qp)
{
	struct peer *peer = qp->qp.peer;

	qp_abandon(&qp->qp);
	demux_remove(nic, qp);
	while (!qp_idle(&qp->qp))
		nic_wait_idle(nic);
	posted_take(nic);
	qp_fini(&qp->qp);
	if (peer)
		peer_put(nic, peer);
	list_del(&qp->all);
	nic->qps.num--;
	nic->qps.ud -= qp->init.ud;
	pd_put(nic->mem, qp->init.pd);
}

static void forget_completions(struct nic *nic, struct nic_qp *qp,
			       struct nic_cq *cq)
{
	pthread_mutex_lock(&cq->poll);
	nic_lock(nic);
	cq_forget(&cq->cq, qp->qp.cfg.qpn);
	nic_unlock(nic);
	pthread_mutex_unlock(&cq->poll);
}

/* From here on another thread may destroy them. */
static void let_queues_go(struct nic *nic, struct nic_qp *qp)
{
	nic_lock(nic);
	qp->init.send_cq->refs--;
	qp->init.recv_cq->refs--;
	if (qp->init.srq)
		qp->init.srq->refs--;
	nic_unlock(nic);
}

/* LAST_ACK_TRY_NS: the socket's send buffer drains meanwhile */
enum { LAST_ACK_TRY_NS = 100 * 1000, LAST_ACK_TRIES = 20, FLUSH_TRIES = 10000 };

enum last_ack { LAST_ACK_OWED, LAST_ACK_LEAVING, LAST_ACK_SAID };

/* Engine lock held. Is there, or will be, an ACK that cannot be sent at once? What
 * another thread has placed, and the program seen, may not be committed yet. */
static bool pair_unsaid(const struct nic_qp *qp)
{
	return qp->qp.rx_moving || ack_leaving(&qp->qp);
}

static enum last_ack last_ack(struct nic *nic, struct nic_qp *qp, bool again)
{
	enum last_ack ret = LAST_ACK_SAID;

	nic_lock(nic);
	if (pair_unsaid(qp))
		ret = LAST_ACK_LEAVING;
	else if (again && ack_last(&qp->qp))
		ret = LAST_ACK_OWED;
	nic_unlock(nic);
	return ret;
}

static void let_acks_leave(struct nic *nic)
{
	os_relax();
	os_doze(nic->os, -1, os_now(nic->os) + LAST_ACK_TRY_NS);
}

/* No peer is left without its last ACK, unless three in a row are lost, or the
 * socket takes none in LAST_ACK_TRIES. Tries, not time: while nobody runs on a
 * busy machine no buffer is looked at and no thread sends what it has. */
static void say_last_ack(struct nic *nic, struct nic_qp *qp)
{
	enum last_ack how;
	int times = 1, tries = 0;

	if (nic->cfg.manual)
		return;
	progress_flush(nic);
	while ((how = last_ack(nic, qp, times < 3)) != LAST_ACK_SAID) {
		if (how == LAST_ACK_OWED) {
			times++;
		} else if (tries++ < LAST_ACK_TRIES) {
			let_acks_leave(nic);
		} else {
			break;
		}
		progress_flush(nic);
	}
}

static bool some_unsaid(struct nic *nic)
{
	bool some = false;

	nic_lock(nic);
	list_for_each(l, &nic->qps.all)
		some |= pair_unsaid(list_entry(l, struct nic_qp, all));
	nic_unlock(nic);
	return some;
}

void nic_flush(struct nic *nic)
{
	bool again = true;

	for (int i = 0; again && i < FLUSH_TRIES; i++) {
		again = some_unsaid(nic);
		progress_flush(nic);
		again |= some_unsaid(nic);
		if (again)
			let_acks_leave(nic);
	}
}

int nic_qp_destroy(struct nic_qp *qp)
{
	struct nic *nic = qp->nic;

	if (nic_child(nic))
		return -ENODEV;
	say_last_ack(nic, qp);
	nic_lock(nic);
	detach(nic, qp);
	if (qp->async) {
		pthread_mutex_lock(&qp->async->lock);
		list_del(&qp->async_link);
		pthread_mutex_unlock(&qp->async->lock);
	}
	nic_unlock(nic);
	forget_completions(nic, qp, qp->init.send_cq);
	if (qp->init.recv_cq != qp->init.send_cq)
		forget_completions(nic, qp, qp->init.recv_cq);
	let_queues_go(nic, qp);
	pthread_mutex_destroy(&qp->sq_lock);
	pthread_mutex_destroy(&qp->rq_lock);
	wq_fini(&qp->sq);
	rq_fini(&qp->rq);
	heap_free(qp);
	return 0;
}

/* A packet to ourselves, or to a neighbour on this host, takes no cable. */
static bool mtu_fits(const struct nic *nic, const struct qp_attr *attr)
{
	return attr->path_mtu <= nic->iface.mtu || roce_here(nic, &attr->dgid);
}

/* Lock held. */
static int modify(struct nic *nic, struct nic_qp *qp,
		  const struct qp_attr *attr, uint32_t mask)
{
	struct peer *was = qp->qp.peer, *peer = NULL;
	bool to_rtr = (mask & QPA_STATE) && attr->state == QPS_RTR;
	int err;

	if (nic->dead && (mask & QPA_STATE) &&
	    (attr->state == QPS_RTR || attr->state == QPS_RTS))
		return -EIO;
	if ((mask & QPA_STATE) && attr->state == QPS_RESET) {
		if (!qp_modify_ok(&qp->qp, attr, mask))
			return -EINVAL;
		mask = QPA_STATE; /* it is in ERR from here on */
		qp_abandon(&qp->qp);
		while (!qp_idle(&qp->qp))
			nic_wait_idle(nic);
		posted_take(nic);
	}
	if (to_rtr && qp->init.ud) {
		roce_claim(nic);
	} else if (to_rtr && (mask & QPA_AV) && (mask & QPA_DEST_QPN) &&
		   qp->qp.state == QPS_INIT) {
		if (!mtu_fits(nic, attr))
			return -EINVAL;
		err = peer_get(nic, attr, qp, &peer);
		if (err)
			return err;
	}
	err = qp_modify(&qp->qp, attr, mask, peer);
	if (err && peer)
		peer_put(nic, peer);
	if (!err && was && was != qp->qp.peer)
		peer_put(nic, was);
	return err;
}

int nic_qp_modify(struct nic_qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	struct nic *nic = qp->nic;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	if ((mask & QPA_STATE) && attr->state == QPS_RTR) {
		nic_prepare(nic);
		roce_welcome(nic);
	}
	/* An ACK that has come is of something that succeeded. */
	if ((mask & QPA_STATE) && attr->state == QPS_ERR)
		progress_hear(nic);
	/* The ACKs that it owes would never be sent. */
	if ((mask & QPA_STATE) &&
	    (attr->state == QPS_ERR || attr->state == QPS_RESET))
		say_last_ack(nic, qp);
	/* No poster has a slot while the queues are reset, and nobody else
	 * modifies while that waits for moves. */
	pthread_mutex_lock(&qp->sq_lock);
	pthread_mutex_lock(&qp->rq_lock);
	nic_lock(nic);
	err = modify(nic, qp, attr, mask);
	nic_unlock(nic);
	pthread_mutex_unlock(&qp->rq_lock);
	pthread_mutex_unlock(&qp->sq_lock);
	if (err || !(mask & QPA_STATE) || attr->state != QPS_RESET)
		return err;
	forget_completions(nic, qp, qp->init.send_cq);
	forget_completions(nic, qp, qp->init.recv_cq);
	return 0;
}

int nic_qp_query(struct nic_qp *qp, struct qp_attr *attr,
		 struct nic_qp_init *init)
{
	if (nic_child(qp->nic))
		return -ENODEV;
	nic_lock(qp->nic);
	qp_query(&qp->qp, attr);
	nic_unlock(qp->nic);
	*init = qp->init;
	return 0;
}

const struct nic_qp_init *nic_qp_limits(const struct nic_qp *qp)
{
	return &qp->init;
}

/* The state is read without the engine lock. A QP that enters ERR meanwhile is
 * safe: whoever publishes looks at the state again (posted.c), and whoever
 * flushes looks at the queue's end after it set the state. */
static enum qp_state state_of(const struct nic_qp *qp)
{
	return __atomic_load_n(&qp->qp.state, __ATOMIC_SEQ_CST);
}

int nic_send_lock(struct nic_qp *qp)
{
	if (nic_child(qp->nic))
		return -ENODEV;
	pthread_mutex_lock(&qp->sq_lock);
	return 0;
}

int nic_send_ready(const struct nic_qp *qp)
{
	return state_of(qp) >= QPS_RTS ? 0 : -EINVAL;
}

int nic_send_begin(struct nic_qp *qp)
{
	int err = nic_send_lock(qp);

	if (err)
		return err;
	err = nic_send_ready(qp);
	if (err)
		pthread_mutex_unlock(&qp->sq_lock);
	return err;
}

struct wqe *nic_send_slot(struct nic_qp *qp)
{
	return wq_reserve(&qp->sq);
}

struct wqe *nic_send_slot_ahead(struct nic_qp *qp, uint32_t ahead)
{
	return wq_reserve_ahead(&qp->sq, ahead);
}

void nic_send_publish_many(struct nic_qp *qp, uint32_t n)
{
	wq_publish_many(&qp->sq, n);
}

void nic_send_publish(struct nic_qp *qp)
{
	wq_publish(&qp->sq);
}

void nic_send_end(struct nic_qp *qp)
{
	pthread_mutex_unlock(&qp->sq_lock);
	posted_push(qp);
	progress_work(qp->nic, false);
}

int nic_recv_begin(struct nic_qp *qp)
{
	if (nic_child(qp->nic))
		return -ENODEV;
	pthread_mutex_lock(&qp->rq_lock);
	if (!qp->init.srq && state_of(qp) != QPS_RESET)
		return 0;
	pthread_mutex_unlock(&qp->rq_lock);
	return -EINVAL;
}

struct wqe *nic_recv_slot(struct nic_qp *qp)
{
	return wq_reserve(&qp->rq.wq);
}

void nic_recv_publish(struct nic_qp *qp)
{
	wq_publish(&qp->rq.wq);
}

void nic_recv_end(struct nic_qp *qp)
{
	pthread_mutex_unlock(&qp->rq_lock);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (state_of(qp) != QPS_ERR)
		return;
	posted_push(qp);
	progress_work(qp->nic, false);
}
