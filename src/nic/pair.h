/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.h: queue pairs, for the API edge.
 * Threads, errors and children of fork(): nic.h.
 */
#ifndef NOPIN_NIC_PAIR_H
#define NOPIN_NIC_PAIR_H

#include "base/strategy.h"
#include "xport/attr.h"

struct nic;
struct nic_async;
struct nic_cq;
struct nic_srq;
struct nic_qp;

/**
 * struct nic_qp_init - What a program asks for; in/out: what it got.
 * @srq:	the source of its receives, which it then posts none itself; or NULL
 * @ud:		datagrams: WQEs say where to, and are SENDs of up to @max_message
 * @max_message: out: bytes that one request may carry
 */
struct nic_qp_init {
	uint32_t pd;
	struct nic_cq *send_cq, *recv_cq;
	struct nic_srq *srq;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge;
	uint32_t max_inline;
	bool sq_sig_all, ud;
	uint32_t max_message;
	void *cookie;
};

/** nic_qp_create() - Create a QP of a reliable connection, or of datagrams, in RESET. */
int nic_qp_create(struct nic *nic, struct nic_async *async,
		  struct nic_qp_init *init, struct nic_qp **out, uint32_t *qpn);
int nic_qp_destroy(struct nic_qp *qp);
/** nic_qp_modify() - Change the attributes in @mask: IBV_QP_* numbers (enum
 * qp_attr_mask). */
int nic_qp_modify(struct nic_qp *qp, const struct qp_attr *attr, uint32_t mask);
int nic_qp_query(struct nic_qp *qp, struct qp_attr *attr,
		 struct nic_qp_init *init);

/**
 * nic_qp_set_fault() - Choose what answers missing pages from now on.
 * @s:		STRATEGY_NONE: what the NIC does
 * Return: 0; -EINVAL: no such strategy; -EOPNOTSUPP: STRATEGY_BLOCK is of a NIC
 * as a whole.
 */
int nic_qp_set_fault(struct nic_qp *qp, enum strategy s);
int nic_qp_fault(struct nic_qp *qp, enum strategy *out);

/**
 * nic_qp_set_counting() - Choose whether the immediate data of WRITEs that come is the
 * identifier of a counter to raise, in network byte order, and takes no receive.
 * Return: 0; -EOPNOTSUPP: datagrams.
 */
int nic_qp_set_counting(struct nic_qp *qp, bool counts);
/**
 * nic_qp_notifies() - Tell if the peer of the QP knows WR_WRITE_NOTIFY; have it asked, if
 * need be. Return: 0; -EOPNOTSUPP: no, or datagrams; -EAGAIN: that is not known yet;
 * -EINVAL: no peer.
 */
int nic_qp_notifies(struct nic_qp *qp);

/** nic_qp_limits() - Return the limits of the QP: constant after creation. */
const struct nic_qp_init *nic_qp_limits(const struct nic_qp *qp);

#endif
