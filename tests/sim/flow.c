/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flow.c: a flow's memory, and the random work it posts. */
#include "base/check.h"
#include "base/page.h"
#include "mem/mr.h"
#include "nic/memory.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "oracle.h"
#include "shared.h"

#include <stdlib.h>

static const char *const kind_names[] = {
	"none",
	"SEND",
	"SEND_IMM",
	"SEND_INV",
	"WRITE",
	"WRITE_IMM",
	"WRITE that notifies",
	"READ",
	"READ of own WRITEs",
	"READ and fenced WRITE",
	"FETCH_ADD",
	"CMP_SWP",
};
_Static_assert(ARRAY_SIZE(kind_names) == OPK_NUM, "a name for each kind");

const char *op_kind_name(enum op_kind kind)
{
	return kind_names[kind];
}

/* --- data -------------------------------------------------------------------- */

static uint64_t mix(uint64_t v)
{
	v += UINT64_C(0x9e3779b97f4a7c15);
	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

void gen_bytes(uint64_t seed, uint64_t off, uint8_t *out, uint64_t len)
{
	while (len) {
		const uint64_t word = mix(seed + off / 8) >> off % 8 * 8;
		const uint64_t n = MIN(8 - off % 8, len);

		memcpy(out, &word, n);
		out += n;
		off += n;
		len -= n;
		for (; len >= 8; out += 8, off += 8, len -= 8) {
			const uint64_t next = mix(seed + off / 8);

			memcpy(out, &next, 8);
		}
	}
}

void op_data(const struct op *op, uint64_t off, uint8_t *out, uint64_t len)
{
	gen_bytes(op->stream, op->stream_off + off, out, len);
}

bool op_writes(const struct op *op)
{
	return op->wr == WR_WRITE || op->wr == WR_WRITE_IMM ||
	       op->wr == WR_WRITE_NOTIFY;
}

bool op_atomic(const struct op *op)
{
	return op->wr == WR_FETCH_ADD || op->wr == WR_CMP_SWP;
}

bool op_consumes(const struct op *op)
{
	return op->wr == WR_SEND || op->wr == WR_SEND_IMM ||
	       op->wr == WR_SEND_INV ||
	       (op->wr == WR_WRITE_IMM && op->kind != OPK_NOTIFY);
}

struct op *op_at(struct flow *f, uint64_t seq)
{
	struct op *op = &f->op[seq % FLOW_SLOTS];

	return op->used && op->seq == seq ? op : NULL;
}

/* --- memory ------------------------------------------------------------------- */

static uint32_t reg(struct flow *f, struct node *node, uint64_t addr,
		    uint64_t iova, uint64_t bytes, uint32_t access)
{
	struct mr_attr attr = {.pd = node->pd,
			       .addr = addr,
			       .iova = iova,
			       .length = bytes,
			       .access = access};
	uint32_t key;
	int err;

	upcall_watch(node, &attr);
	err = nic_mr_reg(node->nic, &attr, &key);

	EXPECT(f->w, err == 0, "nic_mr_reg: %d", err);
	if (f->w->cfg.choose)
		EXPECT(f->w,
		       nic_mr_set_fault(node->nic, key,
					world_strategy(f->w, true)) == 0,
		       "nic_mr_set_fault");
	if (bytes != UINT64_MAX)
		node_registered(node, addr);
	return key;
}

/* Explicit, or the whole address space. */
static uint32_t reg_local(struct flow *f, struct node *node, uint64_t addr,
			  uint64_t bytes)
{
	const uint32_t access = ACCESS_LOCAL_WRITE | ACCESS_ON_DEMAND;

	if (sim_chance(f->w->sim, SIM_PPM / 3))
		return reg(f, node, 0, 0, UINT64_MAX, access);
	return reg(f, node, addr, addr, bytes, access);
}

static uint32_t reg_target(struct flow *f)
{
	return reg(f, f->to->node, f->target, f->iova,
		   TARGET_BYTES + SOURCE_BYTES,
		   ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			   ACCESS_REMOTE_READ | ACCESS_ON_DEMAND);
}

/* May pages of the target be seen empty? */
static bool zeros_allowed(struct flow *f)
{
	struct mr_attr attr;

	EXPECT(f->w, nic_mr_query(f->to->node->nic, f->remote_key, &attr) == 0,
	       "nic_mr_query");
	return attr.fault == STRATEGY_OVERWRITE;
}

static void source_fill(struct flow *f)
{
	uint8_t page[PAGE_BYTES];

	for (uint64_t off = 0; off < SOURCE_BYTES; off += PAGE_BYTES) {
		gen_bytes(f->source_stream, off, page, PAGE_BYTES);
		sim_write(f->to->node->os, f->target + TARGET_BYTES + off, page,
			  PAGE_BYTES);
	}
}

void flow_open(struct flow *f, struct world *w, struct end *from,
	       struct end *to, unsigned index)
{
	struct sim *sim = w->sim;

	f->w = w;
	f->from = from;
	f->to = to;
	f->index = index;
	f->seed = mix(w->seed * 64 + index);
	f->source_stream = mix(f->seed);
	f->all = w->cfg.ops;
	f->local = area_add(from->node, AREA_LOCAL, FLOW_SLOTS * LOCAL_BYTES,
			    f);
	f->local_key = reg_local(f, from->node, f->local,
				 FLOW_SLOTS * LOCAL_BYTES);
	f->recv_mem = area_add(to->node, AREA_RECV, FLOW_SLOTS * LOCAL_BYTES,
			       f);
	f->recv_key = reg_local(f, to->node, f->recv_mem,
				FLOW_SLOTS * LOCAL_BYTES);
	f->target = area_add(to->node, AREA_TARGET, TARGET_BYTES + SOURCE_BYTES,
			     f);
	f->iova = f->target;
	if (sim_chance(sim, SIM_PPM / 2))
		f->iova = sim_between(sim, 0, UINT64_C(1) << 60);
	f->remote_key = reg_target(f);
	f->zeros = zeros_allowed(f);
	for (unsigned i = 0; i < INV_KEYS; i++)
		f->inv_key[i] = reg_target(f);
	f->image = calloc(1, TARGET_BYTES);
	f->last = calloc(TARGET_BYTES, sizeof(*f->last));
	CHECK(f->image && f->last);
	source_fill(f);
	if (w->cfg.counters)
		count_open(f);
}

void flow_close(struct flow *f)
{
	struct nic *from = f->from->node->nic, *to = f->to->node->nic;

	count_close(f);
	EXPECT(f->w, nic_mr_dereg(from, f->local_key) == 0, "dereg local");
	EXPECT(f->w, nic_mr_dereg(to, f->recv_key) == 0, "dereg recv");
	EXPECT(f->w, f->remote_gone || nic_mr_dereg(to, f->remote_key) == 0,
	       "dereg remote");
	for (unsigned i = 0; i < INV_KEYS; i++)
		EXPECT(f->w, nic_mr_dereg(to, f->inv_key[i]) == 0,
		       "dereg what a peer may have invalidated");
	for (unsigned i = 0; i < FLOW_SLOTS; i++)
		free(f->op[i].before);
	free(f->image);
	free(f->last);
}

/* --- drawing an operation --------------------------------------------------------- */

static uint32_t draw_len(struct flow *f)
{
	const uint32_t mtu = f->w->cfg.path_mtu;
	const uint32_t special[] = {
		0,
		1,
		7,
		8,
		9,
		mtu - 1,
		mtu,
		mtu + 1,
		2 * mtu,
		2 * mtu + 1,
		PAGE_BYTES - 1,
		PAGE_BYTES,
		PAGE_BYTES + 1,
	};
	struct sim *sim = f->w->sim;

	if (sim_chance(sim, f->w->cfg.big))
		return (uint32_t)sim_between(sim, 0, MESSAGE_MAX);
	if (sim_chance(sim, SIM_PPM / 2))
		return special[sim_between(sim, 0, ARRAY_SIZE(special) - 1)];
	return (uint32_t)sim_between(sim, 0, 3 * mtu);
}

static enum op_kind draw_kind(struct flow *f)
{
	uint64_t sum = 0, at;

	for (unsigned k = 0; k < OPK_NUM; k++)
		sum += f->w->cfg.mix[k];
	at = sim_between(f->w->sim, 0, sum - 1);
	for (unsigned k = 0;; k++) {
		if (at < f->w->cfg.mix[k])
			return (enum op_kind)k;
		at -= f->w->cfg.mix[k];
	}
}

/* An offset that is often aligned, or nearly aligned, to a page. */
static uint64_t draw_off(struct sim *sim, uint64_t room)
{
	uint64_t off = sim_between(sim, 0, room);

	if (sim_chance(sim, SIM_PPM / 3))
		off -= off % PAGE_BYTES;
	else if (off > 0 && sim_chance(sim, SIM_PPM / 3))
		off -= off % PAGE_BYTES ? off % PAGE_BYTES - 1 : 1;
	return off;
}

/* Cut @len bytes into pieces of the memory of one slot, with gaps. */
static unsigned draw_parts(struct sim *sim, uint64_t addr, uint32_t len,
			   unsigned max, struct part *part)
{
	const unsigned num = (unsigned)sim_between(sim, len == 0 ? 0 : 1,
						   MIN(max, FLOW_SGES));
	uint64_t off = draw_off(sim, 2 * PAGE_BYTES);
	uint32_t left = len;

	for (unsigned i = 0; i < num; i++) {
		uint32_t n = left;

		if (i + 1 < num)
			n = (uint32_t)sim_between(sim, 0, left);
		part[i] = (struct part){addr + off, n};
		off += n + sim_between(sim, 0, 200);
		left -= n;
	}
	return num;
}

static void op_remote(struct flow *f, struct op *op)
{
	struct sim *sim = f->w->sim;

	if (op->wr == WR_READ && op->kind != OPK_READ_BACK)
		op->remote = TARGET_BYTES +
			     draw_off(sim, SOURCE_BYTES - op->len);
	else if (op_atomic(op))
		op->remote = 8 * sim_between(sim, 0, CELLS - 1);
	else
		op->remote = draw_off(sim, TARGET_BYTES - op->len);
}

static void op_draw_atomic(struct flow *f, struct op *op)
{
	const struct node *node = f->to->node;
	const unsigned cell = (unsigned)op->remote / 8;

	op->len = 8;
	op->operand = sim_rand(f->w->sim) | 1;
	if (op->wr == WR_CMP_SWP && sim_chance(f->w->sim, SIM_PPM / 2))
		op->compare =
			node->cell_history[cell][node->cell_changes[cell] %
						 CELL_HISTORY];
	else
		op->compare = sim_rand(f->w->sim);
}

static const enum wr_op wr_of[OPK_NUM] = {
	[OPK_SEND] = WR_SEND,		[OPK_SEND_IMM] = WR_SEND_IMM,
	[OPK_SEND_INV] = WR_SEND_INV,	[OPK_WRITE] = WR_WRITE,
	[OPK_WRITE_IMM] = WR_WRITE_IMM, [OPK_NOTIFY] = WR_WRITE_NOTIFY,
	[OPK_READ] = WR_READ,		[OPK_READ_BACK] = WR_READ,
	[OPK_RELAY] = WR_READ,		[OPK_FETCH_ADD] = WR_FETCH_ADD,
	[OPK_CMP_SWP] = WR_CMP_SWP,
};

static bool op_kind_consumes(enum op_kind kind)
{
	return op_consumes(&(struct op){.kind = kind, .wr = wr_of[kind]});
}

static void op_draw(struct flow *f, struct op *op, enum op_kind kind)
{
	const unsigned max_sge = f->from->init.max_send_sge;
	struct sim *sim = f->w->sim;

	*op = (struct op){.used = true,
			  .kind = kind,
			  .wr = wr_of[kind],
			  .seq = f->posted,
			  .stream = mix(f->seed ^ f->posted),
			  .imm = (uint32_t)sim_rand(sim),
			  .posted_ns = sim_now(sim)};
	if (kind == OPK_NOTIFY && f->count.imm)
		op->wr = WR_WRITE_IMM;
	op->len = draw_len(f);
	op_remote(f, op);
	if (op_atomic(op))
		op_draw_atomic(f, op);
	if (op->wr == WR_SEND_INV)
		op->imm = f->inv_key[f->invs];
	op->inlined = op->wr != WR_READ && !op_atomic(op) &&
		      op->len <= f->from->init.max_inline &&
		      sim_chance(sim, SIM_PPM / 3);
	op->fenced = sim_chance(sim, SIM_PPM / 10);
	op->parts = draw_parts(sim,
			       f->local + op->seq % FLOW_SLOTS * LOCAL_BYTES,
			       op->len, op_atomic(op) ? 1 : max_sge, op->part);
	if (op_atomic(op))
		op->part[0].addr &= ~UINT64_C(7);
}

/* The second half of OPK_RELAY: write what @read reads, from where it is put. */
static void op_draw_relay(struct flow *f, struct op *op, const struct op *read)
{
	*op = *read;
	op->wr = WR_WRITE;
	op->seq = f->posted;
	op->stream = f->source_stream;
	op->stream_off = read->remote - TARGET_BYTES;
	op->remote = draw_off(f->w->sim, TARGET_BYTES - op->len);
	op->fenced = true;
	op->before = NULL;
}

/* --- posting ------------------------------------------------------------------------ */

static void op_write_memory(struct flow *f, const struct op *op, bool data)
{
	uint8_t *buf = calloc(1, op->len + 1);
	uint32_t off = 0;

	CHECK(buf);
	if (data)
		op_data(op, 0, buf, op->len);
	for (unsigned i = 0; i < op->parts; i++) {
		sim_write(f->from->node->os, op->part[i].addr, buf + off,
			  op->part[i].len);
		off += op->part[i].len;
	}
	free(buf);
}

/* Where there is no room for @op its pages are touched and nothing more, unless that took
 * so long that there is some. */
static void op_fill_memory(struct flow *f, const struct op *op)
{
	bool room;

	do {
		room = nic_send_slot(f->from->qp) != NULL;
		op_write_memory(f, op, room);
	} while (!room && nic_send_slot(f->from->qp));
}

static void op_fill_wqe(struct flow *f, const struct op *op, struct wqe *wqe)
{
	const uint64_t iova = op_atomic(op) ? f->to->node->cell_iova : f->iova;

	wqe->wr_id = op->seq;
	wqe->op = (uint8_t)op->wr;
	wqe->flags = (uint8_t)((op->signaled ? WQE_SIGNALED : 0) |
			       (op->fenced ? WQE_FENCE : 0) |
			       (op->inlined ? WQE_INLINE : 0));
	wqe->imm = op->imm;
	wqe->length = op->len;
	wqe->raddr = iova + op->remote;
	wqe->rkey = op_atomic(op) ? f->to->node->cells_key : f->remote_key;
	wqe->swap_add = op->operand;
	wqe->compare = op->compare;
	wqe->num_sge = 0;
	if (op->inlined) {
		op_data(op, 0, wqe_inline(wqe), op->len);
		return;
	}
	wqe->num_sge = (uint16_t)op->parts;
	for (unsigned i = 0; i < op->parts; i++)
		wqe_sge(wqe)[i] = (struct sge){op->part[i].addr,
					       op->part[i].len, f->local_key};
}

/* What memory will be, and which message will come. */
static void op_foretell(struct flow *f, struct op *op)
{
	if (op_writes(op)) {
		op_data(op, 0, f->image + op->remote, op->len);
		for (uint32_t i = 0; i < op->len; i++)
			f->last[op->remote + i] = (uint32_t)op->seq + 1;
	}
	if (op->kind == OPK_READ_BACK) {
		op->before = malloc(op->len + 1);
		CHECK(op->before);
		memcpy(op->before, f->image + op->remote, op->len);
	}
	if (op->kind == OPK_NOTIFY)
		op->imm = count_note(f, op);
	if (op_consumes(op))
		f->expect[f->expected++ % EXPECTS] =
			(struct expect){.seq = op->seq,
					.to = op->to,
					.stream = op->stream,
					.remote = op->remote,
					.wr = op->wr,
					.len = op->len,
					.imm = op->imm};
}

/* Queue locked. Return: false: it is full. */
static bool op_post(struct flow *f, struct op *op)
{
	struct wqe *wqe = nic_send_slot(f->from->qp);
	struct world *w = f->w;

	if (!wqe) {
		op->used = false;
		return false;
	}
	op->signaled = w->cfg.window < 6 || f->unsignaled >= 2 ||
		       f->posted + 1 == f->all ||
		       sim_chance(w->sim, SIM_PPM * 2 / 3);
	f->unsignaled = op->signaled ? 0 : f->unsignaled + 1;
	op->to = answer_to(f);
	op_foretell(f, op);
	op_fill_wqe(f, op, wqe);
	f->posted++;
	f->invs += op->wr == WR_SEND_INV;
	sim_note(w->sim, 'O', (uint64_t)op->kind << 32 | op->len);
	sim_say(w->sim,
		"flow %u: posted %s number %u, %u bytes at 0x%x, %u parts%s",
		f->index, op_kind_name(op->kind), (unsigned)op->seq, op->len,
		(unsigned)op->remote, op->parts, op->fenced ? ", fenced" : "");
	nic_send_publish(f->from->qp);
	return true;
}

static void flow_post_kind(struct flow *f, enum op_kind kind)
{
	struct op *op = &f->op[f->posted % FLOW_SLOTS], *relay;

	CHECK(!op->used);
	op_draw(f, op, kind);
	if (op->wr != WR_READ && !op_atomic(op) && !op->inlined)
		op_fill_memory(f, op);
	if (!op_post(f, op) || kind != OPK_RELAY)
		return;
	relay = &f->op[f->posted % FLOW_SLOTS];
	CHECK(!relay->used);
	op_draw_relay(f, relay, op);
	op_post(f, relay);
}

void flow_post(struct flow *f)
{
	const struct world *w = f->w;
	uint64_t room = w->cfg.window - (f->posted - f->completed);
	enum op_kind kind;
	int err;

	room = MIN(room, f->all - f->posted);
	if (room == 0 || f->failed || f->expected - f->recv_done >= EXPECTS - 1)
		return;
	err = nic_send_begin(f->from->qp);
	if (err != 0) {
		EXPECT(f->w, w->expect_errors, "nic_send_begin: %d", err);
		return;
	}
	/* Another thread of the node may have been quicker. */
	room = MIN(w->cfg.window - (f->posted - f->completed),
		   f->all - f->posted);
	if (room != 0) {
		kind = draw_kind(f);
		if (kind == OPK_RELAY && room < 2)
			kind = OPK_WRITE;
		if (kind == OPK_WRITE_IMM && f->count.imm)
			kind = OPK_NOTIFY;
		if (kind == OPK_SEND_INV && f->invs == INV_KEYS)
			kind = OPK_SEND;
		if (w->cfg.polite && f->expected >= f->recv_posted &&
		    op_kind_consumes(kind))
			kind = OPK_WRITE;
		flow_post_kind(f, kind);
	}
	nic_send_end(f->from->qp);
}

void recv_make(struct sim *sim, struct recv *r, uint64_t number, uint64_t mem,
	       uint32_t key, uint32_t max_sge, struct wqe *wqe)
{
	*r = (struct recv){.posted = true, .number = number};
	r->parts = draw_parts(sim, mem, MESSAGE_MAX, max_sge, r->part);
	*wqe = (struct wqe){.wr_id = number,
			    .op = WR_RECV,
			    .length = MESSAGE_MAX,
			    .num_sge = (uint16_t)r->parts};
	for (unsigned i = 0; i < r->parts; i++)
		wqe_sge(wqe)[i] = (struct sge){r->part[i].addr, r->part[i].len,
					       key};
}

static void recv_post(struct flow *f, struct wqe *wqe)
{
	const uint64_t slot = f->recv_posted % FLOW_SLOTS;

	recv_make(f->w->sim, &f->recv[slot], f->recv_posted++,
		  f->recv_mem + slot * LOCAL_BYTES, f->recv_key,
		  f->to->init.max_recv_sge, wqe);
}

void flow_recv(struct flow *f)
{
	const struct world *w = f->w;
	struct wqe *wqe;
	int err;

	if (f->to->node->shared) {
		shared_recv(f->to->node);
		return;
	}
	if (f->failed || f->recv_posted - f->recv_done >= w->cfg.recvs ||
	    !sim_chance(w->sim, w->cfg.recv_lazy))
		return;
	err = nic_recv_begin(f->to->qp);
	if (err != 0) {
		EXPECT(f->w, w->expect_errors, "nic_recv_begin: %d", err);
		return;
	}
	while (f->recv_posted - f->recv_done < w->cfg.recvs) {
		wqe = nic_recv_slot(f->to->qp);
		if (!wqe)
			break;
		recv_post(f, wqe);
		nic_recv_publish(f->to->qp);
	}
	nic_recv_end(f->to->qp);
}
