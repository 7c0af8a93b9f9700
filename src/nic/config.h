/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* config.h: the environment, checked. */
#ifndef NOPIN_NIC_CONFIG_H
#define NOPIN_NIC_CONFIG_H

#include "base/log.h"
#include "base/strategy.h"
#include "mem/mem.h"
#include "nic/reg.h"
#include "os/run.h"

/**
 * enum arbiter_rule - How the NIC memory of a host and user is shared (arbiter.c).
 * OFF: each NIC has its own. In the order of the values.
 */
enum arbiter_rule { ARBITER_OFF, ARBITER_FAIR, ARBITER_FIRST, ARBITER_NUM };

#define ARBITER_NAMES "fair first off"
extern const char *const arbiter_names[ARBITER_NUM];

struct os;

/**
 * struct nic_config - The environment, checked (nic/config.c).
 * @manual:	no threads, no progress by polling: a test drives the steps, and no
 *		reclaim of the host between two of them makes a page unknown
 * @exact:	the host drives the shadow page table (simulator)
 */
struct nic_config {
	struct os_config os;
	enum log_level log;
	enum strategy fault; /* as the user said it */
	strategies_t strategies;
	enum reg_mode reg;
	uint64_t pin_cache; /* NOPIN_PIN_CACHE or 0 */
	enum ahead ahead;
	bool scatter;
	unsigned paths; /* to each nopin; 0: one */
	uint32_t spin_ns; /* a blocking thread polls so long, then sleeps */
	uint32_t mtu; /* NOPIN_MTU or 0 */
	uint64_t pool_bytes;
	uint32_t entries;
	enum arbiter_rule arbiter;
	uint64_t budget; /* entries of all NICs of the user */
	uint32_t weight;
	const char
		*board; /* tests: where it is; NULL: as os_board_open() says */
	uint32_t tickets; /* 0: as many as a NIC has */
	bool always_ready; /* test builds: a table that is always wrong */
	/* Count faults and sleeps of moves; of all else: getrusage(), two system
	 * calls for a packet, or a dozen and two for each look in vain. */
	bool account, account_own;
	bool manual, exact;
	bool standard; /* tests: be a NIC that knows no extensions */
};

/** config_read() - Read the environment.
 * Return: 0; -EINVAL after logging what would be valid. */
int config_read(struct nic_config *cfg);

/** config_check() - Check what only the host can tell. Return: as config_read(). */
int config_check(const struct nic_config *cfg, struct os *os);

#endif
