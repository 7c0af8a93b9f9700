/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq_api.h: completion queues. */
#ifndef NOPIN_VERBS_CQ_API_H
#define NOPIN_VERBS_CQ_API_H

#include "verbs/object.h"

struct ibv_cq_ex *create_cq_ext(struct ibv_context *context,
				struct ibv_cq_init_attr_ex *attr);

int poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
int req_notify_cq(struct ibv_cq *cq, int solicited_only);

void poll_api_init(struct vcq *q);

#endif
