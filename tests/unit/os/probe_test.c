/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe_test.c: a call that is denied is named, if nothing else does what it does. */
#include "base/check.h"
#include "base/log.h"
#include "host_fixture.h"
#include "os/probe.h"

#include <stddef.h>

static char line[256];

static void look_at(const char *text, int len)
{
	snprintf(line, sizeof(line), "%.*s", len, text);
}

static void probe_calls__names_it(void **state)
{
	static const struct {
		long nr;
		int err;
		const char *name;
	} t[] = {
		{SYS_ppoll, EPERM, "ppoll"},
		{SYS_futex, ENOSYS, "futex"},
		{SYS_sendmsg, EPERM, "sendmsg"},
		{SYS_preadv2, EACCES, "preadv2"},
		{SYS_madvise, EPERM, "madvise"},
		{SYS_mmap, EPERM, "mmap"},
	};
	static const struct os_config cfg = {.pagers = 1};
	struct os *os = NULL;

	(void)state;
	log_set(LOG_ERROR, look_at);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		line[0] = 0;
		refuse_none();
		refuse(t[i].nr, -1, 0, t[i].err);
		assert_int_equal(os_open(&os, &cfg), -t[i].err);
		assert_null(os);
		assert_non_null(strstr(line, t[i].name));
	}
	refuse_none();
	log_set(LOG_ERROR, NULL);
}

static void probe_calls__one_of_two_is_enough(void **state)
{
	static const long two[][2] = {{SYS_pread64, SYS_preadv},
				      {SYS_pwritev, SYS_pwrite64},
				      {SYS_write, SYS_writev}};

	(void)state;
	log_set(LOG_ERROR, look_at);
	for (size_t i = 0; i < ARRAY_SIZE(two); i++) {
		for (int k = 0; k < 2; k++) {
			refuse_none();
			refuse(two[i][k], -1, 0, EPERM);
			assert_int_equal(probe_calls(), 0);
		}
		refuse(two[i][0], -1, 0, EPERM);
		assert_int_equal(probe_calls(), -EPERM);
	}
	refuse_none();
	log_set(LOG_ERROR, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_calls__names_it),
		cmocka_unit_test(probe_calls__one_of_two_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
