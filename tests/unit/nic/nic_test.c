/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nic_test.c: the NIC of a process, as its threads open, close and look for it. */
#include "nic/impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* ibv_get_device_list() of a program whose device is open. */
static void present__leaves_the_log_as_it_is(void **state)
{
	struct nic *nic;

	(void)state;
	setenv("NOPIN_LOG", "error", 1);
	assert_int_equal(nic_get(&nic), 0);
	assert_int_equal(log_get(), LOG_ERROR);
	assert_true(nic_present());
	assert_int_equal(log_get(), LOG_ERROR);
	nic_put(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(present__leaves_the_log_as_it_is),
	};

	setenv("NOPIN_ADDR", "lo", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
