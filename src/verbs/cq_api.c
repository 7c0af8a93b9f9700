/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq_api.c: creating, resizing and destroying completion queues. Taking
 * completions is in poll.c, their events are in event.c.
 */
#include "verbs/cq_api.h"
#include "nic/completion.h"
#include "nic/nic.h"
#include "verbs/event.h"
#include "verbs/object.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* What completions can tell; there are no timestamps. */
	WC_FLAGS = IBV_WC_STANDARD_FLAGS,
	CQ_FLAGS = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
};

static int check_attr(struct ibv_context *context,
		      const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->cqe == 0 || attr->cqe > NIC_MAX_CQE ||
	    attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		return EINVAL;
	if (attr->channel && attr->channel->context != context)
		return EINVAL;
	if (attr->wc_flags & ~(uint64_t)WC_FLAGS ||
	    attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & ~(uint32_t)CQ_FLAGS)
		return EOPNOTSUPP;
	return 0;
}

static void channel_ref(struct vcq *q, int delta)
{
	pthread_mutex_lock(&q->obj.ctx->lock);
	if (q->base.channel)
		q->base.channel->refcnt += delta;
	pthread_mutex_unlock(&q->obj.ctx->lock);
}

static struct nic_channel *nic_channel_of(struct ibv_comp_channel *channel)
{
	return channel ? container_of(channel, struct vchannel, base)->nic
		       : NULL;
}

static void vcq_free(struct vcq *q)
{
	pthread_mutex_destroy(&q->ex_lock);
	pthread_mutex_destroy(&q->base.mutex);
	pthread_cond_destroy(&q->base.cond);
	free(q);
}

enum { CQ_ENTRIES_MIN = 16 };

/* A card makes them larger than asked for, and programs got used to that:
 * ib_send_lat -e asks for one, but leaves a completion there whenever an ACK is
 * later than the answer. Others fill what they are told (pyverbs, with fewer sends than
 * this): so the size that is told is the one that was asked for. */
static uint32_t cq_entries(uint32_t wanted)
{
	return MAX(wanted, CQ_ENTRIES_MIN);
}

static struct vcq *vcq_new(struct ibv_context *context,
			   const struct ibv_cq_init_attr_ex *attr)
{
	struct vcq *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->base.context = context;
	q->base.channel = attr->channel;
	q->base.cq_context = attr->cq_context;
	q->base.cqe = (int)attr->cqe;
	pthread_mutex_init(&q->base.mutex, NULL);
	pthread_cond_init(&q->base.cond, NULL);
	pthread_mutex_init(&q->ex_lock, NULL);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		q->single_threaded = attr->flags &
				     IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	return q;
}

static struct vcq *create_cq(struct ibv_context *context,
			     const struct ibv_cq_init_attr_ex *attr)
{
	struct vctx *ctx = vctx_of(context);
	int rc = check_attr(context, attr);
	struct vcq *q;

	if (!rc && in_child(context))
		rc = ENODEV;
	if (rc)
		return fail(rc);
	q = vcq_new(context, attr);
	if (!q)
		return fail(ENOMEM);
	rc = tracked_add(&q->events);
	if (rc)
		goto free_cq;
	rc = nic_cq_create(ctx->nic, ctx->async, nic_channel_of(attr->channel),
			   cq_entries(attr->cqe), q->events.cookie, &q->nic);
	if (rc)
		goto untrack;
	vobj_add(ctx, &q->obj, VOBJ_CQ);
	channel_ref(q, 1);
	return q;

untrack:
	tracked_del(&q->events);
free_cq:
	vcq_free(q);
	return fail(-rc);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
			     void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)MAX(cqe, 0),
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};
	struct vcq *q = create_cq(context, &attr);

	return q ? &q->base : NULL;
}

struct ibv_cq_ex *create_cq_ext(struct ibv_context *context,
				struct ibv_cq_init_attr_ex *attr)
{
	struct vcq *q = create_cq(context, attr);

	if (!q)
		return NULL;
	poll_api_init(q);
	return &q->ex;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int rc;

	if (cqe <= 0 || (uint32_t)cqe > NIC_MAX_CQE)
		return EINVAL;
	if (in_child(cq->context))
		return ENODEV;
	pthread_mutex_lock(&cq->mutex);
	rc = -nic_cq_resize(vcq_of(cq)->nic, cq_entries((uint32_t)cqe),
			    (uint32_t)cqe);
	if (!rc)
		cq->cqe = cqe;
	pthread_mutex_unlock(&cq->mutex);
	return rc;
}

/**
 * ibv_destroy_cq() - Destroy @cq, and wait until the program acknowledged every event it
 * got.
 */
int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct vcq *q = vcq_of(cq);

	if (q->obj.ctx) {
		int rc = nic_cq_destroy(q->nic);

		if (rc)
			return -rc;
		tracked_del(&q->events);
		channel_ref(q, -1);
		vobj_del(&q->obj);
	}
	tracked_wait(&cq->mutex, &cq->cond, &cq->comp_events_completed,
		     q->events.comp);
	tracked_wait(&cq->mutex, &cq->cond, &cq->async_events_completed,
		     q->events.async);
	vcq_free(q);
	return 0;
}
