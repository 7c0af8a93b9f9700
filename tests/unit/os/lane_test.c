/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lane_test.c: each copy its own lane, and all lanes in use. */
#include "host_fixture.h"
#include "os/lane.h"

#include <sys/syscall.h>

static struct os *os;

static void *put_later(void *arg)
{
	usleep(20000);
	lane_put(os, *(int *)arg);
	return NULL;
}

static void lane_get__all(void **state)
{
	bool seen[OS_LANES_MAX] = {false};
	int five = 5;
	pthread_t t;

	(void)state;
	os = host_plain();
	for (int i = 0; i < OS_LANES_MAX; i++) {
		int lane = lane_get(os);

		assert_in_range(lane, 0, OS_LANES_MAX - 1);
		assert_false(seen[lane]);
		seen[lane] = true;
		os->lanes.lane[lane].buf[OS_LANE_BYTES - 1] = (uint8_t)lane;
	}
	assert_int_equal(lane_get(os), -EAGAIN);
	for (int i = 0; i < OS_LANES_MAX; i++)
		assert_int_equal(os->lanes.lane[i].buf[OS_LANE_BYTES - 1], i);
	pthread_create(&t, NULL, put_later, &five);
	assert_int_equal(lane_wait(os), 5);
	pthread_join(t, NULL);
	lane_put(os, 3);
	assert_int_equal(lane_get(os), 3);
	os_close(os);
}

/* One that cannot be made is not in use. */
static void lane_get__none_is_lost(void **state)
{
	int made = 0;

	(void)state;
	os = host_plain();
	refuse(SYS_ftruncate, -1, 0, ENOSPC);
	while (lane_get(os) >= 0) /* some are, at open */
		made++;
	for (int i = 0; i < 2 * OS_LANES_MAX; i++)
		assert_int_equal(lane_get(os), -ENOSPC);
	refuse_none();
	for (int i = made; i < OS_LANES_MAX; i++)
		assert_in_range(lane_get(os), made, OS_LANES_MAX - 1);
	os_close(os);
}

/* Copies that run at once open nothing, as long as a thread of the program comes by
 * before there are more of them than ever. */
static void os_prepare__a_lane_more(void **state)
{
	int lane[OS_LANES_MAX];

	(void)state;
	os = host_plain();
	(void)os_prepare_due(os);
	os_prepare(os);
	for (int i = 0; i < OS_LANES_MAX; i++) {
		refuse_none();
		lane[i] = lane_get(os);
		assert_int_equal(lane[i], i);
		assert_int_equal(refuse_calls(SYS_memfd_create), 0);
		assert_true(i == 0 || os_prepare_due(os));
		os_prepare(os);
	}
	for (int i = 0; i < OS_LANES_MAX; i++)
		lane_put(os, lane[i]);
	refuse_none();
	assert_int_equal(lane_get(os), 0);
	os_prepare(os);
	assert_false(os_prepare_due(os));
	assert_int_equal(refuse_calls(SYS_memfd_create), 0);
	os_close(os);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lane_get__all),
		cmocka_unit_test(lane_get__none_is_lost),
		cmocka_unit_test(os_prepare__a_lane_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
