/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ifconf_test.c: where netlink is refused the same is found in other ways. */
#include "host_fixture.h"
#include "os/ifconf.h"
#include "os/net.h"
#include "os/netlist.h"

#include <sys/socket.h>

/* What there is: addresses, and the interfaces that have them. */
static void read__as_with_netlink(void **state)
{
	const struct os_config cfg = {.addr = NULL};
	struct os *os = host_open(&cfg);
	struct os_net with, without;

	(void)state;
	assert_int_equal(os_net_read(os, &with), 0);
	refuse(SYS_socket, 0, AF_NETLINK, EPERM);
	assert_int_equal(os_net_watch(os), -EPERM);
	assert_int_equal(os_net_read(os, &without), 0);
	assert_int_equal(without.naddrs, with.naddrs);
	for (unsigned i = 0; i < with.naddrs; i++) {
		unsigned k = 0;

		while (k < with.naddrs &&
		       !ipaddr_eq(&without.addr[k].ip, &with.addr[i].ip))
			k++;
		assert_true(k < with.naddrs);
		assert_int_equal(without.addr[k].mtu, with.addr[i].mtu);
		assert_int_equal(without.addr[k].ifindex, with.addr[i].ifindex);
		assert_int_equal(without.addr[k].loopback,
				 with.addr[i].loopback);
		assert_memory_equal(without.addr[k].mac, with.addr[i].mac, 6);
		assert_string_equal(without.addr[k].ifname,
				    with.addr[i].ifname);
	}
	for (unsigned i = 0; i < without.nlinks; i++) {
		const struct os_link *l =
			net_find_link(&with, without.link[i].ifindex);

		assert_non_null(l);
		assert_int_equal(l->running, without.link[i].running);
	}
	os_net_free(&with);
	os_net_free(&without);
	refuse_none();
	os_close(os);
}

/* Nothing of it is there: no address, no crash. */
static void read__nothing_at_all(void **state)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct os_net net = {.naddrs = 0};

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ifconf_read(-EPERM, &net), -EPERM);
	refuse(SYS_ioctl, -1, 0, EPERM);
	assert_int_equal(ifconf_read(fd, &net), -EPERM);
	refuse_none();
	close(fd);
	assert_int_equal(net.naddrs, 0);
	assert_null(net.addr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__as_with_netlink),
		cmocka_unit_test(read__nothing_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
