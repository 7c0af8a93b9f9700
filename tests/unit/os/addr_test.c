/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* addr_test.c: the addresses of this host, whatever they are, in the right
 * order; and, as root, of a namespace where we know what they are.
 */
#include "host_fixture.h"

#include <sched.h>

static struct os_addr addrs[64];

static int addresses(const char *filter)
{
	const struct os_config cfg = {.addr = filter};
	struct os *os = host_open(&cfg);
	int n;

	memset(addrs, 0, sizeof(addrs));
	errno = 123;
	n = os_addresses(os, addrs, ARRAY_SIZE(addrs));
	assert_int_equal(errno, 123);
	os_close(os);
	return n;
}

static unsigned group(const struct os_addr *a)
{
	return a->loopback ? 2 : a->link_local ? 1 : 0;
}

static void os_addresses__order(void **state)
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

static void os_addresses__filter(void **state)
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
	assert_int_equal(addresses("no-such-interface"), -ENODEV);
	assert_int_equal(addresses("127.0.0.2,l,loo,:"), -ENODEV);
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

static void os_addresses__room(void **state)
{
	struct os *os = host_plain();
	struct os_addr one[2] = {{.mtu = 0}, {.mtu = 77}};

	(void)state;
	assert_int_equal(os_addresses(os, one, 1), 1);
	assert_int_equal(one[1].mtu, 77);
	os_close(os);
}

/* In the child: a namespace of its own. */
static int in_namespace(void)
{
	struct ipaddr ll = {.b = {0xfe, 0x80, [15] = 5}};

	if (unshare(CLONE_NEWNET) < 0)
		return 77;
	/* nothing is up */
	if (addresses(NULL) != -ENODEV)
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

static void os_addresses__namespace(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(in_namespace());
	waitpid(pid, &status, 0);
	if (status == 77 << 8)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_addresses__order),
		cmocka_unit_test(os_addresses__filter),
		cmocka_unit_test(os_addr_check__names_what_there_is),
		cmocka_unit_test(os_addresses__room),
		cmocka_unit_test(os_addresses__namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
