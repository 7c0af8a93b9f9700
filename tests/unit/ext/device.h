/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.h: what each test of nopin.h begins with. */
#ifndef NOPIN_TESTS_UNIT_EXT_DEVICE_H
#define NOPIN_TESTS_UNIT_EXT_DEVICE_H

#include <nopin.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c;

	assert_non_null(list);
	c = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(c);
	return c;
}

#endif
