/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* backing_test.c: which mappings are cheap, when they stop being it, and how
 * often that may be asked.
 */
#include "base/check.h"
#include "base/page.h"
#include "host_fixture.h"
#include "os/backing.h"
#include "os/clock.h"
#include "os/fresh.h"
#include "os/host.h"
#include "os/pages.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

/* The clocks: they move when the test says so, and to read smaps takes @scan_ns. */
static uint64_t time_ns = 1000000 * MS, cpu_ns, scan_ns = MS;

uint64_t clock_ns(void)
{
	return time_ns;
}

/* Asked before and after. */
uint64_t clock_cpu_ns(void)
{
	return cpu_ns += scan_ns;
}

/* Is the host itself in a state in which something can be cheap? */
static bool host_can(void)
{
	host_look(clock_ns());
	return !host_is_short() && !host_has_swap();
}

static struct backing ask(struct backing_cache *c, const void *p, bool slow,
			  uint64_t now)
{
	return backing_of(c, (uintptr_t)p, slow, now);
}

/* As a pager does. */
static bool learn(struct backing_cache *c, uint64_t addr, uint64_t now)
{
	return !backing_doubt(c, addr, now) || backing_learn(c, addr, now);
}

static void kinds(void)
{
	int huge = MAP_PRIVATE | MAP_ANONYMOUS, fd = fileno(tmpfile());
	struct backing_cache *c = backing_open();
	uint8_t *anon = pages_new(4, PROT_READ | PROT_WRITE);
	uint8_t *ro = pages_new(4, PROT_READ);
	uint8_t *shared = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *file = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE, fd, 0);
	uint8_t *thp = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, huge, -1, 0);
	uint64_t now = clock_ns();
	struct backing b;

	madvise(thp, 8 << 20, MADV_HUGEPAGE);
	assert_int_equal(ask(c, anon, false, now).kind, BACKING_UNKNOWN);
	assert_true(learn(c, (uintptr_t)anon, now));
	b = ask(c, anon + 5000, false, now);
	assert_int_equal(b.kind, BACKING_CHEAP);
	assert_true(b.cheap.start <= (uintptr_t)anon);
	assert_true(b.cheap.end >= (uintptr_t)anon + 4 * PAGE_BYTES);
	assert_true(learn(c, (uintptr_t)ro, now));
	b = ask(c, ro, false, now);
	assert_int_equal(b.kind, BACKING_SLOW);
	assert_int_equal(b.cheap.start | b.cheap.end, 0);
	assert_false(learn(c, (uintptr_t)shared, now));
	assert_int_not_equal(ask(c, shared, false, now).kind, BACKING_CHEAP);
	assert_false(learn(c, (uintptr_t)file, now));
	assert_int_not_equal(ask(c, file, false, now).kind, BACKING_CHEAP);
	b = ask(c, thp + (4 << 20), false, now);
	assert_int_not_equal(b.kind, BACKING_CHEAP);
	assert_int_not_equal(ask(c, NULL, false, now).kind, BACKING_CHEAP);
	munmap(thp, 8 << 20);
	pages_free(anon, 4);
	pages_free(ro, 4);
	pages_free(shared, 1);
	pages_free(file, 1);
	backing_close(c);
	close(fd);
}

static void backing_of__kinds(void **state)
{
	(void)state;
	if (!host_can())
		skip();
	kinds();
}

static void slow_revokes(void)
{
	struct backing_cache *c = backing_open();
	uint8_t *p = pages_new(1, PROT_READ | PROT_WRITE);
	uint64_t now = clock_ns();

	learn(c, (uintptr_t)p, now);
	assert_int_equal(ask(c, p, false, now).kind, BACKING_CHEAP);
	assert_int_equal(ask(c, p, true, now).kind, BACKING_SLOW);
	assert_int_equal(ask(c, p, false, now + 500 * MS).kind, BACKING_SLOW);
	/* what was learned lasts a second, or longer where learning is slow */
	now = clock_ns() + 3600 * UINT64_C(1000) * MS;
	assert_int_equal(ask(c, p, false, now).kind, BACKING_UNKNOWN);
	pages_free(p, 1);
	backing_close(c);
}

static void backing_of__slow_revokes(void **state)
{
	(void)state;
	if (!host_can())
		skip();
	slow_revokes();
}

static void put(char *path, const char *fmt, unsigned n)
{
	FILE *f;

	if (strstr(path, "XXXXXX"))
		close(mkstemp(path));
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, fmt, n);
	fclose(f);
}

static char meminfo[] = "/tmp/test-of-meminfo-XXXXXX";
static char vmstat[] = "/tmp/test-of-vmstat-XXXXXX";
static char smaps[] = "/tmp/test-of-smaps-XXXXXX";

static const char vmstat_text[] = "nr_free 9\npgsteal_a 0\npgsteal_b "
				  "0\npgscan_a 0\npgscan_b 0\npswpout %u\n";
static const char smaps_text[] =
	"10000-20000 rw-p 0 00:00 0\nSwap: %u kB\nVmFlags: rd wr\n";

static enum os_backing learned(struct backing_cache *c)
{
	const void *p = (void *)0x10000;

	time_ns += 7 * MS; /* the counters are looked at again */
	fresh_check(clock_ns());
	return ask(c, p, false, clock_ns()).kind;
}

/* With swap a missing page may be on disk: not in a mapping of which nothing is,
 * as long as nothing was reclaimed since that was read. The first test: reclaim is
 * what differs from the first look at the counters. */
static void backing_of__swap(void **state)
{
	const uint64_t second = UINT64_C(1000) * MS;
	struct backing_cache *c = backing_open();

	(void)state;
	put(meminfo,
	    "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n"
	    "SwapTotal: %u kB\n",
	    4);
	put(vmstat, vmstat_text, 0);
	put(smaps, smaps_text, 0);
	redirect("/proc/meminfo", meminfo);
	redirect("/proc/vmstat", vmstat);
	redirect("/proc/self/smaps", smaps);
	time_ns += 7 * MS;
	host_look(clock_ns() + second);
	if (host_is_short()) {
		backing_close(c);
		skip(); /* a memory cgroup */
	}
	learn(c, 0x10000, clock_ns());
	assert_int_equal(learned(c), BACKING_CHEAP);
	/* nobody has looked for longer than 10 ms */
	assert_int_equal(
		ask(c, (void *)0x10000, false, clock_ns() + 30 * MS).kind,
		BACKING_SLOW);
	put(smaps, smaps_text, 8);
	learn(c, 0x10000, clock_ns() + 2 * second);
	assert_int_equal(learned(c), BACKING_SLOW);
	put(smaps, smaps_text, 0);
	learn(c, 0x10000, clock_ns() + 4 * second);
	assert_int_equal(learned(c), BACKING_CHEAP);
	put(vmstat, vmstat_text, 1);
	assert_int_equal(learned(c), BACKING_SLOW);
	learn(c, 0x10000, clock_ns() + 6 * second);
	assert_int_equal(learned(c), BACKING_SLOW); /* for ten seconds */
	put(meminfo,
	    "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n"
	    "SwapTotal: %u kB\n",
	    0);
	host_look(clock_ns() + 9 * second);
	assert_int_equal(learned(c), BACKING_CHEAP);
	refuse_none();
	unlink(meminfo);
	unlink(vmstat);
	unlink(smaps);
	backing_close(c);
}

static void backing_learn__userfaultfd(void **state)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct backing_cache *c;
	uint64_t now = clock_ns();
	uint8_t *p;
	int fd;

	(void)state;
	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY, 0,
			  0, 0, 0, 0);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || !host_can())
		skip();
	c = backing_open();
	p = pages_new(3, PROT_READ | PROT_WRITE);
	reg.range.start = (uintptr_t)p + PAGE_BYTES;
	reg.range.len = PAGE_BYTES;
	assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &reg), 0);
	assert_false(learn(c, (uintptr_t)p + PAGE_BYTES, now));
	assert_true(learn(c, (uintptr_t)p, now));
	assert_int_equal(ask(c, p, false, now).kind, BACKING_CHEAP);
	assert_true(ask(c, p, false, now).cheap.end <=
		    (uintptr_t)p + PAGE_BYTES);
	assert_int_not_equal(ask(c, p + PAGE_BYTES, false, now).kind,
			     BACKING_CHEAP);
	close(fd);
	pages_free(p, 3);
	backing_close(c);
}

static unsigned reads_of_learn(struct backing_cache *c, uint64_t now)
{
	refuse_none();
	learn(c, (uintptr_t)&time_ns, now);
	return refuse_calls(SYS_pread64);
}

/* Two questions, one reading; and never more than 1 % of the time. */
static void backing_learn__seldom(void **state)
{
	struct backing_cache *c = backing_open();
	const uint64_t now = clock_ns();

	(void)state;
	assert_true(reads_of_learn(c, now) > 5);
	assert_int_equal(reads_of_learn(c, now + 1000 * MS - 1), 0);
	scan_ns = 20 * MS;
	assert_true(reads_of_learn(c, now + 1000 * MS) > 5);
	scan_ns = MS;
	/* read at @now, which is what the clock says */
	assert_int_equal(reads_of_learn(c, now + 2000 * MS - 1), 0);
	assert_true(reads_of_learn(c, now + 2000 * MS) > 5);
	backing_close(c);
}

/* What is said to be there before it is known of what is not believed for long. */
static void backing_doubt__until_it_is_known(void **state)
{
	struct backing_cache *c = backing_open();
	uint8_t *anon = pages_new(1, PROT_READ | PROT_WRITE);
	const uint64_t now = clock_ns();

	(void)state;
	assert_true(backing_doubt(c, (uintptr_t)anon, now));
	assert_true(os_fresh_after(NULL, now) >= now - 10 * MS);
	assert_true(backing_learn(c, (uintptr_t)anon, now));
	assert_false(backing_doubt(c, (uintptr_t)anon, now));
	/* for a second, or a hundred times what it takes to read that */
	assert_true(backing_doubt(c, (uintptr_t)anon, now + 3600000 * MS));
	assert_true(backing_learn(c, (uintptr_t)anon, now));
	pages_free(anon, 1);
	backing_close(c);
}

/* Is what was learned long ago believed to be there? */
static bool believed(void)
{
	const uint64_t now = clock_ns();

	fresh_check(now);
	return os_fresh_after(NULL, now) < now - 10 * MS;
}

/* Registered when it is too early to read smaps again: nothing is said of it, and
 * nothing is believed for long, until that is read. The last thing it says is that
 * some of it is other memory: before the tests that say so. */
static void backing_forget__too_early(void **state)
{
	const uint64_t hour = UINT64_C(3600000) * MS;
	struct backing_cache *c = backing_open(), *d = backing_open();
	uint8_t *anon = pages_new(2, PROT_READ | PROT_WRITE);
	uint8_t *shared = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const uint64_t at = (uintptr_t)anon, now = clock_ns();
	bool early;

	(void)state;
	put(vmstat, vmstat_text, 1); /* as before */
	redirect("/proc/vmstat", vmstat);
	assert_true(learn(c, at, now));
	assert_true(backing_plain(c, at, &early, now).start <= at && !early);
	time_ns += 20 * MS;
	assert_true(believed());
	backing_forget(c, at, PAGE_BYTES);
	assert_int_equal(backing_plain(c, at, &early, now).end, 0);
	assert_true(early);
	assert_true(backing_plain(c, at + PAGE_BYTES, &early, now).end > at);
	assert_false(early);
	/* more pages of it than are kept: as one */
	for (unsigned i = 0; i < 100; i++)
		assert_true(learn(c, at + i, now));
	assert_false(believed());
	assert_true(learn(c, at + PAGE_BYTES, now + hour));
	assert_true(believed());
	assert_true(backing_plain(c, at, &early, now + hour).start <= at);
	assert_false(early);

	/* what is asked of memory that is never looked at again ends with it */
	backing_forget(c, at, PAGE_BYTES);
	assert_true(learn(c, at, now));
	assert_false(believed());
	backing_close(c);
	assert_true(believed());

	assert_true(learn(d, at, now));
	backing_forget(d, (uintptr_t)shared, 1);
	assert_true(learn(d, (uintptr_t)shared, now));
	assert_false(believed());
	assert_true(learn(d, at, now + hour));
	assert_false(believed());
	assert_false(learn(d, (uintptr_t)shared, now + hour));
	refuse_none();
	unlink(vmstat);
	pages_free(anon, 2);
	pages_free(shared, 1);
	backing_close(d);
}

/* A file is mapped where other memory was, and registered. */
static void backing_forget__another_mapping(void **state)
{
	struct backing_cache *c = backing_open();
	uint8_t *anon = pages_new(4, PROT_READ | PROT_WRITE);
	uint8_t *other = pages_new(4, PROT_READ | PROT_WRITE);
	const int fd = fileno(tmpfile());
	const uint64_t now = clock_ns();

	(void)state;
	assert_true(learn(c, (uintptr_t)anon, now));
	assert_true(learn(c, (uintptr_t)other, now));
	assert_true(mmap(anon, PAGE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_FIXED, fd, 0) == anon);
	backing_forget(c, (uintptr_t)anon + 1, 1);
	assert_true(backing_doubt(c, (uintptr_t)anon, now));
	assert_true(backing_learn(c, (uintptr_t)anon, now));
	assert_false(backing_doubt(c, (uintptr_t)other, now));
	/* more of it than is kept */
	for (unsigned i = 0; i < 100; i++)
		backing_forget(c, (uintptr_t)other + i, 1);
	assert_true(backing_doubt(c, (uintptr_t)other, now));
	assert_true(backing_learn(c, (uintptr_t)other, now));
	/* and what is read later is known again: in time */
	assert_true(learn(c, (uintptr_t)other, now + 3600000 * MS));
	assert_false(learn(c, (uintptr_t)anon, now + 3600000 * MS));
	pages_free(anon, 4);
	pages_free(other, 4);
	backing_close(c);
	close(fd);
}

static void backing_learn__no_proc(void **state)
{
	struct backing_cache *c = backing_open();
	uint8_t *p = pages_new(1, PROT_READ | PROT_WRITE);

	(void)state;
	refuse_none();
	refuse(SYS_openat, -1, 0, EACCES);
	assert_false(learn(c, (uintptr_t)p, clock_ns()));
	refuse_none();
	assert_int_not_equal(ask(c, p, false, clock_ns()).kind, BACKING_CHEAP);
	pages_free(p, 1);
	backing_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(backing_of__swap),
		cmocka_unit_test(backing_forget__too_early),
		cmocka_unit_test(backing_of__kinds),
		cmocka_unit_test(backing_of__slow_revokes),
		cmocka_unit_test(backing_learn__userfaultfd),
		cmocka_unit_test(backing_learn__seldom),
		cmocka_unit_test(backing_doubt__until_it_is_known),
		cmocka_unit_test(backing_forget__another_mapping),
		cmocka_unit_test(backing_learn__no_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
