/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port_test.c: opening and closing ports, and what is found out by trying. */
#include "host_fixture.h"
#include "os/net.h"

#include <arpa/inet.h>

static void os_port_open__numbers(void **state)
{
	struct os *os = host_plain(), *other = host_plain();
	uint16_t port, same = 0;

	(void)state;
	for (int i = 0; i < OS_PORTS_MAX; i++) {
		assert_int_equal(os_port_open(os, 0, &port), i);
		assert_in_range(port, 49152, 65535);
	}
	assert_int_equal(os_port_open(os, 0, &same), -EMFILE);
	assert_int_equal(os_port_open(other, port, &same), -EADDRINUSE);
	assert_int_equal(same, 0);
	os_port_close(os, 17);
	os_port_close(os, OS_PORTS_MAX - 1);
	assert_int_equal(os_port_open(os, 0, &same), 17);
	assert_int_equal(os_port_open(other, port, &same), 0);
	assert_int_equal(same, port);
	os_close(os);
	os_close(other);
}

static void os_port_open__spread(void **state)
{
	struct os *os = host_plain();
	uint16_t a, b, c;

	(void)state;
	os_port_open(os, 0, &a);
	os_port_open(os, 0, &b);
	os_port_open(os, 0, &c);
	assert_false(b == a + 1 && c == b + 1);
	os_close(os);
}

static void os_port_open__all_taken(void **state)
{
	struct os *os = host_plain();
	uint16_t port = 5;

	(void)state;
	refuse_none();
	refuse(SYS_bind, -1, 0, EADDRINUSE);
	assert_int_equal(os_port_open(os, 0, &port), -EADDRINUSE);
	assert_int_equal(refuse_calls(SYS_bind), 16384);
	refuse_none();
	refuse_nth(SYS_bind, 3, EACCES);
	refuse_nth(SYS_bind, 1, EADDRINUSE);
	assert_int_equal(os_port_open(os, 0, &port), 0);
	refuse_none();
	os_close(os);
}

static int option(const struct os *os, int level, int opt)
{
	socklen_t len = sizeof(int);
	int v = -1;

	getsockopt(os->rx.port[0].fd, level, opt, &v, &len);
	return v;
}

/* An unprivileged process gets what the limits allow, and says so. */
static void os_rcvbuf__is_real(void **state)
{
	const struct os_config cfg = {.pagers = 0};
	struct os *os = host_plain();
	uint16_t port;

	(void)state;
	assert_int_equal(os_port_open(os, 0, &port), 0);
	assert_int_equal(os_rcvbuf(os), option(os, SOL_SOCKET, SO_RCVBUF));
	assert_true(os_rcvbuf(os) >= 212992 / 2);
	os_close(os);
	refuse_none();
	refuse(SYS_setsockopt, 2, SO_RCVBUFFORCE, EPERM);
	refuse(SYS_setsockopt, 2, SO_RCVBUF, EPERM);
	os = host_open(&cfg);
	assert_int_equal(os_port_open(os, 0, &port), 0);
	assert_int_equal(os_rcvbuf(os), option(os, SOL_SOCKET, SO_RCVBUF));
	refuse_none();
	os_close(os);
}

static void port_probe__features(void **state)
{
	const struct os_config off = {.no_gso = true, .no_gro = true};
	struct os *os = host_plain();
	uint16_t port;

	(void)state;
	assert_true(os_gso(os));
	assert_int_equal(os_port_open(os, 0, &port), 0);
	assert_int_equal(option(os, IPPROTO_IP, 10 /* IP_MTU_DISCOVER */), 2);
	os_close(os);
	os = host_open(&off);
	assert_false(os_gso(os));
	os_close(os);
	refuse_none();
	refuse(SYS_setsockopt, 2, 103, ENOPROTOOPT);
	os = host_plain();
	assert_false(os_gso(os));
	os_close(os);
	/* no IPv6; or there is, but no address of it (disable_ipv6) */
	refuse_none();
	refuse(SYS_socket, 0, AF_INET6, EAFNOSUPPORT);
	os = host_plain();
	assert_int_equal(os->family, AF_INET);
	os_close(os);
	refuse_none();
	refuse_nth(SYS_bind, 2, EADDRNOTAVAIL); /* behind that of probe.c */
	os = host_plain();
	assert_int_equal(os->family, AF_INET);
	refuse_none();
	os_close(os);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_port_open__numbers),
		cmocka_unit_test(os_port_open__spread),
		cmocka_unit_test(os_port_open__all_taken),
		cmocka_unit_test(os_rcvbuf__is_real),
		cmocka_unit_test(port_probe__features),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
