/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host_test.c: is memory short? With files of our own for /proc and cgroups. */
#include "base/check.h"
#include "host_fixture.h"
#include "os/file.h"
#include "os/host.h"

#include <stddef.h>
#include <sys/stat.h>

enum { GIB = 1048576 }; /* in kB, as /proc/meminfo counts */

static char dir[] = "/tmp/test-of-host-XXXXXX";
static char meminfo[64], cgroup[64], limit[64], used[64];
static uint64_t now = 1;

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(meminfo, sizeof(meminfo), "%s/meminfo", dir);
	snprintf(cgroup, sizeof(cgroup), "%s/cgroup", dir);
	snprintf(limit, sizeof(limit), "%s/limit", dir);
	snprintf(used, sizeof(used), "%s/used", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(meminfo);
	unlink(cgroup);
	unlink(limit);
	unlink(used);
	return rmdir(dir);
}

static void put(const char *path, const char *fmt, unsigned long a,
		unsigned long b, unsigned long c)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, fmt, a, b, c);
	fclose(f);
}

static void memory(unsigned long total, unsigned long avail, unsigned long swap)
{
	put(meminfo,
	    "MemTotal: %lu kB\nMemFree: 5 kB\nMemAvailable: %lu kB\n"
	    "SwapCached: 9 kB\nSwapTotal: %lu kB\nSwapFree: 1 kB\n",
	    total, avail, swap);
}

static void replace(void)
{
	refuse_none();
	redirect("/proc/meminfo", meminfo);
	redirect("/proc/self/cgroup", cgroup);
}

static bool is_short(void)
{
	now += 21 * MS;
	host_look(now);
	return host_is_short();
}

static void host_is_short__meminfo(void **state)
{
	static const struct {
		unsigned long total, avail, swap;
		bool want;
	} t[] = {
		{16 * GIB, 8 * GIB, 0, false}, {16 * GIB, 8 * GIB, 1, false},
		{20 * GIB, GIB, 0, false},     {20 * GIB, GIB - 1, 0, true},
		{GIB / 2, 65536, 0, false},    {GIB / 2, 65535, 0, true},
	};

	(void)state;
	put(cgroup, "", 0, 0, 0);
	replace();
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		memory(t[i].total, t[i].avail, t[i].swap);
		assert_int_equal(is_short(), t[i].want);
		assert_int_equal(host_has_swap(), t[i].swap > 0);
	}
	put(meminfo, "nothing that we know\n", 0, 0, 0);
	assert_true(is_short());
	assert_true(host_has_swap());
	memory(16 * GIB, 8 * GIB, 0);
	assert_false(is_short());
	/* seldom: 20 ms */
	memory(16 * GIB, 0, 0);
	host_look(now + 19 * MS);
	assert_false(host_is_short());
	now += 20 * MS;
	host_look(now);
	assert_true(host_is_short());
}

static void limits(const char *limit_file, const char *used_file,
		   const char *limit_text, unsigned long use, bool want)
{
	replace();
	redirect(limit_file, limit);
	redirect(used_file, used);
	put(limit, limit_text, 0, 0, 0);
	put(used, "%lu\n", use, 0, 0);
	assert_int_equal(is_short(), want);
}

static void host_is_short__cgroups(void **state)
{
#define V1 "/sys/fs/cgroup/memory/"
#define V2 "/sys/fs/cgroup/"
	(void)state;
	memory(16 * GIB, 8 * GIB, 0);
	put(cgroup, "9:name=systemd:/s\n4:cpu,memory:/a/b\n0::/c/d\n", 0, 0, 0);
	/* own group, one above, the root of the mount; v1 and v2 */
	limits(V1 "a/b/memory.limit_in_bytes", V1 "a/b/memory.usage_in_bytes",
	       "1073741824\n", 900ul << 20, false);
	limits(V1 "a/b/memory.limit_in_bytes", V1 "a/b/memory.usage_in_bytes",
	       "1073741824\n", 930ul << 20, true);
	limits(V1 "a/memory.limit_in_bytes", V1 "a/memory.usage_in_bytes",
	       "1073741824\n", 2000ul << 20, true);
	limits(V1 "memory.limit_in_bytes", V1 "memory.usage_in_bytes",
	       "268435456\n", 191ul << 20, false);
	limits(V2 "c/d/memory.max", V2 "c/d/memory.current", "268435456\n",
	       193ul << 20, true);
	limits(V2 "c/memory.high", V2 "c/memory.current", "268435456\n",
	       193ul << 20, true);
	limits(V2 "c/memory.max", V2 "c/memory.current", "max\n", 193ul << 20,
	       false);
	/* of somebody else */
	limits(V2 "x/memory.max", V2 "x/memory.current", "1\n", 193ul << 20,
	       false);
	refuse_none();
}

/* A pager that looks and has to wait for its turn is overtaken by the next look. That
 * opens no file again: for a moment it would have the program's lowest number. */
static void host_look__two_at_once(void **state)
{
	int late;

	(void)state;
	refuse_none();
	files_begin();
	host_look_now();
	late = file_share("/proc/meminfo");
	assert_true(late >= 0);
	refuse_none();
	(void)is_short();
	assert_true(refuse_calls(SYS_pread64) > 0);
	assert_int_equal(refuse_calls(SYS_openat), 0);
	file_return(late);
	files_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_is_short__meminfo),
		cmocka_unit_test(host_is_short__cgroups),
		cmocka_unit_test(host_look__two_at_once),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
