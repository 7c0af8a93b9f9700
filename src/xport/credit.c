/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* credit.c: how much a nopin peer may have redirected. Each QP may have one request
 * packet that is not placed yet; what goes beyond that takes of its peer's quota,
 * from when it is sent until it is placed, however often it is lost, comes twice
 * or is sent again. So what waits in slots never exceeds the quotas, whatever the
 * network does; and what was lent is left free for it (win_slots()). So is an
 * eighth of the pool for the one packet of each QP. READs and atomics are not
 * counted: they have no payload and take no slot (window.c). A QP that ends gives
 * all back at once, though what it sent may fill slots for a while yet
 * (CNT_quota_left).
 *
 * Each quota has a number, and newer ones count. A larger one is lent when it is
 * said. A smaller one is believed when the peer echoed its number, which says that
 * it keeps to it, or when the peer has long been silent. HELLO and its answer carry
 * both (nic/peers.c); 0 is the number of none.
 */
#include "xport/credit.h"
#include "base/check.h"
#include "base/counters.h"
#include "mem/pool.h"
#include "mem/use.h"
#include "xport/kept.h"
#include "xport/kick.h"
#include "xport/lend.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/xport.h"

/* --- the receiver lends ----------------------------------------------------- */

/* A power of two of shares: one more peer finds its own unclaimed, and the others
 * are told that theirs shrank only when the number doubles. */
uint32_t credit_shares(const struct xport *x)
{
	uint32_t shares = 1;

	while (shares < x->peers)
		shares *= 2;
	return shares;
}

/* Of the slots that are for first packets, and may hold nothing else. */
static uint32_t firsts_left(const struct xport *x)
{
	const uint32_t all = x->pool.slots / 8;

	return all > x->pool.firsts ? all - x->pool.firsts : 0;
}

uint32_t credit_rest(const struct xport *x)
{
	const uint32_t unlent = slots_free(x->mem) - x->pool.lent_left;

	return unlent - MIN(unlent, firsts_left(x));
}

/* A peer that has one already leaves the others a fifth of them, as in win_slots(),
 * and one at least. */
static bool first_allowed(const struct xport *x, const struct peer *p)
{
	enum { FIRST_SHARE = 4 };
	const uint32_t left = firsts_left(x);

	if (slots_free(x->mem) <= x->pool.lent_left || !left)
		return false;
	return !p->lend.firsts ||
	       p->lend.firsts + 1 <= FIRST_SHARE * (left - 1);
}

bool credit_first(struct xport *x, struct window *w, bool on)
{
	struct peer *p = w->peer;

	if (on && !first_allowed(x, p))
		return false;
	w->first = on;
	x->pool.firsts += on ? 1 : -1;
	p->lend.firsts += on ? 1 : -1;
	return true;
}

/* All shares are half of the pool, and what is lent three quarters at most, while
 * shares shrink: the rest is for what is not lent, first packets, those of standard
 * peers, datagrams, READ responses. */
static uint32_t share(const struct xport *x)
{
	return x->pool.slots / 2 / credit_shares(x);
}

static uint32_t lendable(const struct xport *x)
{
	const uint32_t most = x->pool.slots / 4 * 3;

	return MIN(most > x->pool.lent ? most - x->pool.lent : 0,
		   credit_rest(x));
}

uint32_t credit_left(const struct peer *p)
{
	return p->lend.lent > p->lend.filled ? p->lend.lent - p->lend.filled
					     : 0;
}

static void set(struct xport *x, struct peer *p, uint32_t lent, uint32_t filled)
{
	x->pool.lent_left -= credit_left(p);
	x->pool.lent += lent - p->lend.lent;
	p->lend.lent = lent;
	p->lend.filled = filled;
	x->pool.lent_left += credit_left(p);
	CHECK(x->pool.lent_left <= slots_free(x->mem));
}

void credit_fill(struct xport *x, struct peer *p, bool more)
{
	set(x, p, p->lend.lent, more ? p->lend.filled + 1 : p->lend.filled - 1);
	x->pool.short_of |= more && !credit_left(p);
}

bool credit_lend(struct xport *x, struct peer *p)
{
	const uint32_t most = p->kind == PEER_NOPIN ? share(x) : 0;
	/* a fifth of it is for the peer that comes next */
	const uint32_t room = lendable(x) * 4 / 5;
	const uint32_t told = MIN(most, MAX(p->lend.told, p->lend.lent + room));

	p->lend.wants = told < most;
	if (told == p->lend.told)
		return false;
	p->lend.told = told;
	x->pool.serial += x->pool.serial == UINT32_MAX ? 2 : 1;
	p->lend.serial = x->pool.serial;
	set(x, p, MAX(p->lend.lent, told), p->lend.filled);
	return true;
}

void credit_echoed(struct xport *x, struct peer *p, uint32_t serial)
{
	if (serial != p->lend.serial)
		return;
	p->lend.echoed = serial;
	set(x, p, p->lend.told, p->lend.filled);
}

void credit_silent(struct xport *x, struct peer *p)
{
	set(x, p, p->lend.told, p->lend.filled);
}

bool credit_settled(const struct peer *p)
{
	return p->lend.echoed == p->lend.serial && !p->lend.wants;
}

bool credit_bound(struct xport *x, uint32_t slots)
{
	const bool news = x->pool.slots != slots;

	x->pool.slots = slots;
	slots_bound(x->mem, MAX(slots, slots_used(x->mem) + x->pool.lent_left));
	return news;
}

void credit_end(struct xport *x, struct peer *p)
{
	CHECK(!p->lend.filled && !p->lend.firsts && !p->quota.out);
	set(x, p, 0, 0);
}

/* --- the requester borrows --------------------------------------------------- */

void credit_take(struct peer *p, uint32_t slots, uint32_t serial)
{
	if (!serial ||
	    (p->quota.serial && (int32_t)(serial - p->quota.serial) <= 0))
		return;
	p->quota.slots = slots;
	p->quota.serial = serial;
	qp_kick_all(&p->stalled);
}

void credit_of(struct peer *p, uint32_t nonce)
{
	if (p->quota.of == nonce)
		return;
	p->quota.of = nonce;
	p->quota.slots = p->quota.serial = p->quota.kept = 0;
	p->lend.echoed = p->lend.serial - 1;
}

uint32_t credit_echo(struct peer *p)
{
	if (p->quota.out <= p->quota.slots)
		p->quota.kept = p->quota.serial;
	return p->quota.kept;
}

static uint32_t beyond_first(uint32_t packets)
{
	return packets ? packets - 1 : 0;
}

/* Four times what is left then: a QP whose pages do not come leaves some to the
 * others (dynamic thresholds, as in win_slots()). */
bool credit_allows(const struct qp *qp, uint32_t more)
{
	enum { QP_SHARE = 4 };
	const struct peer *p = qp->peer;
	const uint32_t out = qp->req.charge.out + more;
	const uint32_t all = p->quota.out + beyond_first(out) -
			     beyond_first(qp->req.charge.out);

	return out <= 1 ||
	       (all <= p->quota.slots &&
		out <= QP_SHARE * (uint64_t)(p->quota.slots - all) + 1);
}

/* Packets to a peer that was taken for a standard one did not ask how much there
 * is. Until it fits into the quota only the first of each QP is sent again. */
bool credit_allows_again(struct qp *qp)
{
	struct peer *p = qp->peer;

	p->quota.unasked = p->quota.unasked && p->quota.out > p->quota.slots;
	return !p->quota.unasked || qp->req.psn.snd == qp->req.psn.una;
}

void credit_sent(struct qp *qp, uint32_t packets)
{
	qp->peer->quota.out += beyond_first(qp->req.charge.out + packets) -
			       beyond_first(qp->req.charge.out);
	qp->req.charge.out += packets;
}

void credit_placed(struct qp *qp, uint32_t packets)
{
	struct req *r = &qp->req;

	CHECK(packets <= r->charge.out);
	if (!packets)
		return;
	qp->peer->quota.out -= beyond_first(r->charge.out) -
			       beyond_first(r->charge.out - packets);
	r->charge.out -= packets;
	qp_kick_all(&qp->peer->stalled);
}

void credit_leave(struct qp *qp)
{
	count_add(qp->x->cnt, CNT_quota_left, beyond_first(qp->req.charge.out));
	credit_placed(qp, qp->req.charge.out);
}

void credit_check(const struct qp *qp)
{
	const struct req *r = &qp->req;

	CHECK((int32_t)r->charge.out <= psn_diff(r->psn.max, r->psn.una));
	CHECK(beyond_first(r->charge.out) <=
	      (qp->peer ? qp->peer->quota.out : 0));
}
