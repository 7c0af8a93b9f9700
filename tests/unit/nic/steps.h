/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steps.h: two connected NICs that are manual: their steps are done in an order
 * that the test chooses, so a thread that is slow is a step that is not called.
 */
#ifndef NOPIN_TESTS_UNIT_NIC_STEPS_H
#define NOPIN_TESTS_UNIT_NIC_STEPS_H

#include "base/page.h"
#include "mem/pool.h"
#include "mem/spt.h"
#include "nic/completion.h"
#include "nic/engine.h"
#include "nic/holder.h"
#include "nic/inlet.h"
#include "nic/peers.h"
#include "nic/refresh.h"
#include "nic/step.h"
#include "os/wait.h"
#include "side.h"
#include "xport/lend.h"
#include "xport/peer.h"

#include <errno.h>

enum { LEN = 12 * 4096, TRIES = 2000 };

/* All pages of @s are ready. */
static inline void know_pages(struct side *s)
{
	nic_tick(s->nic);
	refresh_pages(s->nic);
	spt_map(s->nic->mem, (uintptr_t)s->buf >> PAGE_SHIFT, BUF >> PAGE_SHIFT,
		true, os_now(s->nic->os));
}

/* The pool is used up, and nobody was lent any of it. Return: how many to give
 * back. */
static inline unsigned take_slots(struct nic *nic, int *slot, unsigned max)
{
	unsigned n = 0;

	list_for_each(l, &nic->peers.all) {
		list_entry(l, struct peer, link)->lend.lent = 0;
	}
	nic->x.pool.lent_left = 0;
	while (n < max && slots_free(nic->mem))
		slot[n++] = slot_get(nic->mem);
	return n;
}

static inline void give_slots(struct nic *nic, const int *slot, unsigned n)
{
	while (n)
		slot_put(nic->mem, slot[--n]);
}

static inline void plan_move_commit(struct nic *nic, struct step *s)
{
	engine_move(nic, s);
	engine_commit(nic, s, os_now(nic->os));
}

/* Its send says that the socket is full. */
static inline void full(struct nic *nic, struct step *s)
{
	s->error = -EAGAIN;
	engine_commit(nic, s, os_now(nic->os));
}

static inline void finish_receive(struct nic *nic, struct step *s)
{
	while (engine_rx_plan(nic, s, os_now(nic->os)))
		plan_move_commit(nic, s);
}

static inline void send_all(struct side *s)
{
	struct step *step = &s->nic->steps.v[1];

	while (engine_plan(s->nic, step, true, os_now(s->nic->os)))
		plan_move_commit(s->nic, step);
}

/* There is nothing to do: until a packet comes, or a pager had time to run. */
static inline void idle(struct nic *nic)
{
	os_wait(nic->os, OS_WAIT_PACKETS, os_now(nic->os) + 100000, -1);
}

/* Whatever comes meanwhile, which ends a wait. */
static inline void pass_ns(struct nic *nic, uint64_t ns)
{
	const uint64_t until = os_now(nic->os) + ns;

	while (os_now(nic->os) < until)
		os_wait(nic->os, OS_WAIT_TIMER, until, -1);
}

/* All that @s can do now, but what another step is at. */
static inline void pump(struct side *s)
{
	struct step *step = &s->nic->steps.v[1];

	(void)roce_turn(s->nic, 0);
	while (inlet_receive(s->nic, step))
		finish_receive(s->nic, step);
	send_all(s);
}

/* What comes to UDP port 4791 reaches both. */
static inline void settle_roce(void)
{
	for (;;) {
		unsigned served = 0;

		for (int k = 0; k < SIDES; k++) {
			struct nic *nic = side[k].nic;

			pump(&side[k]);
			nic_tick(nic);
			nic->roce.try_ns = 0;
			roce_claim(nic);
			served += side_served(&side[k]);
		}
		if (served == SIDES)
			return;
		idle(side[0].nic);
	}
}

static inline struct cqe wait_cqe(struct side *s)
{
	struct cqe e;

	for (;;) {
		for (int k = 0; k < SIDES; k++)
			pump(&side[k]);
		if (nic_cq_poll(s->cq, 1, &e) == 1)
			return e;
		os_wait(s->nic->os, OS_WAIT_PACKETS,
			os_now(s->nic->os) + 1000000, -1);
	}
}

/* From @off on of our buffer, to or from the second half of the peer's. */
static inline void post_at(struct side *s, enum wr_op op, uint64_t off,
			   uint32_t len)
{
	const struct side *to = &side[s == side];

	side_post(s,
		  (struct wqe){.op = op,
			       .raddr = (uintptr_t)to->buf + BUF / 2 + off,
			       .rkey = to->key},
		  s->buf + off, len);
}

static inline void post(struct side *s, enum wr_op op, uint32_t len)
{
	post_at(s, op, 0, len);
}

/* A WRITE, a READ of the page at 4096 and another WRITE are on their way to
 * side 1, which knows its pages. */
static inline void send_read_between_writes(void)
{
	post_at(&side[0], WR_WRITE, 0, 64);
	post_at(&side[0], WR_READ, 4096, 64);
	post_at(&side[0], WR_WRITE, 8192, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	side[1].nic->rx.peek = 0;
}

/* Side 1 receives what is there, and says nothing yet. */
static inline void receive_silently(void)
{
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps.v[1];

	pump(&side[0]); /* its NIC may be who forwards */
	if (inlet_receive(nic, step))
		finish_receive(nic, step);
	else
		idle(nic);
}

/* Until @seen of side 1 is set. */
#define RECEIVE_UNTIL(seen)                                                    \
	do {                                                                   \
		side[1].nic->rx.peek = 0;                                      \
		for (int i = 0; i < TRIES && !(seen); i++)                     \
			receive_silently();                                    \
		assert_true(seen);                                             \
	} while (0)

/* A WRITE with a key that there is not. */
static inline void forbidden_write(void)
{
	side_post(&side[0],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)side[1].buf,
			       .rkey = side[1].key ^ 0x100},
		  side[0].buf, 8);
}

/* The page of side 1 that a READ at 4096 asks for is missing. */
static inline void lose_read_page(void)
{
	spt_unmap(side[1].nic->mem,
		  page_of((uintptr_t)side[1].buf + BUF / 2 + 4096), 1);
}

/* All is said about quotas: no packet of that comes between those of a test. */
static inline void settle_quotas(void)
{
	for (int i = 0; i < TRIES; i++) {
		bool settled = true;

		for (int k = 0; k < SIDES; k++) {
			nic_tick(side[k].nic);
			peers_timers(side[k].nic);
			settled &= credit_settled(side[k].qp->qp.peer);
		}
		for (int k = 0; k < 2 * SIDES; k++)
			pump(&side[k % SIDES]);
		if (settled)
			return;
		idle(side[0].nic);
	}
	fail_msg("a quota is not settled");
}

/* Connected, and the peers know each other. */
static inline int open_sides(bool standard)
{
	const struct nic_config cfg = {.os = {.addr = "lo", .pagers = 1},
				       .entries = 1 << 16,
				       .scatter = true,
				       .manual = true,
				       .standard = standard,
				       .pool_bytes = 1 << 20,
				       .strategies = 1u << STRATEGY_REDIRECT};

	sides_open(&cfg);
	if (standard)
		settle_roce();
	for (int i = 0; i < 2 * SIDES; i++) {
		post(&side[i & 1], i & 2 ? WR_READ : WR_WRITE, LEN);
		assert_int_equal(wait_cqe(&side[i & 1]).status, WC_SUCCESS);
	}
	if (!standard)
		settle_quotas();
	return 0;
}

static inline int setup(void **state)
{
	(void)state;
	return open_sides(false);
}

static inline int setup_standard(void **state)
{
	(void)state;
	return open_sides(true);
}

#endif
