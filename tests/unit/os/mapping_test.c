/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapping_test.c: /proc's text about mappings, real and made up. */
#include "base/page.h"
#include "host_fixture.h"
#include "os/mapping.h"

static char path[] = "/tmp/test-of-smaps-XXXXXX";

static int file_new(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	return fd < 0;
}

static int file_gone(void **state)
{
	(void)state;
	return unlink(path);
}

static void file_write(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void mapping_next__made_up(void **state)
{
	struct mapping_scan s;
	struct mapping m;
	char longline[5000];

	(void)state;
	memset(longline, 'n', sizeof(longline));
	longline[sizeof(longline) - 1] = 0;
	file_write("1000-3000 rw-p 00000000 00:00 0    [heap]\n"
		   "Size:   8 kB\n"
		   "Swap:   4 kB\n"
		   "SwapPss:   0 kB\n"
		   "THPeligible:           1\n"
		   "VmFlags: rd wr mr um sd \n"
		   "7000-8000 r--s 00001000 fe:01 99 /some/um file\n"
		   "Swap:   0 kB\n"
		   "THPeligible:    0\n"
		   "VmFlags: rd mr xum umx ht io \n");
	assert_int_equal(mapping_first(&s, path, &m), 0);
	assert_int_equal(m.range.start, 0x1000);
	assert_int_equal(m.range.end, 0x3000);
	assert_true(m.read && m.write && m.anon && m.thp && m.uffd);
	assert_true(m.swapped);
	assert_false(m.huge || m.device);
	assert_true(mapping_next(&s, &m));
	assert_int_equal(m.range.start, 0x7000);
	assert_true(m.read && m.huge && m.device);
	assert_false(m.write || m.anon || m.thp || m.uffd || m.swapped);
	assert_false(mapping_next(&s, &m));
	mapping_end(&s);
	/* a name that does not fit, and a last line that is cut short */
	snprintf(longline, 60, "a000-b000 ---p 0 00:00 7 %s", "");
	longline[strlen(longline)] = 'n';
	file_write(longline);
	assert_int_equal(mapping_first(&s, path, &m), -ENOENT);
	file_write("");
	assert_int_equal(mapping_first(&s, path, &m), -ENOENT);
	assert_int_equal(mapping_first(&s, "/no/such", &m), -ENOENT);
}

static void mapping_next__of_this_process(void **state)
{
	static const char *const files[] = {"/proc/self/maps",
					    "/proc/self/smaps"};
	uint8_t *p = pages_new(3, PROT_READ | PROT_WRITE);
	struct mapping_scan s;
	struct mapping m;

	(void)state;
	mprotect(p + PAGE_BYTES, PAGE_BYTES, PROT_READ);
	for (int i = 0; i < 2; i++) {
		uint64_t last = 0, ours = 0, n = 0;
		int ret = mapping_first(&s, files[i], &m);

		assert_int_equal(ret, 0);
		do {
			assert_true(m.range.start >= last);
			assert_true(m.range.end > m.range.start);
			last = m.range.end;
			n++;
			if (m.range.start == (uintptr_t)p + PAGE_BYTES) {
				assert_true(m.read && m.anon && !m.write);
				ours = m.range.end;
			}
		} while (mapping_next(&s, &m));
		mapping_end(&s);
		assert_int_equal(ours, (uintptr_t)p + 2 * PAGE_BYTES);
		assert_true(n > 10);
	}
	pages_free(p, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mapping_next__made_up),
		cmocka_unit_test(mapping_next__of_this_process),
	};

	return cmocka_run_group_tests(tests, file_new, file_gone);
}
