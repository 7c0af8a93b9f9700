/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* window_test.c: what waits, up to where it is complete, and the map of the rest
 * that the peer gets: a wrong bit makes it send again what is here, and what is
 * missing only when it asks.
 */
#include "mem/mem.h"
#include "mem/pool.h"
#include "mem/state.h"
#include "memory.h"
#include "wire/opcode.h"
#include "xport/kept.h"
#include "xport/window.h"
#include "xport/xport.h"

#include <errno.h>

enum { SLOTS = 80, ANYBODYS = 70, MTU = 1024, FIRST = 0xfffff0 };

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct window w, other; /* of two peers */
	uint32_t held[2];
	struct accepted bare[RD_ATOMIC_MAX];
} s;

static int setup(void **state)
{

	*state = open_memory(&s.mem, &s.x, &s.cnt, SLOTS);
	list_init(&s.w.waiting);
	list_init(&s.other.waiting);
	s.w.bare = s.bare;
	s.w.bares = RD_ATOMIC_MAX;
	s.w.held = &s.held[0];
	s.other.held = &s.held[1];
	win_reset(&s.x, &s.w, FIRST);
	win_reset(&s.x, &s.other, FIRST);
	return 0;
}

static int teardown(void **state)
{
	win_reset(&s.x, &s.w, FIRST);
	win_reset(&s.x, &s.other, FIRST);
	assert_int_equal(slots_free(s.mem), SLOTS);
	assert_int_equal(s.held[0] + s.held[1], 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

/* A packet that is @i after the first one. */
static int keep_in(struct window *w, uint32_t i, uint8_t opcode,
		   uint32_t dma_len)
{
	uint8_t payload[4] = {(uint8_t)i};
	const struct pkt p = {.psn = psn_add(FIRST, i),
			      .opcode = opcode,
			      .dma_len = dma_len,
			      .payload_len = sizeof(payload)};

	return win_keep(&s.x, w, &p, payload_of_step(payload));
}

static int keep(uint32_t i, uint8_t opcode, uint32_t dma_len)
{
	return keep_in(&s.w, i, opcode, dma_len);
}

static void keep_all(const uint8_t *i, unsigned n)
{
	while (n--)
		assert_int_equal(keep(*i++, OP_WRITE_MIDDLE, 0), 0);
}

/* Bit 0 is the PSN behind the one that is missing. PSNs wrap in here. */
static void win_sack__one_bit_a_packet(void **state)
{
	static const uint8_t here[] = {5, 2, 64, 33, 65, 3};

	(void)state;
	assert_int_equal(win_sack(&s.w), 0);
	keep_all(here, sizeof(here));
	assert_int_equal(win_sack(&s.w), 1 << (2 - 1) | 1 << (3 - 1) |
						 1 << (5 - 1) |
						 UINT64_C(1) << (33 - 1) |
						 UINT64_C(1) << (64 - 1));
	/* 0 and 1 come, and make it whole up to 4 */
	keep_all((const uint8_t[]){1, 0}, 2);
	win_advance(&s.w, MTU);
	assert_int_equal(s.w.next, psn_add(FIRST, 4));
	assert_int_equal(win_sack(&s.w), 1 << (5 - 4 - 1) | 1 << (33 - 4 - 1) |
						 UINT64_C(1) << (64 - 4 - 1) |
						 UINT64_C(1) << (65 - 4 - 1));
}

static void win_advance__read_spans_its_responses(void **state)
{
	(void)state;
	assert_int_equal(keep(0, OP_READ_REQ, 0), 0);
	assert_int_equal(keep(1, OP_READ_REQ, MTU), 0);
	assert_int_equal(keep(2, OP_READ_REQ, MTU + 1), 0);
	assert_int_equal(keep(4, OP_WRITE_ONLY, 0), 0);
	win_advance(&s.w, MTU);
	assert_int_equal(s.w.next, psn_add(FIRST, 5));
}

static void win_at__in_order(void **state)
{
	static const uint8_t here[] = {7, 3, 9, 0};
	uint32_t last = 0;

	(void)state;
	keep_all(here, sizeof(here));
	assert_false(win_has(&s.w, psn_add(FIRST, 1)));
	assert_false(win_has(&s.w, psn_add(FIRST, 10)));
	list_for_each(l, &s.w.waiting) {
		struct accepted *a = list_entry(l, struct accepted, link);
		uint32_t i = (uint32_t)psn_diff(a->pkt.psn, FIRST);

		assert_true(i >= last);
		assert_int_equal(*slot_data(s.mem, a->slot), i);
		last = i;
	}
	assert_int_equal(last, 9);
}

static void win_truncate__forgets_what_follows(void **state)
{
	static const uint8_t here[] = {0, 1, 2, 4};

	(void)state;
	keep_all(here, sizeof(here));
	win_advance(&s.w, MTU);
	win_truncate(&s.x, &s.w, psn_add(FIRST, 4));
	assert_int_equal(s.w.next, psn_add(FIRST, 3));
	win_truncate(&s.x, &s.w, psn_add(FIRST, 1));
	assert_int_equal(s.w.next, psn_add(FIRST, 1));
	assert_int_equal(s.w.num, 1);
	assert_int_equal(slots_free(s.mem), SLOTS - 1);
}

/* How many of a peer that never gives one back. */
static uint32_t fill(struct window *w)
{
	uint32_t n = 0;

	while (keep_in(w, n, OP_WRITE_MIDDLE, 0) == 0)
		n++;
	assert_int_equal(keep_in(w, n, OP_WRITE_MIDDLE, 0), -EAGAIN);
	assert_int_equal(w->num, n);
	return n;
}

/* I4: whoever comes first leaves some to others, and these do, too. */
static void win_keep__no_slot(void **state)
{
	(void)state;
	/* all but those for first packets */
	assert_int_equal(win_slots(&s.x, 0), ANYBODYS * 4 / 5);
	assert_int_equal(fill(&s.w), ANYBODYS * 4 / 5);
	assert_int_equal(win_slots(&s.x, s.held[0]), 0);
	assert_in_range(fill(&s.other), ANYBODYS / 10, ANYBODYS / 5 - 1);
	assert_true(win_slots(&s.x, 0) > 0);
	win_reset(&s.x, &s.w, FIRST);
	assert_true(win_slots(&s.x, s.held[1]) > SLOTS / 2);
}

/* A READ or an atomic has its place when all slots are taken, as many as there may
 * be; and gives it back. */
static void win_keep__without_payload(void **state)
{
	struct pkt p = {.opcode = OP_READ_REQ, .op = OPF_READ};

	(void)state;
	fill(&s.w);
	for (uint32_t n = 0; n < 3 * RD_ATOMIC_MAX; n++) {
		p.op ^= OPF_READ | OPF_ATOMIC;
		p.psn = psn_add(FIRST, 100 + n);
		assert_int_equal(
			win_keep(&s.x, &s.w, &p, payload_of_step(NULL)), 0);
		assert_null(win_payload(&s.x, win_at(&s.w, p.psn)).at);
		if (n >= RD_ATOMIC_MAX - 1)
			win_drop(&s.x, &s.w,
				 win_at(&s.w,
					psn_add(p.psn, -(RD_ATOMIC_MAX - 1))));
	}
	p.psn = psn_add(p.psn, 1);
	assert_int_equal(win_keep(&s.x, &s.w, &p, payload_of_step(NULL)), 0);
	p.psn = psn_add(p.psn, 1);
	assert_int_equal(win_keep(&s.x, &s.w, &p, payload_of_step(NULL)),
			 -EAGAIN);
	/* who has no such places takes slots */
	assert_int_equal(win_keep(&s.x, &s.other, &p, payload_of_step(NULL)),
			 0);
	assert_non_null(win_payload(&s.x, win_at(&s.other, p.psn)).at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(win_sack__one_bit_a_packet,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			win_advance__read_spans_its_responses, setup, teardown),
		cmocka_unit_test_setup_teardown(win_keep__without_payload,
						setup, teardown),
		cmocka_unit_test_setup_teardown(win_at__in_order, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			win_truncate__forgets_what_follows, setup, teardown),
		cmocka_unit_test_setup_teardown(win_keep__no_slot, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
