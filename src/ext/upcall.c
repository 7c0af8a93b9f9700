/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall.c: regions with a minimum, a weight and upcalls, and taking these. */
#include "ext/ext.h"
#include "nic/memory.h"
#include "nic/upcall_queue.h"
#include "verbs/mr_api.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define SAME(ours, theirs)                                                     \
	static_assert(0 + (ours) == 0 + (theirs), "the ABI's numbers")

SAME(UPCALL_EVERYTHING, NOPIN_UPCALL_EVERYTHING);
SAME(UPCALL_REPLACED, NOPIN_UPCALL_REPLACED);
SAME(UPCALL_EVICTED, NOPIN_UPCALL_EVICTED);
SAME(UPCALL_PROTECTED, NOPIN_UPCALL_PROTECTED);
SAME(UPCALL_SUSPENDED, NOPIN_UPCALL_SUSPENDED);
SAME(UPCALL_MOVED, NOPIN_UPCALL_MOVED);
SAME(UPCALL_RESUMED, NOPIN_UPCALL_RESUMED);
SAME(UPCALL_NUM, NOPIN_UPCALL_RESUMED + 1);

int nopin_upcalls_open(struct ibv_context *context, uint32_t events,
		       struct nopin_upcalls **out)
{
	struct vctx *ctx = vctx_of(context);
	struct nopin_upcalls *u;
	int rc;

	if (in_child(context))
		return ENODEV;
	u = calloc(1, sizeof(*u));
	if (!u)
		return ENOMEM;
	rc = nic_upcalls_open(ctx->nic, events, &u->v.nic, &u->v.fd);
	if (rc) {
		free(u);
		return -rc;
	}
	vobj_add(ctx, &u->v.obj, VOBJ_UPCALLS);
	*out = u;
	return 0;
}

int nopin_upcalls_close(struct nopin_upcalls *queue)
{
	if (queue->v.obj.ctx) {
		int rc = nic_upcalls_close(queue->v.nic);

		if (rc)
			return -rc;
		vobj_del(&queue->v.obj);
	}
	free(queue);
	return 0;
}

int nopin_upcalls_fd(const struct nopin_upcalls *queue)
{
	return queue->v.fd;
}

static struct nopin_upcall upcall_of(const struct upcall *u)
{
	return (struct nopin_upcall){
		.mr = u->cookie,
		.addr = u->iova,
		.length = u->length,
		.at_ns = u->at_ns,
		.reason = u->reason,
		.flags = u->below ? NOPIN_UPCALL_BELOW_MINIMUM : 0,
	};
}

static int upcall_get(struct nopin_upcalls *queue, struct nopin_upcall *out)
{
	struct upcall got;
	int rc;

	if (!queue->v.obj.ctx)
		return ENODEV; /* its device was closed */
	rc = nic_upcalls_get(queue->v.nic, &got);
	if (!rc)
		*out = upcall_of(&got);
	return -rc;
}

bool ext_upcalls_try(struct nopin_upcalls *queue, struct nopin_upcall *out)
{
	struct upcall got;
	const bool found = nic_upcalls_try(queue->v.nic, &got);

	if (found)
		*out = upcall_of(&got);
	return found;
}

void ext_upcalls_count(struct nopin_upcalls *queue, struct nopin_counter *c)
{
	nic_upcalls_count(queue->v.nic, c->nic);
}

int nopin_upcalls_get(struct nopin_upcalls *queue, struct nopin_upcall *out,
		      size_t size)
{
	struct nopin_upcall ev;
	int rc;

	if (!size || size > sizeof(ev))
		return EINVAL;
	rc = upcall_get(queue, &ev);
	if (!rc)
		memcpy(out, &ev, size);
	return rc;
}

int nopin_upcalls_run(struct nopin_upcalls *queue, nopin_upcall_fn fn,
		      void *arg)
{
	struct nopin_upcall ev;
	int rc;

	do
		rc = upcall_get(queue, &ev);
	while (!rc && !fn(&ev, arg));
	return rc;
}

struct ibv_mr *nopin_reg(struct ibv_pd *pd, const struct nopin_reg_attr *attr,
			 size_t size)
{
	struct nopin_reg_attr a = {.weight = 0};
	struct mr_attr more = {.minimum = 0};

	if (!size || size > sizeof(a))
		return fail(EINVAL);
	memcpy(&a, attr, size);
	if (a.reserved ||
	    (a.upcalls && a.upcalls->v.obj.ctx != vctx_of(pd->context)))
		return fail(EINVAL);
	more.minimum = a.minimum;
	more.weight = a.weight;
	if (a.upcalls)
		more.upcalls = nic_upcalls_queue(a.upcalls->v.nic);
	return reg_mr(pd, a.addr, a.length,
		      a.access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)a.addr,
		      a.access, more);
}
