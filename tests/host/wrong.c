/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wrong.c: what the library of the host tests has over the product's: the
 * environment can ask for a NIC that is wrong on purpose. Linked in place of
 * config_read() (--wrap), so that the product has no such switch.
 *
 *   NOPIN_TEST=always-ready   the table calls every page ready
 *   NOPIN_TEST=standard       the NIC knows no extensions, as cards and rxe
 */
#include "nic/config.h"
#include "nic/device.h"

#include <stdlib.h>
#include <string.h>

int __real_config_read(struct nic_config *cfg);
int __wrap_config_read(struct nic_config *cfg);

int __wrap_config_read(struct nic_config *cfg)
{
	const char *what = getenv("NOPIN_TEST");
	int err = __real_config_read(cfg);

	if (!err && what) {
		cfg->always_ready = !strcmp(what, "always-ready");
		cfg->standard = !strcmp(what, "standard");
		CHECK(cfg->always_ready || cfg->standard);
	}
	return err;
}
