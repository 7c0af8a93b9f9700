/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* events_test.c: what programs that sleep are woken by: descriptors that poll()
 * shows readable when, and only when, there is something; and what is told of
 * an error.
 */
#include "nic/async.h"
#include "nic/attend.h"
#include "nic/completion.h"
#include "nic/events.h"
#include "nic/lock.h"
#include "nic/pair.h"
#include "nic/progress.h"
#include "os/net.h"
#include "os/wait.h"
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>

enum { EVER = -1, FEW = 4, MANY = 4 * FEW };

static struct side by[SIDES]; /* a connection with events */
static struct nic_async *async[SIDES];
static struct nic_channel *channel[SIDES];
static int async_fd[SIDES], channel_fd[SIDES];

static int setup(void **state)
{
	(void)state;
	sides_open_usual();
	for (int i = 0; i < SIDES; i++) {
		struct nic *nic = side[i].nic;

		assert_int_equal(nic_async_open(nic, &async[i], &async_fd[i]),
				 0);
		assert_int_equal(
			nic_channel_open(nic, &channel[i], &channel_fd[i]), 0);
		by[i] = side[i];
		side_qp(&by[i], FEW, async[i], channel[i]);
	}
	for (int i = 0; i < SIDES; i++)
		side_connect(&by[i], &by[!i]);
	return 0;
}

/* Whatever happened to the one connection, the other one is well. */
static int teardown(void **state)
{
	side_recv(&side[1], side[1].buf, 64, 1);
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 64);
	for (int i = 0; i < SIDES; i++) {
		assert_int_equal(side_cqe(&side[i]).status, WC_SUCCESS);
		side_qp_close(&by[i]);
		nic_channel_close(channel[i]);
		nic_async_close(async[i]);
	}
	return sides_close(state);
}

/* By by[0], and received: nothing of it is still to come. */
static void send_one(uint8_t flags)
{
	side_post(&by[0], (struct wqe){.op = WR_SEND, .flags = flags},
		  by[0].buf, 8);
	assert_int_equal(side_cqe(&by[0]).status, WC_SUCCESS);
}

/* One event, for which nobody looked at the CQ. */
static void woken(void)
{
	void *cookie;

	assert_true(side_readable(channel_fd[1], EVER));
	assert_int_equal(nic_channel_get(channel[1], &cookie), 0);
	assert_ptr_equal(cookie, &by[1]);
	assert_false(side_readable(channel_fd[1], 0));
}

static void channel__any_completion(void **state)
{
	void *cookie;

	(void)state;
	for (int i = 0; i < 3; i++)
		side_recv(&by[1], by[1].buf, 64, 1);
	assert_int_equal(nic_cq_arm(by[1].cq, false), 0);
	assert_false(side_readable(channel_fd[1], 0));
	send_one(0);
	woken();
	send_one(0); /* nobody asked */
	assert_int_equal(side_cqe(&by[1]).status, WC_SUCCESS);
	assert_int_equal(side_cqe(&by[1]).status, WC_SUCCESS);
	assert_false(side_readable(channel_fd[1], 0));
	assert_int_equal(fcntl(channel_fd[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(nic_channel_get(channel[1], &cookie), -EAGAIN);
}

static void channel__solicited_or_failed(void **state)
{
	const struct qp_attr err = {.state = QPS_ERR};

	(void)state;
	for (int i = 0; i < 4; i++)
		side_recv(&by[1], by[1].buf, 64, 1);
	assert_int_equal(nic_cq_arm(by[1].cq, true), 0);
	send_one(0);
	assert_int_equal(side_cqe(&by[1]).status, WC_SUCCESS);
	assert_false(side_readable(channel_fd[1], 0));
	send_one(WQE_SOLICITED);
	woken();
	assert_int_equal(side_cqe(&by[1]).status, WC_SUCCESS);
	assert_int_equal(nic_cq_arm(by[1].cq, true), 0);
	assert_int_equal(nic_qp_modify(by[1].qp, &err, QPA_STATE), 0);
	woken();
	assert_int_equal(side_cqe(&by[1]).status, WC_WR_FLUSH_ERR);
}

static struct nic_event next_event(int i)
{
	struct nic_event ev;

	assert_true(side_readable(async_fd[i], EVER));
	assert_int_equal(nic_async_get(async[i], &ev), 0);
	return ev;
}

static void write_by(uint32_t rkey)
{
	side_post(&by[0],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)side[1].buf,
			       .rkey = rkey},
		  by[0].buf, 8);
}

/* What the queue cannot hold is lost, and everybody concerned is told. */
static void async__overflow(void **state)
{
	bool told[2] = {false};

	(void)state;
	for (int i = 0; i < MANY; i++)
		write_by(side[1].key);
	while (!told[0] || !told[1]) {
		const struct nic_event ev = next_event(0);

		assert_ptr_equal(ev.cookie, &by[0]);
		told[ev.type == NIC_EVENT_CQ_ERR] = true;
		if (ev.type != NIC_EVENT_CQ_ERR)
			assert_int_equal(ev.type, NIC_EVENT_QP_FATAL);
	}
	assert_false(side_readable(async_fd[0], 0));
	assert_int_equal(side_query(&by[0]).state, QPS_ERR);
}

static unsigned failed, received;

static void look_at(const char *line, int len)
{
	(void)len;
	if (strstr(line, "failed, event") && strstr(line, "before that"))
		__atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
	if (strstr(line, " us RX, psn"))
		__atomic_fetch_add(&received, 1, __ATOMIC_RELAXED);
}

/* Whose region it was is told, and at NOPIN_LOG=debug what led to it. */
static void async__access(void **state)
{
	const enum log_level before = log_get();
	struct nic_event ev;

	(void)state;
	write_by(side[1].key);
	assert_int_equal(side_cqe(&by[0]).status, WC_SUCCESS);
	log_set(LOG_DEBUG, look_at);
	write_by(side[1].key ^ 0x100);
	assert_int_equal(side_cqe(&by[0]).status, WC_REM_ACCESS_ERR);
	ev = next_event(1);
	log_set(before, NULL);
	assert_int_equal(ev.type, NIC_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(ev.cookie, &by[1]);
	assert_false(side_readable(async_fd[1], 0));
	/* the QPs of both sides */
	assert_true(__atomic_load_n(&failed, __ATOMIC_RELAXED) >= 2);
	assert_true(__atomic_load_n(&received, __ATOMIC_RELAXED) >= 4);
}

/* --- epoll ------------------------------------------------------------------- */

/* Does epoll(7) say in @ms that the descriptor is readable? */
static bool epoll_says(int epoll, int ms)
{
	struct epoll_event ev = {0};
	const int n = epoll_wait(epoll, &ev, 1, ms);

	assert_in_range(n, 0, 1);
	return n == 1 && (ev.events & EPOLLIN);
}

static int epoll_of(int fd, uint32_t how)
{
	struct epoll_event ev = {.events = EPOLLIN | how};
	const int epoll = epoll_create1(EPOLL_CLOEXEC);

	assert_true(epoll >= 0);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev), 0);
	assert_false(epoll_says(epoll, 0));
	return epoll;
}

/* As the kernel's: each event is an edge, also one that comes before those before
 * it are taken; taking some is none, and the level is there until all are. */
static void channel__epoll(void **state)
{
	const int edge = epoll_of(channel_fd[1], EPOLLET),
		  level = epoll_of(channel_fd[1], 0);
	void *cookie;

	(void)state;
	assert_int_equal(fcntl(channel_fd[1], F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 3; i++)
		side_recv(&by[1], by[1].buf, 64, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(nic_cq_arm(by[1].cq, false), 0);
		send_one(0);
		assert_true(epoll_says(edge, EVER));
		assert_false(epoll_says(edge, 0));
	}
	for (int i = 0; i < 3; i++) {
		assert_true(epoll_says(level, 0));
		assert_int_equal(nic_channel_get(channel[1], &cookie), 0);
		assert_false(epoll_says(edge, 0));
		assert_int_equal(side_cqe(&by[1]).status, WC_SUCCESS);
	}
	assert_false(epoll_says(level, 0));
	assert_int_equal(nic_channel_get(channel[1], &cookie), -EAGAIN);
	close(edge);
	close(level);
}

static void port_event(enum nic_event_type type)
{
	nic_lock(side[0].nic);
	events_raise(side[0].nic, type);
	nic_unlock(side[0].nic);
}

static void async__epoll(void **state)
{
	static const enum nic_event_type raised[] = {NIC_EVENT_PORT_ERR,
						     NIC_EVENT_GID_CHANGE};
	const int edge = epoll_of(async_fd[0], EPOLLET),
		  level = epoll_of(async_fd[0], 0);
	struct nic_event ev;

	(void)state;
	assert_int_equal(fcntl(async_fd[0], F_SETFL, O_NONBLOCK), 0);
	for (size_t i = 0; i < ARRAY_SIZE(raised); i++) {
		port_event(raised[i]);
		assert_true(epoll_says(edge, EVER));
		assert_false(epoll_says(edge, 0));
	}
	for (size_t i = 0; i < ARRAY_SIZE(raised); i++) {
		assert_true(epoll_says(level, 0));
		assert_int_equal(nic_async_get(async[0], &ev), 0);
		assert_int_equal(ev.type, raised[i]);
		assert_false(epoll_says(edge, 0));
	}
	assert_false(epoll_says(level, 0));
	assert_int_equal(nic_async_get(async[0], &ev), -EAGAIN);
	close(edge);
	close(level);
}

/* --- size of a CQ ------------------------------------------------------------ */

/* Whichever thread has the engine lock flushes what was posted. */
static void becomes_queued(const struct nic_cq *cq, uint64_t num)
{
	uint64_t queued;

	do {
		nic_lock(cq->nic);
		queued = cq->cq.prod - cq->cq.cons;
		nic_unlock(cq->nic);
	} while (queued < num);
	assert_int_equal(queued, num);
}

/* What is queued must fit into what was asked for, not into what is given. */
static void cq__not_below_what_is_queued(void **state)
{
	const struct qp_attr err = {.state = QPS_ERR};
	struct side s = side[1];
	struct cqe e;

	(void)state;
	side_qp(&s, 32, NULL, NULL);
	assert_int_equal(nic_qp_modify(s.qp, &err, QPA_STATE), 0);
	for (int i = 0; i < 10; i++)
		side_recv(&s, s.buf, 64, 1);
	becomes_queued(s.cq, 10);
	assert_int_equal(nic_cq_resize(s.cq, 16, 9), -EINVAL);
	assert_int_equal(nic_cq_resize(s.cq, 16, 10), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(nic_cq_poll(s.cq, 1, &e), 1);
		assert_int_equal(e.status, WC_WR_FLUSH_ERR);
	}
	assert_int_equal(nic_cq_resize(s.cq, 16, 1), 0);
	side_qp_close(&s);
}

/* --- signals --------------------------------------------------------------- */

/* Of it, and for the thread here only: another one that found packets without end would
 * take over. */
static const struct os *flooded;
static pthread_t reader;
static unsigned floods; /* packets that it found */

int __real_os_recv(struct os *os, struct iovec *iov, unsigned n,
		   struct os_rx *rx, enum os_recv_mode mode);
int __wrap_os_recv(struct os *os, struct iovec *iov, unsigned n,
		   struct os_rx *rx, enum os_recv_mode mode);
int __wrap_os_recv(struct os *os, struct iovec *iov, unsigned n,
		   struct os_rx *rx, enum os_recv_mode mode)
{
	if (os != __atomic_load_n(&flooded, __ATOMIC_ACQUIRE) ||
	    !pthread_equal(pthread_self(), reader))
		return __real_os_recv(os, iov, n, rx, mode);
	__atomic_fetch_add(&floods, 1, __ATOMIC_RELAXED);
	memset(iov->iov_base, 0, 64);
	rx->len = rx->seg = 64;
	rx->port = 0;
	rx->all = true;
	return 1; /* nothing that is for anybody, without end */
}

/* An error that only the thread here may read: whoever else came first would leave
 * nothing to see. */
static bool unread;

int __real_os_recv_error(struct os *os, struct endpoint *dst, int *err,
			 uint32_t *mtu);
int __wrap_os_recv_error(struct os *os, struct endpoint *dst, int *err,
			 uint32_t *mtu);
int __wrap_os_recv_error(struct os *os, struct endpoint *dst, int *err,
			 uint32_t *mtu)
{
	if (!__atomic_load_n(&unread, __ATOMIC_ACQUIRE) ||
	    !pthread_equal(pthread_self(), reader))
		return __real_os_recv_error(os, dst, err, mtu);
	__atomic_store_n(&unread, false, __ATOMIC_RELEASE);
	*err = EHOSTUNREACH;
	return 1;
}

/* An unread error makes the socket readable, and whoever sleeps on it would not. */
static void channel__reads_errors(void **state)
{
	struct nic *nic = side[0].nic;
	struct os_signals sig = {.blocked = false};
	const uint32_t woken = 0;

	(void)state;
	reader = pthread_self();
	__atomic_store_n(&unread, true, __ATOMIC_RELEASE);
	attend_block(nic, channel[0]->fd, &woken, os_now(nic->os) + 1, &sig);
	os_signals_restore(&sig);
	assert_false(unread);
}

/* Signals for one thread until its call has returned: one that comes before the call
 * ends nothing. */
static struct {
	pthread_t whom, by;
	bool among_packets, returned;
	unsigned handled;
} signals;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_fetch_add(&signals.handled, 1, __ATOMIC_RELAXED);
}

static void *signals_main(void *arg)
{
	/* best when it is among packets; it is sooner or later */
	for (int ms = 0; ms < 1000 && signals.among_packets &&
			 __atomic_load_n(&floods, __ATOMIC_RELAXED) < FEW;
	     ms++)
		usleep(1000);
	while (!__atomic_load_n(&signals.returned, __ATOMIC_ACQUIRE)) {
		usleep(1000);
		pthread_kill(signals.whom, SIGALRM);
	}
	return arg;
}

static void signals_begin(bool among_packets)
{
	struct sigaction act = {.sa_handler = on_signal};

	signals.whom = pthread_self();
	signals.among_packets = among_packets;
	signals.returned = false;
	signals.handled = 0;
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(pthread_create(&signals.by, NULL, signals_main, NULL),
			 0);
}

static void signals_end(void)
{
	assert_true(__atomic_load_n(&signals.handled, __ATOMIC_RELAXED) > 0);
	__atomic_store_n(&signals.returned, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(signals.by, NULL), 0);
	signal(SIGALRM, SIG_IGN); /* the last one may still be on its way */
}

/* Whoever waits finds packets without end, none for it: the signal comes in. */
static void channel__signal_among_packets(void **state)
{
	void *cookie;

	(void)state;
	reader = pthread_self();
	__atomic_store_n(&flooded, side[0].nic->os, __ATOMIC_RELEASE);
	signals_begin(true);
	assert_int_equal(nic_channel_get(channel[0], &cookie), -EINTR);
	signals_end();
	__atomic_store_n(&flooded, NULL, __ATOMIC_RELAXED);
}

/* A NIC whose events nobody runs the engine for, too. */
static void async__signal(void **state)
{
	struct nic_event ev;

	(void)state;
	signals_begin(false);
	assert_int_equal(nic_async_get(async[0], &ev), -EINTR);
	signals_end();
}

static void async__what_is_last_is_told_last(void **state)
{
	static const enum nic_event_type raised[] = {
		NIC_EVENT_PORT_ERR, NIC_EVENT_GID_CHANGE, NIC_EVENT_PORT_ACTIVE,
		NIC_EVENT_PORT_ERR, NIC_EVENT_GID_CHANGE, NIC_EVENT_PORT_ERR};
	static const enum nic_event_type told[] = {NIC_EVENT_PORT_ACTIVE,
						   NIC_EVENT_GID_CHANGE,
						   NIC_EVENT_PORT_ERR};
	struct nic_event ev;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(raised); i++)
		port_event(raised[i]);
	for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
		assert_true(side_readable(async_fd[0], EVER));
		assert_int_equal(nic_async_get(async[0], &ev), 0);
		assert_int_equal(ev.type, told[i]);
		assert_null(ev.cookie);
	}
	assert_false(side_readable(async_fd[0], 0));
	assert_false(side_readable(async_fd[1], 0));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(async__what_is_last_is_told_last),
		TEST(channel__any_completion),
		TEST(channel__solicited_or_failed),
		TEST(async__overflow),
		TEST(async__access),
		TEST(channel__epoll),
		TEST(async__epoll),
		TEST(cq__not_below_what_is_queued),
		TEST(channel__signal_among_packets),
		TEST(channel__reads_errors),
		TEST(async__signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
