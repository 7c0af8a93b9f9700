/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork_test.c: what is found out about pages while fork() goes on. They become
 * copy-on-write one by one, so what a pager made writable may not be so any more
 * when it is written to, and a move that finds out waits for the end of fork().
 */
#include "steps.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*meanwhile)(void);

static void before_fork(void)
{
	if (meanwhile)
		meanwhile();
}

/* Installed before those of the library, which installs its own when it is loaded, so
 * it runs after them: fork() has begun. */
static void install(void)
{
	pthread_atfork(before_fork, NULL, NULL);
}

__attribute__((section(".preinit_array"),
	       used)) static void (*early)(void) = install;

static void fork_and(void (*fn)(void))
{
	pid_t pid;

	meanwhile = fn;
	pid = fork();
	meanwhile = NULL;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static uint64_t served(void)
{
	return side[1].nic->cnt.v[CNT_service_ns];
}

static int pages_came;
static bool written;

/* Nothing may be asserted in the middle of fork(). */
static void pump_until_served(void)
{
	const uint64_t before = served();

	for (int i = 0; i < TRIES && served() == before; i++) {
		pump(&side[1]);
		idle(side[1].nic);
	}
	pages_came += served() > before;
}

/* The page comes twice, and may be read only. */
static void write_to_a_page_that_comes(void)
{
	const uint64_t *to = (uint64_t *)(side[1].buf + BUF / 2 + 4096);

	know_pages(&side[1]);
	lose_read_page();
	pump_until_served();
	pump_until_served();
	written = *to != 0;
}

static void fork__page_comes_meanwhile(void **state)
{
	(void)state;
	memset(side[0].buf, 1, BUF);
	memset(side[1].buf, 0, BUF);
	post_at(&side[0], WR_WRITE, 4096, 8);
	send_all(&side[0]);
	fork_and(write_to_a_page_that_comes);
	assert_int_equal(pages_came, 2);
	assert_false(written);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fork__page_comes_meanwhile,
						setup, sides_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
