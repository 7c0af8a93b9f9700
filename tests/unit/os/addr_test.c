/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* addr_test.c: the addresses of this host, whatever they are, in the right
 * order; and, as root, of a namespace where we know what they are.
 */
#include "base/check.h"
#include "base/timerq.h"
#include "host_fixture.h"
#include "os/addr.h"
#include "os/net.h"
#include "os/wait.h"

#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>

static struct os_addr addrs[64];

/* Return: how many of interfaces that are up. */
static int addresses(const char *filter)
{
	const struct os_config cfg = {.addr = filter};
	struct os *os = host_open(&cfg);
	struct os_net net;
	int n = 0;

	memset(addrs, 0, sizeof(addrs));
	errno = 123;
	assert_int_equal(os_net_read(os, &net), 0);
	assert_int_equal(errno, 123);
	for (unsigned i = 0; i < net.naddrs && i < ARRAY_SIZE(addrs); i++) {
		addrs[i] = net.addr[i];
		n += net.addr[i].up;
	}
	os_net_free(&net);
	os_close(os);
	return n;
}

static unsigned group(const struct os_addr *a)
{
	return a->loopback ? 2 : a->link_local ? 1 : 0;
}

static void os_net_read__order(void **state)
{
	int n = addresses(NULL);

	(void)state;
	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		const struct os_addr *a = &addrs[i];

		if (i > 0)
			assert_true(group(a - 1) <= group(a));
		assert_int_not_equal(a->ifindex, 0);
		assert_true(a->mtu >= 576);
		assert_true(a->ifname[0]);
		assert_false(ipaddr_is_any(&a->ip));
		if (a->default_route && ipaddr_is_v4(&a->ip))
			assert_int_equal(i, 0);
	}
}

static void os_net_read__filter(void **state)
{
	const struct ipaddr lo = ip4(127, 0, 0, 1);
	static const char *const all_lo[] = {"lo", "127.0.0.1,::1", "x,lo",
					     "::1,lo,"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all_lo); i++) {
		int n = addresses(all_lo[i]);

		assert_in_range(n, 1, 2);
		assert_true(ipaddr_eq(&addrs[0].ip, &lo));
		assert_true(addrs[0].loopback && addrs[0].mtu >= 16384);
		assert_false(addrs[0].default_route);
	}
	assert_int_equal(addresses("127.0.0.1"), 1);
	assert_int_equal(addresses("no-such-interface"), 0);
	assert_int_equal(addresses("127.0.0.2,l,loo,:"), 0);
	assert_int_equal(addresses(""), addresses(NULL));
}

static int check(const char *filter, char *valid, size_t size)
{
	const struct os_config cfg = {.addr = filter};
	struct os *os = host_open(&cfg);
	int ret = os_addr_check(os, valid, size);

	os_close(os);
	return ret;
}

static void os_addr_check__names_what_there_is(void **state)
{
	static const char *const good[] = {NULL, "lo", "127.0.0.1,lo,", ",lo"};
	static const char *const bad[] = {"eht0",  "lo,eht0", "127.0.0.2", "l",
					  "lo lo", "lo,:",    "",	   ","};
	char valid[1024] = "x", little[5];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(check(good[i], valid, sizeof(valid)), 0);
	assert_string_equal(valid, "x");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		valid[0] = 0;
		assert_int_equal(check(bad[i], valid, sizeof(valid)), -EINVAL);
		assert_non_null(strstr(valid, "lo 127.0.0.1"));
	}
	assert_int_equal(check("eht0", little, sizeof(little)), -EINVAL);
	assert_in_range(strlen(little), 1, sizeof(little) - 1);
}

/* In the child: a namespace of its own. */
static int in_namespace(void)
{
	struct ipaddr ll = {.b = {0xfe, 0x80, [15] = 5}};

	if (unshare(CLONE_NEWNET) < 0)
		return 77;
	/* nothing is up */
	if (addresses(NULL) != 0)
		return 1;
	if (system("ip link set lo up && ip link add v0 address "
		   "02:00:00:00:00:07 type veth peer name v1 && "
		   "ip link set v0 mtu 1400 up && "
		   "ip link set v1 up && ip addr add 10.9.0.1/24 dev v0 && "
		   "ip addr add 10.8.0.1/24 dev v1 && "
		   "ip addr add fd09::1/64 dev v1 nodad && "
		   "ip addr add fe80::5/64 dev v0 nodad && "
		   "ip route add default via 10.8.0.2") != 0)
		return 77;
	addresses("lo,10.8.0.1,10.9.0.1,fd09::1,fe80::5");
	if (!ipaddr_eq(
		    &addrs[0].ip,
		    &(struct ipaddr){.b = {[10] = 0xff, 0xff, 10, 8, 0, 1}}) ||
	    !addrs[0].default_route)
		return 2;
	if (addrs[1].ip.b[13] != 9 || addrs[1].mtu != 1400 ||
	    addrs[1].mac[5] != 7 || strcmp(addrs[1].ifname, "v0") != 0)
		return 3;
	if (addrs[2].ip.b[0] != 0xfd || addrs[2].default_route)
		return 4;
	if (!ipaddr_eq(&addrs[3].ip, &ll) || !addrs[3].link_local)
		return 5;
	return addrs[4].loopback ? 0 : 6;
}

/* Until the host said that something is different, and no longer. */
static void wait_changed(struct os *os)
{
	while (!os_net_changed(os))
		os_wait(os, OS_WAIT_TIMER, TIME_NEVER, -1);
}

/* Let the kernel tell all that it has to tell: it is told nothing twice. */
static int find(struct os *os, const char *ifname, struct os_net *net)
{
	if (os_net_read(os, net) < 0)
		return -1;
	for (unsigned i = 0; i < net->naddrs; i++)
		if (strcmp(net->addr[i].ifname, ifname) == 0 &&
		    ipaddr_is_v4(&net->addr[i].ip))
			return (int)i;
	return -1;
}

static bool running(const struct os_net *net, const char *ifname)
{
	for (unsigned i = 0; i < net->nlinks; i++)
		if (strcmp(net->link[i].ifname, ifname) == 0)
			return net->link[i].running;
	return false;
}

static int followed(void)
{
	const struct os_config cfg = {.addr = "v0,lo"};
	struct os_net net;
	struct os *os;
	int i;

	if (unshare(CLONE_NEWNET) < 0 ||
	    system("ip link set lo up && ip link add v0 type veth peer name v1 "
		   "&& "
		   "ip link set v0 up && ip link set v1 up") != 0)
		return 77;
	os = host_open(&cfg);
	if (os_net_watch(os) < 0)
		return 1;
	if (system("ip addr add 10.9.0.1/24 dev v0") != 0)
		return 2;
	do
		wait_changed(os);
	while ((i = find(os, "v0", &net)) < 0);
	if (!net.addr[i].up || !running(&net, "v0"))
		return 3;
	os_net_free(&net);
	if (system("ip link set v0 mtu 1400") != 0)
		return 4;
	do
		wait_changed(os);
	while ((i = find(os, "v0", &net)) < 0 || net.addr[i].mtu != 1400);
	os_net_free(&net);
	if (system("ip link set v1 down") != 0)
		return 5;
	do
		wait_changed(os);
	while ((i = find(os, "v0", &net)) < 0 || running(&net, "v0"));
	/* its cable is out, its address is there */
	if (!net.addr[i].up)
		return 6;
	os_net_free(&net);
	if (system("ip addr del 10.9.0.1/24 dev v0") != 0)
		return 7;
	do
		wait_changed(os);
	while (find(os, "v0", &net) >= 0);
	os_close(os);
	return 0;
}

static void in_child(int (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(what());
	waitpid(pid, &status, 0);
	if (status == 77 << 8)
		skip();
	assert_int_equal(status, 0);
}

static void os_net_watch__hears(void **state)
{
	(void)state;
	in_child(followed);
}

/* A program that closes everything: no spinning on what is somebody else's now. */
static void os_net_watch__closed(void **state)
{
	struct os *os = host_plain();
	int ends[2], theirs;
	char buf[1];

	(void)state;
	assert_int_equal(os_net_watch(os), 0);
	/* the program closed it, and has the number for something that it reads */
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	assert_int_equal(send(ends[1], "x", 1, 0), 1);
	theirs = os->news.fd;
	assert_int_equal(dup2(ends[0], theirs), theirs);
	net_heard(os);
	assert_int_equal(os->news.fd, -1);
	assert_int_equal(recv(theirs, buf, 1, MSG_DONTWAIT), 1);
	close(theirs);
	close(ends[0]);
	close(ends[1]);
	os_close(os);
}

static void read_again(struct os *os, const struct os_net *as)
{
	struct os_net net;

	assert_int_equal(os_net_read(os, &net), 0);
	assert_int_equal(net.naddrs, as->naddrs);
	for (unsigned i = 0; i < net.naddrs; i++) {
		assert_true(ipaddr_eq(&net.addr[i].ip, &as->addr[i].ip));
		assert_int_equal(net.addr[i].default_route,
				 as->addr[i].default_route);
	}
	os_net_free(&net);
}

/* Nothing is opened when it is read again, also after an answer that was given up;
 * and what has the number of a socket that the program closed is left alone. */
static void os_net_read__opens_once(void **state)
{
	struct os *os = host_plain();
	struct os_net net;
	int pipes[2], was;

	(void)state;
	assert_int_equal(os_net_watch(os), 0);
	assert_int_equal(os_net_read(os, &net), 0);
	was = os->ask.rtnl.fd;
	refuse(SYS_socket, -1, 0, EPERM);
	read_again(os, &net);
	refuse_none();
	refuse_nth(SYS_recvmsg, 2, EIO);
	assert_int_equal(os_net_read(os, &(struct os_net){0}), -EIO);
	refuse_none();
	read_again(os, &net);
	assert_int_equal(os->ask.rtnl.fd, was);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(dup2(pipes[0], was), was);
	read_again(os, &net);
	os_close(os);
	assert_true(fcntl(was, F_GETFD) >= 0);
	assert_int_equal(close(was) | close(pipes[0]) | close(pipes[1]), 0);
	os_net_free(&net);
}

static void os_net_read__namespace(void **state)
{
	(void)state;
	in_child(in_namespace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_net_read__order),
		cmocka_unit_test(os_net_read__filter),
		cmocka_unit_test(os_addr_check__names_what_there_is),
		cmocka_unit_test(os_net_read__namespace),
		cmocka_unit_test(os_net_read__opens_once),
		cmocka_unit_test(os_net_watch__hears),
		cmocka_unit_test(os_net_watch__closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
