/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* prefetch_test.c: advice that nobody waits for: what it does to a step of the
 * engine, and what becomes of answers that are out of date.
 */
#include "base/page.h"
#include "mem/ageing.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/state.h"
#include "mem/table.h"
#include "nic/config.h"
#include "nic/device.h"
#include "nic/engine.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/progress.h"
#include "nic/step.h"
#include "os/pages.h"
#include "os/run.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	PAGES = 8192,
	STEP_PAGES = 1024, /* as many as one step may learn of */
	PATIENCE_MS = 10000,
};

static struct nic *nic;
static uint32_t pd, key;
static uint8_t *buf;

static int open_all(uint32_t entries, bool manual, bool exact)
{
	const struct nic_config cfg = {.os = {.addr = "lo", .pagers = 2},
				       .entries = entries,
				       .manual = manual,
				       .exact = exact,
				       .pool_bytes = 1 << 20,
				       .strategies = 1u << STRATEGY_REDIRECT};
	struct mr_attr mr = {.length = PAGES * PAGE_BYTES,
			     .access = ACCESS_LOCAL_WRITE};

	assert_int_equal(nic_open(&nic, &cfg), 0);
	assert_int_equal(nic_pd_alloc(nic, &pd), 0);
	buf = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(buf != MAP_FAILED);
	mr.pd = pd;
	mr.addr = mr.iova = (uintptr_t)buf;
	assert_int_equal(nic_mr_reg(nic, &mr, &key), 0);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return open_all(1 << 16, true, false);
}

/* Whoever asks waits: the NIC's threads are there. */
static int setup_little_table(void **state)
{
	(void)state;
	return open_all(64, false, false);
}

static int setup_threads(void **state)
{
	(void)state;
	return open_all(1 << 16, false, false);
}

/* What is known stays so, however long the test takes. */
static int setup_exact(void **state)
{
	(void)state;
	return open_all(1 << 16, false, true);
}

static int teardown(void **state)
{
	(void)state;
	if (key)
		assert_int_equal(nic_mr_dereg(nic, key), 0);
	assert_int_equal(nic_pd_dealloc(nic, pd), 0);
	nic_close(nic);
	munmap(buf, PAGES * PAGE_BYTES);
	return 0;
}

static int advise_how(enum nic_advice advice, bool flush, uint64_t pages)
{
	const struct sge s = {(uintptr_t)buf, (uint32_t)(pages * PAGE_BYTES),
			      key};

	return nic_mr_advise(nic, pd, advice, flush, &s, 1);
}

static int advise(enum nic_advice advice, uint64_t pages)
{
	return advise_how(advice, false, pages);
}

/* Known pages of the buffer, however long ago they were seen. */
static unsigned known(bool write)
{
	struct spt *s = &nic->mem->spt;
	struct spt_view v;
	unsigned n = 0;

	nic_lock(nic); /* its threads are there now and then */
	v = spt_view(s, os_now(nic->os), 0, -1);
	for (uint64_t i = 0; i < PAGES; i++)
		n += spt_ready(s, &v, page_of((uintptr_t)buf) + i, write);
	nic_unlock(nic);
	return n;
}

/* false: no answer came. */
static bool answered(int ms)
{
	while (!os_pages_waiting(nic->os) && ms--)
		usleep(1000);
	return os_pages_waiting(nic->os);
}

static void step(void)
{
	assert_false(
		engine_plan(nic, &nic->steps.v[1], false, os_now(nic->os)));
}

static void prefetch__bounded_steps(void **state)
{
	unsigned before = 0;

	(void)state;
	assert_int_equal(advise(NIC_PREFETCH_WRITE, PAGES), 0);
	for (;;) {
		unsigned now;

		assert_true(answered(PATIENCE_MS));
		step();
		now = known(true);
		assert_true(now > before && now - before <= STEP_PAGES);
		before = now;
		if (now == PAGES)
			break;
	}
}

/* What is only looked for is learned of behind a page that is not there. */
static void prefetch__no_fault(void **state)
{
	(void)state;
	memset(buf, 1, PAGES / 2 * PAGE_BYTES);
	madvise(buf + PAGE_BYTES, PAGE_BYTES, MADV_DONTNEED);
	assert_int_equal(advise(NIC_PREFETCH_NO_FAULT, PAGES), 0);
	for (int i = 0; i < PAGES && known(false) < PAGES / 4; i++) {
		assert_true(answered(PATIENCE_MS));
		step();
	}
	assert_in_range(known(false), PAGES / 4, PAGES / 2);
}

/* The region's end is the end of what is fetched for it. */
static void prefetch__ends_with_the_region(void **state)
{
	(void)state;
	assert_int_equal(advise(NIC_PREFETCH, PAGES), 0);
	assert_int_equal(nic_mr_dereg(nic, key), 0);
	key = 0;
	for (int i = 0; i < PAGES && answered(100); i++)
		step();
	assert_in_range(known(false), 0, STEP_PAGES);
}

/* The answer was given before a fork() and comes to be known after it. */
static void prefetch__fork_meanwhile(void **state)
{
	pid_t child;

	(void)state;
	assert_int_equal(advise(NIC_PREFETCH_WRITE, 2), 0);
	assert_true(answered(PATIENCE_MS));
	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	step();
	assert_int_equal(known(false), 2);
	assert_int_equal(known(true), 0);
}

/* Far more than are kept: advice that is lost loses nothing. */
static void prefetch__many(void **state)
{
	(void)state;
	for (int i = 0; i < 2000; i++)
		assert_int_equal(advise(NIC_PREFETCH, 1), 0);
	assert_true(answered(PATIENCE_MS));
	step();
	assert_int_equal(known(false), 1);
	assert_int_equal(advise(NIC_PREFETCH, PAGES), 0);
	while (known(false) < PAGES) {
		assert_true(answered(PATIENCE_MS));
		step();
	}
}

/* More than the table holds, and every page of it in two pieces. */
static void prefetch__more_than_the_table_holds(void **state)
{
	const struct sge s = {(uintptr_t)buf + 1, 1000 * PAGE_BYTES, key};

	(void)state;
	alarm(PATIENCE_MS / 1000);
	assert_int_equal(
		nic_mr_advise(nic, pd, NIC_PREFETCH_WRITE, true, &s, 1), 0);
	alarm(0);
}

/* Pages of the buffer that the host has. */
static unsigned present(void)
{
	static unsigned char there[PAGES];
	unsigned n = 0;

	assert_int_equal(mincore(buf, PAGES * PAGE_BYTES, there), 0);
	for (int i = 0; i < PAGES; i++)
		n += there[i] & 1;
	return n;
}

/* When it returns it is done; a page that can be had is had. */
static void flush__is_done(void **state)
{
	enum { SOME = 300 };

	(void)state;
	assert_int_equal(advise_how(NIC_PREFETCH_NO_FAULT, true, SOME), 0);
	assert_int_equal(present(), 0);
	assert_int_equal(known(false), 0);
	assert_int_equal(advise_how(NIC_PREFETCH, true, SOME), 0);
	assert_true(present() >= SOME);
	assert_true(known(false) >= SOME);
	assert_int_equal(advise_how(NIC_PREFETCH_WRITE, true, 2 * SOME), 0);
	assert_true(present() >= 2 * SOME);
	assert_true(known(true) >= 2 * SOME);
}

static uint64_t counted(enum counter c)
{
	struct counters cnt;

	nic_counters(nic, &cnt);
	return cnt.v[c];
}

/* What was brought in, waited for or not, is a hit when it is used. */
static void advise__accounted(void **state)
{
	enum { SOME = 40 };
	struct dma d = {.pd = pd,
			.key = key,
			.iova = (uintptr_t)buf,
			.len = SOME * PAGE_BYTES};
	static struct moves mv;
	static struct holds holds;
	uint64_t now;

	(void)state;
	assert_int_equal(advise_how(NIC_PREFETCH_NO_FAULT, true, SOME), 0);
	assert_int_equal(advise_how(NIC_PREFETCH, true, SOME), 0);
	assert_int_equal(counted(CNT_prefetch_pages), SOME);
	/* what is there is not fetched */
	assert_int_equal(advise_how(NIC_PREFETCH, true, SOME), 0);
	assert_int_equal(counted(CNT_prefetch_pages), SOME);
	assert_int_equal(counted(CNT_prefetch_hits), 0);
	assert_int_equal(advise_how(NIC_PREFETCH, false, 2 * SOME), 0);
	while (counted(CNT_prefetch_pages) < 2 * SOME)
		usleep(1000);
	nic_lock(nic);
	now = os_now(nic->os);
	assert_int_equal(
		dma_resolve(nic->mem, &d, NULL, 0, now, 0, NULL, &mv, &holds),
		V_OK);
	dma_release(nic->mem, &holds, 0, true, now);
	nic_unlock(nic);
	assert_int_equal(counted(CNT_prefetch_hits), SOME);
	assert_int_equal(counted(CNT_prefetch_pages), 2 * SOME);
	assert_int_equal(counted(CNT_prefetch_waste), 0);
}

/* As ibv_advise_mr(3) has it. */
static void advise__refused(void **state)
{
	struct mr_attr mr = {.pd = pd, .length = 2 * PAGE_BYTES};
	struct sge s = {(uintptr_t)buf, PAGE_BYTES, key};
	uint32_t other, only_read;

	(void)state;
	mr.addr = mr.iova = (uintptr_t)buf;
	assert_int_equal(nic_pd_alloc(nic, &other), 0);
	assert_int_equal(nic_mr_reg(nic, &mr, &only_read), 0);
	for (int flush = 0; flush < 2; flush++) {
		s = (struct sge){(uintptr_t)buf, PAGE_BYTES, key};
		assert_int_equal(
			nic_mr_advise(nic, other, NIC_PREFETCH, flush, &s, 1),
			-EINVAL);
		s.lkey = only_read;
		assert_int_equal(nic_mr_advise(nic, pd, NIC_PREFETCH_WRITE,
					       flush, &s, 1),
				 -EFAULT);
		s.addr += PAGE_BYTES + 1;
		assert_int_equal(
			nic_mr_advise(nic, pd, NIC_PREFETCH, flush, &s, 1),
			-EFAULT);
		s.lkey ^= 0xff0000;
		s.addr = (uintptr_t)buf;
		assert_int_equal(
			nic_mr_advise(nic, pd, NIC_PREFETCH, flush, &s, 1),
			-EFAULT);
	}
	assert_int_equal(nic_mr_dereg(nic, only_read), 0);
	assert_int_equal(nic_pd_dealloc(nic, other), 0);
}

/* Only who waits can be told. */
static void flush__what_cannot_be_had(void **state)
{
	(void)state;
	assert_int_equal(mprotect(buf + 9 * PAGE_BYTES, PAGE_BYTES, PROT_READ),
			 0);
	assert_int_equal(advise_how(NIC_PREFETCH_WRITE, true, 9), 0);
	assert_int_equal(advise_how(NIC_PREFETCH_WRITE, true, 10), -EFAULT);
	assert_int_equal(advise_how(NIC_PREFETCH, true, 10), 0);
	assert_int_equal(mprotect(buf + 19 * PAGE_BYTES, PAGE_BYTES, PROT_NONE),
			 0);
	assert_int_equal(advise_how(NIC_PREFETCH, true, 20), -EFAULT);
	assert_int_equal(advise_how(NIC_PREFETCH, false, 20), 0);
	assert_int_equal(advise_how(NIC_PREFETCH, true, 19), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(prefetch__bounded_steps),
		TEST(prefetch__no_fault),
		TEST(prefetch__ends_with_the_region),
		TEST(prefetch__fork_meanwhile),
		TEST(prefetch__many),
		cmocka_unit_test_setup_teardown(advise__accounted, setup_exact,
						teardown),
		TEST(advise__refused),
		cmocka_unit_test_setup_teardown(flush__is_done, setup_threads,
						teardown),
		cmocka_unit_test_setup_teardown(flush__what_cannot_be_had,
						setup_threads, teardown),
		cmocka_unit_test_setup_teardown(
			prefetch__more_than_the_table_holds, setup_little_table,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
