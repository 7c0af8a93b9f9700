/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* window.c: the one window of accepted PSNs (design §3). A packet that cannot
 * be placed now, because a page is missing or because packets before it are,
 * waits here in PSN order, its payload in a slot of the redirect pool.
 */
#include "xport/window.h"
#include "base/account.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/probe.h"
#include "mem/account.h"
#include "mem/pool.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/credit.h"
#include "xport/kept.h"
#include "xport/qp.h"
#include "xport/rx.h"
#include "xport/wqe.h"
#include "xport/xport.h"

#include <errno.h>

/* Does its peer pay for @pkt? */
static bool is_data(const struct window *w, const struct pkt *pkt)
{
	return w->peer && pkt->op & (OPF_SEND | OPF_WRITE);
}

void win_drop(struct xport *x, struct window *w, struct accepted *a)
{
	mem_account(x->mem, w->account, 0, ACCT_forgotten_bytes, a->bytes);
	list_del(&a->link);
	w->num--;
	if (a->slot == NO_SLOT) {
		w->bare_used &= ~(1U << (a - w->bare));
		return;
	}
	--*w->held;
	if (a->source)
		--*a->source;
	slot_put(x->mem, a->slot);
	if (!is_data(w, &a->pkt))
		return;
	if (--w->data)
		credit_fill(x, w->peer, false);
	else if (w->first)
		credit_first(x, w, false);
}

struct payload win_payload(const struct xport *x, struct accepted *a)
{
	return (struct payload){
		.at = a->slot == NO_SLOT ? NULL : slot_data(x->mem, a->slot),
		.kept = a,
	};
}

/* The histogram of how long slots were in use (I6). */
static enum counter residence(uint64_t ns)
{
	static const uint64_t limit[] = {100000, 1000000, 5000000};
	unsigned i = 0;

	while (i < ARRAY_SIZE(limit) && ns > limit[i])
		i++;
	return (enum counter)(CNT_slots_100us + i);
}

static_assert(CNT_slots_longer == CNT_slots_100us + 3, "residence()");

void win_copied(const struct rx_run *run, unsigned i)
{
	struct accepted *a = run->pkt[i].payload.kept;
	struct qp *qp = run->qp;
	unsigned k = i ? run->pkt[i - 1].move_end : 0;
	uint32_t bytes = 0;

	if (!a || a->slot == NO_SLOT)
		return;
	for (; k < run->pkt[i].move_end; k++)
		if (slot_has(qp->x->mem, a->slot, run->moves.m[k].nic))
			bytes += run->moves.m[k].len;
	mem_account(qp->x->mem, &qp->account, 0, ACCT_copied_bytes, bytes);
	a->bytes -= MIN(bytes, a->bytes);
}

void win_placed(struct xport *x, struct window *w, struct accepted *a)
{
	if (a->slot != NO_SLOT)
		count(x->cnt, residence(x->now - a->at_ns));
	win_drop(x, w, a);
}

void win_reset(struct xport *x, struct window *w, psn_t psn)
{
	list_for_each_safe(l, tmp, &w->waiting)
		win_drop(x, w, list_entry(l, struct accepted, link));
	w->head = w->next = psn;
}

/* The last waiting packet at or before @psn, or the list head. */
static struct list *find_before(const struct window *w, psn_t psn)
{
	struct list *l = w->waiting.prev;

	while (l != &w->waiting &&
	       psn_diff(list_entry(l, struct accepted, link)->pkt.psn, psn) > 0)
		l = l->prev;
	return l;
}

struct accepted *win_at(const struct window *w, psn_t psn)
{
	struct list *l;
	struct accepted *a;

	if (list_empty(&w->waiting))
		return NULL;
	a = list_entry(w->waiting.next, struct accepted, link);
	if (a->pkt.psn == psn)
		return a;
	l = find_before(w, psn);
	if (l == &w->waiting)
		return NULL;
	a = list_entry(l, struct accepted, link);
	return a->pkt.psn == psn ? a : NULL;
}

bool win_has(const struct window *w, psn_t psn)
{
	return win_at(w, psn) != NULL;
}

bool win_has_all(const struct window *w, psn_t from, psn_t to)
{
	int32_t missing = psn_diff(to, from);

	list_for_each(l, &w->waiting) {
		psn_t psn = list_entry(l, struct accepted, link)->pkt.psn;

		missing -= psn_diff(psn, from) >= 0 && psn_diff(psn, to) < 0;
	}
	return missing == 0;
}

/* A peer may hold SLOT_SHARE times what is free then: four fifths of the pool
 * when it is alone, and when it has them, others still find some (dynamic
 * thresholds: Choudhury and Hahne, 1998). So a peer that WRITEs to pages which
 * never come takes slots from itself only. */
uint32_t win_slots(const struct xport *x, uint32_t held)
{
	enum { SLOT_SHARE = 4 };
	const uint64_t most = SLOT_SHARE * (uint64_t)credit_rest(x);

	if (held >= most)
		return 0;
	/* with each one that it takes, one less is free */
	return (uint32_t)DIV_ROUND_UP(most - held, SLOT_SHARE + 1);
}

static uint32_t lent(const struct window *w)
{
	return w->peer ? credit_left(w->peer) : 0;
}

uint32_t win_room(const struct xport *x, const struct window *w)
{
	return win_slots(x, *w->held + lent(w)) + lent(w);
}

uint32_t win_spare(const struct xport *x, const struct window *w)
{
	return win_slots(x, 2 * (*w->held + lent(w)));
}

/* Is there a slot for @pkt? Of a QP's requests with payload one has a place, and
 * all others are what its peer was lent. */
static bool slot_for(struct xport *x, struct window *w, const struct pkt *pkt)
{
	const bool credited = is_data(w, pkt) && w->data && pkt->ext;

	if (credited && lent(w))
		return true;
	if (is_data(w, pkt) && !w->data && credit_first(x, w, true))
		return true;
	count_add(x->cnt, CNT_beyond_credit, credited);
	return win_slots(x, *w->held + lent(w));
}

int win_reserve(struct window *w, uint32_t bares)
{
	struct accepted *more;

	if (w->bare_used || bares <= w->bares)
		return 0;
	more = heap_array(bares, sizeof(*more));
	if (!more)
		return -ENOMEM;
	heap_free(w->bare);
	w->bare = more;
	w->bares = bares;
	return 0;
}

void win_release(struct window *w)
{
	CHECK(!w->bare_used);
	heap_free(w->bare);
	w->bare = NULL;
	w->bares = 0;
}

/* READs and atomics have no payload and each QP a place for as many as there may
 * be, which costs no slot. */
static struct accepted *bare(struct window *w, const struct pkt *pkt)
{
	unsigned i = 0;

	if (!(pkt->op & (OPF_READ | OPF_ATOMIC)))
		return NULL;
	while (i < w->bares && w->bare_used & 1U << i)
		i++;
	if (i == w->bares)
		return NULL;
	w->bare_used |= 1U << i;
	w->bare[i].slot = NO_SLOT;
	return &w->bare[i];
}

/* A place for @pkt, or NULL. */
static struct accepted *place_for(struct xport *x, struct window *w,
				  const struct pkt *pkt)
{
	struct accepted *a = bare(w, pkt);
	int slot;

	if (a)
		return a;
	if (!slot_for(x, w, pkt)) {
		x->pool.short_of = true;
		return NULL;
	}
	slot = slot_get(x->mem);
	a = &x->pool.accepted[slot];
	a->slot = slot;
	++*w->held;
	if (is_data(w, pkt) && w->data++)
		credit_fill(x, w->peer, true);
	return a;
}

int win_keep(struct xport *x, struct window *w, const struct pkt *pkt,
	     struct payload payload)
{
	struct list *before = find_before(w, pkt->psn);
	struct accepted *a = place_for(x, w, pkt);

	if (!a)
		return -EAGAIN;
	a->pkt = *pkt;
	a->at_ns = x->now;
	a->bytes = 0;
	a->source = NULL;
	a->recv.wqe = NULL;
	if (pkt->payload_len && !pkt->placed) {
		memcpy(slot_data(x->mem, a->slot), payload.at,
		       pkt->payload_len);
		a->bytes = pkt->payload_len;
		count_add(x->cnt, CNT_redirected_bytes, a->bytes);
		mem_account(x->mem, w->account, 0, ACCT_redirected_bytes,
			    a->bytes);
	}
	PROBE4(redirect, pkt->qpn, pkt->psn, a->bytes, a->slot);
	list_insert_after(before, &a->link);
	w->num++;
	return 0;
}

const struct pkt *win_keep_run(struct xport *x, struct window *w,
			       const struct rx_run *run, unsigned i)
{
	for (; i < run->num; i++) {
		const struct run_pkt *rp = &run->pkt[i];

		if (rp->payload.kept || !win_keep(x, w, rp->pkt, rp->payload))
			continue;
		win_truncate(x, w, rp->pkt->psn);
		return rp->pkt;
	}
	return NULL;
}

/* None that is kept reaches so far that this does not end (resp_rx()). */
void win_advance(struct window *w, uint32_t mtu)
{
	struct accepted *a;

	while ((a = win_at(w, w->next)))
		w->next = psn_add(w->next, request_psns(&a->pkt, mtu));
}

bool win_behind(const struct window *w)
{
	return w->num &&
	       psn_diff(list_entry(w->waiting.next, struct accepted, link)
				->pkt.psn,
			w->next) < 0;
}

uint64_t win_sack(const struct window *w)
{
	uint64_t sack = 0;

	for (struct list *l = w->waiting.prev; l != &w->waiting; l = l->prev) {
		const struct accepted *a = list_entry(l, struct accepted, link);
		int32_t d = psn_diff(a->pkt.psn, w->next);

		if (d <= 0)
			break;
		if (d <= 64)
			sack |= UINT64_C(1) << (d - 1);
	}
	return sack;
}

void win_truncate(struct xport *x, struct window *w, psn_t psn)
{
	while (!list_empty(&w->waiting)) {
		struct accepted *a = list_entry(w->waiting.prev,
						struct accepted, link);

		if (psn_diff(a->pkt.psn, psn) < 0)
			break;
		win_drop(x, w, a);
	}
	if (psn_diff(w->next, psn) > 0)
		w->next = psn;
}
