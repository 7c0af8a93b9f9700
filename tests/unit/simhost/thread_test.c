/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* thread_test.c: virtual threads sleep, are paused, and wait. */
#include "base/page.h"
#include "pair.h"

#include <pthread.h>

static char order[16];

static void note_event(void *arg, uint64_t val)
{
	(void)arg;
	order[strlen(order)] = (char)val;
}

static void sleeper(void *arg)
{
	struct os *os = arg;

	note_event(NULL, '1');
	sim_sleep(sim_of(os), 100);
	note_event(NULL, '2');
	os_relax();
	note_event(NULL, '3');
}

static void sim_spawn__runs_until_it_sleeps(void **state)
{
	struct pair p = open_pair(1);

	(void)state;
	memset(order, 0, sizeof(order));
	sim_spawn(p.a, sleeper, p.a, 50);
	assert_int_equal(sim_threads(p.sim), 1);
	sim_run(p.sim, sim_now(p.sim) + 60);
	assert_string_equal(order, "1");
	assert_false(sim_in_thread(p.sim));
	sim_run(p.sim, sim_now(p.sim) + 100);
	assert_string_equal(order, "12");
	sim_run(p.sim, sim_now(p.sim) + 1000);
	assert_string_equal(order, "123");
	assert_int_equal(sim_threads(p.sim), 0);
	sim_close(p.sim);
}

static void sim_pause__nothing_of_it_runs(void **state)
{
	struct pair p = open_pair(1);

	(void)state;
	memset(order, 0, sizeof(order));
	sim_spawn(p.a, sleeper, p.a, 50);
	sim_pause(p.a, SIM_MS);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS - 1);
	assert_string_equal(order, "");
	sim_run(p.sim, sim_now(p.sim) + 1000);
	assert_string_equal(order, "123");
	sim_close(p.sim);
}

struct waiting {
	struct os *os;
	enum os_wait_for what;
	uint64_t deadline_ns, ended_ns;
	int fd;
};

static void waiter_thread(void *arg)
{
	struct waiting *w = arg;

	os_wait(w->os, w->what, w->deadline_ns, w->fd);
	w->ended_ns = os_now(w->os);
}

static uint64_t wait_ends(struct pair *p, struct waiting *w,
			  void (*disturb)(struct pair *p))
{
	const uint64_t t0 = sim_now(p->sim);

	w->os = p->b;
	w->deadline_ns = t0 + SIM_MS;
	w->ended_ns = 0;
	sim_spawn(p->b, waiter_thread, w, 0);
	sim_run(p->sim, t0 + 10 * SIM_US);
	assert_int_equal(w->ended_ns, 0);
	disturb(p);
	sim_run(p->sim, t0 + 2 * SIM_MS);
	assert_true(w->ended_ns != 0);
	return w->ended_ns - t0;
}

static int wait_fd;

static void disturb_packet(struct pair *p)
{
	assert_int_equal(send_bytes(p, 0, 10, 0), 0);
}

static void disturb_kick(struct pair *p)
{
	os_kick(p->b);
}

static void disturb_fd(struct pair *p)
{
	(void)p;
	os_event_set(wait_fd);
}

static void disturb_page(struct pair *p)
{
	const struct os_page_req req = {
		.addr = sim_mmap(p->b, PAGE_BYTES, SIM_CHEAP, SIM_READ),
		.bytes = PAGE_BYTES,
	};

	assert_int_equal(os_page_ask(p->b, &req), 0);
}

static void os_wait__ends_for_what_it_waits(void **state)
{
	struct waiting w = {.what = OS_WAIT_PACKETS, .fd = -1};
	struct pair p = open_pair(3);
	struct os_page_done done;

	(void)state;
	assert_true(wait_ends(&p, &w, disturb_packet) < 20 * SIM_US);
	assert_int_equal(recv_all(&p), 1);
	assert_true(wait_ends(&p, &w, disturb_kick) < 11 * SIM_US);
	w.what = OS_WAIT_TIMER;
	assert_int_equal(wait_ends(&p, &w, disturb_packet), SIM_MS);
	assert_int_equal(recv_all(&p), 1);
	assert_true(wait_ends(&p, &w, disturb_page) < 100 * SIM_US);
	assert_int_equal(os_page_reap(p.b, &done, 1), 1);
	w.fd = wait_fd = os_event_open();
	assert_true(wait_ends(&p, &w, disturb_fd) < 11 * SIM_US);
	assert_true(os_event_clear(wait_fd));
	assert_false(os_event_clear(wait_fd));
	sim_close(p.sim);
}

static void wait_then_sleep(void *arg)
{
	struct waiting *w = arg;

	os_wait(w->os, w->what, w->deadline_ns, -1);
	sim_sleep(sim_of(w->os), 5 * SIM_MS);
	w->ended_ns = os_now(w->os);
}

/* The deadline of a wait that a packet ended must not end the next sleep. */
static void sim_sleep__not_ended_by_an_old_deadline(void **state)
{
	struct pair p = open_pair(3);
	const uint64_t t0 = sim_now(p.sim);
	struct waiting w = {
		.os = p.b, .what = OS_WAIT_PACKETS, .deadline_ns = t0 + SIM_MS};

	(void)state;
	sim_spawn(p.b, wait_then_sleep, &w, 0);
	disturb_packet(&p);
	sim_run(p.sim, t0 + 10 * SIM_MS);
	assert_true(w.ended_ns >= t0 + 5 * SIM_MS);
	assert_true(w.ended_ns < t0 + 6 * SIM_MS);
	sim_close(p.sim);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool condition;

static void holder(void *arg)
{
	struct os *os = arg;

	pthread_mutex_lock(&mutex);
	note_event(NULL, 'a');
	sim_sleep(sim_of(os), 10 * SIM_US);
	note_event(NULL, 'b');
	while (!condition)
		pthread_cond_wait(&cond, &mutex);
	note_event(NULL, 'd');
	pthread_mutex_unlock(&mutex);
}

static void contender(void *arg)
{
	struct os *os = arg;

	pthread_mutex_lock(&mutex);
	note_event(NULL, 'c');
	condition = true;
	pthread_cond_broadcast(&cond);
	sim_sleep(sim_of(os), 10 * SIM_US);
	pthread_mutex_unlock(&mutex);
}

static void os_thread_start__locks_block_the_thread_only(void **state)
{
	struct pair p = open_pair(1);
	struct os_thread *a, *b;

	(void)state;
	memset(order, 0, sizeof(order));
	condition = false;
	assert_int_equal(os_thread_start(p.a, &a, "a", holder, p.a), 0);
	assert_int_equal(os_thread_start(p.a, &b, "b", contender, p.a), 0);
	os_thread_join(a);
	os_thread_join(b);
	assert_string_equal(order, "abcd");
	assert_int_equal(sim_stats(p.sim)->lock_waits, 2);
	sim_close(p.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_spawn__runs_until_it_sleeps),
		cmocka_unit_test(sim_pause__nothing_of_it_runs),
		cmocka_unit_test(os_wait__ends_for_what_it_waits),
		cmocka_unit_test(sim_sleep__not_ended_by_an_old_deadline),
		cmocka_unit_test(os_thread_start__locks_block_the_thread_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
