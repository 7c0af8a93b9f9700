/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rtnl.c: interfaces and addresses by rtnetlink(7). What of them is offered is
 * addr.c's; where the family is refused it has ifconf.c.
 *
 * Theory of operation. A dump says what there is. A notification only says that
 * something changed: all that wait are thrown away at once and a dump is made
 * (os_net_read()). So one that is lost (ENOBUFS), cut or new to us costs a dump and
 * nothing else, and there is no second place that knows what an address is.
 */
#include "os/rtnl.h"
#include "base/check.h"
#include "os/fd.h"
#include "os/net.h"
#include "os/netlist.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_socket.h"

#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum {
	RTNL_BYTES = 32768, /* the longest answer that the kernel makes */
	RTNL_TRIES = 4,
	RTNL_DRAIN_MAX = 1024, /* notifications thrown away at once */
};

/* --- messages ------------------------------------------------------------- */

/* The attributes of a message, by type; NULL where there is none. */
static void rtnl_attrs(const struct nlmsghdr *nlh, size_t header,
		       const struct nlattr **attr, unsigned num)
{
	const struct nlattr *a;

	for (unsigned i = 0; i < num; i++)
		attr[i] = NULL;
	mnl_attr_for_each(a, nlh, header)
	{
		if (mnl_attr_get_type(a) < num)
			attr[mnl_attr_get_type(a)] = a;
	}
}

/* Return: a number of 32 bits, or @otherwise. */
static uint32_t rtnl_u32(const struct nlattr *a, uint32_t otherwise)
{
	if (!a || mnl_attr_get_payload_len(a) != sizeof(uint32_t))
		return otherwise;
	return mnl_attr_get_u32(a);
}

static void rtnl_name(const struct nlattr *a, char name[16])
{
	size_t len = a ? mnl_attr_get_payload_len(a) : 0;

	memset(name, 0, 16);
	if (len)
		memcpy(name, mnl_attr_get_payload(a), MIN(len, 15));
}

static int rtnl_link(struct os_net *net, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr[IFLA_MTU + 1];
	struct os_link link = {.mtu = 0};

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*info))
		return -EBADMSG;
	rtnl_attrs(nlh, sizeof(*info), attr, ARRAY_SIZE(attr));
	link.ifindex = (uint32_t)info->ifi_index;
	link.mtu = rtnl_u32(attr[IFLA_MTU], NET_MTU_UNKNOWN);
	link.up = (info->ifi_flags & IFF_UP) != 0;
	link.running = link.up && (info->ifi_flags & IFF_RUNNING);
	link.loopback = (info->ifi_flags & IFF_LOOPBACK) != 0;
	rtnl_name(attr[IFLA_IFNAME], link.ifname);
	if (attr[IFLA_ADDRESS] &&
	    mnl_attr_get_payload_len(attr[IFLA_ADDRESS]) == sizeof(link.mac))
		memcpy(link.mac, mnl_attr_get_payload(attr[IFLA_ADDRESS]),
		       sizeof(link.mac));
	return net_add_link(net, &link);
}

/* Is it one that the host may not send from yet, or never? */
static bool rtnl_unusable(uint32_t flags)
{
	if (flags & IFA_F_DADFAILED)
		return true;
	return (flags & IFA_F_TENTATIVE) && !(flags & IFA_F_OPTIMISTIC);
}

static int rtnl_addr(struct os_net *net, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *info = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr[IFA_FLAGS + 1], *ours;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*info))
		return -EBADMSG;
	rtnl_attrs(nlh, sizeof(*info), attr, ARRAY_SIZE(attr));
	/* With two ends IFA_ADDRESS is the other one. */
	ours = attr[IFA_LOCAL] ? attr[IFA_LOCAL] : attr[IFA_ADDRESS];
	if (!ours || rtnl_unusable(rtnl_u32(attr[IFA_FLAGS], info->ifa_flags)))
		return 0;
	return net_add_addr(net, info->ifa_family, mnl_attr_get_payload(ours),
			    mnl_attr_get_payload_len(ours), info->ifa_index);
}

/* Return: as rtnl_parse(), but 0 for: go on. */
static int rtnl_message(struct os_net *net, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		return -EINTR;
	switch (nlh->nlmsg_type) {
	case NLMSG_DONE:
		return 1;
	case NLMSG_ERROR:
		if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*e) ||
		    e->error >= 0)
			return -EBADMSG;
		return e->error;
	case RTM_NEWLINK:
		return rtnl_link(net, nlh);
	case RTM_NEWADDR:
		return rtnl_addr(net, nlh);
	default:
		return 0;
	}
}

/** rtnl_parse() - See rtnl.h. */
int rtnl_parse(struct os_net *net, const void *buf, size_t len, uint32_t seq)
{
	const struct nlmsghdr *nlh = buf;
	int left = (int)len, ret = 0;

	while (ret == 0 && left > 0) {
		/* libmnl takes what is over 2 GiB for less than nothing */
		if (!mnl_nlmsg_ok(nlh, left) || nlh->nlmsg_len > INT32_MAX)
			return -EBADMSG;
		if (nlh->nlmsg_seq == seq)
			ret = rtnl_message(net, nlh);
		nlh = mnl_nlmsg_next(nlh, &left);
	}
	return ret;
}

/* --- the socket ------------------------------------------------------------- */

/** rtnl_open() - See rtnl.h. */
int rtnl_open(int groups)
{
	struct sockaddr_nl sa = {.nl_family = AF_NETLINK,
				 .nl_groups = (uint32_t)groups};
	int fd, ret;

	fd = fd_high(sys_socket(AF_NETLINK,
				SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
				NETLINK_ROUTE));
	if (fd < 0)
		return fd;
	ret = sys_bind(fd, &sa, sizeof(sa));
	if (ret < 0) {
		sys_close(fd);
		return ret;
	}
	return fd;
}

static int rtnl_ask(int fd, uint16_t type, uint32_t seq)
{
	char buf[MNL_ALIGN(sizeof(struct nlmsghdr)) +
		 MNL_ALIGN(sizeof(struct ifinfomsg))];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct iovec iov;
	const struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = seq;
	/* AF_UNSPEC: of all families. It is longer than struct ifaddrmsg. */
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	iov = (struct iovec){buf, nlh->nlmsg_len};
	n = sys_sendmsg(fd, &m, 0);
	return n < 0 ? (int)n : 0;
}

/* The next answer of the kernel's. Return: bytes, or -errno. */
static ssize_t rtnl_recv(int fd, void *buf)
{
	struct sockaddr_nl from = {.nl_family = AF_UNSPEC};
	struct iovec iov = {buf, RTNL_BYTES};
	struct msghdr m = {.msg_name = &from,
			   .msg_namelen = sizeof(from),
			   .msg_iov = &iov,
			   .msg_iovlen = 1};
	ssize_t n;

	do
		n = sys_recvmsg(fd, &m, MSG_DONTWAIT);
	while (n == -EINTR || (n >= 0 && from.nl_pid != 0));
	if (n >= 0 && (m.msg_flags & MSG_TRUNC))
		return -EBADMSG;
	return n;
}

/* Append what the kernel says when asked for @type. Return: 0 or -errno. */
static int rtnl_dump(int fd, uint16_t type, struct os_net *net, void *buf)
{
	int ret = rtnl_ask(fd, type, type);

	while (ret == 0) {
		ssize_t n = rtnl_recv(fd, buf);

		/* the answer is there as soon as one asked */
		ret = n > 0 ? rtnl_parse(net, buf, (size_t)n, type)
			    : (n < 0 ? (int)n : -EBADMSG);
	}
	return ret < 0 ? ret : 0;
}

static int rtnl_dump_all(int fd, struct os_net *net, void *buf)
{
	/* what is left of an answer that was given up */
	int ret = rtnl_drain(fd);

	/* A filter may deny it: then the rest of a dump that broke off is told again. */
	if (ret < 0 && !sys_denied(ret))
		return ret;
	if (ret == RTNL_DRAIN_MAX)
		return -ENOBUFS;
	ret = rtnl_dump(fd, RTM_GETLINK, net, buf);
	if (ret == 0)
		ret = rtnl_dump(fd, RTM_GETADDR, net, buf);
	return ret;
}

/** rtnl_read() - See rtnl.h. */
int rtnl_read(int fd, struct os_net *net)
{
	void *buf = fd < 0 ? NULL : malloc(RTNL_BYTES);
	int ret = buf ? -EINTR : fd < 0 ? fd : -ENOMEM;

	/* It changed while it was told, or too much was told at once. */
	for (int i = 0; i < RTNL_TRIES && (ret == -EINTR || ret == -ENOBUFS);
	     i++) {
		os_net_free(net);
		ret = rtnl_dump_all(fd, net, buf);
	}
	free(buf);
	if (ret < 0)
		os_net_free(net);
	return ret;
}

/** rtnl_watch() - See rtnl.h. */
int rtnl_watch(void)
{
	return rtnl_open(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
}

/** rtnl_drain() - See rtnl.h. */
int rtnl_drain(int fd)
{
	int taken = 0;

	for (int i = 0; i < RTNL_DRAIN_MAX; i++) {
		/* of no bytes: what it was does not matter */
		const ssize_t n = sys_call(SYS_recvfrom, fd, 0, 0, MSG_DONTWAIT,
					   0, 0);

		if (n == -EAGAIN)
			break;
		if (n < 0 && n != -ENOBUFS && n != -EINTR)
			return (int)n;
		taken++;
	}
	return taken;
}
