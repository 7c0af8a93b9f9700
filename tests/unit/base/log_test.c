/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log_test.c: levels, one whole line, errno kept. */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

static char got[1024];
static int got_len, lines;

static void writer(const char *line, int len)
{
	assert_true(len < (int)sizeof(got));
	memcpy(got, line, (size_t)len);
	got[len] = 0;
	got_len = len;
	lines++;
	errno = EIO;
}

static void log_at__levels(void **state)
{
	(void)state;
	lines = 0;
	log_set(LOG_WARN, writer);
	assert_int_equal(log_get(), LOG_WARN);
	log_info("no");
	log_debug("no");
	assert_int_equal(lines, 0);
	log_warn("qp %d", 17);
	assert_string_equal(got, "nopin: warn: qp 17\n");
	log_error("x");
	assert_string_equal(got, "nopin: error: x\n");
	assert_int_equal(lines, 2);
	log_set(LOG_NONE, writer);
	log_error("no");
	assert_int_equal(lines, 2);
	log_set(LOG_DEBUG, writer);
	log_debug("yes");
	assert_int_equal(lines, 3);
	log_set(LOG_DEBUG, NULL);
	log_error("no");
	assert_int_equal(lines, 3);
}

static void log_at__truncates_to_one_line(void **state)
{
	static char text[2000];
	int whole = 0;

	(void)state;
	log_set(LOG_WARN, writer);
	for (size_t n = 0; n < 600; n++) {
		memset(text, 'a', n);
		text[n] = 0;
		log_warn("%s", text);
		assert_true(got_len <= 511);
		assert_int_equal(got[got_len - 1], '\n');
		assert_int_equal(strlen(got), got_len);
		assert_ptr_equal(strchr(got, '\n'), got + got_len - 1);
		assert_memory_equal(got, "nopin: warn: ", 13);
		assert_int_equal(strspn(got + 13, "a"), got_len - 14);
		whole += got_len == (int)n + 14;
	}
	/* nothing that fits was cut */
	assert_true(whole >= 480);
	assert_true(got_len >= 480);
}

static void log_at__keeps_errno(void **state)
{
	(void)state;
	log_set(LOG_WARN, writer);
	errno = ENOENT;
	log_warn("x");
	assert_int_equal(errno, ENOENT);
}

static void log_level_names__all(void **state)
{
	(void)state;
	assert_string_equal(log_level_names[LOG_NONE], "none");
	for (int i = 0; i < LOG_NUM; i++)
		assert_non_null(log_level_names[i]);
	assert_string_equal(log_level_names[LOG_DEBUG], "debug");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_at__levels),
		cmocka_unit_test(log_at__truncates_to_one_line),
		cmocka_unit_test(log_at__keeps_errno),
		cmocka_unit_test(log_level_names__all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
