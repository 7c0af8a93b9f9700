/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ahead_test.c: which pages are asked for ahead, of requests of ours and of the peer that
 * are behind one that waits.
 */
#include "bench.h"
#include "mem/state.h"
#include "mem/tickets.h"
#include "ring/wr_op.h"
#include "xport/ahead.h"

enum { PSN = PSN_MASK, AHEAD_WQES = 8, FIRST = -AHEAD_WQES / 2 };

static struct bench s;

static int setup(void **state)
{
	(void)state;
	bench_open(&s, PEER_NOPIN, PSN);
	/* indices wrap soon */
	s.sq.prod = s.sq.cons = s.qp.req.wqe.cur = (uint32_t)FIRST;
	s.qp.req.wqe.asked_to = (uint32_t)FIRST;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	s.qp.resp.msg.recv.wqe = NULL;
	bench_close(&s);
	return 0;
}

/* A bit for each page that a pager is asked for. */
static uint32_t asked(bool write)
{
	uint32_t pages = 0;

	for (unsigned i = 0; i < BENCH_PAGES; i++) {
		const struct ticket *t = ticket_find(
			&s.mem->tickets, page_of(bench_page(i)), false);

		if (t && t->write == write)
			pages |= 1U << i;
	}
	return pages;
}

static void check(uint32_t to_read, uint32_t to_write)
{
	assert_int_equal(asked(false), to_read);
	assert_int_equal(asked(true), to_write);
}

/* The pagers bring all that was asked for, and nobody knows of it any more. */
static void forget(void)
{
	pages_brought(s.mem);
	while (tickets_out(s.mem))
		pages_brought(s.mem);
	assert_int_equal(spt_unmap(s.mem, page_of(BENCH_BASE), BENCH_PAGES), 0);
	check(0, 0);
}

/* A request of ours: @len bytes from page @i on, in one SGE. */
static struct wqe *post(enum wr_op op, unsigned i, uint32_t len)
{
	struct wqe *w = wq_reserve(&s.sq);

	assert_non_null(w);
	*w = (struct wqe){.op = op, .length = len, .num_sge = 1};
	*wqe_sge(w) = (struct sge){bench_page(i), len, s.key};
	wq_publish(&s.sq);
	return w;
}

/* --- ahead_sges() ------------------------------------------------------------- */

/* Two SGEs: a page and a byte from page 0 on, and one byte of page 4. */
static struct wqe *post_two(void)
{
	struct wqe *w = post(WR_SEND, 0, PAGE_BYTES + 1);

	w->num_sge = 2;
	w->length++;
	wqe_sge(w)[1] = (struct sge){bench_page(4), 1, s.key};
	return w;
}

static void ahead_sges__as_many_bytes(void **state)
{
	static const struct {
		uint64_t len;
		uint32_t pages;
	} want[] = {{0, 0},
		    {1, 1},
		    {PAGE_BYTES, 1},
		    {PAGE_BYTES + 1, 3},
		    {PAGE_BYTES + 2, 3 | 1 << 4},
		    {UINT32_MAX, 3 | 1 << 4}};
	const struct wqe *w = post_two();

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
		ahead_sges(&s.qp, w, want[i].len, false);
		check(want[i].pages, 0);
		forget();
		ahead_sges(&s.qp, w, want[i].len, true);
		check(0, want[i].pages);
		forget();
	}
}

/* Skip present pages and unknown keys. */
static void ahead_sges__only_what_is_missing(void **state)
{
	struct wqe *w = post_two();

	(void)state;
	bench_page_comes(&s, 0);
	ahead_sges(&s.qp, w, w->length, false);
	check(2 | 1 << 4, 0);
	forget();
	wqe_sge(w)[0].lkey ^= 1;
	ahead_sges(&s.qp, w, w->length, false);
	check(1 << 4, 0);
}

/* --- requests of the peer ------------------------------------------------------ */

static void request(uint8_t opcode, uint32_t payload, uint32_t len)
{
	struct pkt p = bench_pkt(&s, opcode, PSN);

	p.payload_len = payload;
	p.dma_len = len;
	ahead_request(&s.qp, &p);
}

static void ahead_request__whole_messages(void **state)
{
	const uint32_t two = PAGE_BYTES + 1;

	(void)state;
	request(OP_WRITE_FIRST, BENCH_MTU, two);
	check(0, 3);
	forget();
	request(OP_WRITE_ONLY, 1, 1);
	check(0, 1);
	forget();
	request(OP_READ_REQ, 0, two);
	check(3, 0);
	forget();
	request(OP_FETCH_ADD, 0, 0);
	check(0, 1);
	forget();
	request(OP_READ_REQ, 0, 0);
	check(0, 0);
}

/* Only the first packet of a WRITE names its address. */
static void ahead_request__not_of_the_middle(void **state)
{
	(void)state;
	bench_receive(&s, 0, 0, PAGE_BYTES);
	request(OP_WRITE_MIDDLE, BENCH_MTU, 4 * BENCH_MTU);
	request(OP_WRITE_LAST, 1, 4 * BENCH_MTU);
	request(OP_SEND_MIDDLE, BENCH_MTU, 4 * BENCH_MTU);
	request(OP_SEND_LAST, 1, 4 * BENCH_MTU);
	check(0, 0);
}

static void ahead_request__only_what_is_allowed(void **state)
{
	(void)state;
	s.qp.attr.access = ACCESS_REMOTE_READ;
	request(OP_WRITE_ONLY, 1, 1);
	request(OP_FETCH_ADD, 0, 0);
	check(0, 0);
	s.qp.attr.access = ACCESS_REMOTE_WRITE;
	request(OP_READ_REQ, 0, 1);
	check(0, 0);
}

/* A nopin says the length of the whole SEND. */
static void ahead_request__a_send(void **state)
{
	struct pkt p = bench_pkt(&s, OP_SEND_FIRST, PSN);

	(void)state;
	bench_receive(&s, 0, 0, 2 * PAGE_BYTES);
	p.payload_len = BENCH_MTU;
	p.dma_len = PAGE_BYTES + 1;
	ahead_request(&s.qp, &p);
	check(0, 3);
	forget();
	p.ext = false;
	ahead_request(&s.qp, &p);
	check(0, 1);
}

static void ahead_request__without_a_receive(void **state)
{
	(void)state;
	request(OP_SEND_ONLY, 1, 1);
	check(0, 0);
}

/* Packets that are accepted, from PSN on; a SEND follows. */
static void send_behind(const uint8_t *opcodes, unsigned n)
{
	struct window *w = &s.qp.resp.win;
	static uint8_t payload[1];
	struct pkt after;

	win_reset(&s.x, w, PSN);
	for (unsigned i = 0; i < n; i++) {
		struct pkt p = bench_pkt(&s, opcodes[i], psn_add(PSN, i));

		p.payload_len = !(p.op & OPF_READ);
		assert_int_equal(
			win_keep(&s.x, w, &p, payload_of_step(payload)), 0);
		win_advance(w, BENCH_MTU);
	}
	after = bench_pkt(&s, OP_SEND_ONLY, w->next);
	after.payload_len = after.dma_len = 1;
	ahead_request(&s.qp, &after);
}

/* Receive @i is in page @i. */
static void post_receives(void)
{
	for (unsigned i = 0; i < BENCH_PAGES; i++)
		bench_receive(&s, i, i, 1);
}

#define BEHIND(...)                                                            \
	send_behind((const uint8_t[]){__VA_ARGS__},                            \
		    sizeof((const uint8_t[]){__VA_ARGS__}))

/* Messages before it use receives up, each one: SENDs, and WRITEs that say so. */
static void ahead_request__the_receive_of_a_send(void **state)
{
	(void)state;
	post_receives();
	send_behind(NULL, 0);
	check(0, 1 << 0);
	forget();
	BEHIND(OP_SEND_ONLY, OP_SEND_ONLY_IMM);
	check(0, 1 << 2);
	forget();
	BEHIND(OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST);
	check(0, 1 << 1);
	forget();
	BEHIND(OP_WRITE_ONLY, OP_WRITE_FIRST, OP_WRITE_LAST, OP_READ_REQ);
	check(0, 1 << 0);
	forget();
	BEHIND(OP_WRITE_ONLY_IMM, OP_WRITE_FIRST, OP_WRITE_LAST_IMM);
	check(0, 1 << 2);
}

/* Executed packets already have their receives. */
static void ahead_request__behind_what_is_executed(void **state)
{
	(void)state;
	post_receives();
	s.qp.resp.plan = psn_add(PSN, 2);
	BEHIND(OP_SEND_ONLY, OP_SEND_ONLY, OP_SEND_ONLY);
	check(0, 1 << 1);
}

/* The message that waits has taken one, which is not posted any more. */
static void ahead_request__behind_a_message_that_has_one(void **state)
{
	struct message *m = &s.qp.resp.msg;

	(void)state;
	post_receives();
	assert_true(receive_take(m->source, &m->recv));
	BEHIND(OP_SEND_ONLY);
	check(0, 1 << 1);
	forget();
	BEHIND(OP_SEND_ONLY, OP_SEND_ONLY);
	check(0, 1 << 2);
	forget();
	send_behind(NULL, 0); /* it is that message */
	check(0, 1 << 0);
}

/* The missing packets may use up any number of receives. */
static void ahead_request__behind_a_gap(void **state)
{
	struct pkt p = bench_pkt(&s, OP_SEND_ONLY, psn_add(PSN, 1));

	(void)state;
	post_receives();
	p.payload_len = p.dma_len = 1;
	ahead_request(&s.qp, &p);
	check(0, 0);
}

/* --- requests of ours ---------------------------------------------------------- */

/* AHEAD_WQES requests behind the one that waits. */
static void ahead_sources__of_those_behind(void **state)
{
	(void)state;
	for (unsigned i = 0; i < AHEAD_WQES + 2; i++)
		post(i & 1 ? WR_SEND : WR_WRITE, i, 1);
	ahead_sources(&s.qp);
	check(0x1fe, 0);
	s.qp.req.wqe.cur++;
	ahead_sources(&s.qp);
	check(0x3fe, 0);
}

static void ahead_sources__nothing_is_behind(void **state)
{
	(void)state;
	ahead_sources(&s.qp);
	post(WR_SEND, 0, 1);
	ahead_sources(&s.qp);
	check(0, 0);
	post(WR_SEND, 1, 1);
	ahead_sources(&s.qp);
	check(2, 0);
}

/* Pages that were brought and went again are not asked for a second time. */
static void ahead_sources__once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		post(WR_SEND, i, 1);
	ahead_sources(&s.qp);
	check(6, 0);
	forget();
	ahead_sources(&s.qp);
	check(0, 0);
	post(WR_SEND, 3, 1);
	ahead_sources(&s.qp);
	check(8, 0);
}

/* The QP has moved past all that it asked for. */
static void ahead_sources__after_a_while(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++)
		post(WR_SEND, i, 1);
	s.qp.req.wqe.cur += 3;
	ahead_sources(&s.qp);
	check(1 << 4 | 1 << 5, 0);
}

static void ahead_sources__only_of_sources(void **state)
{
	struct wqe *w;

	(void)state;
	post(WR_SEND, 0, 1);
	w = post(WR_SEND, 1, 1);
	w->flags = WQE_INLINE;
	post(WR_READ, 2, 1);
	post(WR_FETCH_ADD, 3, 8);
	post(WR_LOCAL_INV, 4, 1);
	post(WR_WRITE_IMM, 5, 1);
	ahead_sources(&s.qp);
	check(1 << 5, 0);
}

static void ahead_reads__only_of_responses(void **state)
{
	(void)state;
	post(WR_SEND, 0, 1);
	post(WR_READ, 1, PAGE_BYTES + 1);
	post(WR_WRITE, 3, 1);
	post(WR_CMP_SWP, 4, 8);
	ahead_reads(&s.qp, (uint32_t)FIRST);
	check(0, 1 << 1 | 1 << 2 | 1 << 4);
}

static void ahead_reads__so_many(void **state)
{
	(void)state;
	for (unsigned i = 0; i < AHEAD_WQES + 2; i++)
		post(WR_READ, i, 1);
	ahead_reads(&s.qp, (uint32_t)FIRST + 1);
	check(0, 0x1fe);
	forget();
	ahead_reads(&s.qp, (uint32_t)FIRST + AHEAD_WQES + 2);
	check(0, 0);
}

/* READs of the peer behind the one that waits. */
static void ahead_responses__of_those_behind(void **state)
{
	struct resp_replay *r = &s.qp.resp.replay;

	(void)state;
	r->at = r->next = UINT32_MAX;
	ahead_responses(&s.qp);
	for (unsigned i = 0; i < 4; i++)
		r->res[r->next++ % RESOURCES_MAX] =
			(struct resource){.used = true,
					  .atomic = i == 2,
					  .num = 1,
					  .va = bench_page(i),
					  .rkey = s.key,
					  .len = 8};
	ahead_responses(&s.qp);
	check(1 << 1 | 1 << 3, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(ahead_sges__as_many_bytes),
		T(ahead_sges__only_what_is_missing),
		T(ahead_request__whole_messages),
		T(ahead_request__not_of_the_middle),
		T(ahead_request__only_what_is_allowed),
		T(ahead_request__a_send),
		T(ahead_request__without_a_receive),
		T(ahead_request__the_receive_of_a_send),
		T(ahead_request__behind_what_is_executed),
		T(ahead_request__behind_a_message_that_has_one),
		T(ahead_request__behind_a_gap),
		T(ahead_sources__of_those_behind),
		T(ahead_sources__nothing_is_behind),
		T(ahead_sources__once),
		T(ahead_sources__after_a_while),
		T(ahead_sources__only_of_sources),
		T(ahead_reads__only_of_responses),
		T(ahead_reads__so_many),
		T(ahead_responses__of_those_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
