/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nic_test.c: the NIC of a process, as its threads open, close and look for it. */
#include "nic/device.h"
#include "nic/nic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 4, TIMES = 20 };

static void *gets_and_puts(void *arg)
{
	struct nic *nic;

	for (int i = 0; i < TIMES; i++) {
		assert_int_equal(nic_get(&nic), 0);
		nic_put(nic);
	}
	return arg;
}

/* Whoever comes as the last one leaves does not look at what is gone. */
static void get__while_another_puts(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, gets_and_puts, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ibv_get_device_list() of a program whose device is open. */
static void present__leaves_the_log_as_it_is(void **state)
{
	struct nic *nic;

	(void)state;
	setenv("NOPIN_LOG", "error", 1);
	assert_int_equal(nic_get(&nic), 0);
	assert_int_equal(log_get(), LOG_ERROR);
	assert_int_equal(nic_present(), 0);
	assert_int_equal(log_get(), LOG_ERROR);
	nic_put(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get__while_another_puts),
		cmocka_unit_test(present__leaves_the_log_as_it_is),
	};

	setenv("NOPIN_ADDR", "lo", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
