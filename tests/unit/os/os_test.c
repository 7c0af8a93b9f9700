/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* os_test.c: the host as a guest: nothing is a cancellation point, memory is what it
 * should be.
 */
#include "base/page.h"
#include "host_fixture.h"
#include "os/copy.h"
#include "os/fd.h"
#include "os/names.h"
#include "os/net.h"
#include "os/pages.h"
#include "os/wait.h"

static void os_memory__bounds(void **state)
{
	struct os *os = host_plain();
	unsigned n = 0;

	(void)state;
	assert_null(os_memory(os, 0));
	assert_null(os_memory(os, SIZE_MAX));
	assert_null(os_memory(os, SIZE_MAX / 2 - 1));
	refuse_none();
	refuse_nth(SYS_ftruncate, 1, ENOSPC);
	assert_null(os_memory(os, 1));
	refuse_none();
	/* as large as one likes; not touched, so not there */
	assert_non_null(os_memory(os, (size_t)1 << 32));
	while (os_memory(os, 1))
		n++;
	assert_int_equal(n, OS_REGIONS_MAX - 1);
	os_close(os);
}

static void os_now__goes_on(void **state)
{
	struct os *os = host_plain();
	uint64_t a = os_now(os), b;

	(void)state;
	usleep(1000);
	b = os_now(os);
	assert_true(a > 0 && b >= a + MS);
	os_close(os);
}

static void random_is_random(struct os *os)
{
	uint8_t a[1000], b[1000];
	unsigned same = 0;

	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	os_random(os, a, sizeof(a));
	os_random(os, b, sizeof(b));
	for (size_t i = 0; i < sizeof(a); i++)
		same += a[i] == b[i];
	assert_true(same < 60);
}

static void os_random__device(void **state)
{
	struct os *os = host_plain();

	(void)state;
	random_is_random(os);
	refuse_none();
	refuse(SYS_getrandom, -1, 0, ENOSYS);
	random_is_random(os);
	refuse_none();
	refuse_nth(SYS_getrandom, 1, EINTR);
	random_is_random(os);
	refuse_none();
	os_close(os);
}

/* --- no cancellation point ---------------------------------------------------- */

static struct os *victim;
static bool survived;

static void *cancelled(void *arg)
{
	struct iovec iov = {&(char[100]){0}, 100};
	struct os_net net;
	struct os_rx rx = {.port = -1};
	struct os_tx tx = {.iov = &iov, .niov = 1};
	static struct moves mv;
	struct os_page_req req = {.addr = (uintptr_t)&mv, .bytes = PAGE_BYTES};
	struct os_page_done done;
	struct endpoint ep;
	struct os_thread *t;
	uint16_t port;
	uint32_t mtu;
	int err, fd;

	/* The cancellation is pending from here on. */
	pthread_cancel(pthread_self());
	assert_int_equal(os_port_open(victim, 0, &port), 0);
	tx.dst = (struct endpoint){.ip = ip4(127, 0, 0, 1), .port = port};
	os_send(victim, &tx);
	os_recv(victim, &iov, 1, &rx, OS_TAKE);
	os_recv(victim, &iov, 1, &rx, OS_TAKE);
	victim->rx.errors = 1;
	os_recv_error(victim, &ep, &err, &mtu);
	for (unsigned k = MOVE_GATHER; k < MOVE_NUM; k++) {
		mv.num = 1;
		mv.m[0] = (struct move){.addr = (uintptr_t)iov.iov_base,
					.nic = victim->memory.region[0].base,
					.len = 8,
					.kind = (uint8_t)k};
		os_moves(victim, &mv);
		assert_int_equal(mv.error, 0);
	}
	os_page_ask(victim, &req);
	while (os_page_reap(victim, &done, 1) == 0)
		os_wait(victim, OS_WAIT_PACKETS, os_now(victim) + 100 * MS, -1);
	os_kick(victim);
	fd = os_event_open();
	os_event_set(fd);
	os_event_clear(fd);
	fd_close(fd);
	os_net_watch(victim);
	os_net_read(victim, &net);
	os_net_free(&net);
	os_net_changed(victim);
	os_thread_start(victim, &t, "x", (void (*)(void *))os_kick, victim);
	os_thread_join(t);
	os_unclaim(victim, os_claim(victim, "cancel-test"));
	os_memory(victim, PAGE_BYTES);
	os_usage();
	os_random(victim, iov.iov_base, 8);
	os_fresh_after(victim, os_now(victim));
	os_pin(victim, 0, PAGE_BYTES, true);
	os_unpin(victim, 0, PAGE_BYTES);
	os_port_close(victim, 0);
	os_close(victim);
	survived = true;
	pthread_testcancel();
	return arg;
}

static void os_all__no_cancellation_point(void **state)
{
	pthread_t t;
	void *ret;

	(void)state;
	victim = host_plain();
	assert_non_null(os_memory(victim, PAGE_BYTES));
	assert_int_equal(pthread_create(&t, NULL, cancelled, NULL), 0);
	pthread_join(t, &ret);
	assert_true(survived);
	assert_ptr_equal(ret, PTHREAD_CANCELED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_memory__bounds),
		cmocka_unit_test(os_now__goes_on),
		cmocka_unit_test(os_random__device),
		cmocka_unit_test(os_all__no_cancellation_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
