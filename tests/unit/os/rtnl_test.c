/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rtnl_test.c: what the kernel tells by netlink, whole, in part and wrong; and what is
 * done when it could not tell all. Whether it means what we think addr_test.c sees.
 */
#include "base/check.h"
#include "host_fixture.h"
#include "os/net.h"
#include "os/netlist.h"
#include "os/rtnl.h"

#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stddef.h>

enum { SEQ = 7, LO = 1, ETH = 3 };

/* Messages one behind the other. */
static struct {
	char bytes[2048] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t len;
} said;

static struct nlmsghdr *message(uint16_t type, size_t header)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(said.bytes + said.len);

	nlh->nlmsg_type = type;
	nlh->nlmsg_seq = SEQ;
	nlh->nlmsg_flags = NLM_F_MULTI;
	if (header)
		memset(mnl_nlmsg_put_extra_header(nlh, header), 0, header);
	return nlh;
}

static void end(const struct nlmsghdr *nlh)
{
	said.len += MNL_ALIGN(nlh->nlmsg_len);
}

static void say_link(int ifindex, const char *name, unsigned flags,
		     uint32_t mtu)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	struct nlmsghdr *nlh = message(RTM_NEWLINK, sizeof(struct ifinfomsg));
	struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);

	info->ifi_index = ifindex;
	info->ifi_flags = flags;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	if (mtu)
		mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	mnl_attr_put(nlh, IFLA_ADDRESS, sizeof(mac), mac);
	mnl_attr_put_u32(nlh, 4095, 1); /* from a kernel to come */
	end(nlh);
}

static struct nlmsghdr *say_addr(uint8_t family, uint32_t ifindex,
				 uint32_t flags)
{
	struct nlmsghdr *nlh = message(RTM_NEWADDR, sizeof(struct ifaddrmsg));
	struct ifaddrmsg *info = mnl_nlmsg_get_payload(nlh);

	info->ifa_family = family;
	info->ifa_index = ifindex;
	info->ifa_flags = (uint8_t)flags;
	if (flags)
		mnl_attr_put_u32(nlh, IFA_FLAGS, flags);
	return nlh;
}

static void say_v4(uint32_t ifindex, uint8_t last, bool two_ends)
{
	const uint8_t ip[4] = {10, 1, 2, last}, other[4] = {10, 1, 2, 99};
	struct nlmsghdr *nlh = say_addr(AF_INET, ifindex, 0);

	mnl_attr_put(nlh, IFA_ADDRESS, 4, two_ends ? other : ip);
	mnl_attr_put(nlh, IFA_LOCAL, 4, ip);
	end(nlh);
}

static void say_v6(uint32_t ifindex, uint8_t last, uint32_t flags)
{
	const uint8_t ip[16] = {0xfe, 0x80, [15] = last};
	struct nlmsghdr *nlh = say_addr(AF_INET6, ifindex, flags);

	mnl_attr_put(nlh, IFA_ADDRESS, 16, ip);
	end(nlh);
}

static void say_done(void)
{
	end(message(NLMSG_DONE, 4));
}

static void say_error(int err)
{
	struct nlmsghdr *nlh = message(NLMSG_ERROR, sizeof(struct nlmsgerr));

	((struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error = err;
	end(nlh);
}

static void say_host(void)
{
	said.len = 0;
	say_link(LO, "lo", IFF_UP | IFF_LOOPBACK | IFF_RUNNING, 65536);
	say_link(ETH, "eth0", IFF_UP, 9000);
	say_v4(ETH, 5, false);
	say_v6(ETH, 6, 0);
}

static int parse(struct os_net *net, size_t len)
{
	*net = (struct os_net){.naddrs = 0};
	return rtnl_parse(net, said.bytes, len, SEQ);
}

static void parse__a_host(void **state)
{
	struct os_net net;

	(void)state;
	say_host();
	assert_int_equal(parse(&net, said.len), 0);
	assert_int_equal(net.nlinks, 2);
	assert_true(net.link[0].loopback && net.link[0].running);
	assert_int_equal(net.link[1].ifindex, ETH);
	assert_int_equal(net.link[1].mtu, 9000);
	assert_true(net.link[1].up && !net.link[1].running);
	assert_int_equal(net.link[1].mac[5], 9);
	assert_string_equal(net.link[1].ifname, "eth0");
	assert_int_equal(net.naddrs, 2);
	assert_true(ipaddr_is_v4(&net.addr[0].ip) && net.addr[0].ip.b[15] == 5);
	assert_int_equal(net.addr[0].mtu, 9000);
	assert_string_equal(net.addr[0].ifname, "eth0");
	assert_true(net.addr[0].up && !net.addr[0].link_local);
	assert_true(net.addr[1].link_local && net.addr[1].ip.b[15] == 6);
	os_net_free(&net);
	say_done();
	assert_int_equal(parse(&net, said.len), 1);
	os_net_free(&net);
}

/* With two ends the address is ours, not the other's. */
static void parse__our_end(void **state)
{
	struct os_net net;

	(void)state;
	say_host();
	say_v4(ETH, 7, true);
	assert_int_equal(parse(&net, said.len), 0);
	assert_int_equal(net.naddrs, 3);
	assert_int_equal(net.addr[2].ip.b[15], 7);
	os_net_free(&net);
}

/* Nobody may send from an address that somebody else may have. */
static void parse__not_usable(void **state)
{
	static const struct {
		uint32_t flags;
		bool usable;
	} rows[] = {{IFA_F_PERMANENT, true},
		    {IFA_F_TENTATIVE, false},
		    {IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, true},
		    {IFA_F_DADFAILED, false},
		    {IFA_F_DEPRECATED, true},
		    {IFA_F_SECONDARY | IFA_F_MANAGETEMPADDR, true}};
	struct os_net net;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		say_host();
		say_v6(ETH, 7, rows[i].flags);
		assert_int_equal(parse(&net, said.len), 0);
		assert_int_equal(net.naddrs, 2 + rows[i].usable);
		os_net_free(&net);
	}
}

/* Of an interface that is new since, of a family that is not ours, cut attributes,
 * another dump's, and kinds of messages that are not known. */
static void parse__leaves_out(void **state)
{
	const uint8_t three[3] = {10, 1, 2};
	struct os_net net;
	struct nlmsghdr *nlh;

	(void)state;
	say_host();
	say_v4(ETH + 1, 8, false);
	nlh = say_addr(AF_INET, ETH, 0);
	mnl_attr_put(nlh, IFA_LOCAL, sizeof(three), three);
	end(nlh);
	end(say_addr(AF_INET, ETH, 0));
	nlh = say_addr(AF_APPLETALK, ETH, 0);
	mnl_attr_put_u32(nlh, IFA_LOCAL, 1);
	end(nlh);
	nlh = say_addr(AF_INET, ETH, 0);
	mnl_attr_put_u32(nlh, IFA_LOCAL, 1);
	nlh->nlmsg_seq = SEQ + 1;
	end(nlh);
	end(message(RTM_NEWROUTE, sizeof(struct rtmsg)));
	assert_int_equal(parse(&net, said.len), 0);
	assert_int_equal(net.naddrs, 2);
	os_net_free(&net);
}

static void parse__names_and_numbers_of_any_length(void **state)
{
	struct os_net net;

	(void)state;
	said.len = 0;
	say_link(ETH, "a-name-that-no-interface-may-have", IFF_UP, 0);
	assert_int_equal(parse(&net, said.len), 0);
	assert_string_equal(net.link[0].ifname, "a-name-that-no-");
	assert_int_equal(net.link[0].mtu, NET_MTU_UNKNOWN);
	os_net_free(&net);
}

/* Cut at any byte it is refused or taken in part; nothing behind it is read, which
 * AddressSanitizer sees. */
static void parse__cut_anywhere(void **state)
{
	(void)state;
	say_host();
	for (size_t len = 0; len < said.len; len++) {
		void *copy = malloc(MAX(len, 1));
		struct os_net net = {.naddrs = 0};
		int ret;

		memcpy(copy, said.bytes, len);
		ret = rtnl_parse(&net, copy, len, SEQ);
		assert_true(ret == 0 || ret == -EBADMSG);
		assert_true(net.naddrs <= 2 && net.nlinks <= 2);
		os_net_free(&net);
		free(copy);
	}
}

/* Lengths inside say more, or less, than there is. */
static void parse__wrong_lengths(void **state)
{
	(void)state;
	say_host();
	for (size_t at = 0; at + 2 <= said.len; at += 2) {
		static const uint16_t wrong[] = {0, 1, 3, 5, 15, 17, 0xffff};

		for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
			char *copy = malloc(said.len);
			struct os_net net = {.naddrs = 0};

			memcpy(copy, said.bytes, said.len);
			memcpy(copy + at, &wrong[i], 2);
			(void)rtnl_parse(&net, copy, said.len, SEQ);
			assert_true(net.naddrs <= 2 && net.nlinks <= 2);
			os_net_free(&net);
			free(copy);
		}
	}
	said.len = 0;
	end(message(RTM_NEWLINK, 4));
	assert_int_equal(rtnl_parse(&(struct os_net){.naddrs = 0}, said.bytes,
				    said.len, SEQ),
			 -EBADMSG);
	said.len = 0;
	end(message(RTM_NEWADDR, 4));
	assert_int_equal(rtnl_parse(&(struct os_net){.naddrs = 0}, said.bytes,
				    said.len, SEQ),
			 -EBADMSG);
}

static void parse__errors(void **state)
{
	struct os_net net;

	(void)state;
	said.len = 0;
	say_error(-EPERM);
	assert_int_equal(parse(&net, said.len), -EPERM);
	said.len = 0;
	say_error(0);
	assert_int_equal(parse(&net, said.len), -EBADMSG);
	say_host();
	((struct nlmsghdr *)said.bytes)->nlmsg_flags |= NLM_F_DUMP_INTR;
	assert_int_equal(parse(&net, said.len), -EINTR);
}

static int refused(unsigned nth, int err)
{
	struct os_net net = {.naddrs = 0};
	int fd = rtnl_open(0), ret;

	assert_true(fd >= 0);
	refuse_nth(SYS_recvmsg, nth, err);
	ret = rtnl_read(fd, &net);
	refuse_none();
	close(fd);
	if (ret == 0)
		assert_true(net.naddrs > 0 && net.nlinks > 0);
	else
		assert_true(net.naddrs == 0 && !net.addr && !net.link);
	os_net_free(&net);
	return ret;
}

/* Too much at once for the socket: it is asked again, from the beginning. */
static void read__again_when_some_was_lost(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth <= 3; nth++)
		assert_int_equal(refused(nth, ENOBUFS), 0);
	refuse(SYS_recvmsg, -1, 0, ENOBUFS);
	assert_int_equal(refused(1, ENOBUFS), -ENOBUFS);
	assert_int_equal(refused(1, EIO), -EIO);
}

/* Something changes all the time; the watcher finds out, and never blocks. */
static void drain__takes_all(void **state)
{
	int fd = rtnl_watch();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(rtnl_drain(fd), 0);
	refuse_nth(SYS_recvfrom, 1, ENOBUFS);
	assert_int_equal(rtnl_drain(fd), 1);
	refuse_none();
	close(fd);
	assert_int_equal(rtnl_drain(fd), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__a_host),
		cmocka_unit_test(parse__our_end),
		cmocka_unit_test(parse__not_usable),
		cmocka_unit_test(parse__leaves_out),
		cmocka_unit_test(parse__names_and_numbers_of_any_length),
		cmocka_unit_test(parse__cut_anywhere),
		cmocka_unit_test(parse__wrong_lengths),
		cmocka_unit_test(parse__errors),
		cmocka_unit_test(read__again_when_some_was_lost),
		cmocka_unit_test(drain__takes_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
