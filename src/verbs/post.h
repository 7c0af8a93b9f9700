/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.h: post work requests: ibv_post_send(), ibv_post_recv() (post.c), and the
 * ibv_wr_ functions (wr.c). The state of the QP and keys are left to nic/ and xport/.
 */
#ifndef NOPIN_VERBS_POST_H
#define NOPIN_VERBS_POST_H

#include "ring/wqe.h"
#include "verbs/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
	      struct ibv_send_wr **bad);
/** post_write_notify() - Post WRITEs each of which raises @counter of the peer.
 * Return: as post_send(); EINVAL: not IBV_WR_RDMA_WRITE; EOPNOTSUPP: a QP of datagrams. */
int post_write_notify(struct ibv_qp *qp, struct ibv_send_wr *wr,
		      uint32_t counter, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
	      struct ibv_recv_wr **bad);
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad);
/**
 * wqe_set_sges() - Set the scatter/gather list, without its empty entries, in place of a
 * list or inline data.
 * @wqe:	@op is set; room for @max SGEs. After an error: to be thrown away
 * Return: 0, or EINVAL: more than @max, over 2 GiB, or entries that are not empty where
 * the operation takes no list.
 */
int wqe_set_sges(struct wqe *wqe, const struct ibv_sge *sge, size_t num,
		 uint32_t max);
/**
 * wqe_add_inline() - Append to inline data; the first call replaces the list. The
 * program may reuse its buffer on return.
 * @wqe:	@op is set. After an error: to be thrown away
 * @max:	bytes of inline data that the QP takes
 * Return: 0, or EINVAL: over @max, or the operation takes no inline data.
 */
int wqe_add_inline(struct wqe *wqe, const void *from, size_t bytes,
		   uint32_t max);
/** wqe_flags() - Translate enum ibv_send_flags to enum wqe_flag. IBV_SEND_INLINE gives
 * none: wqe_add_inline() sets WQE_INLINE. Return: flags, or -EINVAL: unknown ones. */
int wqe_flags(unsigned int send_flags);
/**
 * wr_api_init() - Install the ibv_wr_ functions in @q (wr.c). @ud: its QP sends datagrams.
 * Return: 0, or EOPNOTSUPP: @ops has others than we offer.
 */
int wr_api_init(struct vqp *q, uint64_t ops, bool ud);

#endif
