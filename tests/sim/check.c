/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* check.c: completions, and what must be true when they come. */
#include "base/check.h"
#include "base/page.h"
#include "base/range.h"
#include "oracle.h"
#include "shared.h"

#include <inttypes.h>
#include <stdlib.h>

void parts_read(struct node *node, const struct part *part, unsigned parts,
		uint8_t *out, uint32_t len)
{
	for (unsigned i = 0; i < parts && len > 0; i++) {
		const uint32_t n = MIN(len, part[i].len);

		EXPECT(node->w, sim_peek(node->os, part[i].addr, out, n) == 0,
		       "local memory is gone");
		out += n;
		len -= n;
	}
}

/* --- what an operation did ---------------------------------------------------- */

/* Bytes of the target that nothing posted later writes. */
static void check_written(struct flow *f, const struct op *op)
{
	uint8_t *got = malloc(op->len + 1);

	CHECK(got);
	EXPECT(f->w, op->high == op->len,
	       "flow %u: I3: number %" PRIu64
	       " completed with %u of %u bytes placed",
	       f->index, op->seq, op->high, op->len);
	sim_peek(f->to->node->os, f->target + op->remote, got, op->len);
	for (uint32_t i = 0; i < op->len; i++) {
		const uint64_t at = op->remote + i;

		EXPECT(f->w,
		       f->last[at] != op->seq + 1 || got[i] == f->image[at],
		       "flow %u: byte %u of number %" PRIu64
		       " is not what was written",
		       f->index, i, op->seq);
	}
	free(got);
}

/* Is @byte at @off of the target what an operation after @seq writes? */
static bool written_later(struct flow *f, uint64_t seq, uint64_t off,
			  uint8_t byte)
{
	for (uint64_t s = seq + 1; s < f->posted; s++) {
		const struct op *op = op_at(f, s);
		uint8_t want;

		if (!op || !op_writes(op) || off < op->remote ||
		    off - op->remote >= op->len)
			continue;
		op_data(op, off - op->remote, &want, 1);
		if (want == byte)
			return true;
	}
	return false;
}

/* May @off of the target be read as zero, as an operation after @seq overwrites its page
 * as a whole, and the region agreed to that? */
static bool seen_empty(struct flow *f, uint64_t seq, uint64_t off)
{
	const uint64_t addr = f->target + off;
	const uint64_t page = off - addr % PAGE_BYTES;

	for (uint64_t s = seq + 1; f->zeros && s < f->posted; s++) {
		const struct op *op = op_at(f, s);

		if (op && op_writes(op) && off >= addr % PAGE_BYTES &&
		    page >= op->remote &&
		    range_ok(page - op->remote, PAGE_BYTES, op->len))
			return true;
	}
	return false;
}

static void check_read(struct flow *f, const struct op *op)
{
	uint8_t *got = malloc(op->len + 1), *want = malloc(op->len + 1);

	CHECK(got && want);
	parts_read(f->from->node, op->part, op->parts, got, op->len);
	if (op->before)
		memcpy(want, op->before, op->len);
	else
		gen_bytes(f->source_stream, op->remote - TARGET_BYTES, want,
			  op->len);
	for (uint32_t i = 0; i < op->len; i++)
		EXPECT(f->w,
		       got[i] == want[i] ||
			       (op->before &&
				(written_later(f, op->seq, op->remote + i,
					       got[i]) ||
				 (got[i] == 0 &&
				  seen_empty(f, op->seq, op->remote + i)))),
		       "flow %u: byte %u of READ number %" PRIu64 " is wrong",
		       f->index, i, op->seq);
	free(got);
	free(want);
}

static bool cell_was(const struct node *node, unsigned cell, uint64_t value)
{
	const unsigned changes = node->cell_changes[cell];

	for (unsigned i = 0; i < CELL_HISTORY && i <= changes; i++) {
		if (node->cell_history[cell][(changes - i) % CELL_HISTORY] ==
		    value)
			return true;
	}
	return false;
}

static void check_atomic(struct flow *f, const struct op *op)
{
	uint64_t old;

	parts_read(f->from->node, op->part, op->parts, (uint8_t *)&old, 8);
	if (op->executed) {
		EXPECT(f->w, old == op->old,
		       "flow %u: atomic number %" PRIu64 " returned %" PRIx64
		       ", not %" PRIx64,
		       f->index, op->seq, old, op->old);
		return;
	}
	EXPECT(f->w,
	       op->wr == WR_CMP_SWP && old != op->compare &&
		       cell_was(f->to->node, (unsigned)op->remote / 8, old),
	       "flow %u: I5: atomic number %" PRIu64
	       " completed and was not executed (returned %" PRIx64 ")",
	       f->index, op->seq, old);
}

void message_check(struct flow *f, const struct expect *x, const struct recv *r)
{
	uint8_t *got = malloc(x->len + 1), *want = malloc(x->len + 1);

	CHECK(got && want);
	parts_read(f->to->node, r->part, r->parts, got, x->len);
	gen_bytes(x->stream, 0, want, x->len);
	for (uint32_t i = 0; i < x->len; i++)
		EXPECT(f->w, got[i] == want[i],
		       "flow %u: byte %u of message number %" PRIu64
		       " (receive %" PRIu64 ") is wrong",
		       f->index, i, x->seq, r->number);
	free(got);
	free(want);
}

/* An ACK means placed: the message is there before its receive completes. */
static void check_sent(struct flow *f, const struct op *op)
{
	if (f->to->node->shared)
		return; /* which one it has is not known */
	for (uint64_t n = f->recv_done; n < f->expected; n++) {
		const struct expect *x = &f->expect[n % EXPECTS];
		const struct recv *r = &f->recv[n % FLOW_SLOTS];

		if (x->seq != op->seq)
			continue;
		EXPECT(f->w, r->posted && r->number == n,
		       "flow %u: SEND number %" PRIu64
		       " completed without a receive",
		       f->index, op->seq);
		message_check(f, x, r);
	}
}

static void op_retire(struct flow *f, struct op *op)
{
	struct world *w = f->w;
	const uint64_t took = sim_now(w->sim) - op->posted_ns;

	if (op->kind == OPK_NOTIFY)
		count_completed(f, op);
	if (op_writes(op))
		check_written(f, op);
	else if (op->wr == WR_READ)
		check_read(f, op);
	else if (op_atomic(op))
		check_atomic(f, op);
	else
		check_sent(f, op);
	w->longest_ns = MAX(w->longest_ns, took);
	f->longest_ns = MAX(f->longest_ns, took);
	free(op->before);
	op->before = NULL;
	op->used = false;
}

/* --- completions ------------------------------------------------------------------ */

static void send_completion(struct flow *f, const struct cqe *e)
{
	struct op *op = op_at(f, e->wr_id);

	EXPECT(f->w, op && e->wr_id >= f->completed && e->wr_id < f->posted,
	       "flow %u: completion of number %" PRIu64
	       ", which is not outstanding",
	       f->index, e->wr_id);
	EXPECT(f->w, op->signaled || f->from->init.sq_sig_all,
	       "flow %u: completion of unsignaled number %" PRIu64, f->index,
	       e->wr_id);
	EXPECT(f->w, e->op == op->wr,
	       "flow %u: number %" PRIu64 " completed as another operation",
	       f->index, e->wr_id);
	EXPECT(f->w,
	       !(op->wr == WR_READ || op_atomic(op)) || e->byte_len == op->len,
	       "flow %u: number %" PRIu64 " of %u bytes says %u", f->index,
	       e->wr_id, op->len, e->byte_len);
	for (; f->completed <= e->wr_id; f->completed++) {
		op = op_at(f, f->completed);
		EXPECT(f->w,
		       op && (f->completed == e->wr_id ||
			      (!op->signaled && !f->from->init.sq_sig_all)),
		       "flow %u: number %" PRIu64 " completed before %" PRIu64,
		       f->index, e->wr_id, f->completed);
		op_retire(f, op);
	}
}

/* The flow's own receives complete in order. */
static const struct recv *own_done(struct flow *f, const struct cqe *e)
{
	struct recv *r = &f->recv[e->wr_id % FLOW_SLOTS];

	EXPECT(f->w, e->wr_id == f->recv_done,
	       "flow %u: receive %" PRIu64 " completed, not %" PRIu64, f->index,
	       e->wr_id, f->recv_done);
	EXPECT(f->w, r->posted && r->number == e->wr_id,
	       "flow %u: receive %" PRIu64 " is not posted", f->index,
	       e->wr_id);
	r->posted = false;
	return r;
}

static void recv_completion(struct flow *f, const struct cqe *e)
{
	const struct expect *x = &f->expect[f->recv_done % EXPECTS];
	const struct recv *r = f->to->node->shared ? shared_done(f->to->node, e)
						   : own_done(f, e);
	const bool imm = x->wr == WR_SEND_IMM || x->wr == WR_WRITE_IMM;
	const bool inv = x->wr == WR_SEND_INV;
	uint64_t missing;

	EXPECT(f->w, f->recv_done < f->expected,
	       "flow %u: receive %" PRIu64 " is of no message (of %" PRIu64 ")",
	       f->index, e->wr_id, f->expected);
	EXPECT(f->w,
	       e->op == (x->wr == WR_WRITE_IMM ? WR_RECV_IMM : WR_RECV) &&
		       !!(e->flags & CQE_IMM) == imm &&
		       !!(e->flags & CQE_INV) == inv &&
		       (!(imm || inv) || e->imm == x->imm) &&
		       e->byte_len == x->len,
	       "flow %u: receive %" PRIu64 " is not of message number %" PRIu64
	       " (op %u, flags %u, %u bytes for %u)",
	       f->index, e->wr_id, x->seq, e->op, e->flags, e->byte_len,
	       x->len);
	EXPECT(f->w, flow_placed(f, x->seq + 1, &missing),
	       "flow %u: I3: receive %" PRIu64 " of number %" PRIu64
	       " completed before number %" PRIu64 " was placed",
	       f->index, e->wr_id, x->seq, missing);
	EXPECT(f->w, !inv || !node_key_live(f->to->node, x->imm, f->iova),
	       "flow %u: receive %" PRIu64 " says that key 0x%x is invalid, "
	       "and it is not",
	       f->index, e->wr_id, x->imm);
	if (x->wr != WR_WRITE_IMM)
		message_check(f, x, r);
	answer_check(f, x->seq, x->to);
	f->recv_done++;
}

/* In order and once each, but with any status. */
static void broken_completion(struct flow *f, const struct cqe *e, bool recv)
{
	struct op *op = op_at(f, e->wr_id);
	uint64_t *done = recv ? &f->recv_done : &f->completed;
	const uint64_t end = recv ? f->recv_posted : f->posted;

	EXPECT(f->w, e->wr_id >= *done && e->wr_id < end,
	       "flow %u: %s %" PRIu64 " of a broken QP completed out of order "
	       "or twice",
	       f->index, recv ? "receive" : "number", e->wr_id);
	*done = e->wr_id + 1;
	if (e->status != WC_SUCCESS)
		*(recv ? &f->recv_flushed : &f->flushed) = true;
	else
		EXPECT(f->w, recv ? !f->recv_flushed : !f->flushed,
		       "flow %u: success of %" PRIu64 " behind an error",
		       f->index, e->wr_id);
	if (!recv && op) {
		free(op->before);
		op->before = NULL;
	}
}

void flow_break(struct flow *f)
{
	f->failed = true;
}

void end_completion(struct end *end, const struct cqe *e)
{
	struct world *w = end->node->w;
	const bool recv = e->op == WR_RECV || e->op == WR_RECV_IMM;
	struct flow *f = recv ? end->in : end->out;

	sim_note(w->sim, 'c',
		 (uint64_t)f->index << 48 | e->wr_id << 8 | e->status);
	sim_say(w->sim, "flow %u: %s %" PRIu64 " completed, status %u",
		f->index, recv ? "receive" : "number", e->wr_id, e->status);
	if (f->failed && recv && f->to->node->shared) {
		(void)shared_done(f->to->node, e);
		return;
	}
	if (f->failed) {
		broken_completion(f, e, recv);
		return;
	}
	EXPECT(w, e->status == WC_SUCCESS,
	       "flow %u: I7: %s %" PRIu64 " (%s) completed with status %u, "
	       "vendor error %u",
	       f->index, recv ? "receive" : "number", e->wr_id,
	       !recv && op_at(f, e->wr_id)
		       ? op_kind_name(op_at(f, e->wr_id)->kind)
		       : "-",
	       e->status, e->vendor_err);
	if (recv)
		recv_completion(f, e);
	else
		send_completion(f, e);
}

bool flow_done(const struct flow *f)
{
	return f->failed || (f->completed == f->all &&
			     f->recv_done == f->expected && count_done(f));
}

void flow_final(struct flow *f)
{
	uint8_t *got;

	if (f->failed)
		return;
	got = malloc(TARGET_BYTES);
	CHECK(got);
	sim_peek(f->to->node->os, f->target, got, TARGET_BYTES);
	EXPECT(f->w, memcmp(got, f->image, TARGET_BYTES) == 0,
	       "flow %u: the target is not what was written in the end",
	       f->index);
	free(got);
}
