/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.h: posting work requests, in both interfaces. */
#ifndef NOPIN_VERBS_POST_H
#define NOPIN_VERBS_POST_H

#include "ring/wqe.h"
#include "verbs/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
	      struct ibv_send_wr **bad);
/** post_write_notify() - Return: also EOPNOTSUPP: datagrams. */
int post_write_notify(struct ibv_qp *qp, struct ibv_send_wr *wr,
		      uint32_t counter, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
	      struct ibv_recv_wr **bad);
/**
 * wqe_set_sges() - Fill in a scatter/gather list, without its empty entries.
 * Return: 0, or EINVAL: too many, over 2 GiB, or not of that operation.
 */
int wqe_set_sges(struct wqe *wqe, const struct ibv_sge *sge, size_t num,
		 uint32_t max);
/**
 * wqe_add_inline() - Append to a request's inline data, which takes the place of
 * its list. The program may reuse its buffer then.
 * @max:	bytes of inline data that the QP takes
 * Return: 0, or EINVAL: too many, or not of that operation.
 */
int wqe_add_inline(struct wqe *wqe, const void *from, size_t bytes,
		   uint32_t max);
/** wqe_flags() - Ours for enum ibv_send_flags. Return: -EINVAL for unknown ones. */
int wqe_flags(unsigned int send_flags);
/**
 * wr_api_init() - Install the wr_ functions; @ud: of a QP of datagrams.
 * Return: 0, or EOPNOTSUPP.
 */
int wr_api_init(struct vqp *q, uint64_t ops, bool ud);

#endif
