/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* move_test.c: copies fail, block and tear where they should. */
#include "base/check.h"
#include "base/page.h"
#include "pair.h"

static struct moves mv;

static void add_move(enum move_kind kind, uint64_t addr, void *nic,
		     uint32_t len)
{
	mv.m[mv.num++] = (struct move){
		.kind = kind, .addr = addr, .nic = nic, .len = len};
}

static void os_moves__both_ways(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, 3 * PAGE_BYTES, SIM_SWAP,
				    SIM_READ | SIM_WRITE);
	uint8_t *nic = os_memory(p.a, 4 * PAGE_BYTES), *back = malloc(8192);

	(void)state;
	fill(p.a, m + 100, 8000, 3);
	moves_reset(&mv);
	add_move(MOVE_GATHER, m + 100, nic, 8000);
	add_move(MOVE_SCATTER, m + 101, nic, 8000);
	os_moves(p.a, &mv);
	assert_int_equal(mv.error, 0);
	assert_int_equal(mv.done, 2);
	check_filled(nic, 8000, 3);
	assert_int_equal(sim_read(p.a, m + 101, back, 8000), 0);
	check_filled(back, 8000, 3);
	free(back);
	sim_close(p.sim);
}

static void os_moves__stop_at_the_first_failure(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t ro = sim_mmap(p.a, PAGE_BYTES, SIM_SWAP, SIM_READ);
	const uint64_t rw = sim_mmap(p.a, PAGE_BYTES, SIM_SWAP,
				     SIM_READ | SIM_WRITE);
	uint8_t *nic = os_memory(p.a, 8192), b[10];
	const uint64_t bad[] = {ro,	rw + PAGE_BYTES - 5, 0,
				0x1000, (uintptr_t)nic,	     UINT64_MAX - 4095};

	(void)state;
	memset(nic, 0xaa, 8192);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		moves_reset(&mv);
		add_move(MOVE_SCATTER, rw, nic, 1);
		add_move(MOVE_SCATTER, bad[i], nic, 10);
		add_move(MOVE_SCATTER, rw + 8, nic, 1);
		os_moves(p.a, &mv);
		assert_int_equal(mv.error, -EFAULT);
		assert_int_equal(mv.done, 1);
	}
	assert_int_equal(sim_read(p.a, rw, b, 10), 0);
	assert_int_equal(b[0], 0xaa);
	assert_int_equal(b[8], 0);
	/* half done, up to the end of the mapping */
	assert_int_equal(sim_read(p.a, rw + PAGE_BYTES - 5, b, 5), 0);
	assert_int_equal(b[4], 0xaa);
	sim_close(p.sim);
}

static void os_moves__end_of_address_space(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t top = UINT64_MAX - (PAGE_BYTES - 1);
	uint8_t *nic = os_memory(p.a, PAGE_BYTES), b;

	(void)state;
	assert_int_equal(sim_mmap_at(p.a, top, PAGE_BYTES, SIM_SWAP,
				     SIM_READ | SIM_WRITE),
			 0);
	memset(nic, 0x55, PAGE_BYTES);
	moves_reset(&mv);
	add_move(MOVE_SCATTER, top, nic, PAGE_BYTES);
	os_moves(p.a, &mv);
	assert_int_equal(mv.error, 0);
	assert_int_equal(sim_read(p.a, UINT64_MAX, &b, 1), 0);
	assert_int_equal(b, 0x55);
	sim_close(p.sim);
}

static void os_moves__atomics(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, PAGE_BYTES, SIM_SWAP,
				    SIM_READ | SIM_WRITE);
	uint64_t v = 40;

	(void)state;
	sim_write(p.a, m + 8, &v, 8);
	moves_reset(&mv);
	add_move(MOVE_FETCH_ADD, m + 8, NULL, 8);
	mv.m[0].operand = 2;
	add_move(MOVE_CMP_SWP, m + 8, NULL, 8);
	mv.m[1].compare = 41;
	mv.m[1].operand = 7;
	add_move(MOVE_CMP_SWP, m + 8, NULL, 8);
	mv.m[2].compare = 42;
	mv.m[2].operand = 9;
	os_moves(p.a, &mv);
	assert_int_equal(mv.m[0].result, 40);
	assert_int_equal(mv.m[1].result, 42);
	assert_int_equal(mv.m[2].result, 42);
	sim_read(p.a, m + 8, &v, 8);
	assert_int_equal(v, 9);
	sim_close(p.sim);
}

static void os_moves__block_the_thread_only(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, 2 * PAGE_BYTES, SIM_SWAP,
				    SIM_READ | SIM_WRITE);
	const uint64_t t0 = sim_now(p.sim), flt = os_usage().majflt;
	uint8_t *nic = os_memory(p.a, 2 * PAGE_BYTES);
	struct mover *hot, *cold, *both;

	(void)state;
	fill(p.a, m, 2 * PAGE_BYTES, 5);
	sim_slow(p.a, m, 10 * SIM_MS);
	assert_int_equal(sim_evict(p.a, m, false), -EAGAIN);
	assert_int_equal(sim_evict(p.a, m, true), 0);
	assert_false(sim_present(p.a, m));
	cold = start_move(p.a, MOVE_GATHER, m, nic, 100);
	both = start_move(p.a, MOVE_GATHER, m, nic, 100);
	hot = start_move(p.a, MOVE_GATHER, m + PAGE_BYTES, nic + PAGE_BYTES,
			 100);
	sim_run(p.sim, t0 + SIM_MS);
	assert_true(hot->ended_ns != 0 && cold->ended_ns == 0);
	sim_run(p.sim, t0 + 11 * SIM_MS);
	assert_true(cold->ended_ns >= t0 + 10 * SIM_MS);
	assert_true(both->ended_ns >= t0 + 10 * SIM_MS);
	assert_true(both->ended_ns < t0 + 11 * SIM_MS);
	check_filled(nic, 100, 5);
	assert_int_equal(os_usage().majflt - flt, 2);
	assert_int_equal(sim_stats(p.sim)->exact_misses, 0);
	assert_true(sim_present(p.a, m));
	sim_run(p.sim, t0 + 30 * SIM_MS);
	assert_int_equal(sim_evict(p.a, m, false), 0);
	free(hot);
	free(cold);
	free(both);
	sim_close(p.sim);
}

/* A copy that blocked lands in whatever is there afterwards (lab/late-copy). */
static void os_moves__late_copy(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, PAGE_BYTES, SIM_FILE,
				    SIM_READ | SIM_WRITE);
	uint8_t *nic = os_memory(p.a, PAGE_BYTES), b = 0;
	struct mover *late;

	(void)state;
	nic[0] = 0x77;
	for (unsigned i = 0; i < 2; i++) {
		if (i == 1)
			assert_int_equal(sim_evict(p.a, m, true), 0);
		late = start_move(p.a, MOVE_SCATTER, m, nic, 1);
		sim_run(p.sim, sim_now(p.sim) + 30 * SIM_US);
		assert_int_equal(late->ended_ns, 0);
		assert_int_equal(sim_munmap(p.a, m), 0);
		if (i == 0)
			sim_mmap_at(p.a, m, PAGE_BYTES, SIM_FILE,
				    SIM_READ | SIM_WRITE);
		sim_run(p.sim, sim_now(p.sim) + 10 * SIM_MS);
		assert_true(late->ended_ns != 0);
		assert_int_equal(late->mv.error, i == 0 ? 0 : -EFAULT);
		assert_int_equal(sim_peek(p.a, m, &b, 1), i == 0 ? 0 : -EFAULT);
		free(late);
	}
	assert_int_equal(b, 0x77);
	sim_close(p.sim);
}

static unsigned watched;

static void watch(void *arg, uint64_t addr, uint64_t len)
{
	(void)arg, (void)addr;
	watched += (unsigned)len;
}

static void os_moves__tear(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, 4 * PAGE_BYTES, SIM_CHEAP,
				    SIM_READ | SIM_WRITE);
	uint8_t *nic = os_memory(p.a, 4 * PAGE_BYTES), b[4];
	struct mover *move;

	(void)state;
	memset(nic, 0x33, 4 * PAGE_BYTES);
	sim_mem_set(p.a, &(struct sim_mem_config){.tear = SIM_PPM,
						  .delay_max_ns = 1000});
	sim_watch(p.a, watch, NULL);
	watched = 0;
	move = start_move(p.a, MOVE_SCATTER, m + 1, nic, 3 * PAGE_BYTES);
	while (watched == 0)
		sim_step(p.sim);
	assert_true(watched < PAGE_BYTES - 1);
	sim_peek(p.a, m, b, 2);
	assert_int_equal(b[0], 0);
	assert_int_equal(b[1], 0x33);
	while (move->ended_ns == 0)
		sim_step(p.sim);
	assert_int_equal(watched, 3 * PAGE_BYTES);
	assert_true(sim_stats(p.sim)->torn > 3);
	free(move);
	sim_close(p.sim);
}

static void os_send__gathers_from_the_application(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, PAGE_BYTES, SIM_CHEAP,
				    SIM_READ | SIM_WRITE);
	const uint64_t to = sim_mmap(p.b, PAGE_BYTES, SIM_CHEAP,
				     SIM_READ | SIM_WRITE);
	struct iovec iov[2] = {{"head", 4}, {(void *)(uintptr_t)m, 300}};
	uint8_t buf[300], head[4];
	struct os_rx rx = {.port = -1};

	(void)state;
	fill(p.a, m, 300, 8);
	assert_int_equal(send_iov(&p, iov, 2, 0), 0);
	assert_int_equal(send_iov(&p, iov, 2, 0), 0);
	iov[1].iov_base = (void *)(uintptr_t)to;
	assert_int_equal(send_iov(&p, iov, 2, 0), -EFAULT);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS);
	iov[0].iov_base = head;
	assert_int_equal(os_recv(p.b, iov, 2, &rx, OS_TAKE), 1);
	assert_int_equal(rx.len, 304);
	assert_memory_equal(head, "head", 4);
	sim_peek(p.b, to, buf, 300);
	check_filled(buf, 300, 8);
	iov[1].iov_base = (void *)(uintptr_t)m;
	rx.port = -1;
	assert_int_equal(os_recv(p.b, iov, 2, &rx, OS_TAKE), -EFAULT);
	rx.port = -1;
	assert_int_equal(os_recv(p.b, iov, 2, &rx, OS_TAKE), 0);
	sim_close(p.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_moves__both_ways),
		cmocka_unit_test(os_moves__stop_at_the_first_failure),
		cmocka_unit_test(os_moves__end_of_address_space),
		cmocka_unit_test(os_moves__atomics),
		cmocka_unit_test(os_moves__block_the_thread_only),
		cmocka_unit_test(os_moves__late_copy),
		cmocka_unit_test(os_moves__tear),
		cmocka_unit_test(os_send__gathers_from_the_application),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
