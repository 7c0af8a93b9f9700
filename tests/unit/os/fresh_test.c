/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fresh_test.c: how old may knowledge be, with a /proc/vmstat of our own. That
 * the real one tells what happens is shown in tests/platform.
 */
#include "base/check.h"
#include "base/page.h"
#include "host_fixture.h"
#include "os/clock.h"
#include "os/fresh.h"
#include "os/pages.h"
#include "os/wait.h"

/* The clock: it moves when the test says so, but for the test of threads, the last one. */
static uint64_t time_ns = 1000000 * MS, runs_since;

static uint64_t host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

uint64_t clock_ns(void)
{
	return time_ns + (runs_since ? host_ns() - runs_since : 0);
}

static char path[] = "/tmp/test-of-vmstat-XXXXXX";

static void vmstat(unsigned steal, unsigned swapped)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f,
		"nr_free_pages %u\npswpin 5\npswpout %u\npgfree %u\n"
		"pgsteal_kswapd 0\npgsteal_direct %u\npgscan_kswapd 7\n"
		"pgscan_direct 1\npgscan_anon 0\n",
		(unsigned)rand(), swapped, (unsigned)rand(), steal);
	fclose(f);
}

/* fresh_since and its like belong to the process: the tests run in order. */
static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	redirect("/proc/vmstat", path);
	vmstat(0, 0);
	return fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

/* Look again, later than the last time. Return: when. */
static uint64_t look(void)
{
	time_ns += 7 * MS;
	fresh_check(time_ns);
	return time_ns;
}

static void os_fresh_after__nobody_looked(void **state)
{
	uint64_t now = clock_ns();

	(void)state;
	assert_false(fresh_wanted(now));
	assert_int_equal(os_fresh_after(NULL, now), now - 10 * MS);
	assert_true(fresh_wanted(now));
	assert_true(fresh_wanted(now + 99 * MS));
	assert_false(fresh_wanted(now + 102 * MS));
	assert_int_equal(os_fresh_after(NULL, 5), 0);
}

static void os_fresh_after__nothing_happens(void **state)
{
	uint64_t now = look(), since = os_fresh_after(NULL, now);

	(void)state;
	assert_true(since >= now);
	/* what was seen before that may be gone, what was seen since is there */
	assert_false(fresh_still(since - 1, now));
	assert_true(fresh_still(since, now));
	assert_true(fresh_still(since + 1, now));
	assert_true(fresh_still(since, now + 10 * MS));
	assert_false(fresh_still(since, now + 10 * MS + 1));
	for (int i = 0; i < 5; i++) {
		vmstat(0, 0);
		now = look();
		assert_int_equal(os_fresh_after(NULL, now), since);
		assert_int_equal(os_fresh_after(NULL, now + 10 * MS), since);
	}
	/* nobody has looked for longer than that */
	now += 11 * MS;
	assert_int_equal(os_fresh_after(NULL, now), MAX(since, now - 10 * MS));
	/* and looks again, with the same: nothing happened meanwhile either */
	now = look();
	assert_int_equal(os_fresh_after(NULL, now), since);
}

static void os_fresh_after__reclaim(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 6; i++) {
		uint64_t before = os_fresh_after(NULL, look()), now;

		vmstat(i / 2, (i + 1) / 2);
		now = look();
		assert_true(os_fresh_after(NULL, now) >= now);
		assert_true(before < now);
		assert_int_equal(os_fresh_after(NULL, look()),
				 os_fresh_after(NULL, clock_ns()));
	}
}

static void fresh_check__not_too_often(void **state)
{
	uint64_t now = look();
	unsigned reads;

	(void)state;
	reads = refuse_calls(SYS_pread64);
	fresh_check(now + 5 * MS);
	assert_int_equal(refuse_calls(SYS_pread64), reads);
	fresh_check(now + 6 * MS);
	assert_int_equal(refuse_calls(SYS_pread64), reads + 1);
}

static void fresh_check__counters_missing(void **state)
{
	uint64_t now = look(), since = os_fresh_after(NULL, now);
	FILE *f = fopen(path, "w");

	(void)state;
	fputs("nr_free_pages 7\npgscan_x", f);
	fclose(f);
	for (int i = 0; i < 2; i++)
		now = look();
	assert_int_equal(os_fresh_after(NULL, now), MAX(since, now - 10 * MS));
	vmstat(2, 3);
}

static void fresh_unsure__ten_ms(void **state)
{
	uint64_t now = look(), since = os_fresh_after(NULL, now);

	(void)state;
	time_ns += 15 * MS;
	now = look();
	assert_int_equal(os_fresh_after(NULL, now), since);
	assert_true(since < now - 10 * MS);
	fresh_unsure(now);
	assert_int_equal(os_fresh_after(NULL, now), now - 10 * MS);
	/* and what was learned meanwhile is not believed afterwards */
	now = look();
	assert_true(os_fresh_after(NULL, now + 10001 * MS) >= now);
}

/* Until it is known how it goes. */
static void fresh_unknown__ten_ms(void **state)
{
	uint64_t now = look(), since;

	(void)state;
	time_ns += 15 * MS;
	now = look();
	since = os_fresh_after(NULL, now);
	assert_true(since < now - 10 * MS);
	fresh_unknown();
	fresh_unknown();
	assert_int_equal(os_fresh_after(NULL, now), now - 10 * MS);
	fresh_known();
	assert_int_equal(os_fresh_after(NULL, now), now - 10 * MS);
	fresh_known();
	assert_int_equal(os_fresh_after(NULL, now), since);
}

/* With a NIC open a pager looks, as long as somebody asks, and not longer. */
static void os_fresh_after__a_pager_looks(void **state)
{
	struct os_page_req req = {.addr = (uintptr_t)pages_new(1, PROT_READ),
				  .bytes = PAGE_BYTES};
	struct os_page_done done;
	unsigned reads;
	uint64_t now;
	struct os *os;

	(void)state;
	/* what was unsure before is long ago; and the pager reads both */
	time_ns += 20000 * MS;
	runs_since = host_ns();
	os = host_plain();
	assert_int_equal(os_page_ask(os, &req), 0);
	while (os_page_reap(os, &done, 1) == 0)
		os_wait(os, OS_WAIT_TIMER, os_now(os) + 100 * MS, -1);
	/* on a busy host it is late now and then */
	do {
		usleep(1000);
		now = clock_ns();
	} while (os_fresh_after(os, now) >= now - 30 * MS);
	do {
		reads = refuse_calls(SYS_pread64);
		usleep(50000);
	} while (refuse_calls(SYS_pread64) != reads);
	/* nobody has looked since */
	now = clock_ns();
	assert_int_equal(os_fresh_after(os, now), now - 10 * MS);
	os_close(os);
	pages_free((void *)(uintptr_t)req.addr, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_fresh_after__nobody_looked),
		cmocka_unit_test(os_fresh_after__nothing_happens),
		cmocka_unit_test(os_fresh_after__reclaim),
		cmocka_unit_test(fresh_check__not_too_often),
		cmocka_unit_test(fresh_check__counters_missing),
		cmocka_unit_test(fresh_unknown__ten_ms),
		cmocka_unit_test(fresh_unsure__ten_ms),
		cmocka_unit_test(os_fresh_after__a_pager_looks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
