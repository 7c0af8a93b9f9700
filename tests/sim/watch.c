/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* watch.c: looks at every piece that a NIC writes to application memory, at the
 * moment it is written (oracle.h says why).
 */
#include "base/check.h"
#include "base/page.h"
#include "base/range.h"
#include "oracle.h"
#include "shared.h"

#include <inttypes.h>

bool flow_placed(struct flow *f, uint64_t seq, uint64_t *missing)
{
	for (uint64_t s = f->completed; s < seq; s++) {
		const struct op *op = op_at(f, s);

		if (!op)
			continue;
		if ((op_writes(op) && op->high < op->len) ||
		    (op->wr == WR_FETCH_ADD && !op->executed)) {
			*missing = s;
			return false;
		}
	}
	return true;
}

/* Could [off, off + len) of the target, now @bytes, have come from @op? */
static bool op_matches(const struct op *op, uint64_t off, const uint8_t *bytes,
		       uint64_t len)
{
	uint8_t want[PAGE_BYTES];

	if (!op_writes(op) || off < op->remote ||
	    !range_ok(off - op->remote, len, op->len))
		return false;
	op_data(op, off - op->remote, want, len);
	return memcmp(want, bytes, len) == 0;
}

/* In order of PSNs, or again what was already there. */
static bool op_accepts(struct flow *f, struct op *op, uint64_t off,
		       uint64_t len)
{
	const uint32_t was = op->high;
	uint64_t missing;

	if (off - op->remote > op->high || !flow_placed(f, op->seq, &missing))
		return false;
	op->high = MAX(op->high, (uint32_t)(off - op->remote + len));
	if (was < op->len && op->high == op->len)
		answer_check(f, op->seq, op->to);
	return true;
}

/* Who is overtaken between looking at a burst and taking it may receive another
 * one in its place (design D8): but only over what is not yet there of the
 * WRITE in progress, and not over its end.
 */
static bool wrong_guess(struct flow *f, uint64_t off, uint64_t len)
{
	uint64_t missing;

	if (f->w->cfg.preempt == 0)
		return false;
	for (uint64_t s = f->completed; s < f->posted; s++) {
		const struct op *op = op_at(f, s);

		if (op && op_writes(op) && off >= op->remote &&
		    range_ok(off - op->remote, len, op->len - 1) &&
		    off - op->remote >= op->high)
			return flow_placed(f, s, &missing);
	}
	return false;
}

static void watch_target(struct flow *f, uint64_t off, uint64_t len)
{
	const struct op *early = NULL;
	uint8_t bytes[PAGE_BYTES];
	uint64_t missing = 0;

	CHECK(len <= PAGE_BYTES);
	sim_peek(f->to->node->os, f->target + off, bytes, len);
	/* The latest that fits: bytes of different operations may be equal. */
	for (uint64_t s = f->posted; s > f->completed; s--) {
		struct op *op = op_at(f, s - 1);

		if (!op || !op_matches(op, off, bytes, len))
			continue;
		if (op_accepts(f, op, off, len))
			return;
		early = op;
	}
	if (!early && wrong_guess(f, off, len))
		return;
	if (!early)
		world_fail(
			f->w,
			"flow %u: wrote %" PRIu64
			" bytes at target + 0x%" PRIx64
			" that no outstanding operation carries (late, twice, "
			"or beyond a buffer)",
			f->index, len, off);
	if (flow_placed(f, early->seq, &missing))
		missing = early->seq;
	world_fail(f->w,
		   "flow %u: I3: bytes %" PRIu64 "+%" PRIu64
		   " of number %" PRIu64 " placed while number %" PRIu64
		   " is not (%u of %u bytes there)",
		   f->index, off - early->remote, len, early->seq, missing,
		   op_at(f, missing)->high, op_at(f, missing)->len);
}

bool in_parts(const struct part *part, unsigned parts, uint64_t addr,
	      uint64_t len)
{
	for (unsigned i = 0; i < parts; i++) {
		if (addr >= part[i].addr &&
		    range_ok(addr - part[i].addr, len, part[i].len))
			return true;
	}
	return false;
}

static void watch_local(struct flow *f, uint64_t addr, uint64_t len)
{
	const struct op *op =
		&f->op[(addr - f->local) / LOCAL_BYTES % FLOW_SLOTS];

	EXPECT(f->w,
	       op->used &&
		       (op->wr == WR_READ || op_atomic(op) ||
			op->kind == OPK_RELAY) &&
		       in_parts(op->part, op->parts, addr, len),
	       "flow %u: wrote %" PRIu64 " bytes at local + 0x%" PRIx64
	       ", where no READ is outstanding",
	       f->index, len, addr - f->local);
}

static void watch_recv(struct flow *f, uint64_t addr, uint64_t len)
{
	const struct recv *r =
		&f->recv[(addr - f->recv_mem) / LOCAL_BYTES % FLOW_SLOTS];

	EXPECT(f->w, r->posted && in_parts(r->part, r->parts, addr, len),
	       "flow %u: wrote %" PRIu64 " bytes at receives + 0x%" PRIx64
	       ", where no receive is posted",
	       f->index, len, addr - f->recv_mem);
	EXPECT(f->w,
	       r->number < f->expected &&
		       f->expect[r->number % EXPECTS].wr != WR_WRITE_IMM,
	       "flow %u: wrote to receive %" PRIu64
	       ", for which there is no message",
	       f->index, r->number);
}

static bool atomic_fits(const struct op *op, uint64_t off, uint64_t now,
			uint64_t then)
{
	if (!op->used || op->executed || op->remote != off)
		return false;
	if (op->wr == WR_FETCH_ADD)
		return then + op->operand == now;
	return op->wr == WR_CMP_SWP && then == op->compare &&
	       now == op->operand;
}

/* The one operation that could have made @now from @then, not done yet. Those of
 * a broken flow may have been flushed and are executed all the same.
 */
static struct op *atomic_find(struct flow *f, uint64_t off, uint64_t now,
			      uint64_t then)
{
	for (unsigned i = 0; i < FLOW_SLOTS; i++) {
		struct op *op = &f->op[i];

		if (atomic_fits(op, off, now, then))
			return op;
	}
	return NULL;
}

static void watch_cells(struct node *node, uint64_t addr, uint64_t len)
{
	const unsigned cell = (unsigned)(addr - node->cells) / 8;
	unsigned *changes = &node->cell_changes[cell];
	uint64_t now, then, missing;

	CHECK(len == 8 && cell < CELLS);
	then = node->cell_history[cell][*changes % CELL_HISTORY];
	sim_peek(node->os, addr, &now, 8);
	if (now == then)
		return; /* a CMP_SWP that found something else */
	for (unsigned i = 0; i < node->w->flows; i++) {
		struct flow *f = node->w->flow[i];
		struct op *op;

		if (f->to->node != node)
			continue;
		op = atomic_find(f, addr - node->cells, now, then);
		if (!op)
			continue;
		EXPECT(node->w, f->failed || flow_placed(f, op->seq, &missing),
		       "flow %u: I3: atomic number %" PRIu64
		       " executed before number %" PRIu64 " was placed",
		       f->index, op->seq, missing);
		op->executed = true;
		op->old = then;
		node->cell_history[cell][++*changes % CELL_HISTORY] = now;
		return;
	}
	world_fail(node->w,
		   "node %u: I5: cell %u changed from %" PRIx64 " to %" PRIx64
		   " by no outstanding atomic, or by one for the second time",
		   node->index, cell, then, now);
}

bool page_in_parts(const struct part *part, unsigned parts, uint64_t addr,
		   uint32_t len)
{
	for (unsigned i = 0; i < parts; i++) {
		const uint32_t n = MIN(part[i].len, len);

		if (addr >= part[i].addr &&
		    range_ok(addr - part[i].addr, PAGE_BYTES, n))
			return true;
		len -= n;
	}
	return false;
}

/* Is somebody about to write the whole page of the target, and has not begun? */
static bool drop_target(struct flow *f, uint64_t off)
{
	for (uint64_t s = f->completed; f->zeros && s < f->posted; s++) {
		const struct op *op = op_at(f, s);

		if (op && op_writes(op) && off >= op->remote &&
		    range_ok(off - op->remote, PAGE_BYTES, op->len) &&
		    op->high <= off - op->remote)
			return true;
	}
	return false;
}

static bool drop_local(struct flow *f, uint64_t addr)
{
	const struct op *op =
		&f->op[(addr - f->local) / LOCAL_BYTES % FLOW_SLOTS];

	return op->used && (op->wr == WR_READ || op->kind == OPK_RELAY) &&
	       page_in_parts(op->part, op->parts, addr, op->len);
}

static bool drop_recv(struct flow *f, uint64_t addr)
{
	const struct recv *r =
		&f->recv[(addr - f->recv_mem) / LOCAL_BYTES % FLOW_SLOTS];

	return r->posted && r->number < f->expected &&
	       page_in_parts(r->part, r->parts, addr,
			     f->expect[r->number % EXPECTS].len);
}

void watch_drop(void *arg, uint64_t addr)
{
	struct node *node = arg;

	for (unsigned i = 0; i < node->areas; i++) {
		const struct area *a = &node->area[i];
		struct flow *f = a->flow;

		if (addr < a->addr ||
		    !range_ok(addr - a->addr, PAGE_BYTES, a->bytes))
			continue;
		if (f && f->failed)
			return;
		if (a->kind == AREA_DATAGRAMS) {
			ud_wrote(node, addr, PAGE_BYTES);
			return;
		}
		if ((a->kind == AREA_TARGET &&
		     drop_target(f, addr - a->addr)) ||
		    (a->kind == AREA_LOCAL && drop_local(f, addr)) ||
		    (a->kind == AREA_RECV && drop_recv(f, addr)) ||
		    (a->kind == AREA_SHARED && shared_drops(node, addr)))
			return;
	}
	world_fail(node->w,
		   "node %u: dropped page 0x%" PRIx64
		   ", which nothing outstanding overwrites whole",
		   node->index, addr);
}

void watch_write(void *arg, uint64_t addr, uint64_t len)
{
	struct node *node = arg;
	struct world *w = node->w;

	for (unsigned i = 0; i < node->areas; i++) {
		struct area *a = &node->area[i];

		if (addr < a->addr || !range_ok(addr - a->addr, len, a->bytes))
			continue;
		upcall_wrote(node, a, addr, len);
		EXPECT(w, a->kind != AREA_DEAD,
		       "node %u: wrote %" PRIu64 " bytes at 0x%" PRIx64
		       " after its region or its QP was gone",
		       node->index, len, addr);
		EXPECT(w, !a->suspended,
		       "node %u: wrote %" PRIu64 " bytes at 0x%" PRIx64
		       " while its region was suspended",
		       node->index, len, addr);
		if (a->flow && a->flow->failed)
			return;
		if (a->flow && a->flow->to->node == node)
			count_check(a->flow);
		switch (a->kind) {
		case AREA_TARGET:
			EXPECT(w, addr - a->addr < TARGET_BYTES,
			       "flow %u: wrote to what is only read",
			       a->flow->index);
			watch_target(a->flow, addr - a->addr, len);
			return;
		case AREA_LOCAL:
			watch_local(a->flow, addr, len);
			return;
		case AREA_RECV:
			watch_recv(a->flow, addr, len);
			return;
		case AREA_SHARED:
			shared_wrote(node, addr, len);
			return;
		case AREA_DATAGRAMS:
			ud_wrote(node, addr, len);
			return;
		case AREA_SYNC:
			return;
		case AREA_CELLS:
			watch_cells(node, addr, len);
			return;
		default:
			CHECK(!"an area of some kind");
		}
	}
	world_fail(w,
		   "node %u: wrote %" PRIu64 " bytes at 0x%" PRIx64
		   ", which belongs to nobody",
		   node->index, len, addr);
}
