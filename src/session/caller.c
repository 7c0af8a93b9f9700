/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* caller.c: calls of a user, one at a time. The answer whether the other end lives is the
 * connection's.
 */
#include "session/caller.h"
#include "base/range.h"

#include <errno.h>
#include <stdlib.h>

int caller_open(struct caller *c, struct ibv_qp *qp, size_t bytes)
{
	int rc = link_check(qp);

	c->link.qp = qp;
	if (!rc)
		rc = nopin_counter_create(qp->pd, NULL, NULL, &c->counter);
	if (!rc)
		rc = ext_counter_reserve(c->counter);
	if (rc)
		return rc;
	c->mail = aligned_alloc(LINE, bytes);
	if (!c->mail)
		return ENOMEM;
	memset(c->mail, 0, bytes);
	c->mr = ibv_reg_mr(qp->pd, c->mail, bytes,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return c->mr ? 0 : errno;
}

void caller_close(struct caller *c)
{
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (c->counter)
		nopin_counter_destroy(c->counter);
	free(c->mail);
}

struct nopin_card caller_card(const struct caller *c, const void *mail)
{
	return (struct nopin_card){.mail = (uintptr_t)mail,
				   .mail_rkey = c->mr->rkey,
				   .counter = nopin_counter_id(c->counter)};
}

int caller_enter(struct caller *c)
{
	if (in_child(c->link.qp->context))
		return ENODEV;
	return __atomic_exchange_n(&c->busy, true, __ATOMIC_ACQUIRE) ? EBUSY
								     : 0;
}

void caller_leave(struct caller *c)
{
	__atomic_store_n(&c->busy, false, __ATOMIC_RELEASE);
}

struct patience caller_patience(const struct caller *c, uint64_t timeout_ns,
				enum nopin_wait how)
{
	return (struct patience){sat_add(caller_now(c), timeout_ns), how};
}

int caller_lost(struct caller *c)
{
	link_fail(&c->link);
	return ENOTCONN;
}

int caller_ask(struct caller *c, const void *from, uint32_t len, uint64_t to)
{
	if (link_write(&c->link, from, len, c->mr->lkey, to, c->peer.mail_rkey,
		       c->peer.counter) ||
	    link_write(&c->link, NULL, 0, 0, 0, 0, c->peer.bell))
		return caller_lost(c);
	return 0;
}

int caller_wait(struct caller *c, uint64_t target, const struct patience *p,
		uint64_t most_ns)
{
	const uint64_t now = caller_now(c);
	int rc = ETIMEDOUT;

	if (now < p->until_ns)
		rc = nopin_counter_wait(c->counter, target,
					MIN(p->until_ns - now, most_ns),
					p->how);
	if (rc != ETIMEDOUT)
		return rc;
	rc = link_probe(&c->link);
	return rc || now < p->until_ns ? rc : ETIMEDOUT;
}
