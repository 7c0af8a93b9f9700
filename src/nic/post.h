/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.h: posting to queue pairs, for the API edge.
 * Threads, errors and children of fork(): nic.h.
 */
#ifndef NOPIN_NIC_POST_H
#define NOPIN_NIC_POST_H

#include "ring/wqe.h"

struct nic_qp;
struct nic_srq;

/**
 * Posting: nic_send_begin() locks the send queue; then for each request
 * nic_send_slot(), fill the WQE (op, flags, SGEs or inline data, length),
 * nic_send_publish(); at last nic_send_end(), which unlocks and runs the
 * engine. The SGE count and inline size are checked by the caller against
 * nic_qp_limits(). Receives likewise.
 *
 * nic_send_begin() Return: 0; -EINVAL: the QP's state takes no sends;
 * -ENODEV. nic_send_slot() Return: NULL when the queue is full.
 */
int nic_send_begin(struct nic_qp *qp);
struct wqe *nic_send_slot(struct nic_qp *qp);
void nic_send_publish(struct nic_qp *qp);
void nic_send_end(struct nic_qp *qp);

/**
 * nic_send_lock() - Do as nic_send_begin(), in any state. Return: 0, -ENODEV.
 * nic_send_ready() - Tell if the state takes sends. Locked. Return: 0; -EINVAL: it does
 * not.
 */
int nic_send_lock(struct nic_qp *qp);
int nic_send_ready(const struct nic_qp *qp);

/**
 * nic_send_slot_ahead() - Return the slot @ahead behind the next free one; NULL when
 * the queue has none. nic_send_publish_many() - Publish the next @n slots at
 * once. For requests that are posted all or not at all (ibv_wr_complete()).
 */
struct wqe *nic_send_slot_ahead(struct nic_qp *qp, uint32_t ahead);
void nic_send_publish_many(struct nic_qp *qp, uint32_t n);

/** nic_recv_begin() - Return: 0; -EINVAL: in RESET, or the QP takes its receives from a
 * shared queue; -ENODEV. */
int nic_recv_begin(struct nic_qp *qp);
struct wqe *nic_recv_slot(struct nic_qp *qp);
void nic_recv_publish(struct nic_qp *qp);
void nic_recv_end(struct nic_qp *qp);

/** nic_srq_recv_begin() - Begin to post receives to a shared queue, in the same way, of up
 * to nic_srq_max_sge() SGEs. Return: 0; -ENODEV. */
int nic_srq_recv_begin(struct nic_srq *srq);
struct wqe *nic_srq_recv_slot(struct nic_srq *srq);
void nic_srq_recv_publish(struct nic_srq *srq);
void nic_srq_recv_end(struct nic_srq *srq);
/** nic_srq_max_sge() - Return how many SGEs a receive may have. Constant. */
uint32_t nic_srq_max_sge(const struct nic_srq *srq);

#endif
