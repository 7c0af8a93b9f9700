/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* moving_test.c: a page that a move is being written to is busy for everybody
 * else, who goes on in the order they came.
 */
#include "fixture.h"
#include "mem/dma.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "mem/waiter.h"

enum { WAITERS = 4 };

/**
 * struct others - Plans of other QPs than the fixture's.
 */
struct others {
	struct fix f;
	struct holds holds[2];
	struct moves mv;
	struct waiter w[WAITERS];
};

static struct others *others_open(bool exact)
{
	struct others *o = test_calloc(1, sizeof(*o));

	fix_open(&o->f, (struct mem_config){.entries = 1024, .exact = exact});
	for (unsigned i = 0; i < WAITERS; i++)
		waiter_init(&o->w[i], &o->w[i]);
	spt_map(o->f.m, 10, 10, true, o->f.now);
	return o;
}

static void others_close(struct others *o)
{
	dma_release(o->f.m, &o->holds[0], 0, false, o->f.now);
	dma_release(o->f.m, &o->holds[1], 0, false, o->f.now);
	fix_close(&o->f);
	test_free(o);
}

static enum verdict others_access(struct others *o, unsigned i, uint64_t vpn,
				  uint64_t pages, bool write, struct waiter *w)
{
	struct dma d = fix_dma(&o->f, vpn * 4096, pages * 4096, write);

	o->mv.num = 0;
	return dma_resolve(o->f.m, &d, o->f.slot, 0, o->f.now, o->f.fresh, w,
			   &o->mv, &o->holds[i]);
}

/* Who may go on now, in order: checked and taken. */
static void others_woken(struct others *o, struct waiter *a, struct waiter *b)
{
	struct waiter *const want[] = {a, b};
	struct list woken;
	unsigned n = 0;

	assert_int_equal(moved_waiters(o->f.m), a != NULL);
	list_init(&woken);
	moved_take(o->f.m, &woken);
	assert_false(moved_waiters(o->f.m));
	list_for_each_safe(pos, tmp, &woken) {
		struct waiter *w = list_entry(pos, struct waiter, link);

		assert_true(n < 2 && w == want[n++]);
		assert_int_equal(w->ticket.v, 0);
		list_del(pos);
	}
	assert_int_equal(n, (a != NULL) + (b != NULL));
}

/* What a move writes is nobody else's; what it reads, and other pages, are. */
static void dma_resolve__a_page_that_is_written_is_busy(void **state)
{
	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		struct others *o = others_open(exact);
		struct fix *f = &o->f;

		assert_int_equal(fix_access(f, 12, 2, true, NULL), V_OK);
		for (int write = 0; write < 2; write++) {
			bool w = write;

			assert_int_equal(others_access(o, 0, 12, 1, w, NULL),
					 V_WAIT);
			assert_int_equal(others_access(o, 0, 10, 3, w, NULL),
					 V_WAIT);
			assert_int_equal(others_access(o, 0, 13, 2, w, NULL),
					 V_WAIT);
			assert_int_equal(o->mv.num + o->holds[0].num, 0);
			assert_int_equal(others_access(o, 0, 11, 1, w, NULL),
					 V_OK);
			assert_int_equal(others_access(o, 0, 14, 1, w, NULL),
					 V_OK);
			dma_release(f->m, &o->holds[0], 0, true, f->now);
		}
		/* the same plan goes on */
		assert_int_equal(fix_access(f, 12, 1, true, NULL), V_OK);
		dma_release(f->m, &f->holds, 0, true, f->now);
		assert_int_equal(others_access(o, 0, 12, 2, true, NULL), V_OK);
		dma_release(f->m, &o->holds[0], 0, true, f->now);

		assert_int_equal(others_access(o, 0, 12, 1, false, NULL), V_OK);
		assert_int_equal(others_access(o, 1, 12, 1, true, NULL), V_OK);
		others_close(o);
	}
}

/* An atomic is no exception. */
static void dma_resolve_atomic__busy(void **state)
{
	struct others *o = others_open(true);
	struct fix *f = &o->f;
	struct dma d = fix_dma(f, 12 * 4096, 8, true);

	(void)state;
	d.need = ACCESS_REMOTE_ATOMIC;
	for (int i = 0; i < 2; i++)
		assert_int_equal(dma_resolve_atomic(f->m, &d, MOVE_FETCH_ADD, 1,
						    0, 0, f->now, f->fresh,
						    i ? &o->w[0] : NULL, &o->mv,
						    &o->holds[i]),
				 i ? V_WAIT : V_OK);
	assert_int_equal(others_access(o, 1, 12, 1, true, &o->w[1]), V_WAIT);
	dma_release(f->m, &o->holds[0], 0, true, f->now);
	others_woken(o, &o->w[0], &o->w[1]);
	others_close(o);
}

/* In the order they came; who waits for another page does so. */
static void dma_release__wakes_in_order(void **state)
{
	struct others *o = others_open(true);
	struct fix *f = &o->f;

	(void)state;
	assert_int_equal(fix_access(f, 12, 1, true, NULL), V_OK);
	assert_int_equal(others_access(o, 0, 14, 1, true, NULL), V_OK);
	assert_int_equal(others_access(o, 1, 12, 1, false, &o->w[2]), V_WAIT);
	assert_int_equal(others_access(o, 1, 14, 1, true, &o->w[3]), V_WAIT);
	assert_int_equal(others_access(o, 1, 11, 2, true, &o->w[0]), V_WAIT);
	/* again, in vain: keeps its place */
	assert_int_equal(others_access(o, 1, 12, 1, false, &o->w[2]), V_WAIT);
	assert_int_equal(f->cnt.v[CNT_moving_waits], 3);
	assert_int_equal(tickets_out(f->m), 0);
	others_woken(o, NULL, NULL);
	dma_release(f->m, &f->holds, 0, true, f->now);
	others_woken(o, &o->w[2], &o->w[0]);
	assert_int_equal(others_access(o, 1, 11, 2, true, &o->w[0]), V_OK);
	assert_int_equal(o->w[0].ticket.v, 0);
	dma_release(f->m, &o->holds[0], 0, false, f->now);
	others_woken(o, &o->w[3], NULL);
	others_close(o);
}

/* A plan that comes to nothing wakes nobody: who waits for several pages would
 * wake itself for ever.
 */
static void dma_release__of_a_vain_plan_wakes_nobody(void **state)
{
	struct others *o = others_open(true);
	struct fix *f = &o->f;

	(void)state;
	assert_int_equal(fix_access(f, 12, 1, true, NULL), V_OK);
	assert_int_equal(others_access(o, 0, 11, 1, true, &o->w[0]), V_OK);
	assert_int_equal(others_access(o, 0, 11, 2, true, &o->w[0]), V_WAIT);
	dma_release(f->m, &o->holds[0], 0, false, f->now);
	others_woken(o, NULL, NULL);
	dma_release(f->m, &f->holds, 0, true, f->now);
	others_woken(o, &o->w[0], NULL);
	others_close(o);
}

/* Whether it still waits or was just let go; a ticket it waited for is left. */
static void waiter_cancel__of_who_waits_for_a_move(void **state)
{
	struct others *o = others_open(true);
	struct fix *f = &o->f;

	(void)state;
	assert_int_equal(fix_access(f, 12, 1, true, NULL), V_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(others_access(o, 0, 12, 1, true, &o->w[i]),
				 V_WAIT);
	waiter_cancel(f->m, &o->w[1]);
	assert_int_equal(o->w[1].ticket.v, 0);
	dma_release(f->m, &f->holds, 0, true, f->now);
	waiter_cancel(f->m, &o->w[0]);
	assert_int_equal(others_access(o, 0, 30, 1, true, &o->w[1]), V_WAIT);
	others_woken(o, &o->w[2], NULL);

	/* from the move to a ticket and back */
	assert_int_equal(fix_access(f, 12, 1, true, NULL), V_OK);
	assert_int_equal(others_access(o, 0, 12, 1, true, &o->w[0]), V_WAIT);
	assert_int_equal(others_access(o, 0, 31, 1, true, &o->w[0]), V_WAIT);
	assert_int_equal(tickets_out(f->m), 2);
	assert_int_equal(others_access(o, 0, 12, 1, true, &o->w[0]), V_WAIT);
	assert_int_equal(tickets_out(f->m), 1);
	waiter_cancel(f->m, &o->w[0]);
	waiter_cancel(f->m, &o->w[1]);
	others_close(o);
}

/* A missing page is asked for at once, whatever moves meanwhile. */
static void dma_resolve__missing_before_busy(void **state)
{
	struct others *o = others_open(true);
	struct fix *f = &o->f;

	(void)state;
	assert_int_equal(fix_access(f, 19, 1, true, NULL), V_OK);
	assert_int_equal(others_access(o, 0, 19, 2, true, &o->w[0]), V_WAIT);
	assert_int_equal(fix_next(f).vpn, 20);
	dma_release(f->m, &f->holds, 0, true, f->now);
	others_woken(o, NULL, NULL);
	waiter_cancel(f->m, &o->w[0]);
	others_close(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dma_resolve__a_page_that_is_written_is_busy),
		cmocka_unit_test(dma_resolve_atomic__busy),
		cmocka_unit_test(dma_release__wakes_in_order),
		cmocka_unit_test(dma_release__of_a_vain_plan_wakes_nobody),
		cmocka_unit_test(waiter_cancel__of_who_waits_for_a_move),
		cmocka_unit_test(dma_resolve__missing_before_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
