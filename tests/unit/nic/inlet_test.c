/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inlet_test.c: until when all that came is known, and what is not planned yet. */
#include "nic/device.h"
#include "nic/inlet.h"
#include "nic/step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROOM = 1000, BEGIN = 100 };

static struct nic nic;
static struct step step[2];

static int setup(void **state)
{
	(void)state;
	nic = (struct nic){.rcvbuf = ROOM, .rx.heard = BEGIN};
	return 0;
}

/* The thread that takes @bytes began at @at_ns. */
static void take(uint64_t at_ns, uint32_t bytes)
{
	nic.rx.token = at_ns << 1 | 1;
	inlet_taken(&nic, nic.rx.token, bytes);
}

/* Nothing was there when it looked: all that came before is known. */
static void inlet_taken__nothing(void **state)
{
	(void)state;
	take(200, 0);
	assert_int_equal(inlet_heard(&nic), 200);
	take(300, 0);
	assert_int_equal(inlet_heard(&nic), 300);
}

/* The sockets hold so much: once that was taken nothing is left of what came before the
 * first of it. */
static void inlet_taken__as_much_as_may_wait(void **state)
{
	(void)state;
	take(200, 0);
	take(300, ROOM - 1);
	assert_int_equal(inlet_heard(&nic), 200);
	take(400, 1);
	assert_int_equal(inlet_heard(&nic), 200);
	take(500, ROOM - 1);
	assert_int_equal(inlet_heard(&nic), 200);
	take(600, 1);
	assert_int_equal(inlet_heard(&nic), 400);
}

/* What was taken before nothing was there counts for no later time. */
static void inlet_taken__before_nothing(void **state)
{
	(void)state;
	take(200, ROOM - 1);
	take(300, 0);
	take(400, 1);
	assert_int_equal(inlet_heard(&nic), 300);
	take(500, ROOM - 1);
	assert_int_equal(inlet_heard(&nic), 300);
	take(600, ROOM);
	assert_int_equal(inlet_heard(&nic), 500);
}

/* Another thread took over: it may have left something. */
static void inlet_taken__by_another(void **state)
{
	(void)state;
	nic.rx.token = 300 << 1 | 1;
	inlet_taken(&nic, 200 << 1 | 1, 0);
	inlet_taken(&nic, 200 << 1 | 1, ROOM);
	assert_int_equal(inlet_heard(&nic), BEGIN);
	assert_int_equal(nic.rx.hear_bytes, 0);
}

/* A step has packets that are not planned, until it has none; not those of another. */
static void inlet_rest__until_all_is_planned(void **state)
{
	(void)state;
	step[0].rx.len = step[1].rx.len = 2;
	step[0].at = step[1].at = 1;
	inlet_rest(&nic, &step[0]);
	assert_ptr_equal(nic.rx.rest, &step[0]);
	step[1].at = 2;
	inlet_rest(&nic, &step[1]);
	assert_ptr_equal(nic.rx.rest, &step[0]);
	step[0].at = 2;
	inlet_rest(&nic, &step[0]);
	assert_null(nic.rx.rest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(inlet_taken__nothing, setup),
		cmocka_unit_test_setup(inlet_taken__as_much_as_may_wait, setup),
		cmocka_unit_test_setup(inlet_taken__before_nothing, setup),
		cmocka_unit_test_setup(inlet_taken__by_another, setup),
		cmocka_unit_test_setup(inlet_rest__until_all_is_planned, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
