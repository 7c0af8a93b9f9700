/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp_test.c: datagrams over loopback: one by one and in bursts, both families,
 * looked at and taken, with pieces that fault, with errors that come back.
 */
#include "base/check.h"
#include "base/page.h"
#include "host_fixture.h"
#include "os/net.h"
#include "os/udp.h"
#include "os/wait.h"

#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>

enum { BUF = 66000 };

static uint8_t out_buf[BUF], in_buf[BUF];

struct pair {
	struct os *a, *b;
	int pa, pb; /* port indices */
	int line; /* os_connect() from a to b, or 0 */
	struct endpoint to_b;
	struct ipaddr me;
	struct ip_mark mark;
};

static struct pair pair_open(const struct os_config *ca,
			     const struct os_config *cb, struct ipaddr ip)
{
	struct pair p = {.a = host_open(ca), .b = host_open(cb)};
	uint16_t port;

	p.pa = os_port_open(p.a, 0, &port);
	assert_int_equal(p.pa, 0);
	p.pb = os_port_open(p.b, 0, &port);
	assert_int_equal(p.pb, 0);
	p.to_b = (struct endpoint){.ip = ip, .port = port};
	p.me = ip;
	for (size_t i = 0; i < BUF; i++)
		out_buf[i] = (uint8_t)(i * 7 + i / 251);
	return p;
}

static void pair_close(struct pair *p)
{
	os_close(p->a);
	os_close(p->b);
}

static int pair_send(struct pair *p, size_t len, uint32_t seg)
{
	struct iovec iov[3] = {{out_buf, len / 3},
			       {out_buf + len / 3, len / 3},
			       {out_buf + len / 3 * 2, len - len / 3 * 2}};
	struct os_tx tx = {.dst = p->to_b,
			   .src = p->me,
			   .mark = p->mark,
			   .port = p->pa,
			   .line = p->line,
			   .iov = iov,
			   .niov = 3,
			   .seg = seg};

	return os_send(p->a, &tx);
}

static int pair_recv(struct pair *p, struct os_rx *rx, enum os_recv_mode mode)
{
	struct iovec iov = {in_buf, BUF};

	memset(in_buf, 0, BUF);
	for (int i = 0; i < 1000; i++) {
		int ret;

		*rx = (struct os_rx){.port = -1};
		ret = os_recv(p->b, &iov, 1, rx, mode);
		if (ret != 0)
			return ret;
		sched_yield();
	}
	return 0;
}

/* Receive until @len bytes have come, as @seg-byte segments. */
static void expect(struct pair *p, size_t len, size_t seg, bool one_burst)
{
	size_t at = 0;

	do {
		struct os_rx rx;

		assert_int_equal(pair_recv(p, &rx, OS_TAKE), 1);
		if (one_burst)
			assert_int_equal(rx.len, len);
		if (rx.len > seg || one_burst)
			assert_int_equal(rx.seg, MIN(seg, len));
		else
			assert_int_equal(rx.seg, rx.len);
		assert_memory_equal(in_buf, out_buf + at, rx.len);
		assert_true(ipaddr_eq(&rx.src.ip, &p->me));
		assert_true(ipaddr_eq(&rx.dst, &p->to_b.ip));
		assert_int_equal(rx.dport, p->to_b.port);
		if (p->line > 0)
			assert_int_not_equal(rx.src.port,
					     p->a->rx.port[p->pa].port);
		else
			assert_int_equal(rx.src.port,
					 p->a->rx.port[p->pa].port);
		assert_int_equal(rx.port, p->pb);
		assert_int_equal(rx.kernel_drops, 0);
		at += rx.len;
	} while (at < len);
	assert_int_equal(at, len);
}

static void sizes(const struct os_config *ca, const struct os_config *cb,
		  struct ipaddr ip, bool one_burst)
{
	static const struct {
		size_t len;
		uint32_t seg;
	} t[] = {
		{0, 0},	      {1, 0},	       {4096, 0},
		{4095, 4096}, {4096, 4096},    {4097, 4096},
		{8192, 4096}, {65000, 0},      {65000, 4152},
		{64, 1},      {64 * 280, 280}, {64 * 280 - 279, 280},
	};
	struct pair p = pair_open(ca, cb, ip);

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		size_t seg = t[i].seg ? t[i].seg : MAX(t[i].len, 1);

		assert_int_equal(pair_send(&p, t[i].len, t[i].seg), 0);
		expect(&p, t[i].len, seg, one_burst);
	}
	pair_close(&p);
}

static void os_send__sizes(void **state)
{
	static const struct os_config on, no_gso = {.no_gso = true},
					  no_gro = {.no_gro = true};

	(void)state;
	sizes(&on, &on, ip4(127, 0, 0, 1), true);
	sizes(&on, &on, ip6_loopback(), true);
	sizes(&no_gso, &on, ip4(127, 0, 0, 1), false);
	sizes(&on, &no_gro, ip4(127, 0, 0, 1), false);
	sizes(&no_gso, &no_gro, ip6_loopback(), false);
}

static void os_send__kernel_without_features(void **state)
{
	static const struct os_config on;

	(void)state;
	refuse_none();
	refuse(SYS_setsockopt, 2, 103 /* UDP_SEGMENT */, ENOPROTOOPT);
	refuse(SYS_setsockopt, 2, 104 /* UDP_GRO */, ENOPROTOOPT);
	sizes(&on, &on, ip4(127, 0, 0, 1), false);
	refuse_none();
	refuse(SYS_socket, 0, AF_INET6, EAFNOSUPPORT);
	sizes(&on, &on, ip4(127, 0, 0, 1), true);
	refuse_none();
}

/* A device that cannot checksum refuses a burst: packets one by one. */
static void os_send__burst_refused(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));

	(void)state;
	refuse_none();
	refuse_nth(SYS_sendmsg, 1, EIO);
	assert_int_equal(pair_send(&p, 5000, 1000), 0);
	assert_int_equal(refuse_calls(SYS_sendmsg), 6);
	refuse_none();
	expect(&p, 5000, 1000, false);
	pair_close(&p);
}

/* What has left is not unsent because its end found no room. */
static void os_send__burst_in_part(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));

	(void)state;
	refuse_none();
	refuse_nth(SYS_sendmsg, 1, EIO);
	refuse_nth(SYS_sendmsg, 3, EAGAIN); /* of what the first let pass */
	assert_int_equal(pair_send(&p, 5000, 1000), 0);
	assert_int_equal(refuse_calls(SYS_sendmsg), 4);
	refuse_none();
	expect(&p, 2000, 1000, false);
	refuse_nth(SYS_sendmsg, 1, EIO);
	refuse_nth(SYS_sendmsg, 1, EAGAIN);
	assert_int_equal(pair_send(&p, 5000, 1000), -EAGAIN);
	refuse_none();
	pair_close(&p);
}

static void os_send__family_refused(void **state)
{
	static const struct os_config on;
	struct pair p;

	(void)state;
	refuse_none();
	refuse(SYS_socket, 0, AF_INET6, EAFNOSUPPORT);
	p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	p.to_b.ip = ip6_loopback();
	assert_int_equal(pair_send(&p, 1, 0), -ENETUNREACH);
	refuse_none();
	pair_close(&p);
}

static void os_send__errors_of_other_sends(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	struct endpoint live = p.to_b, dst;
	uint16_t dead_port;
	uint32_t mtu = 7;
	struct os_rx rx;
	int err = 0, i;

	(void)state;
	/* A port that surely nobody has: taken, then given back. */
	i = os_port_open(p.a, 0, &dead_port);
	os_port_close(p.a, i);
	p.to_b.port = dead_port;
	assert_int_equal(os_recv_error(p.a, &dst, &err, &mtu), 0);
	assert_int_equal(pair_send(&p, 10, 0), 0);
	/* The ICMP error must not hit the next send, nor a receive. */
	p.to_b = live;
	assert_int_equal(pair_send(&p, 10, 0), 0);
	expect(&p, 10, 10, true);
	assert_int_equal(os_recv_error(p.a, &dst, &err, &mtu), 1);
	assert_int_equal(err, ECONNREFUSED);
	assert_int_equal(mtu, 0);
	assert_int_equal(dst.port, dead_port);
	assert_true(ipaddr_eq(&dst.ip, &live.ip));
	assert_int_equal(os_recv_error(p.a, &dst, &err, &mtu), 0);
	/* Met by a receive: it gets what there is, and the error is told. */
	rx.port = -1;
	p.to_b.port = p.a->rx.port[p.pa].port;
	assert_int_equal(pair_send(&p, 10, 0), 0);
	p.to_b.port = dead_port;
	assert_int_equal(pair_send(&p, 10, 0), 0);
	assert_int_equal(
		os_recv(p.a, &(struct iovec){in_buf, 100}, 1, &rx, OS_TAKE), 1);
	rx.port = -1;
	assert_int_equal(
		os_recv(p.a, &(struct iovec){in_buf, 100}, 1, &rx, OS_TAKE), 0);
	assert_int_equal(os_recv_error(p.a, &dst, &err, &mtu), 1);
	assert_int_equal(dst.port, dead_port);
	pair_close(&p);
}

static void os_send__too_large(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));

	(void)state;
	assert_int_equal(pair_send(&p, 65600, 0), -EMSGSIZE);
	assert_int_equal(pair_send(&p, 100, 0), 0);
	expect(&p, 100, 100, true);
	pair_close(&p);
}

static void os_send__fault(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	uint8_t *hole = pages_apart(2, PROT_READ | PROT_WRITE);
	struct iovec iov[2] = {{out_buf, 4096}, {hole, 8192}};
	struct os_tx tx = {.dst = p.to_b,
			   .src = p.me,
			   .port = p.pa,
			   .iov = iov,
			   .niov = 2,
			   .seg = 4096};
	struct os_rx rx;

	(void)state;
	memset(hole, 1, PAGE_BYTES);
	munmap(hole + PAGE_BYTES, PAGE_BYTES);
	errno = 123;
	assert_int_equal(os_send(p.a, &tx), -EFAULT);
	assert_int_equal(errno, 123);
	assert_int_equal(pair_recv(&p, &rx, OS_TAKE), 0);
	pages_free(hole, 1);
	pair_close(&p);
}

static void os_recv__peek_then_take(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	struct iovec head = {in_buf, 16}, parts[3];
	struct os_rx rx = {.port = -1};

	(void)state;
	assert_int_equal(pair_send(&p, 3 * 1040, 1040), 0);
	assert_int_equal(pair_send(&p, 5, 0), 0);
	for (int i = 0; i < 2; i++) {
		memset(in_buf, 0, 64);
		assert_int_equal(os_recv(p.b, &head, 1, &rx, OS_PEEK), 1);
		assert_int_equal(rx.len, 3 * 1040);
		assert_int_equal(rx.seg, 1040);
		assert_memory_equal(in_buf, out_buf, 16);
		assert_int_equal(in_buf[16], 0);
	}
	for (int i = 0; i < 3; i++)
		parts[i] = (struct iovec){in_buf + i * 2000, 1040};
	assert_int_equal(os_recv(p.b, parts, 3, &rx, OS_TAKE), 1);
	assert_int_equal(rx.len, 3 * 1040);
	for (int i = 0; i < 3; i++)
		assert_memory_equal(in_buf + i * 2000, out_buf + i * 1040,
				    1040);
	/* What does not fit is cut, and told so. */
	head.iov_len = 3;
	assert_int_equal(os_recv(p.b, &head, 1, &rx, OS_TAKE), 1);
	assert_int_equal(rx.len, 3);
	assert_int_equal(os_recv(p.b, &head, 1, &rx, OS_TAKE), 0);
	pair_close(&p);
}

static void os_recv__fault(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	uint8_t *hole = pages_apart(2, PROT_READ | PROT_WRITE);
	struct iovec iov = {hole + 100, 8000};
	struct os_rx rx = {.port = -1};

	(void)state;
	munmap(hole + PAGE_BYTES, PAGE_BYTES);
	assert_int_equal(pair_send(&p, 8000, 0), 0);
	assert_int_equal(pair_send(&p, 77, 0), 0);
	errno = 123;
	assert_int_equal(os_recv(p.b, &iov, 1, &rx, OS_TAKE), -EFAULT);
	assert_int_equal(errno, 123);
	expect(&p, 77, 77, true);
	pages_free(hole, 1);
	pair_close(&p);
}

static void os_recv__one_port_one_call(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	struct os_rx rx = {.port = -1};
	struct iovec iov = {in_buf, BUF};

	(void)state;
	refuse_none();
	assert_int_equal(os_recv(p.b, &iov, 1, &rx, OS_TAKE), 0);
	assert_int_equal(refuse_calls(SYS_recvmsg), 1);
	assert_int_equal(refuse_calls(SYS_epoll_pwait), 0);
	pair_close(&p);
}

/* Several ports: an empty poll is still one call, a busy port starves none,
 * and a burst of one is not offered as that of another.
 */
static void os_recv__several_ports(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	unsigned got[OS_PORTS_MAX] = {0}, seen = 0;
	struct iovec iov = {in_buf, BUF};
	uint16_t port[OS_PORTS_MAX];
	struct os_rx rx;

	(void)state;
	port[0] = p.to_b.port;
	for (int i = 1; i < OS_PORTS_MAX; i++)
		assert_int_equal(os_port_open(p.b, 0, &port[i]), i);
	assert_int_equal(os_port_open(p.b, 0, &port[0]), -EMFILE);
	refuse_none();
	for (unsigned i = 0; i <= UDP_VAIN; i++) {
		rx.port = -1;
		assert_int_equal(os_recv(p.b, &iov, 1, &rx, OS_TAKE), 0);
		assert_int_equal(rx.all, i == UDP_VAIN);
		assert_int_equal(refuse_calls(SYS_recvmsg) +
					 refuse_calls(SYS_epoll_pwait),
				 i + 1);
	}
	for (int i = 0; i < 40; i++)
		assert_int_equal(pair_send(&p, 100, 0), 0);
	for (int i = OS_PORTS_MAX - 1; i > 0; i -= 9) {
		p.to_b.port = port[i];
		assert_int_equal(pair_send(&p, 1 + (size_t)i, 0), 0);
		seen++;
	}
	for (unsigned i = 0; i < 40 + seen; i++) {
		assert_int_equal(pair_recv(&p, &rx, OS_TAKE), 1);
		assert_int_equal(rx.dport, port[rx.port]);
		assert_int_equal(rx.len, rx.port ? 1 + rx.port : 100);
		got[rx.port]++;
		if (i == 16 + seen)
			for (int k = OS_PORTS_MAX - 1; k > 0; k -= 9)
				assert_int_equal(got[k], 1);
	}
	assert_int_equal(pair_recv(&p, &rx, OS_TAKE), 0);
	pair_close(&p);
}

/* What came while the busy port was being served waits 16 receives at most. */
static void os_recv__busy_port(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	uint16_t busy = p.to_b.port, quiet;
	struct os_rx rx;
	int n = 0;

	(void)state;
	assert_int_equal(os_port_open(p.b, 0, &quiet), 1);
	for (int i = 0; i < 60; i++)
		assert_int_equal(pair_send(&p, 1, 0), 0);
	assert_int_equal(pair_recv(&p, &rx, OS_TAKE), 1);
	assert_int_equal(rx.dport, busy);
	p.to_b.port = quiet;
	assert_int_equal(pair_send(&p, 1, 0), 0);
	do
		assert_int_equal(pair_recv(&p, &rx, OS_TAKE), 1);
	while (rx.dport == busy && n++ < 60);
	assert_true(n <= 16);
	pair_close(&p);
}

static void os_recv__peek_with_several_ports(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	struct iovec iov = {in_buf, BUF};
	uint16_t port[2] = {p.to_b.port, 0};
	struct os_rx rx, first;

	(void)state;
	assert_int_equal(os_port_open(p.b, 0, &port[1]), 1);
	for (int i = 0; i < 2; i++) {
		p.to_b.port = port[i];
		assert_int_equal(pair_send(&p, 10 + (size_t)i, 0), 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pair_recv(&p, &first, OS_PEEK), 1);
		rx = first;
		assert_int_equal(os_recv(p.b, &iov, 1, &rx, OS_TAKE), 1);
		assert_int_equal(rx.len, first.len);
		assert_int_equal(rx.len, 10 + first.port);
	}
	assert_int_equal(pair_recv(&p, &rx, OS_TAKE), 0);
	pair_close(&p);
}

/* A NIC that needs more QPs opens a port while others receive. */
static struct pair growing;
static bool grown;

static void *grow(void *arg)
{
	uint16_t port;

	for (int i = 1; i < OS_PORTS_MAX; i++) {
		os_port_open(growing.b, 0, &port);
		os_wait(growing.b, OS_WAIT_PACKETS, 1, -1);
	}
	__atomic_store_n(&grown, true, __ATOMIC_RELEASE);
	return arg;
}

static void os_port_open__while_receiving(void **state)
{
	static const struct os_config on;
	unsigned sent = 0, got = 0;
	struct os_rx rx;
	pthread_t t;

	(void)state;
	growing = pair_open(&on, &on, ip4(127, 0, 0, 1));
	pthread_create(&t, NULL, grow, NULL);
	while (!__atomic_load_n(&grown, __ATOMIC_ACQUIRE)) {
		assert_int_equal(pair_send(&growing, 50, 0), 0);
		sent++;
		got += pair_recv(&growing, &rx, OS_TAKE) == 1;
	}
	pthread_join(t, NULL);
	while (pair_recv(&growing, &rx, OS_TAKE) == 1)
		got++;
	assert_int_equal(got, sent);
	pair_close(&growing);
}

static void os_recv__drops_are_counted(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	uint64_t sent = 0, got = 0, drops = 0;
	struct os_rx rx;
	int small = 4096;

	(void)state;
	setsockopt(p.b->rx.port[0].fd, SOL_SOCKET, SO_RCVBUF, &small,
		   sizeof(small));
	for (; sent < 100; sent++)
		assert_int_equal(pair_send(&p, 1000, 0), 0);
	while (pair_recv(&p, &rx, OS_TAKE) == 1)
		got++;
	assert_true(got > 0 && got < sent);
	/* The count comes with the next packet. */
	assert_int_equal(pair_send(&p, 1, 0), 0);
	assert_int_equal(pair_recv(&p, &rx, OS_TAKE), 1);
	drops = rx.kernel_drops;
	assert_int_equal(drops, sent - got);
	assert_int_equal(pair_send(&p, 1, 0), 0);
	assert_int_equal(pair_recv(&p, &rx, OS_TAKE), 1);
	assert_int_equal(rx.kernel_drops, drops);
	pair_close(&p);
}

static void os_recv__closed_by_the_program(void **state)
{
	static const struct os_config on;
	struct pair p = pair_open(&on, &on, ip4(127, 0, 0, 1));
	struct os_rx rx = {.port = -1};
	struct iovec iov = {in_buf, BUF};
	uint64_t began;

	(void)state;
	close(p.b->rx.port[0].fd);
	assert_int_equal(os_recv(p.b, &iov, 1, &rx, OS_TAKE), -EBADF);
	/* and waiting does not spin */
	began = os_now(p.b);
	os_wait(p.b, OS_WAIT_PACKETS, began + 20 * MS, -1);
	assert_true(os_now(p.b) - began >= 20 * MS);
	pair_close(&p);
}

static void os_connect__sends(void **state)
{
	static const struct os_config cfg;
	const struct ipaddr ip[] = {ip4(127, 0, 0, 1), ip6_loopback()};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ip); i++) {
		struct pair p = pair_open(&cfg, &cfg, ip[i]);

		p.line = os_connect(p.a, &p.me, &p.to_b, p.mark);
		assert_true(p.line > 0);
		for (size_t len = 1; len < 30000; len = len * 3 + 1) {
			assert_int_equal(pair_send(&p, len, 0), 0);
			expect(&p, len, len, true);
			assert_int_equal(pair_send(&p, len, 1000), 0);
			expect(&p, len, 1000, true);
		}
		os_disconnect(p.a, p.line);
		pair_close(&p);
	}
}

/* All packets of a burst are marked, whichever way they go, and the next are not. */
static void os_send__marks(void **state)
{
	static const struct os_config whole, cut = {.no_gso = true};
	static const struct ip_mark marks[] = {
		{106, 7}, {0, 0}, {255, 255}, {0, 1}, {4, 0}};
	const struct ipaddr ip[] = {ip4(127, 0, 0, 1), ip6_loopback()};

	(void)state;
	for (size_t i = 0; i < 4 * ARRAY_SIZE(marks); i++) {
		struct pair p = pair_open(i & 1 ? &cut : &whole, &whole,
					  ip[i / 2 % 2]);
		const struct ip_mark mark = marks[i / 4];

		os_port_marks(p.b, p.pb);
		for (int k = 0; k < 3; k++) {
			const size_t len = k ? 3000 : 100;
			const bool marked = k < 2;

			p.mark = marked ? mark : (struct ip_mark){0};
			assert_int_equal(pair_send(&p, len, 1000), 0);
			for (size_t at = 0; at < len;) {
				struct os_rx rx;

				assert_int_equal(pair_recv(&p, &rx, OS_TAKE),
						 1);
				assert_int_equal(rx.mark.tclass, p.mark.tclass);
				if (p.mark.hops)
					assert_int_equal(rx.mark.hops,
							 p.mark.hops);
				else
					assert_int_not_equal(rx.mark.hops, 0);
				assert_true(ipaddr_eq(&rx.dst, &p.me));
				at += rx.len;
			}
		}
		pair_close(&p);
	}
}

static void os_connect__marks(void **state)
{
	static const struct os_config cfg;
	const struct ipaddr ip[] = {ip4(127, 0, 0, 1), ip6_loopback()};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ip); i++) {
		struct pair p = pair_open(&cfg, &cfg, ip[i]);
		struct os_rx rx;

		os_port_marks(p.b, p.pb);
		p.mark = (struct ip_mark){106, 7};
		p.line = os_connect(p.a, &p.me, &p.to_b, p.mark);
		assert_true(p.line > 0);
		assert_int_equal(pair_send(&p, 3000, 1000), 0);
		for (size_t at = 0; at < 3000; at += rx.len) {
			assert_int_equal(pair_recv(&p, &rx, OS_TAKE), 1);
			assert_true(ip_mark_eq(rx.mark, p.mark));
		}
		os_disconnect(p.a, p.line);
		pair_close(&p);
	}
}

/* Connecting opens nothing, as long as a thread of the program sees to it. */
static void os_connect__opens_beforehand(void **state)
{
	static const struct os_config cfg;
	const struct ipaddr ip[] = {ip4(127, 0, 0, 1), ip6_loopback()};
	int line[2 * OS_LINE_SPARES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ip); i++) {
		struct pair p = pair_open(&cfg, &cfg, ip[i]);

		for (int k = 0; k < 2 * OS_LINE_SPARES; k++) {
			if (k % OS_LINE_SPARES == 0) {
				assert_true(k == 0 || os_prepare_due(p.a));
				os_prepare(p.a);
				(void)os_prepare_due(p.a);
				refuse_none();
			}
			line[k] = os_connect(p.a, &p.me, &p.to_b, p.mark);
			assert_true(line[k] > 0);
			assert_int_equal(refuse_calls(SYS_socket), 0);
		}
		for (int k = 0; k < 2 * OS_LINE_SPARES; k++)
			os_disconnect(p.a, line[k]);
		pair_close(&p);
	}
}

/* What the connected socket hears of that is said by the other one. */
static void os_connect__peer_gone(void **state)
{
	static const struct os_config cfg;
	struct pair p = pair_open(&cfg, &cfg, ip4(127, 0, 0, 1));
	struct endpoint dst;
	uint32_t mtu;
	int err = 0;

	(void)state;
	p.line = os_connect(p.a, &p.me, &p.to_b, p.mark);
	assert_true(p.line > 0);
	os_port_close(p.b, p.pb);
	for (int i = 0; i < 100 && err == 0; i++) {
		struct os_rx rx = {.port = -1};
		struct iovec iov = {in_buf, BUF};

		(void)pair_send(&p, 100, 0);
		(void)os_recv(p.a, &iov, 1, &rx, OS_TAKE);
		if (os_recv_error(p.a, &dst, &err, &mtu) == 0)
			err = 0;
	}
	assert_int_equal(err, ECONNREFUSED);
	assert_int_equal(dst.port, p.to_b.port);
	os_disconnect(p.a, p.line);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_recv__peek_then_take),
		cmocka_unit_test(os_recv__fault),
		cmocka_unit_test(os_recv__one_port_one_call),
		cmocka_unit_test(os_recv__several_ports),
		cmocka_unit_test(os_recv__busy_port),
		cmocka_unit_test(os_recv__peek_with_several_ports),
		cmocka_unit_test(os_port_open__while_receiving),
		cmocka_unit_test(os_recv__drops_are_counted),
		cmocka_unit_test(os_recv__closed_by_the_program),
		cmocka_unit_test(os_send__marks),
		cmocka_unit_test(os_connect__sends),
		cmocka_unit_test(os_connect__marks),
		cmocka_unit_test(os_connect__opens_beforehand),
		cmocka_unit_test(os_connect__peer_gone),
		cmocka_unit_test(os_send__sizes),
		cmocka_unit_test(os_send__kernel_without_features),
		cmocka_unit_test(os_send__burst_refused),
		cmocka_unit_test(os_send__burst_in_part),
		cmocka_unit_test(os_send__family_refused),
		cmocka_unit_test(os_send__errors_of_other_sends),
		cmocka_unit_test(os_send__too_large),
		cmocka_unit_test(os_send__fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
