/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pager_test.c: answers of the pagers. */
#include "base/check.h"
#include "base/page.h"
#include "pair.h"

static struct os_page_done ask(struct pair *p, struct os_page_req req)
{
	struct os_page_done done[2];

	req.id = 99;
	assert_int_equal(os_page_ask(p->a, &req), 0);
	assert_int_equal(os_page_reap(p->a, done, 2), 0);
	sim_run(p->sim, sim_now(p->sim) + 50 * SIM_MS);
	assert_int_equal(os_page_reap(p->a, done, 2), 1);
	assert_int_equal(done[0].id, 99);
	assert_true(done[0].service_ns > 0);
	return done[0];
}

static void os_page_ask__brings_in(void **state)
{
	static const struct {
		enum sim_backing backing;
		enum os_backing answer;
		bool write, major;
	} row[] = {
		{SIM_CHEAP, BACKING_CHEAP, false, false},
		{SIM_CHEAP, BACKING_CHEAP, true, false},
		{SIM_SWAP, BACKING_SLOW, false, false},
		{SIM_SWAP, BACKING_SLOW, true, false},
		{SIM_FILE, BACKING_SLOW, false, true},
	};
	struct pair p = open_pair(1);

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		const uint64_t m = sim_mmap(p.a, 3 * PAGE_BYTES, row[i].backing,
					    SIM_READ | SIM_WRITE);
		const struct os_page_done d =
			ask(&p, (struct os_page_req){.addr = m + PAGE_BYTES,
						     .bytes = 2 * PAGE_BYTES,
						     .write = row[i].write});

		assert_int_equal(d.error, 0);
		assert_int_equal(d.bytes, 2 * PAGE_BYTES);
		assert_true(d.writable);
		assert_int_equal(d.major, row[i].major);
		assert_int_equal(d.backing, row[i].answer);
		if (row[i].answer == BACKING_CHEAP) {
			assert_int_equal(d.cheap_start, m);
			assert_int_equal(d.cheap_end, m + 3 * PAGE_BYTES);
		}
		assert_false(sim_present(p.a, m));
		assert_true(sim_present(p.a, m + 2 * PAGE_BYTES));
	}
	sim_close(p.sim);
}

static void os_page_ask__failures(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, PAGE_BYTES, SIM_SWAP, SIM_READ);
	struct os_page_done d;

	(void)state;
	d = ask(&p, (struct os_page_req){.addr = m, .bytes = 2 * PAGE_BYTES});
	assert_int_equal(d.error, -EFAULT);
	assert_int_equal(d.bytes, PAGE_BYTES);
	assert_false(d.writable);
	d = ask(&p, (struct os_page_req){
			    .addr = m, .bytes = PAGE_BYTES, .write = true});
	assert_int_equal(d.error, -EFAULT);
	assert_int_equal(d.bytes, 0);
	assert_false(d.writable);
	assert_int_equal(sim_stats(p.sim)->page_partial, 1);
	assert_int_equal(sim_stats(p.sim)->page_fails, 1);
	sim_close(p.sim);
}

static void os_page_ask__copy_on_write(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, PAGE_BYTES, SIM_SWAP,
				    SIM_READ | SIM_WRITE);
	struct os_page_req req = {.addr = m, .bytes = PAGE_BYTES};
	uint8_t b = 1;

	(void)state;
	sim_write(p.a, m, &b, 1);
	sim_fork(p.a);
	assert_false(ask(&p, req).writable);
	req.write = true;
	assert_true(ask(&p, req).writable);
	sim_fork(p.a);
	req.probe = true;
	assert_int_equal(ask(&p, req).bytes, 0);
	req.write = false;
	assert_int_equal(ask(&p, req).bytes, PAGE_BYTES);
	sim_close(p.sim);
}

static void os_page_ask__probe_brings_nothing(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, 2 * PAGE_BYTES, SIM_SWAP, SIM_READ);
	struct os_page_done d;
	uint8_t b;

	(void)state;
	sim_read(p.a, m, &b, 1);
	d = ask(&p, (struct os_page_req){
			    .addr = m, .bytes = 2 * PAGE_BYTES, .probe = true});
	assert_int_equal(d.bytes, PAGE_BYTES);
	assert_int_equal(d.error, 0);
	assert_false(sim_present(p.a, m + PAGE_BYTES));
	sim_close(p.sim);
}

static void os_page_ask__bounded_and_parallel(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, 256 * PAGE_BYTES, SIM_FILE, SIM_READ);
	struct os_page_req req = {.addr = m, .bytes = PAGE_BYTES};
	struct os_page_done done[256];
	unsigned num = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		sim_slow(p.a, m + i * PAGE_BYTES, SIM_MS);
	while (os_page_ask(p.a, &req) == 0) {
		req.addr = m + ++num % 256 * PAGE_BYTES;
		req.id = num;
	}
	assert_in_range(num, 16, 4096);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS + 500 * SIM_US);
	assert_int_equal(os_page_reap(p.a, done, 256), PAGERS - 1);
	assert_int_equal(done[0].service_ns / SIM_MS, 1);
	assert_int_equal(os_page_ask(p.a, &req), 0);
	sim_close(p.sim);
}

static void os_page_ask__without_pagers(void **state)
{
	const struct os_config none = {0};
	struct pair p = open_pair_as(1, none, none);
	const uint64_t m = sim_mmap(p.a, PAGE_BYTES, SIM_CHEAP, SIM_READ);
	const struct os_page_req req = {.addr = m, .bytes = PAGE_BYTES};
	struct os_page_done done;

	(void)state;
	assert_int_equal(os_page_ask(p.a, &req), 0);
	sim_run(p.sim, sim_now(p.sim) + 1000 * SIM_MS);
	assert_int_equal(os_page_reap(p.a, &done, 1), 0);
	os_close(p.a);
	sim_close(p.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_page_ask__brings_in),
		cmocka_unit_test(os_page_ask__failures),
		cmocka_unit_test(os_page_ask__copy_on_write),
		cmocka_unit_test(os_page_ask__probe_brings_nothing),
		cmocka_unit_test(os_page_ask__bounded_and_parallel),
		cmocka_unit_test(os_page_ask__without_pagers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
