/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait_test.c: what wakes a waiter, and what does not. */
#include "base/check.h"
#include "base/page.h"
#include "base/timerq.h"
#include "host_fixture.h"
#include "os/clock.h"
#include "os/net.h"
#include "os/pages.h"
#include "os/wait.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static struct os *os;
static uint16_t port;
static int port_index;

static int open_host(void **state)
{
	(void)state;
	os = host_plain();
	port_index = os_port_open(os, 0, &port);
	return port_index < 0;
}

static int close_host(void **state)
{
	(void)state;
	os_close(os);
	return 0;
}

/* Return: how long it waited, ns. */
static uint64_t waited(enum os_wait_for what, uint64_t ns, int extra)
{
	uint64_t began = os_now(os);

	errno = 123;
	os_wait(os, what, began + ns, extra);
	assert_int_equal(errno, 123);
	return os_now(os) - began;
}

/* A wait that has no end of its own: one that nothing ends hangs. */
static void expect_woken(enum os_wait_for what, int extra)
{
	os_wait(os, what, TIME_NEVER, extra);
}

static void send_to(uint16_t to)
{
	struct iovec iov = {"x", 1};
	struct os_tx tx = {.dst = {.ip = ip4(127, 0, 0, 1), .port = to},
			   .port = port_index,
			   .iov = &iov,
			   .niov = 1};

	assert_int_equal(os_send(os, &tx), 0);
}

static void take(void)
{
	struct os_rx rx = {.port = -1};
	struct iovec iov;
	char c[8];

	iov = (struct iovec){c, sizeof(c)};
	while (os_recv(os, &iov, 1, &rx, OS_TAKE) == 1)
		rx.port = -1;
}

static void os_wait__deadline(void **state)
{
	static const uint64_t t[] = {1, 100000, MS, 20 * MS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_true(waited(OS_WAIT_TIMER, t[i], -1) >= t[i]);
	/* in the past */
	os_wait(os, OS_WAIT_PACKETS, 0, -1);
	os_wait(os, OS_WAIT_PACKETS, 1, -1);
}

static void os_wait__packets(void **state)
{
	(void)state;
	send_to(port);
	expect_woken(OS_WAIT_PACKETS, -1);
	/* it stays until it is taken */
	expect_woken(OS_WAIT_PACKETS, -1);
	assert_true(waited(OS_WAIT_TIMER, 10 * MS, -1) >= 10 * MS);
	take();
	assert_true(waited(OS_WAIT_PACKETS, 10 * MS, -1) >= 10 * MS);
}

static void os_wait__packets_of_several_ports(void **state)
{
	uint16_t second;
	int i = os_port_open(os, 0, &second);

	(void)state;
	assert_true(i > 0);
	assert_true(waited(OS_WAIT_PACKETS, 10 * MS, -1) >= 10 * MS);
	send_to(second);
	expect_woken(OS_WAIT_PACKETS, -1);
	take();
	os_port_close(os, i);
	send_to(port);
	expect_woken(OS_WAIT_PACKETS, -1);
	take();
}

/* An ICMP error wakes too; once read it does so no more. */
static void os_wait__error(void **state)
{
	struct endpoint dst;
	uint16_t dead;
	uint32_t mtu;
	int err, i;

	(void)state;
	i = os_port_open(os, 0, &dead);
	os_port_close(os, i);
	send_to(dead);
	expect_woken(OS_WAIT_PACKETS, -1);
	assert_int_equal(os_recv_error(os, &dst, &err, &mtu), 1);
	assert_int_equal(dst.port, dead);
	take();
	assert_true(waited(OS_WAIT_PACKETS, 10 * MS, -1) >= 10 * MS);
}

static void os_wait__extra_fd(void **state)
{
	int fd = os_event_open();

	(void)state;
	assert_true(fd >= 0);
	assert_true(waited(OS_WAIT_TIMER, 10 * MS, fd) >= 10 * MS);
	os_event_set(fd);
	expect_woken(OS_WAIT_TIMER, fd);
	assert_true(os_event_clear(fd));
	assert_false(os_event_clear(fd));
	close(fd);
}

static void os_kick__is_for_the_background_thread(void **state)
{
	int fd = os_event_open();

	(void)state;
	os_kick(os);
	os_kick(os);
	assert_true(waited(OS_WAIT_TIMER, 10 * MS, fd) >= 10 * MS);
	expect_woken(OS_WAIT_TIMER, -1);
	/* consumed */
	assert_true(waited(OS_WAIT_TIMER, 10 * MS, -1) >= 10 * MS);
	close(fd);
}

static void *waiter(void *arg)
{
	os_wait(os, OS_WAIT_PACKETS, TIME_NEVER, -1);
	return arg;
}

static void os_kick__wakes_a_sleeper(void **state)
{
	pthread_t t;

	(void)state;
	for (int i = 0; i < 200; i++) {
		assert_int_equal(pthread_create(&t, NULL, waiter, NULL), 0);
		if (i % 2)
			usleep(500);
		os_kick(os);
		pthread_join(t, NULL);
	}
}

static void os_wait__page_answer(void **state)
{
	uint8_t *p = pages_new(1, PROT_READ);
	struct os_page_req req = {.addr = (uintptr_t)p, .bytes = PAGE_BYTES};
	struct os_page_done done;

	(void)state;
	assert_int_equal(os_page_ask(os, &req), 0);
	expect_woken(OS_WAIT_TIMER, -1);
	assert_true(os_pages_waiting(os));
	assert_int_equal(os_page_reap(os, &done, 1), 1);
	assert_int_equal(done.addr, req.addr);
	assert_false(os_pages_waiting(os));
	assert_true(waited(OS_WAIT_TIMER, 10 * MS, -1) >= 10 * MS);
	pages_free(p, 1);
}

static unsigned handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void handle(int flags)
{
	struct sigaction act = {.sa_flags = flags};

	act.sa_handler = handler;
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	os_wait(os, OS_WAIT_TIMER, os_now(os) + 2 * MS, -1);
}

/* In a verb they come in, whether it sleeps or not; and then what there is. */
static void os_wait_in_verb__signals(void **state)
{
	static const enum os_wait_for what[] = {OS_WAIT_TIMER, OS_WAIT_PACKETS,
						OS_WAIT_EVENT};
	struct os_signals s = {.blocked = false};
	int fd = os_event_open();

	(void)state;
	os_signals_block(&s);
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(what); i++) {
		const uint64_t until = i % 2 ? TIME_NEVER : 1;

		handle(0);
		handled = 0;
		raise(SIGUSR1);
		assert_int_equal(
			os_wait_in_verb(os, what[i / 2], until, fd, &s),
			-EINTR);
		assert_int_equal(handled, 1);
		handle(SA_RESTART);
		raise(SIGUSR1);
		assert_int_equal(
			os_wait_in_verb(os, what[i / 2], until, fd, &s), 0);
		assert_int_equal(handled, 2);
	}
	handle(0);
	raise(SIGUSR1);
	os_event_set(fd);
	assert_int_equal(os_wait_in_verb(os, OS_WAIT_EVENT, TIME_NEVER, fd, &s),
			 0);
	assert_int_equal(handled, 2);
	os_signals_restore(&s);
	assert_int_equal(handled, 3);
	signal(SIGUSR1, SIG_DFL);
	os_event_close(fd);
}

/* Nor does what is readable all the time, and none of its business, keep them out. */
static void os_wait_in_verb__signals_among_packets(void **state)
{
	struct os_signals s = {.blocked = false};
	int fd = os_event_open(), err = 0;

	(void)state;
	send_to(port);
	expect_woken(OS_WAIT_PACKETS, -1);
	handle(0);
	handled = 0;
	os_signals_block(&s);
	raise(SIGUSR1);
	for (int i = 0; i < 1000000 && !err; i++)
		err = os_wait_in_verb(os, OS_WAIT_PACKETS, TIME_NEVER, fd, &s);
	assert_int_equal(err, -EINTR);
	assert_int_equal(handled, 1);
	os_signals_restore(&s);
	signal(SIGUSR1, SIG_DFL);
	os_event_close(fd);
	take();
}

/* A thread of the program in a verb, until there are enough waits. */
struct in_verb {
	int fd;
	unsigned waits, ended;
	bool enough;
};

static void *wait_in_verb(void *arg)
{
	struct os_signals s = {.blocked = false};
	struct in_verb *v = arg;

	os_signals_block(&s);
	while (!__atomic_load_n(&v->enough, __ATOMIC_ACQUIRE)) {
		v->ended += os_wait_in_verb(os, OS_WAIT_EVENT, TIME_NEVER,
					    v->fd, &s) == -EINTR;
		__atomic_add_fetch(&v->waits, 1, __ATOMIC_RELEASE);
	}
	os_signals_restore(&s);
	return NULL;
}

/* The C library interrupts all threads, also for what changes nothing or is refused,
 * and read(2) goes on. */
static void os_wait_in_verb__another_thread_calls_setuid(void **state)
{
	struct in_verb v = {.fd = os_event_open()};
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, wait_in_verb, &v), 0);
	while (__atomic_load_n(&v.waits, __ATOMIC_ACQUIRE) < 20)
		assert_int_equal(setgid(getgid()), 0);
	__atomic_store_n(&v.enough, true, __ATOMIC_RELEASE);
	os_event_set(v.fd);
	pthread_join(t, NULL);
	assert_int_equal(v.ended, 0);
	os_event_close(v.fd);
}

/* --- a line for people ------------------------------------------------------- */

/* Standard error is the end of @fds that is written. Return: what it was. */
static int stderr_to_pipe(int *fds)
{
	const int was = dup(STDERR_FILENO);

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	return was;
}

static void stderr_back(int was, const int *fds)
{
	assert_int_equal(dup2(was, STDERR_FILENO), STDERR_FILENO);
	close(was);
	close(fds[1]);
}

/* A line is lost where it would have to wait for a reader, as locks are held. */
static void os_log__does_not_wait(void **state)
{
	static char page[PAGE_BYTES];
	int fds[2], flags, was;

	(void)state;
	was = stderr_to_pipe(fds);
	flags = fcntl(fds[1], F_GETFL);
	assert_int_equal(fcntl(fds[1], F_SETFL, flags | O_NONBLOCK), 0);
	while (write(fds[1], page, sizeof(page)) > 0)
		;
	assert_int_equal(fcntl(fds[1], F_SETFL, flags), 0);
	os_log("lost\n", 5);
	assert_int_equal(read(fds[0], page, sizeof(page)), sizeof(page));
	os_log("read\n", 5);
	stderr_back(was, fds);
	while (read(fds[0], page, sizeof(page)) == sizeof(page))
		;
	assert_memory_equal(page, "read\n", 5);
	close(fds[0]);
}

/* It ends no program. */
static void os_log__nobody_reads(void **state)
{
	int fds[2], was;

	(void)state;
	was = stderr_to_pipe(fds);
	close(fds[0]);
	os_log("lost\n", 5);
	stderr_back(was, fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_wait__deadline),
		cmocka_unit_test(os_wait__packets),
		cmocka_unit_test(os_wait__packets_of_several_ports),
		cmocka_unit_test(os_wait__error),
		cmocka_unit_test(os_wait__extra_fd),
		cmocka_unit_test(os_wait__page_answer),
		cmocka_unit_test(os_wait_in_verb__signals),
		cmocka_unit_test(os_wait_in_verb__signals_among_packets),
		cmocka_unit_test(os_wait_in_verb__another_thread_calls_setuid),
		cmocka_unit_test(os_kick__is_for_the_background_thread),
		cmocka_unit_test(os_kick__wakes_a_sleeper),
		cmocka_unit_test(os_log__does_not_wait),
		cmocka_unit_test(os_log__nobody_reads),
	};

	return cmocka_run_group_tests(tests, open_host, close_host);
}
