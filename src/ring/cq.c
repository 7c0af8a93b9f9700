/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.c: completion queues (IBTA 11.4.2): the engine appends, the program takes.
 * Events are left to nic/: a push only says that one is due.
 *
 * Theory of operation: arming
 *
 * A program arms, polls once more, and sleeps if it found nothing. So of an arm
 * and a push that race, either that poll must see the completion, or the push
 * must see the arm. Both sides write one word and then read the other's: the
 * poller writes armed and reads prod, the engine writes prod and reads armed.
 * A release store and an acquire load do not order these: both could read the
 * old value. Therefore both touch armed with a read-modify-write:
 *
 *     engine: ring[prod] = e; prod++;  A = fetch_or(armed, 0)
 *     poller: B = fetch_or(armed, how);  read prod
 *
 * The two have an order. B before A: A returns the arm, the push fires. A
 * before B: B synchronises with A, so the store of prod happens before the read
 * of it, and the poll sees the completion. A push that happens after the arm is
 * the first case. An arm between A and the exchange that disarms is swallowed,
 * but then the event goes out after that arm, and the poll behind it sees the
 * completion.
 *
 * armed is a set of bits, so that arming again never makes an arm weaker:
 * solicited after any stays any (IBTA 11.4.2.2).
 */
#include "ring/cq.h"
#include "base/check.h"
#include "base/heap.h"
#include "ring/cqe.h"
#include "ring/order.h"

#include <errno.h>
#include <stdlib.h>

/* So many entries can be told apart by 32-bit indices, with room to spare. */
enum { ENTRIES_MAX = 1 << 28 };

int cq_init(struct cq *cq, uint32_t entries)
{
	struct cqe *ring;
	uint32_t slots = 1;

	if (entries > ENTRIES_MAX)
		return -ENOMEM;
	while (slots <= entries)
		slots *= 2;
	/* large queues stay untouched until they are used */
	ring = heap_array(slots, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	*cq = (struct cq){
		.ring = ring,
		.slots = slots,
		.limit = entries,
		.bytes = slots * sizeof(*ring),
	};
	list_init(&cq->link);
	return 0;
}

void cq_fini(struct cq *cq)
{
	heap_free(cq->ring);
	*cq = (struct cq){0};
	list_init(&cq->link);
}

static struct cqe *cq_slot(const struct cq *cq, uint32_t index)
{
	return &cq->ring[index & (cq->slots - 1)];
}

bool cq_empty(const struct cq *cq)
{
	/* pairs with cq_push() and cq_forget() */
	const uint32_t prod = load_acquire(&cq->prod);

	/* Another poller may be taking; then the answer is old at once. */
	return prod == __atomic_load_n(&cq->cons, __ATOMIC_RELAXED);
}

unsigned cq_take(struct cq *cq, unsigned n, struct cqe *out)
{
	/* pairs with cq_push(): the entries are complete */
	const uint32_t ready = load_acquire(&cq->prod) - cq->cons;

	n = MIN(n, ready);
	for (unsigned i = 0; i < n; i++)
		out[i] = *cq_slot(cq, cq->cons + i);
	/* pairs with cq_push(): we are done with the slots */
	if (n)
		store_release(&cq->cons, cq->cons + n);
	return n;
}

/* Does a completion that was just published meet an arm? Disarms if so. */
static bool fires(struct cq *cq, const struct cqe *e)
{
	/* pairs with cq_arm(), see above; armed is only read */
	const uint32_t armed = or_acq_rel(&cq->armed, 0);
	const bool solicited = e->solicited || e->status != WC_SUCCESS;

	if (!(armed & CQ_ARMED_ANY) &&
	    !(armed & CQ_ARMED_SOLICITED && solicited))
		return false;
	xchg_acq_rel(&cq->armed, CQ_UNARMED);
	return true;
}

int cq_push(struct cq *cq, const struct cqe *e)
{
	/* pairs with cq_take(): the poller has read what we overwrite */
	if (cq->overflow || cq->prod - load_acquire(&cq->cons) >= cq->limit) {
		cq->overflow = true;
		return -ENOSPC;
	}
	*cq_slot(cq, cq->prod) = *e;
	/* pairs with cq_take() and cq_empty() */
	store_release(&cq->prod, cq->prod + 1);
	if (fires(cq, e))
		cq->fired = true;
	return 0;
}

void cq_swap(struct cq *cq, struct cq *other)
{
	struct cq was = *cq;

	cq->ring = other->ring;
	cq->slots = other->slots;
	cq->limit = other->limit;
	cq->bytes = other->bytes;
	store_release(&cq->cons, other->cons);
	/* pairs with cq_empty(), which may be called without the lock */
	store_release(&cq->prod, other->prod);
	other->ring = was.ring;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	/* pairs with fires(), see above */
	or_acq_rel(&cq->armed,
		   solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY);
}

void cq_forget(struct cq *cq, uint32_t qpn)
{
	/* The poller is kept out by a lock, which orders its accesses. */
	uint32_t to = cq->cons;

	for (uint32_t from = cq->cons; from != cq->prod; from++)
		if (cq_slot(cq, from)->qpn != qpn)
			*cq_slot(cq, to++) = *cq_slot(cq, from);
	/* pairs with cq_empty(), which may be called without that lock */
	store_release(&cq->prod, to);
}
