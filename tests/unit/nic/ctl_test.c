/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl_test.c: what a NIC answers to requests, and to what is none. */
#include "nic/ctl.h"
#include "nic/text.h"
#include "side.h"

static const struct nic_config config = {.os = {.addr = "lo", .pagers = 1},
					 .entries = 1 << 16,
					 .manual = true,
					 .pool_bytes = 1 << 20};

static void check_error(const char *req, size_t len, const char *want)
{
	struct ctl_answer a;

	ctl_request(side[0].nic, req, len, &a);
	assert_null(a.text);
	assert_string_equal(a.error, want);
}

static void ctl_answer__commands(void **state)
{
	static const char *const good[] = {"stat", "trace", "  stat  "};
	struct ctl_answer a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		ctl_request(side[0].nic, good[i], strlen(good[i]), &a);
		assert_string_equal(a.error, "");
		assert_non_null(a.text);
		assert_int_equal(strlen(a.text), a.len);
		free(a.text);
	}
}

static void ctl_answer__no_command(void **state)
{
	char many[256];

	(void)state;
	check_error(
		"statx", 5,
		"no command 'statx'; there are: host move resume stat suspend "
		"trace");
	check_error("stat 1", 6, "stat takes 0 arguments");
	/* what is cut off is a name that there is not */
	memset(many, 's', sizeof(many));
	check_error(many, sizeof(many),
		    "no command 'ssssssssssssssssssssssssssssssssssssssss'; "
		    "there are: host move resume stat suspend trace");
}

static void ctl_answer__no_request(void **state)
{
	static const char none[] = "that is no request";
	char req[1025];

	(void)state;
	memset(req, 's', sizeof(req));
	check_error(req, sizeof(req), none);
	check_error("", 0, none);
	check_error("   ", 3, none);
	check_error("stat", 5, none);
	check_error("stat\n", 5, none);
	check_error("\xff\xfe", 2, none);
	for (int c = 0; c < 256; c++) {
		struct ctl_answer a;

		req[0] = (char)c;
		ctl_request(side[0].nic, req, 1, &a);
		assert_true(a.error[0]);
	}
}

/* The last word of a move is the name of a file, whatever that is. */
static void ctl_answer__any_name(void **state)
{
	static const char *const req[] = {"move 1 file /a b  c d e",
					  "move 1 file /\xc3\xbc"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(req); i++)
		check_error(req[i], strlen(req[i]), "no region has this key");
	check_error("move \xc3\xbc file /a", 15, "that is no request");
}

static int open_one(void **state)
{
	(void)state;
	sides_open(&config);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ctl_answer__commands),
		cmocka_unit_test(ctl_answer__no_command),
		cmocka_unit_test(ctl_answer__no_request),
		cmocka_unit_test(ctl_answer__any_name),
	};

	return cmocka_run_group_tests(tests, open_one, sides_close);
}
