/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The IPv4 identification, which ICRC covers, of what an unconnected socket
 * sends with IP_PMTUDISC_DO is 0, also on a dual-stack socket and with a chosen
 * source address; segment i of a UDP_SEGMENT send carries i; and DF is set.
 * Looked at on the wire: a loopback of our own with segmentation offload off.
 */
#include "fact.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT 50000

static int wire;

static void own_loopback(void)
{
	struct ifreq ifr = {.ifr_name = "lo"};
	int s;

	SKIP_UNLESS(unshare(CLONE_NEWNET) == 0, "needs root: a namespace");
	s = socket(AF_INET, SOCK_DGRAM, 0);
	ifr.ifr_flags = IFF_UP;
	FACT(ioctl(s, SIOCSIFFLAGS, &ifr) == 0);
	close(s);
	SKIP_UNLESS(
		system("ethtool -K lo tx-udp-segmentation off >/dev/null") == 0,
		"no ethtool");
	wire = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
	SKIP_UNLESS(wire >= 0, "needs root: a packet socket");
}

/* Sends 3 x 100 bytes, one by one or cut by the kernel. */
static void send_three(int s, const void *to, socklen_t len, bool gso,
		       bool source)
{
	char payload[300] = {0}, ctl[CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct iovec iov = {payload, gso ? 300 : 100};
	struct msghdr m = {.msg_name = (void *)(unsigned long)to,
			   .msg_namelen = len,
			   .msg_iov = &iov,
			   .msg_iovlen = 1};
	struct cmsghdr *c = (void *)ctl;
	struct in_pktinfo pi = {.ipi_spec_dst.s_addr = htonl(INADDR_LOOPBACK)};
	int seg = gso ? 100 : 0;

	memset(ctl, 0, sizeof(ctl));
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(pi));
	memcpy(CMSG_DATA(c), &pi, sizeof(pi));
	if (source) {
		m.msg_control = ctl;
		m.msg_controllen = sizeof(ctl);
	}
	FACT(setsockopt(s, IPPROTO_UDP, 103, &seg, sizeof(seg)) == 0);
	for (int i = 0; i < (gso ? 1 : 3); i++)
		FACT(sendmsg(s, &m, 0) == (ssize_t)iov.iov_len);
}

/* What came in; the ICMP errors about it are not counted. */
static void look(bool gso)
{
	struct {
		struct iphdr ip;
		char rest[1500];
	} pkt;
	unsigned seen[3] = {0}, n = 0;

	while (recv(wire, &pkt, sizeof(pkt), MSG_DONTWAIT) > 0) {
		if (pkt.ip.protocol != IPPROTO_UDP)
			continue;
		n++;
		FACT(ntohs(pkt.ip.tot_len) == 128);
		FACT(pkt.ip.frag_off == htons(IP_DF));
		FACT(ntohs(pkt.ip.id) < 3);
		seen[ntohs(pkt.ip.id)]++;
	}
	FACT(n == 3);
	FACT(seen[0] == (gso ? 1 : 3) && seen[1] == (gso ? 1 : 0));
}

int main(void)
{
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(PORT)};
	struct sockaddr_in to4 = {.sin_family = AF_INET,
				  .sin_port = htons(PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int probe = IP_PMTUDISC_DO, zero = 0;

	own_loopback();
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &to6.sin6_addr);
	for (int i = 0; i < 8; i++) {
		bool dual = i & 1, gso = i & 2, source = i & 4;
		int s = socket(dual ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);

		SKIP_UNLESS(s >= 0, "no IPv6");
		if (dual)
			setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &zero,
				   sizeof(zero));
		FACT(setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &probe,
				sizeof(probe)) == 0);
		send_three(s, dual ? (void *)&to6 : (void *)&to4,
			   dual ? sizeof(to6) : sizeof(to4), gso, source);
		look(gso);
		close(s);
	}
	return 0;
}
