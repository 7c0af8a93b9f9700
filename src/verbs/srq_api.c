/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq_api.c: shared receive queues: creating, arming, querying and destroying them. They
 * keep their size: IBV_DEVICE_SRQ_RESIZE is not offered.
 */
#include "nic/shared.h"
#include "verbs/event.h"
#include "verbs/object.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

static void vsrq_free(struct vsrq *s)
{
	pthread_mutex_destroy(&s->base.mutex);
	pthread_cond_destroy(&s->base.cond);
	free(s);
}

/* The part that talks to nic/. Return: 0 or an errno. */
static int open_srq(struct vsrq *s, const struct ibv_srq_attr *attr)
{
	struct vctx *ctx = vctx_of(s->base.context);
	/* the limit is armed by ibv_modify_srq() alone */
	const struct nic_srq_attr nic = {.max_wr = attr->max_wr,
					 .max_sge = attr->max_sge};
	int rc = -tracked_add(&s->events);

	if (rc)
		return rc;
	rc = -nic_srq_create(ctx->nic, ctx->async, s->base.pd->handle, &nic,
			     s->events.cookie, &s->nic);
	if (rc) {
		tracked_del(&s->events);
		return rc;
	}
	vobj_add(ctx, &s->obj, VOBJ_SRQ);
	return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *srq_init_attr)
{
	struct vsrq *s;
	int rc;

	if (in_child(pd->context))
		return fail(ENODEV);
	s = calloc(1, sizeof(*s));
	if (!s)
		return fail(ENOMEM);
	s->base.context = pd->context;
	s->base.srq_context = srq_init_attr->srq_context;
	s->base.pd = pd;
	pthread_mutex_init(&s->base.mutex, NULL);
	pthread_cond_init(&s->base.cond, NULL);
	rc = open_srq(s, &srq_init_attr->attr);
	if (rc) {
		vsrq_free(s);
		return fail(rc);
	}
	return &s->base;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr,
		   int srq_attr_mask)
{
	if (srq_attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (srq_attr_mask & IBV_SRQ_MAX_WR)
		return EOPNOTSUPP;
	if (!srq_attr_mask)
		return 0;
	return -nic_srq_arm(vsrq_of(srq)->nic, srq_attr->srq_limit);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	struct nic_srq_attr nic;
	const int rc = -nic_srq_query(vsrq_of(srq)->nic, &nic);

	if (!rc)
		*srq_attr = (struct ibv_srq_attr){.max_wr = nic.max_wr,
						  .max_sge = nic.max_sge,
						  .srq_limit = nic.limit};
	return rc;
}

/**
 * ibv_destroy_srq() - Destroy @srq, and wait until the program acknowledged every event
 * it got.
 */
int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct vsrq *s = vsrq_of(srq);

	if (s->obj.ctx) {
		const int rc = nic_srq_destroy(s->nic);

		if (rc)
			return -rc;
		tracked_del(&s->events);
		vobj_del(&s->obj);
	}
	tracked_wait(&srq->mutex, &srq->cond, &srq->events_completed,
		     s->events.async);
	vsrq_free(s);
	return 0;
}
