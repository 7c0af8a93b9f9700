/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counter.c: counters that peers raise, and the WRITEs that do. */
#include "ext/ext.h"
#include "nic/event_counter.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "verbs/post.h"

#include <errno.h>
#include <stdlib.h>

static_assert(0 + NIC_WAIT_SPIN == 0 + NOPIN_WAIT_SPIN &&
		      0 + NIC_WAIT_BLOCK == 0 + NOPIN_WAIT_BLOCK &&
		      0 + NIC_WAIT_FUTEX == 0 + NOPIN_WAIT_FUTEX,
	      "the ABI's numbers");

int nopin_counter_create(struct ibv_pd *pd, nopin_handler handler, void *arg,
			 struct nopin_counter **counter)
{
	struct vctx *ctx = vctx_of(pd->context);
	struct nopin_counter *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return ENOMEM;
	rc = nic_counter_create(ctx->nic, pd->handle, handler, arg, &c->nic);
	if (rc) {
		free(c);
		return -rc;
	}
	vobj_add(ctx, &c->obj, VOBJ_COUNTER);
	*counter = c;
	return 0;
}

int nopin_counter_destroy(struct nopin_counter *c)
{
	int rc = nic_counter_free(c->nic);

	if (rc)
		return -rc;
	if (c->obj.ctx)
		vobj_del(&c->obj);
	free(c);
	return 0;
}

uint32_t nopin_counter_id(const struct nopin_counter *c)
{
	return nic_counter_id(c->nic);
}

const uint64_t *nopin_counter_word(const struct nopin_counter *c)
{
	return nic_counter_word(c->nic);
}

int nopin_counter_poll(struct nopin_counter *c, uint64_t *value)
{
	return -nic_counter_poll(c->nic, value);
}

int nopin_counter_fd(struct nopin_counter *c, int *fd)
{
	return -nic_counter_fd(c->nic, fd);
}

int nopin_counter_wait(struct nopin_counter *c, uint64_t target,
		       uint64_t timeout_ns, enum nopin_wait how)
{
	return -nic_counter_wait(c->nic, target, timeout_ns,
				 (enum nic_wait)how);
}

int nopin_counter_run(struct nopin_counter *c, nopin_handler handler, void *arg)
{
	return -nic_counter_run(c->nic, handler, arg);
}

int ext_counter_reserve(struct nopin_counter *c)
{
	return -nic_counter_reserve(c->nic);
}

void ext_counter_raise(struct nopin_counter *c)
{
	nic_counter_raise(c->nic);
}

uint64_t ext_now(struct ibv_context *context)
{
	return nic_now(vctx_of(context)->nic);
}

int nopin_qp_notifies(struct ibv_qp *qp)
{
	return -nic_qp_notifies(vqp_of(qp)->nic);
}

int nopin_qp_set_counting(struct ibv_qp *qp, int on)
{
	return -nic_qp_set_counting(vqp_of(qp)->nic, on != 0);
}

int nopin_post_write_notify(struct ibv_qp *qp, struct ibv_send_wr *wr,
			    uint32_t id, struct ibv_send_wr **bad_wr)
{
	return post_write_notify(qp, wr, id, bad_wr);
}
