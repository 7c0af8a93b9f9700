/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* config.c: the environment (design §6, nopin(7)). A value that is not
 * understood is refused, with the list of those that are.
 */
#include "nic/config.h"
#include "base/check.h"
#include "base/fair.h"
#include "base/log.h"
#include "base/page.h"
#include "base/strategy.h"
#include "mem/mem.h"
#include "nic/reg.h"
#include "os/net.h"
#include "wire/roce.h"
#include "xport/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const arbiter_names[ARBITER_NUM] = {
	[ARBITER_OFF] = "off",
	[ARBITER_FAIR] = "fair",
	[ARBITER_FIRST] = "first",
};

static int config_refuse(const char *name, const char *value, const char *valid)
{
	log_error("%s=%s is not understood; valid: %s", name, value, valid);
	return -EINVAL;
}

/* *@out stays as it is where @name is not set. */
static int read_one_of(const char *name, const char *const *names, int num,
		       const char *valid, int *out)
{
	const char *v = getenv(name);

	if (!v)
		return 0;
	for (int i = 0; i < num; i++)
		if (!strcmp(v, names[i])) {
			*out = i;
			return 0;
		}
	return config_refuse(name, v, valid);
}

static int read_log(struct nic_config *cfg)
{
	int log = LOG_WARN;
	int err = read_one_of("NOPIN_LOG", log_level_names, LOG_NUM,
			      "none error warn info debug", &log);

	cfg->log = (enum log_level)log;
	return err;
}

static int read_fault(struct nic_config *cfg)
{
	const char *v = getenv("NOPIN_FAULT");
	enum strategy s = v ? strategy_by_name(v) : STRATEGY_ADAPTIVE;

	if (s == STRATEGY_NONE)
		return config_refuse("NOPIN_FAULT", v, STRATEGY_NAMES);
	cfg->fault = s;
	cfg->strategies = strategy_set(s);
	return 0;
}

static int read_reg(struct nic_config *cfg)
{
	const char *v = getenv("NOPIN_REG");

	cfg->reg = v ? reg_by_name(v) : REG_ONDEMAND;
	return cfg->reg < REG_NUM ? 0
				  : config_refuse("NOPIN_REG", v, REG_NAMES);
}

static int read_ahead(struct nic_config *cfg)
{
	static const char *const names[AHEAD_NUM] = {
		[AHEAD_PREFETCH] = "prefetch",
		[AHEAD_QUEUE] = "queue",
		[AHEAD_MESSAGE] = "message",
		[AHEAD_PAGE] = "page"};
	int ahead = (int)cfg->ahead;
	int err = read_one_of("NOPIN_AHEAD", names, AHEAD_NUM, AHEAD_NAMES,
			      &ahead);

	cfg->ahead = (enum ahead)ahead;
	return err;
}

static int read_arbiter(struct nic_config *cfg)
{
	int rule = ARBITER_FAIR;
	int err = read_one_of("NOPIN_ARBITER", arbiter_names, ARBITER_NUM,
			      ARBITER_NAMES, &rule);

	cfg->arbiter = (enum arbiter_rule)rule;
	return err;
}

static int read_choice(const char *name, const char *off, const char *on,
		       const char *valid, bool *out)
{
	const char *const names[] = {off, on};
	int i = *out;
	int err = read_one_of(name, names, ARRAY_SIZE(names), valid, &i);

	*out = i;
	return err;
}

/* A number with an optional K, M or G. */
static int read_size(const char *name, uint64_t min, uint64_t max,
		     const char *valid, uint64_t *out)
{
	const char *v = getenv(name);
	int saved = errno, overflow;
	unsigned shift = 0;
	uint64_t n;
	char *end;

	if (!v)
		return 0;
	errno = 0;
	n = strtoull(v, &end, 0);
	overflow = errno;
	errno = saved;
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	else if (*end == 'T' || *end == 't')
		shift = 40;
	if (overflow || end == v || v[0] == '-' || end[shift ? 1 : 0] ||
	    n > max >> shift || n << shift < min)
		return config_refuse(name, v, valid);
	*out = n << shift;
	return 0;
}

static int read_mtu(struct nic_config *cfg)
{
	uint64_t mtu = 0;
	int err = read_size("NOPIN_MTU", MTU_MIN, MTU_MAX,
			    "256 512 1024 2048 4096", &mtu);

	if (!err && mtu & (mtu - 1))
		return config_refuse("NOPIN_MTU", getenv("NOPIN_MTU"),
				     "256 512 1024 2048 4096");
	cfg->mtu = (uint32_t)mtu;
	return err;
}

static int read_paths(struct nic_config *cfg)
{
	uint64_t paths = 1;
	int err = read_size("NOPIN_PATHS", 1, PATHS_MAX, "1 to 8", &paths);

	static_assert(PATHS_MAX == 8, "what is said to be valid");
	cfg->paths = (unsigned)paths;
	return err;
}

static int read_spin(struct nic_config *cfg)
{
	uint64_t us = 50;
	int err = read_size("NOPIN_SPIN", 0, 1000, "0 to 1000", &us);

	cfg->spin_ns = (uint32_t)us * 1000;
	return err;
}

static int read_sizes(struct nic_config *cfg)
{
	uint64_t entries = 4 << 20;
	int err;

	cfg->pool_bytes = 16 << 20;
	err = read_size("NOPIN_POOL", 64 << 10, UINT64_C(1) << 32, "64K to 4G",
			&cfg->pool_bytes);
	if (!err)
		err = read_size("NOPIN_ENTRIES", 64, 1 << 30, "64 to 1G",
				&entries);
	if (!err)
		err = read_size("NOPIN_PIN_CACHE", PAGE_BYTES,
				UINT64_C(1) << 46, "4K to 64T",
				&cfg->pin_cache);
	cfg->entries = (uint32_t)entries;
	return err ? err : read_mtu(cfg);
}

/* Each of OS_NOTES_MAX processes is to have the smallest table that there is. */
static int read_budget(struct nic_config *cfg)
{
	uint64_t weight = 100;
	int err;

	cfg->budget = MAX(cfg->entries, 4u << 20);
	err = read_size("NOPIN_BUDGET", 16 << 10, UINT64_C(1) << 34,
			"16K to 16G", &cfg->budget);
	if (!err)
		err = read_size("NOPIN_WEIGHT", 1, FAIR_WEIGHT_MAX, "1 to 1000",
				&weight);
	cfg->weight = (uint32_t)weight;
	return err ? err : read_arbiter(cfg);
}

static int read_link(void)
{
	const char *v = getenv("NOPIN_LINK");

	if (v && strcmp(v, "auto") != 0 && strcmp(v, "udp") != 0)
		return config_refuse("NOPIN_LINK", v, "auto udp");
	return 0;
}

int config_read(struct nic_config *cfg)
{
	bool block;
	int err;

	*cfg = (struct nic_config){.scatter = true};
	cfg->os.addr = getenv("NOPIN_ADDR");
	cfg->os.pagers = 16;
	err = read_log(cfg);
	if (!err)
		err = read_fault(cfg);
	if (!err)
		err = read_reg(cfg);
	if (!err)
		err = read_ahead(cfg);
	if (!err)
		err = read_choice("NOPIN_SCATTER", "off", "on", "on off",
				  &cfg->scatter);
	if (!err)
		err = read_link();
	if (!err)
		err = read_paths(cfg);
	if (!err)
		err = read_spin(cfg);
	/* Where the engine is to sleep, nobody else does: no fault is met while
	 * a burst is received. And its sleep is to be told. With bounce buffers
	 * nothing is received in place. */
	block = cfg->strategies & STRATEGY_BIT(STRATEGY_BLOCK);
	cfg->scatter = cfg->scatter && !block && cfg->reg != REG_COPY;
	cfg->account = cfg->log >= LOG_INFO || block;
	cfg->account_own = cfg->log >= LOG_DEBUG;
	if (!err)
		err = read_sizes(cfg);
	return err ? err : read_budget(cfg);
}

int config_check(const struct nic_config *cfg, struct os *os)
{
	char valid[1024];
	int err = os_addr_check(os, valid, sizeof(valid));

	return err == -EINVAL ? config_refuse("NOPIN_ADDR", cfg->os.addr, valid)
			      : err;
}
