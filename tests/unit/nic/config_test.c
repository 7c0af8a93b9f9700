/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* config_test.c: what nopin(7) says of the environment: each value does what it
 * says, and what is not understood is refused with the list of what is.
 */
#include "mem/mem.h"
#include "nic/arbiter.h"
#include "nic/config.h"
#include "nic/device.h"
#include "nic/reg.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char said[512];

static void keep_line(const char *line, int len)
{
	snprintf(said, sizeof(said), "%.*s", len, line);
}

static int setup(void **state)
{
	static const char *const all[] = {
		"NOPIN_FAULT",	   "NOPIN_REG",	   "NOPIN_AHEAD",
		"NOPIN_PIN_CACHE", "NOPIN_LINK",   "NOPIN_SCATTER",
		"NOPIN_MTU",	   "NOPIN_POOL",   "NOPIN_ENTRIES",
		"NOPIN_LOG",	   "NOPIN_BUDGET", "NOPIN_WEIGHT",
		"NOPIN_ARBITER",   "NOPIN_PATHS",  "NOPIN_SPIN"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		unsetenv(all[i]);
	log_set(LOG_ERROR, keep_line);
	said[0] = 0;
	return 0;
}

static struct nic_config with(const char *name, const char *value)
{
	struct nic_config cfg;

	setup(NULL);
	setenv(name, value, 1);
	assert_int_equal(config_read(&cfg), 0);
	assert_string_equal(said, "");
	return cfg;
}

static void config__nothing_said(void **state)
{
	struct nic_config cfg;

	(void)state;
	assert_int_equal(config_read(&cfg), 0);
	assert_int_equal(cfg.strategies, strategy_set(STRATEGY_ADAPTIVE));
	assert_int_equal(cfg.reg, REG_ONDEMAND);
	assert_int_equal(cfg.ahead, AHEAD_PREFETCH);
	assert_int_equal(cfg.pin_cache, 0);
	assert_true(cfg.scatter);
	assert_int_equal(cfg.mtu, 0);
	assert_int_equal(cfg.pool_bytes, 16 << 20);
	assert_int_equal(cfg.entries, 4 << 20);
	assert_int_equal(cfg.budget, 4 << 20);
	assert_int_equal(cfg.weight, 100);
	assert_int_equal(cfg.arbiter, ARBITER_FAIR);
	assert_int_equal(cfg.log, LOG_WARN);
	assert_false(cfg.account);
}

static void config__each_value(void **state)
{
	static const char *const modes[REG_NUM] = {
		"ondemand", "pin", "pin-cache", "pin-op", "prefault", "copy"};

	static const char *const aheads[AHEAD_NUM] = {"prefetch", "queue",
						      "message", "page"};

	(void)state;
	for (int s = STRATEGY_NONE + 1; s < STRATEGY_NUM; s++)
		assert_int_equal(
			with("NOPIN_FAULT", strategy_name(s)).strategies,
			strategy_set(s));
	assert_false(with("NOPIN_FAULT", "block").scatter);
	assert_true(with("NOPIN_FAULT", "block").account);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		assert_int_equal(with("NOPIN_REG", modes[i]).reg, i);
	for (size_t i = 0; i < ARRAY_SIZE(aheads); i++)
		assert_int_equal(with("NOPIN_AHEAD", aheads[i]).ahead, i);
	assert_false(with("NOPIN_REG", "copy").scatter);
	assert_int_equal(with("NOPIN_PIN_CACHE", "4K").pin_cache, 4096);
	assert_false(with("NOPIN_SCATTER", "off").scatter);
	assert_true(with("NOPIN_SCATTER", "on").scatter);
	assert_true(with("NOPIN_LOG", "info").account);
	assert_false(with("NOPIN_LOG", "info").account_own);
	assert_true(with("NOPIN_LOG", "debug").account_own);
	assert_int_equal(with("NOPIN_LOG", "none").log, LOG_NONE);
	assert_int_equal(with("NOPIN_LOG", "debug").log, LOG_DEBUG);
	assert_int_equal(with("NOPIN_MTU", "256").mtu, 256);
	assert_int_equal(with("NOPIN_MTU", "4K").mtu, 4096);
	assert_int_equal(with("NOPIN_POOL", "64k").pool_bytes, 64 << 10);
	assert_int_equal(with("NOPIN_POOL", "4G").pool_bytes, UINT64_C(4)
								      << 30);
	assert_int_equal(with("NOPIN_ENTRIES", "64").entries, 64);
	assert_int_equal(with("NOPIN_ENTRIES", "64").budget, 4 << 20);
	assert_int_equal(with("NOPIN_ENTRIES", "8M").budget, 8 << 20);
	assert_int_equal(with("NOPIN_BUDGET", "16K").budget, 16 << 10);
	assert_int_equal(with("NOPIN_BUDGET", "16G").budget, UINT64_C(1) << 34);
	assert_int_equal(with("NOPIN_WEIGHT", "1").weight, 1);
	assert_int_equal(with("NOPIN_WEIGHT", "1000").weight, 1000);
	for (int i = 0; i < ARBITER_NUM; i++)
		assert_int_equal(
			with("NOPIN_ARBITER", arbiter_names[i]).arbiter, i);
	assert_int_equal(with("NOPIN_ENTRIES", "0x1000").entries, 4096);
	assert_int_equal(with("NOPIN_LOG", "none").paths, 1);
	assert_int_equal(with("NOPIN_PATHS", "1").paths, 1);
	assert_int_equal(with("NOPIN_PATHS", "8").paths, 8);
	assert_int_equal(with("NOPIN_LOG", "none").spin_ns, 50000);
	assert_int_equal(with("NOPIN_SPIN", "0").spin_ns, 0);
	assert_int_equal(with("NOPIN_SPIN", "1000").spin_ns, 1000000);
	with("NOPIN_LINK", "auto");
	with("NOPIN_LINK", "udp");
}

static void config__refused(void **state)
{
	static const struct {
		const char *name, *value, *valid;
	} bad[] = {
		{"NOPIN_FAULT", "", STRATEGY_NAMES},
		{"NOPIN_FAULT", "none", STRATEGY_NAMES},
		{"NOPIN_FAULT", "redirect resume", STRATEGY_NAMES},
		{"NOPIN_REG", "", REG_NAMES},
		{"NOPIN_REG", "pinned", REG_NAMES},
		{"NOPIN_AHEAD", "off", AHEAD_NAMES},
		{"NOPIN_AHEAD", "", AHEAD_NAMES},
		{"NOPIN_PIN_CACHE", "0", "4K to 64T"},
		{"NOPIN_SCATTER", "1", "on off"},
		{"NOPIN_LINK", "shm", "auto udp"},
		{"NOPIN_LOG", "all", "none error warn info debug"},
		{"NOPIN_MTU", "1500", "256 512 1024 2048 4096"},
		{"NOPIN_MTU", "128", "256 512 1024 2048 4096"},
		{"NOPIN_MTU", "8192", "256 512 1024 2048 4096"},
		{"NOPIN_POOL", "65535", "64K to 4G"},
		{"NOPIN_POOL", "5G", "64K to 4G"},
		{"NOPIN_POOL", "99999999999999999999", "64K to 4G"},
		{"NOPIN_POOL", "18446744073709551615G", "64K to 4G"},
		{"NOPIN_POOL", "-1M", "64K to 4G"},
		{"NOPIN_POOL", "1Mb", "64K to 4G"},
		{"NOPIN_POOL", "M", "64K to 4G"},
		{"NOPIN_ENTRIES", "63", "64 to 1G"},
		{"NOPIN_PATHS", "0", "1 to 8"},
		{"NOPIN_PATHS", "9", "1 to 8"},
		{"NOPIN_PATHS", "", "1 to 8"},
		{"NOPIN_PATHS", "4 paths", "1 to 8"},
		{"NOPIN_SPIN", "1001", "0 to 1000"},
		{"NOPIN_SPIN", "20us", "0 to 1000"},
		{"NOPIN_BUDGET", "16383", "16K to 16G"},
		{"NOPIN_BUDGET", "17G", "16K to 16G"},
		{"NOPIN_WEIGHT", "0", "1 to 1000"},
		{"NOPIN_WEIGHT", "1001", "1 to 1000"},
		{"NOPIN_ARBITER", "", "fair first off"},
		{"NOPIN_ARBITER", "Fair", "fair first off"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char line[256];
		struct nic_config cfg;

		setup(state);
		setenv(bad[i].name, bad[i].value, 1);
		assert_int_equal(config_read(&cfg), -EINVAL);
		snprintf(line, sizeof(line),
			 "%s=%s is not understood; valid: %s", bad[i].name,
			 bad[i].value, bad[i].valid);
		assert_non_null(strstr(said, line));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(config__nothing_said, setup),
		cmocka_unit_test_setup(config__each_value, setup),
		cmocka_unit_test_setup(config__refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
