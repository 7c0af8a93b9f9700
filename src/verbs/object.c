/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.c: protection domains, completion channels, and the
 * lists of everything a context owns. What lives longer than its context is
 * taken down by its close, as the kernel does when a process closes its device;
 * its memory stays until the program destroys it, because some destroy in the
 * wrong order.
 */
#include "verbs/object.h"
#include "nic/completion.h"
#include "nic/event_counter.h"
#include "nic/memory.h"
#include "nic/pair.h"
#include "nic/shared.h"
#include "nic/upcall_queue.h"
#include "verbs/event.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

void vobj_add(struct vctx *ctx, struct vobj *obj, enum vobj_kind kind)
{
	obj->ctx = ctx;
	pthread_mutex_lock(&ctx->lock);
	list_add_tail(&ctx->objs[kind], &obj->link);
	pthread_mutex_unlock(&ctx->lock);
}

void vobj_del(struct vobj *obj)
{
	pthread_mutex_lock(&obj->ctx->lock);
	list_del(&obj->link);
	pthread_mutex_unlock(&obj->ctx->lock);
}

/* What lies behind an object, gone for good. */
static void drop_nic_object(struct nic *nic, struct vobj *obj,
			    enum vobj_kind kind)
{
	switch (kind) {
	case VOBJ_QP:
		nic_qp_destroy(list_entry(obj, struct vqp, obj)->nic);
		tracked_del(&list_entry(obj, struct vqp, obj)->events);
		break;
	case VOBJ_SRQ:
		nic_srq_destroy(list_entry(obj, struct vsrq, obj)->nic);
		tracked_del(&list_entry(obj, struct vsrq, obj)->events);
		break;
	case VOBJ_COUNTER:
		nic_counter_close(
			list_entry(obj, struct nopin_counter, obj)->nic);
		break;
	case VOBJ_MR:
		nic_mr_dereg(nic,
			     list_entry(obj, struct vmr, obj)->base.handle);
		break;
	case VOBJ_UPCALLS:
		nic_upcalls_close(list_entry(obj, struct vupcalls, obj)->nic);
		break;
	case VOBJ_CQ:
		nic_cq_destroy(list_entry(obj, struct vcq, obj)->nic);
		tracked_del(&list_entry(obj, struct vcq, obj)->events);
		break;
	case VOBJ_CHANNEL:
		nic_channel_close(list_entry(obj, struct vchannel, obj)->nic);
		break;
	case VOBJ_PD:
		nic_pd_dealloc(nic,
			       list_entry(obj, struct vpd, obj)->base.handle);
		break;
	case VOBJ_AH: /* the program's memory alone */
	case VOBJ_NUM:
		break;
	}
}

void objects_close(struct vctx *ctx)
{
	for (int kind = 0; kind < VOBJ_NUM; kind++)
		list_for_each_safe(pos, next, &ctx->objs[kind]) {
			struct vobj *obj = list_entry(pos, struct vobj, link);

			drop_nic_object(ctx->nic, obj, (enum vobj_kind)kind);
			list_del(pos);
			obj->ctx = NULL;
		}
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct vctx *ctx = vctx_of(context);
	struct vpd *pd = calloc(1, sizeof(*pd));
	int rc;

	if (!pd)
		return fail(ENOMEM);
	rc = nic_pd_alloc(ctx->nic, &pd->base.handle);
	if (rc) {
		free(pd);
		return fail(-rc);
	}
	pd->base.context = context;
	vobj_add(ctx, &pd->obj, VOBJ_PD);
	return &pd->base;
}

static bool pd_has_ah(const struct ibv_pd *pd)
{
	struct vctx *ctx = vctx_of(pd->context);
	bool found = false;

	pthread_mutex_lock(&ctx->lock);
	list_for_each(l, &ctx->objs[VOBJ_AH])
		found |= list_entry(l, struct vah, obj.link)->base.pd == pd;
	pthread_mutex_unlock(&ctx->lock);
	return found;
}

int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct vpd *pd = container_of(ibpd, struct vpd, base);

	if (pd->obj.ctx) {
		int rc;

		if (in_child(ibpd->context))
			return ENODEV;
		if (pd_has_ah(ibpd))
			return EBUSY;
		rc = nic_pd_dealloc(pd->obj.ctx->nic, pd->base.handle);
		if (rc)
			return -rc;
		vobj_del(&pd->obj);
	}
	free(pd);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct vctx *ctx = vctx_of(context);
	struct vchannel *ch = calloc(1, sizeof(*ch));
	int rc;

	if (!ch)
		return fail(ENOMEM);
	rc = nic_channel_open(ctx->nic, &ch->nic, &ch->base.fd);
	if (rc) {
		free(ch);
		return fail(-rc);
	}
	ch->base.context = context;
	vobj_add(ctx, &ch->obj, VOBJ_CHANNEL);
	return &ch->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct vchannel *ch = container_of(channel, struct vchannel, base);

	if (ch->obj.ctx) {
		struct vctx *ctx = ch->obj.ctx;
		bool used;

		if (in_child(channel->context))
			return ENODEV;
		pthread_mutex_lock(&ctx->lock);
		used = ch->base.refcnt != 0;
		if (!used)
			list_del(&ch->obj.link);
		pthread_mutex_unlock(&ctx->lock);
		if (used)
			return EBUSY;
		nic_channel_close(ch->nic);
	}
	free(ch);
	return 0;
}
