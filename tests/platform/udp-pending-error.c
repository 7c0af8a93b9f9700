/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* With IP_RECVERR an ICMP error for one datagram fails the next call on the
 * socket, whatever it is for, once; it wakes poll(), and the error queue says
 * which destination it was. On a dual-stack socket too.
 */
#include "fact.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6}, dead, who;
	struct msghdr m = {.msg_name = &who, .msg_namelen = sizeof(who)};
	int s = socket(AF_INET6, SOCK_DGRAM, 0), one = 1, zero = 0, tmp;
	struct pollfd p = {.fd = s, .events = POLLIN};
	socklen_t len = sizeof(dead);
	char c = 0;

	SKIP_UNLESS(s >= 0, "no IPv6");
	setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	FACT(setsockopt(s, IPPROTO_IP, IP_RECVERR, &one, sizeof(one)) == 0);
	FACT(setsockopt(s, IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof(one)) == 0);
	tmp = socket(AF_INET6, SOCK_DGRAM, 0);
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &a.sin6_addr);
	FACT(bind(tmp, (void *)&a, sizeof(a)) == 0);
	FACT(getsockname(tmp, (void *)&dead, &len) == 0);
	FACT(bind(s, (void *)&a, sizeof(a)) == 0);
	len = sizeof(a);
	FACT(getsockname(s, (void *)&a, &len) == 0);
	close(tmp);

	FACT(sendto(s, &c, 1, 0, (void *)&dead, sizeof(dead)) == 1);
	FACT(poll(&p, 1, 1000) == 1 && (p.revents & POLLERR));
	FACT(sendto(s, &c, 1, 0, (void *)&a, sizeof(a)) == -1);
	FACT(errno == ECONNREFUSED);
	FACT(sendto(s, &c, 1, 0, (void *)&a, sizeof(a)) == 1);
	FACT(recv(s, &c, 1, MSG_DONTWAIT) == 1);
	FACT(recvmsg(s, &m, MSG_ERRQUEUE) >= 0);
	FACT(who.sin6_port == dead.sin6_port);
	FACT(memcmp(&who.sin6_addr, &dead.sin6_addr, 16) == 0);
	FACT(recvmsg(s, &m, MSG_ERRQUEUE) == -1 && errno == EAGAIN);
	FACT(poll(&p, 1, 0) == 0);
	return 0;
}
