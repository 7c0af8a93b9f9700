/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ifconf.c: interfaces and addresses without netlink, where a filter of system
 * calls refuses that family: IPv4 by ioctl(2), IPv6 from /proc.
 */
#include "os/ifconf.h"
#include "os/file.h"
#include "os/net.h"
#include "os/netlist.h"
#include "os/sys.h"
#include "os/sys_file.h"

#include <linux/if_addr.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { IFCONF_MAX = 256, IFCONF_TEXT = 64 * 1024 };

static int ifconf_ioctl(int fd, unsigned long what, void *arg)
{
	return (int)sys_call(SYS_ioctl, fd, (long)what, SYS_PTR(arg), 0, 0, 0);
}

/* The interface @name, if it is not known yet. Return: its index, 0: none. */
static uint32_t ifconf_link(int fd, const char *name, struct os_net *net)
{
	struct ifreq r = {.ifr_mtu = 0};
	struct os_link link = {.mtu = NET_MTU_UNKNOWN};

	memcpy(r.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
	memcpy(link.ifname, r.ifr_name, sizeof(link.ifname));
	if (ifconf_ioctl(fd, SIOCGIFINDEX, &r) < 0)
		return 0;
	link.ifindex = (uint32_t)r.ifr_ifindex;
	if (net_find_link(net, link.ifindex))
		return link.ifindex;
	if (ifconf_ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return 0;
	link.up = (r.ifr_flags & IFF_UP) != 0;
	link.running = link.up && (r.ifr_flags & IFF_RUNNING);
	link.loopback = (r.ifr_flags & IFF_LOOPBACK) != 0;
	if (ifconf_ioctl(fd, SIOCGIFMTU, &r) == 0)
		link.mtu = (uint32_t)r.ifr_mtu;
	if (ifconf_ioctl(fd, SIOCGIFHWADDR, &r) == 0)
		memcpy(link.mac, r.ifr_hwaddr.sa_data, sizeof(link.mac));
	return net_add_link(net, &link) == 0 ? link.ifindex : 0;
}

/* In a name like eth0:1 the colon begins a label. */
static int ifconf_v4(int fd, struct os_net *net)
{
	struct ifreq *all = calloc(IFCONF_MAX, sizeof(*all));
	struct ifconf conf = {.ifc_len = IFCONF_MAX * (int)sizeof(*all),
			      .ifc_req = all};
	int ret;

	if (!all)
		return -ENOMEM;
	ret = ifconf_ioctl(fd, SIOCGIFCONF, &conf);
	for (int i = 0; ret == 0 && i < conf.ifc_len / (int)sizeof(*all); i++) {
		const struct sockaddr_in *in = (const void *)&all[i].ifr_addr;
		uint32_t ifindex;

		all[i].ifr_name[strcspn(all[i].ifr_name, ":")] = 0;
		ifindex = ifconf_link(fd, all[i].ifr_name, net);
		if (ifindex && in->sin_family == AF_INET)
			ret = net_add_addr(net, AF_INET, &in->sin_addr,
					   sizeof(in->sin_addr), ifindex);
	}
	free(all);
	return ret;
}

static unsigned hex_digit(char c)
{
	return c >= '0' && c <= '9' ? (unsigned)(c - '0')
				    : (unsigned)(c - 'a') + 10;
}

/* 32 digits of hexadecimal. */
static bool ifconf_address(const char *text, uint8_t ip[16])
{
	if (strspn(text, "0123456789abcdef") != 32)
		return false;
	for (unsigned i = 0; i < 16; i++, text += 2)
		ip[i] = (uint8_t)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
	return true;
}

/* Words of a line: address; index, prefix, scope and flags in hexadecimal; name. */
static int ifconf_line(int fd, char *line, struct os_net *net)
{
	enum { ADDRESS, FLAGS = 4, NAME, WORDS };
	char *word[WORDS], *save = NULL;
	uint8_t ip[16];

	for (unsigned i = 0; i < WORDS; i++) {
		word[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!word[i])
			return 0;
	}
	if (strtoul(word[FLAGS], NULL, 16) &
	    (IFA_F_TENTATIVE | IFA_F_DADFAILED))
		return 0;
	if (!ifconf_address(word[ADDRESS], ip))
		return 0;
	return net_add_addr(net, AF_INET6, ip, sizeof(ip),
			    ifconf_link(fd, word[NAME], net));
}

static int ifconf_v6(int fd, struct os_net *net)
{
	char *text = calloc(1, IFCONF_TEXT), *line = text, *end;
	size_t len = 0;
	ssize_t n = 1;
	int ret = 0;
	int file;

	if (!text)
		return -ENOMEM;
	file = file_borrow("/proc/net/if_inet6");
	while (file >= 0 && n > 0 && len < IFCONF_TEXT - 1) {
		n = sys_pread(file, text + len, IFCONF_TEXT - 1 - len, len);
		len += n > 0 ? (size_t)n : 0;
	}
	file_return(file);
	for (; ret == 0 && (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		ret = ifconf_line(fd, line, net);
	}
	free(text);
	return ret;
}

/** ifconf_read() - See ifconf.h. */
int ifconf_read(int fd, struct os_net *net)
{
	int ret = fd < 0 ? fd : ifconf_v4(fd, net);

	if (ret == 0)
		ret = ifconf_v6(fd, net);
	if (ret < 0)
		os_net_free(net);
	return ret;
}
