/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* burst_test.c: packets that share a send call, the payload resolved for them, and the
 * end of bursts for a peer that sees their first packets only.
 */
#include "base/page.h"
#include "mem/dma.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/waiter.h"
#include "memory.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "xport/burst.h"
#include "xport/tx.h"

enum { MTU = 1024, SLOTS = 8, BASE = 0x100000, PAGES = 32, QPN = 77 };
enum { LINE = 50, EP_PORT = 5000, ASKED_PORT = 6000 };
/* XMORE: bytes of an extension packet besides its payload */
enum { XMORE = XDATA_HDR + ICRC_BYTES };
enum { LAST_PSN = 0xffffff };

static const struct ip_mark mark = {.tclass = 8, .hops = 9};

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct peer peer;
	struct qp qp;
	struct burst b;
	struct waiter wait;
	uint32_t pd, key;
} s;

static int setup(void **state)
{
	const struct endpoint ep = {.ip.b = {0xfd, [15] = 2}, .port = EP_PORT};
	const struct ipaddr local = {{0xfd, [15] = 1}};
	struct mr_attr mr = {.addr = BASE,
			     .iova = BASE,
			     .length = PAGES * PAGE_BYTES,
			     .access = ACCESS_LOCAL_WRITE};

	memset(&s, 0, sizeof(s));
	*state = open_memory_as(&s.mem, &s.x, &s.cnt, SLOTS, 8, true);
	s.pd = mr.pd = (uint32_t)pd_alloc(s.mem);
	assert_int_equal(mr_register(s.mem, &mr, &s.key), 0);
	peer_init(&s.peer, &ep, &local);
	s.peer.asked.port = ASKED_PORT;
	s.peer.mark = mark;
	s.peer.path.gso = true;
	s.qp = (struct qp){
		.x = &s.x,
		.peer = &s.peer,
		.cfg = {.qpn = QPN, .pd = s.pd},
		.attr = {.traffic_class = mark.tclass, .hop_limit = mark.hops},
		.connected = true,
		.mtu = MTU};
	waiter_init(&s.wait, &s.qp);
	return 0;
}

static int teardown(void **state)
{
	waiter_cancel(s.mem, &s.wait);
	dma_release(s.mem, &s.b.holds, 0, true, 0);
	assert_int_equal(mr_free(s.mem, s.key), 0);
	assert_int_equal(pd_dealloc(s.mem, s.pd), 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

static void begin(bool ext)
{
	burst_reset(&s.b, &s.qp, &s.peer, ext);
}

static struct seg *append(psn_t psn, uint32_t payload, const uint8_t *inl)
{
	struct pkt p = {.opcode = OP_WRITE_MIDDLE,
			.ext = s.b.ext,
			.qpn = QPN,
			.psn = psn,
			.payload_len = payload};

	return burst_seg(&s.b, &p, inl);
}

/* Return: how many packets with as much payload fit. */
static unsigned fit(uint32_t payload, const uint8_t *inl)
{
	unsigned n = 0;

	begin(true);
	while (append(n, payload, inl))
		n++;
	assert_int_equal(s.b.nsegs, n);
	assert_int_equal(s.b.total, n * (payload + XMORE));
	return n;
}

static void check_mark(struct ip_mark m)
{
	assert_true(ip_mark_eq(s.b.way.mark, m));
}

/* --- destination ------------------------------------------------------------- */

static void burst_mark__of_whom_it_is(void **state)
{
	const struct ip_mark of_qp = {.tclass = 1, .hops = 2};
	const struct ip_mark of_datagram = {.tclass = 3, .hops = 4};

	(void)state;
	begin(true);
	burst_mark(&s.b, NULL);
	check_mark(mark);
	s.qp.attr.traffic_class = of_qp.tclass;
	s.qp.attr.hop_limit = of_qp.hops;
	burst_mark(&s.b, &s.qp);
	check_mark(of_qp);
	s.qp.connected = false;
	s.qp.ud.to.mark = of_datagram;
	burst_mark(&s.b, &s.qp);
	check_mark(of_datagram);
}

/* Lines have the mark of the peer, and are for extension packets only. */
static void burst_mark__a_line_of_the_same_mark(void **state)
{
	(void)state;
	begin(true);
	assert_int_equal(s.b.way.line, 0);
	s.peer.path.lines = 1;
	s.peer.path.line[0] = LINE;
	begin(true);
	assert_int_equal(s.b.way.line, LINE);
	begin(false);
	assert_int_equal(s.b.way.line, 0);
	s.qp.attr.traffic_class++;
	begin(true);
	assert_int_equal(s.b.way.line, 0);
	s.qp.attr.traffic_class--;
	s.qp.attr.hop_limit++;
	begin(true);
	assert_int_equal(s.b.way.line, 0);
}

static void burst_suits__class_and_hops(void **state)
{
	(void)state;
	begin(true);
	assert_true(burst_suits(&s.b, &s.qp));
	s.qp.attr.traffic_class++;
	assert_false(burst_suits(&s.b, &s.qp));
	s.qp.attr.traffic_class--;
	s.qp.attr.hop_limit++;
	assert_false(burst_suits(&s.b, &s.qp));
}

static void burst_reset__the_port(void **state)
{
	(void)state;
	begin(true);
	assert_int_equal(s.b.way.to.port, ASKED_PORT);
	begin(false);
	assert_int_equal(s.b.way.to.port, ROCE_PORT);
	assert_true(ipaddr_eq(&s.b.way.to.ip, &s.peer.ep.ip));
	s.peer.datagrams = true;
	begin(false);
	assert_int_equal(s.b.way.to.port, EP_PORT);
}

static void burst_reset__forgets_the_one_before(void **state)
{
	(void)state;
	begin(false);
	assert_non_null(append(0, 4, NULL));
	s.b.request = s.b.opens = s.b.narrow = s.b.acks.says = true;
	s.b.acks.num = s.b.ahead = s.b.sent.out = s.b.sent.epoch = 1;
	begin(true);
	assert_false(s.b.request || s.b.opens || s.b.narrow || s.b.acks.says);
	assert_int_equal(
		s.b.acks.num | s.b.ahead | s.b.sent.out | s.b.sent.epoch, 0);
	assert_non_null(append(0, MTU, NULL));
	assert_int_equal(s.b.total, MTU + XMORE);
	assert_int_equal(s.b.seg[0].hdr, 0);
}

static void burst_spray__in_turn(void **state)
{
	enum { LINES = 3 };

	(void)state;
	s.peer.path.lines = LINES;
	for (int i = 0; i < LINES; i++)
		s.peer.path.line[i] = LINE + i;
	for (int i = 1; i <= 2 * LINES; i++) {
		begin(true);
		burst_spray(&s.b);
		assert_int_equal(s.b.way.line, LINE + i % LINES);
	}
}

static void burst_spray__one_way_only(void **state)
{
	(void)state;
	s.peer.path.lines = 2;
	s.peer.path.line[0] = LINE;
	s.peer.path.line[1] = LINE + 1;
	begin(false);
	burst_spray(&s.b);
	assert_int_equal(s.b.way.line, 0);
	s.peer.path.lines = 1;
	s.peer.path.next = 1;
	begin(true);
	burst_spray(&s.b);
	assert_int_equal(s.b.way.line, LINE);
}

/* --- room -------------------------------------------------------------------- */

static void burst_full__so_many_packets(void **state)
{
	(void)state;
	begin(true);
	assert_false(burst_full(&s.b));
	for (unsigned i = 0; i < BURST_SEGS; i++) {
		assert_false(burst_full(&s.b));
		assert_non_null(append(i, 16, NULL));
	}
	assert_true(burst_full(&s.b));
	assert_null(append(BURST_SEGS, 16, NULL));
	assert_int_equal(s.b.nsegs, BURST_SEGS);
}

static void burst_full__one_without_gso(void **state)
{
	(void)state;
	s.peer.path.gso = false;
	begin(true);
	assert_non_null(append(0, MTU, NULL));
	assert_true(burst_full(&s.b));
	assert_null(append(1, MTU, NULL));
}

/* All but the last are equally long. */
static void burst_seg__a_shorter_one_is_the_last(void **state)
{
	(void)state;
	begin(true);
	assert_non_null(append(0, MTU, NULL));
	assert_null(append(1, MTU + 1, NULL));
	assert_int_equal(s.b.nsegs, 1);
	assert_int_equal(s.b.total, MTU + XMORE);
	assert_non_null(append(1, MTU, NULL));
	assert_false(burst_full(&s.b));
	assert_non_null(append(2, MTU - 1, NULL));
	assert_true(burst_full(&s.b));
	assert_null(append(3, MTU - 1, NULL));
	assert_int_equal(s.b.total, 3 * (MTU + XMORE) - 1);
}

static void burst_seg__as_many_bytes_as_a_send_takes(void **state)
{
	enum { N = 20, EACH = BURST_MAX / N - XMORE };

	(void)state;
	assert_int_equal(N * (EACH + XMORE), BURST_MAX);
	assert_int_equal(fit(EACH, NULL), N);
	assert_int_equal(fit(EACH + 1, NULL), N - 1);
}

static void burst_seg__as_much_inline_as_there_is_room(void **state)
{
	enum { N = 16, EACH = BURST_BYTES / N - XMORE };
	static const uint8_t inl[EACH + 1];

	(void)state;
	assert_int_equal(fit(EACH, inl), N);
	assert_int_equal(s.b.bytes_used, BURST_BYTES);
	assert_int_equal(fit(EACH + 1, inl), N - 1);
}

/* Payload is padded to four bytes, and the ICRC comes later. */
static void burst_seg__of_a_standard_packet(void **state)
{
	static const uint8_t inl[] = {1, 2, 3, 4, 5}, none[3 + ICRC_BYTES];
	const struct seg *seg;

	(void)state;
	begin(false);
	memset(s.b.bytes, 0xee, sizeof(s.b.bytes));
	seg = append(0, sizeof(inl), inl);
	assert_non_null(seg);
	assert_int_equal(seg->hdr_len, BTH_BYTES + sizeof(inl));
	assert_int_equal(seg->inl_len, sizeof(inl));
	assert_int_equal(seg->payload_len, 0);
	assert_int_equal(seg->trailer_len, sizeof(none));
	assert_memory_equal(s.b.bytes + BTH_BYTES, inl, sizeof(inl));
	assert_memory_equal(s.b.bytes + seg->hdr_len, none, sizeof(none));
	assert_int_equal(s.b.bytes[seg->hdr_len + seg->trailer_len], 0xee);
}

static void check_crc(unsigned i)
{
	const struct seg *seg = &s.b.seg[i];
	const uint8_t *hdr = s.b.bytes + seg->hdr;

	assert_int_equal(seg->hdr_len - seg->inl_len, XDATA_HDR);
	assert_true(xcrc_ok(hdr, XDATA_HDR, hdr + seg->hdr_len));
}

/* The checksum is over the headers, and stands behind inline payload. */
static void burst_seg__of_an_extension_packet(void **state)
{
	static const uint8_t inl[] = {1, 2, 3, 4, 5};

	(void)state;
	begin(true);
	assert_non_null(append(0, sizeof(inl), inl));
	assert_non_null(append(1, sizeof(inl), NULL));
	check_crc(0);
	check_crc(1);
	assert_memory_equal(s.b.bytes + XDATA_HDR, inl, sizeof(inl));
	assert_int_equal(s.b.seg[1].payload_len, sizeof(inl));
	assert_int_equal(burst_payload(&s.b), 2 * sizeof(inl));
}

static void burst_next__goes_on(void **state)
{
	static const psn_t psns[] = {LAST_PSN, 0, 1, 2};
	struct pkt first = {.opcode = OP_WRITE_FIRST,
			    .ext = true,
			    .qpn = QPN,
			    .psn = psn_add(LAST_PSN, PSN_MASK),
			    .payload_len = MTU};
	struct pkt p;

	(void)state;
	begin(true);
	assert_non_null(burst_seg(&s.b, &first, NULL));
	for (unsigned i = 0; i < ARRAY_SIZE(psns); i++) {
		const struct seg *seg = burst_next(&s.b, OP_WRITE_MIDDLE,
						   psns[i], MTU);

		assert_non_null(seg);
		check_crc(i + 1);
		assert_int_equal(pkt_parse(s.b.bytes + seg->hdr, XDATA_HDR,
					   MTU + XMORE, &p),
				 CNT_NUM);
		assert_int_equal(p.psn, psns[i]);
		assert_int_equal(p.opcode, OP_WRITE_MIDDLE);
		assert_int_equal(p.payload_len, MTU);
		assert_int_equal(p.qpn, QPN);
	}
	assert_null(burst_next(&s.b, OP_WRITE_MIDDLE, 3, MTU + 1));
	assert_int_equal(burst_payload(&s.b), 5 * MTU);
}

/* --- payload ----------------------------------------------------------------- */

static void page_comes(unsigned i)
{
	spt_map(s.mem, page_of(BASE) + i, 1, true, 0);
}

/* The packet @i of a message, of which @ahead bytes are behind it, takes its payload. */
static enum verdict gather(unsigned i, uint64_t ahead)
{
	const struct dma d = {.pd = s.pd,
			      .key = s.key,
			      .iova = BASE + (uint64_t)i * MTU,
			      .len = MTU,
			      .ahead = ahead};

	assert_non_null(append(i, MTU, NULL));
	return burst_gather(&s.b, &d, &s.wait);
}

static void check_move(unsigned i, uint64_t addr, uint32_t len)
{
	assert_true(i < s.b.gathers.num);
	assert_int_equal(s.b.gathers.m[i].kind, MOVE_GATHER);
	assert_int_equal(s.b.gathers.m[i].addr, addr);
	assert_int_equal(s.b.gathers.m[i].len, len);
}

/* One move is for all packets; burst_trim() leaves the used part of it. */
static void burst_gather__all_at_once(void **state)
{
	(void)state;
	page_comes(0);
	page_comes(1);
	begin(true);
	assert_int_equal(gather(0, 7 * MTU), V_OK);
	check_move(0, BASE, 8 * MTU);
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(gather(i, (7 - i) * MTU), V_OK);
	assert_int_equal(s.b.gathers.num, 1);
	assert_int_equal(s.b.ahead, 5 * MTU);
	assert_true(spt_held(s.mem, page_of(BASE) + 1, 1));
	burst_trim(&s.b);
	check_move(0, BASE, 3 * MTU);
	assert_int_equal(s.b.ahead, 0);
	assert_true(spt_held(s.mem, page_of(BASE), 1));
	assert_false(spt_held(s.mem, page_of(BASE) + 1, 1));
}

/* Resolve no more than fits into the burst. */
static void burst_gather__as_much_as_follows(void **state)
{
	const uint32_t each = MTU + XMORE;
	uint32_t len;

	(void)state;
	for (unsigned i = 0; i < PAGES; i++)
		page_comes(i);
	begin(true);
	assert_int_equal(gather(0, (PAGES * PAGE_BYTES) - MTU), V_OK);
	len = s.b.gathers.m[0].len;
	assert_in_range(len, MTU * (BURST_MAX / each), BURST_MAX);
	assert_int_equal(s.b.ahead, len - MTU);
}

/* Resolve nothing behind the packet that ends it. */
static void burst_gather__nothing_follows(void **state)
{
	(void)state;
	page_comes(0);
	s.peer.path.gso = false;
	begin(true);
	assert_int_equal(gather(0, MTU), V_OK);
	check_move(0, BASE, MTU);
	assert_int_equal(s.b.ahead, 0);
}

/* A page behind is missing: packet by packet, as far as pages are there. */
static void burst_gather__a_page_ahead_is_missing(void **state)
{
	enum { THERE = PAGE_BYTES / MTU };

	(void)state;
	page_comes(0);
	begin(true);
	for (unsigned i = 0; i < THERE; i++) {
		assert_int_equal(gather(i, (7 - i) * MTU), V_OK);
		check_move(i, BASE + (uint64_t)i * MTU, MTU);
		assert_int_equal(s.b.gathers.m[i].token, i);
	}
	assert_int_equal(gather(THERE, 3 * MTU), V_WAIT);
	assert_int_equal(s.b.gathers.num, THERE);
	assert_int_equal(s.b.holds.num, THERE);
	assert_int_equal(s.b.ahead, 0);
}

/* No gather is for two standard packets. */
static void burst_gather__of_standard_packets(void **state)
{
	(void)state;
	page_comes(0);
	begin(false);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(gather(i, MTU), V_OK);
		check_move(i, BASE + (uint64_t)i * MTU, MTU);
	}
}

static void burst_unseg__gives_all_back(void **state)
{
	uint32_t used;

	(void)state;
	page_comes(0);
	page_comes(1);
	begin(false);
	assert_int_equal(gather(0, 0), V_OK);
	used = s.b.bytes_used;
	assert_int_equal(gather(PAGE_BYTES / MTU, 0), V_OK);
	assert_true(spt_held(s.mem, page_of(BASE) + 1, 1));
	burst_unseg(&s.b, 1, 1);
	assert_int_equal(s.b.nsegs, 1);
	assert_int_equal(s.b.bytes_used, used);
	assert_int_equal(s.b.total, BTH_BYTES + MTU + ICRC_BYTES);
	assert_int_equal(s.b.gathers.num, 1);
	assert_int_equal(s.b.holds.num, 1);
	assert_true(spt_held(s.mem, page_of(BASE), 1));
	assert_false(spt_held(s.mem, page_of(BASE) + 1, 1));
	/* the length is still that of the first */
	assert_null(append(1, MTU + 4, NULL));
	burst_unseg(&s.b, 0, 0);
	assert_int_equal(s.b.total, 0);
	assert_false(spt_held(s.mem, page_of(BASE), 1));
	assert_non_null(append(1, MTU + 4, NULL));
	assert_non_null(append(2, MTU + 4, NULL));
}

/* --- GSO --------------------------------------------------------------------- */

/* A burst of @n packets leaves, the first of which is @psn. */
static void leaves(struct gso_watch *g, bool ext, psn_t psn, unsigned n)
{
	begin(ext);
	for (unsigned i = 0; i < n; i++)
		assert_non_null(append(psn_add(psn, i), 4, NULL));
	gso_sent(g, &s.b);
}

static void gso_sent__what_is_watched(void **state)
{
	struct gso_watch g = {.armed = false};

	(void)state;
	leaves(&g, false, 0, 1);
	assert_false(g.armed);
	leaves(&g, true, 0, 2);
	assert_false(g.armed);
	leaves(&g, false, LAST_PSN, 3);
	assert_true(g.armed);
	assert_int_equal(g.second, 0);
	/* and nothing else before its fate is known */
	leaves(&g, false, 10, 2);
	assert_int_equal(g.second, 0);
}

static void gso_passed__with_the_second(void **state)
{
	struct gso_watch g = {.doubts = 2};

	(void)state;
	leaves(&g, false, LAST_PSN, 2);
	gso_passed(&g, LAST_PSN);
	assert_true(g.armed);
	gso_passed(&g, 0);
	assert_true(g.armed);
	gso_passed(&g, 1);
	assert_false(g.armed);
	assert_int_equal(g.doubts, 0);
}

/* A burst leaves from @psn on, and all of it from @missing on is lost. */
static void lost(struct gso_watch *g, psn_t psn, psn_t missing)
{
	leaves(g, false, psn, 3);
	gso_missing(&s.qp, g, missing);
	assert_false(g->armed);
}

static void gso_missing__the_second_each_time(void **state)
{
	struct gso_watch g = {.armed = false};

	(void)state;
	lost(&g, LAST_PSN, 0);
	lost(&g, 0, 1);
	assert_true(s.peer.path.gso);
	/* nothing has left that may be missing */
	gso_missing(&s.qp, &g, 1);
	assert_true(s.peer.path.gso);
	lost(&g, 1, 2);
	assert_false(s.peer.path.gso);
	assert_int_equal(s.cnt.v[CNT_gso_off], 1);
}

static void gso_missing__another(void **state)
{
	struct gso_watch g = {.armed = false};

	(void)state;
	for (psn_t psn = 0; psn < 10; psn += 2) {
		lost(&g, psn, psn_add(psn, 1));
		lost(&g, psn, psn_add(psn, 1));
		/* the second came */
		lost(&g, psn, psn_add(psn, 2));
	}
	assert_true(s.peer.path.gso);
}

/* That nothing of a burst came says nothing of how it is cut. */
static void gso_missing__all(void **state)
{
	struct gso_watch g = {.armed = false};

	(void)state;
	for (int i = 0; i < 5; i++)
		lost(&g, 5, 5);
	assert_true(s.peer.path.gso);
	lost(&g, 5, 6);
	lost(&g, 6, 7);
	lost(&g, 7, 7);
	assert_true(s.peer.path.gso);
	lost(&g, 7, 8);
	assert_false(s.peer.path.gso);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(burst_mark__of_whom_it_is),
		T(burst_mark__a_line_of_the_same_mark),
		T(burst_suits__class_and_hops),
		T(burst_reset__the_port),
		T(burst_reset__forgets_the_one_before),
		T(burst_spray__in_turn),
		T(burst_spray__one_way_only),
		T(burst_full__so_many_packets),
		T(burst_full__one_without_gso),
		T(burst_seg__a_shorter_one_is_the_last),
		T(burst_seg__as_many_bytes_as_a_send_takes),
		T(burst_seg__as_much_inline_as_there_is_room),
		T(burst_seg__of_a_standard_packet),
		T(burst_seg__of_an_extension_packet),
		T(burst_next__goes_on),
		T(burst_gather__all_at_once),
		T(burst_gather__as_much_as_follows),
		T(burst_gather__nothing_follows),
		T(burst_gather__a_page_ahead_is_missing),
		T(burst_gather__of_standard_packets),
		T(burst_unseg__gives_all_back),
		T(gso_sent__what_is_watched),
		T(gso_passed__with_the_second),
		T(gso_missing__the_second_each_time),
		T(gso_missing__another),
		T(gso_missing__all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
