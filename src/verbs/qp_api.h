/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_api.h: queue pairs, and their attributes. */
#ifndef NOPIN_VERBS_QP_API_H
#define NOPIN_VERBS_QP_API_H

#include "nic/pair.h"
#include "verbs/verbs.h"

struct ibv_qp *create_qp_ext(struct ibv_context *context,
			     struct ibv_qp_init_attr_ex *attr);

/** qp_attr_from_verbs() - Convert what @mask names; the rest of @out is not to be read.
 * Return: 0, -EINVAL. */
int qp_attr_from_verbs(const struct ibv_qp_attr *in, int mask,
		       struct qp_attr *out);
void qp_attr_to_verbs(const struct qp_attr *in, struct ibv_qp_attr *out);

#endif
