// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* track.c: what is posted on each QP, the boxes that it leaves from and arrives
 * in, and what is known when it completes. Called with the lock of hook.c.
 */
#include "pool.h"
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MAX_TRACKS = 1024, SCRUBBED = 0xa5, LEAVE_EVERY = 8 };

static struct track tracks[MAX_TRACKS];
static size_t num_tracks;

static struct {
	struct pool pool;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *memory;
} boxes;

struct track *track_of(uint32_t qpn)
{
	for (size_t i = num_tracks; i-- > 0;)
		if (tracks[i].qpn == qpn)
			return &tracks[i];
	return NULL;
}

struct track *track_add(struct ibv_qp *qp)
{
	if (num_tracks == MAX_TRACKS) {
		report_problem("more QPs than the verifier can follow");
		return NULL;
	}
	tracks[num_tracks] = (struct track){.qp = qp, .qpn = qp->qp_num};
	return &tracks[num_tracks++];
}

struct track *track_next(struct track *t)
{
	t = t ? t + 1 : tracks;
	return t < tracks + num_tracks ? t : NULL;
}

/* --- boxes ------------------------------------------------------------------ */

/* All QPs of the programs that we know are in one PD; others get no boxes. */
static bool boxes_ready(struct ibv_pd *pd)
{
	if (!boxes.pd) {
		boxes.pd = pd;
		boxes.pool.free = POOL_PAGES;
		boxes.memory = evict_memory(POOL_BYTES);
		if (boxes.memory != MAP_FAILED)
			boxes.mr = real_reg_mr(pd, boxes.memory, POOL_BYTES,
					       IBV_ACCESS_LOCAL_WRITE);
		if (!boxes.mr)
			report_problem("no memory for boxes");
	}
	return boxes.mr && boxes.pd == pd;
}

static void box_take(struct track *t, struct request *req, struct ibv_sge *sge)
{
	int64_t offset;

	if (req->length == 0 || !boxes_ready(t->qp->pd))
		return;
	offset = pool_take(&boxes.pool, req->length, sge->addr);
	if (offset == POOL_NONE)
		return;
	req->box = boxes.memory + offset;
	memset(req->box - MARGIN, SCRUBBED, req->length + 2 * MARGIN);
	sge->addr = (uintptr_t)req->box;
	sge->lkey = boxes.mr->lkey;
}

static void box_give(struct request *req)
{
	if (req->box)
		pool_give(&boxes.pool, (size_t)(req->box - boxes.memory),
			  req->length);
	req->box = NULL;
}

static void check_margins(const struct request *req)
{
	uint8_t want[MARGIN];

	if (!req->box)
		return;
	memset(want, SCRUBBED, MARGIN);
	if (memcmp(req->box - MARGIN, want, MARGIN) != 0)
		report_wrong("before a buffer", req->box - MARGIN, want, MARGIN,
			     0);
	if (memcmp(req->box + req->length, want, MARGIN) != 0)
		report_wrong("behind a buffer", req->box + req->length, want,
			     MARGIN, 0);
}

/** track_close() - @pd is about to go, and our region with it. */
void track_close(struct ibv_pd *pd)
{
	if (boxes.pd == pd && boxes.mr) {
		real_dereg_mr(boxes.mr);
		boxes.mr = NULL;
	}
}

/* --- posting ---------------------------------------------------------------- */

static struct request *line_add(struct line *l)
{
	if (l->tail - l->head == l->capacity) {
		const uint32_t grown = l->capacity ? l->capacity * 2 : 256;
		struct request *ring = calloc(grown, sizeof(*ring));

		for (uint32_t i = l->head; i != l->tail; i++)
			ring[i % grown] = l->ring[i % l->capacity];
		free(l->ring);
		l->ring = ring;
		l->capacity = grown;
	}
	return &l->ring[l->tail++ % l->capacity];
}

static void fill(struct track *t, struct request *req)
{
	const bool is_write = req->kind == KIND_WRITE;
	uint8_t *from = req->box ? req->box : req->memory;
	uint8_t *image;

	if (req->box) {
		const uint64_t seed =
			pattern_seed(getenv("VERIFY_ROLE"), t->qpn,
				     is_write ? t->posted : t->sent);

		pattern_fill(req->box, seed, req->length);
		/* programs look for the last byte of a WRITE */
		if (is_write)
			req->box[req->length - 1] =
				req->memory[req->length - 1];
	}
	if (!is_write) {
		share_sent(t, from, req->length, req->box);
		return;
	}
	image = share_image(req->rkey, req->remote, req->length);
	if (image) {
		memcpy(image, from, req->length);
		share_written(req->rkey, req->remote, req->length);
	}
}

/* Those of one QP are executed in order, and perftest gives each QP words of
 * its own.
 */
static void apply_atomic(struct request *req)
{
	uint8_t *image = share_image(req->rkey, req->remote, req->length);
	uint64_t now;

	if (!image || req->length != sizeof(now))
		return;
	memcpy(&req->expected, image, sizeof(now));
	now = req->expected;
	if (!req->is_swap)
		now += req->compare_add;
	else if (now == req->compare_add)
		now = req->swap;
	memcpy(image, &now, sizeof(now));
	share_written(req->rkey, req->remote, req->length);
}

void track_post(struct track *t, struct request *req, struct ibv_sge *sge)
{
	const bool turns = getenv("VERIFY_TURNS");
	const bool leave = !turns && t->posted % LEAVE_EVERY == LEAVE_EVERY - 1;

	report_posted(req->kind);
	/* When its time is up a program writes without waiting for its turn. */
	if (req->kind == KIND_WRITE && turns && share_arrived())
		share_compare();
	if (req->kind == KIND_RECV || req->kind == KIND_ATOMIC || !leave)
		box_take(t, req, sge);
	if (req->kind == KIND_WRITE && !leave && !turns && req->length)
		share_arena(req);
	if (req->kind == KIND_SEND ||
	    (req->kind == KIND_WRITE && req->length > 0))
		fill(t, req);
	if (req->kind == KIND_ATOMIC)
		apply_atomic(req);
	if (req->kind == KIND_SEND)
		t->sent++;
	if (req->kind != KIND_RECV)
		t->posted++;
	*line_add(req->kind == KIND_RECV ? &t->rq : &t->sq) = *req;
}

/* What was posted last was refused: undone as far as it matters. */
void track_abort(struct track *t, bool is_recv)
{
	struct line *l = is_recv ? &t->rq : &t->sq;
	struct request *req = &l->ring[(l->tail - 1) % l->capacity];

	share_arena_done(req);
	box_give(req);
	l->tail--;
	if (req->kind == KIND_SEND)
		t->sent--;
}

/* --- completion ------------------------------------------------------------- */

static void check_recv(struct track *t, const struct request *req,
		       uint32_t length)
{
	const struct sent *sent = share_next_sent(t);
	uint8_t *want;

	if (!sent || sent->length != length) {
		report_problem("a receive of another length than was sent");
		return;
	}
	if (!req->box)
		return;
	if (pattern_sum(req->box, length) != sent->sum) {
		want = calloc(1, length);
		if (sent->pattern)
			pattern_fill(want,
				     pattern_seed(share_peer(), t->peer_qpn,
						  t->received - 1),
				     length);
		report_wrong(sent->pattern ? "a receive"
					   : "a receive, of something unknown,",
			     req->box, want, length, t->received - 1);
		free(want);
	}
	report_checked(KIND_RECV, length);
}

/* Without a box it went to the program's memory, which may be that of a READ that
 * is still out, too: then nobody knows what is there (a page that will be written
 * whole may be empty until then).
 */
static bool shares_memory(const struct track *t, const struct request *req)
{
	const struct line *l = &t->sq;

	for (uint32_t i = l->head; !req->box && i != l->tail; i++) {
		const struct request *other = &l->ring[i % l->capacity];

		if (!other->box && other->kind == KIND_READ &&
		    other->memory < req->memory + req->length &&
		    req->memory < other->memory + other->length)
			return true;
	}
	return false;
}

static void check_read(const struct track *t, const struct request *req)
{
	const uint8_t *want = share_image(req->rkey, req->remote, req->length);
	const uint8_t *have = req->box ? req->box : req->memory;

	if (!want || shares_memory(t, req))
		return;
	report_wrong("a READ", have, want, req->length, req->remote);
	report_checked(KIND_READ, req->length);
}

static void check_atomic(const struct request *req)
{
	if (!req->box)
		return;
	report_wrong("an atomic", req->box, (const void *)&req->expected,
		     req->length, req->remote);
	report_checked(KIND_ATOMIC, req->length);
}

static void finish(struct track *t, struct request *req, bool ok, uint32_t len)
{
	const bool arrives = req->kind == KIND_RECV || req->kind == KIND_READ ||
			     req->kind == KIND_ATOMIC;

	if (ok && req->kind == KIND_RECV)
		check_recv(t, req, len);
	if (ok && req->kind == KIND_READ)
		check_read(t, req);
	if (ok && req->kind == KIND_ATOMIC)
		check_atomic(req);
	if (ok && arrives && req->box) {
		check_margins(req);
		memcpy(req->memory, req->box,
		       req->kind == KIND_RECV ? len : req->length);
	}
	share_arena_done(req);
	box_give(req);
}

/* A completion is also that of all unsignaled requests before it. */
void track_done(const struct ibv_wc *wc)
{
	const bool ok = wc->status == IBV_WC_SUCCESS;
	struct track *t = track_of(wc->qp_num);
	bool last = false;
	struct line *l;

	if (!t)
		return;
	if (!ok)
		t->broken = true;
	if (t->broken)
		return;
	l = wc->opcode & IBV_WC_RECV ? &t->rq : &t->sq;
	while (!last && l->head != l->tail) {
		struct request *req = &l->ring[l->head++ % l->capacity];

		last = req->signaled;
		finish(t, req, ok, wc->byte_len);
	}
	if (!last)
		report_problem("a completion of nothing that was posted");
}

/* Of these, what is unsignaled is only seen to be done by a WRITE behind it. */
static bool takes_flush(const struct request *req)
{
	return req->kind != KIND_READ && req->kind != KIND_ATOMIC;
}

/** track_drained() - Has everything that was posted to send completed? But for
 * the last READs and atomics if they are unsignaled: their target takes no other
 * request that would show the end of them.
 */
bool track_drained(const struct track *t)
{
	const struct line *l = &t->sq;

	for (uint32_t i = l->head; !t->broken && i != l->tail; i++) {
		const struct request *req = &l->ring[i % l->capacity];

		if (req->signaled || takes_flush(req))
			return false;
	}
	return true;
}

/** track_needs_flush() - Of what is not drained: will nothing show the last
 * request's completion? */
bool track_needs_flush(const struct track *t)
{
	const struct line *l = &t->sq;
	const struct request *last = &l->ring[(l->tail - 1) % l->capacity];

	return !last->signaled && takes_flush(last);
}
