/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flood.c: anybody may send anything to a UDP port. While a peer WRITEs and
 * SENDs, somebody else floods the ports of the receiver's NIC with garbage:
 * random bytes, and what looks like packets of that very connection. Each of
 * them is a counted drop with a reason, and every byte of the peer's is right.
 * Of what looks right, one in 65,536 has an ICRC that is right for some IPv4
 * identification (src/wire/icrc.c): a packet out of sequence, for the transport.
 *
 *   flood BURSTS
 *
 * Then as many bursts come as fast as they can. The receiver's socket may then
 * be full and the peer's packets be lost, which the peer makes up for.
 */
#include "host.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

enum { BURST = 32, PORTS_MAX = 16, LONGEST = 9000, BTH = 12, BYTES = 8192 };

static uint64_t bursts;

/* --- who floods ---------------------------------------------------------------- */

static void fill_random(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(host_random() >> 32);
}

/* Return: bytes of a packet that no NIC may take. */
static size_t garbage(uint8_t *p, uint32_t qpn)
{
	const uint64_t kind = host_random() % 4;
	const size_t n = kind == 0   ? host_random() % LONGEST
			 : kind == 1 ? host_random() % (BTH + 4)
				     : BTH + host_random() % 64 * 4 + 4;

	fill_random(p, n);
	if (n >= BTH && kind > 1) {
		const uint32_t to = htonl(qpn);

		p[0] = (uint8_t)(host_random() % 24); /* an opcode of RC */
		p[1] = 0; /* version, pad and the rest as they should be */
		p[2] = p[3] = 0xff;
		memcpy(p + 4, &to, sizeof(to));
	}
	return n;
}

static void flood(int sock, const uint64_t *port, uint64_t ports, uint32_t qpn,
		  uint64_t pause_ns)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	uint8_t packet[LONGEST];

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (uint64_t n = 0; n < bursts * BURST; n++) {
		const size_t len = garbage(packet, qpn);

		to.sin_port = htons((uint16_t)port[n % ports]);
		REQUIRE(sendto(sock, packet, len, 0, (struct sockaddr *)&to,
			       sizeof(to)) == (ssize_t)len);
		if (n % BURST == 0)
			host_sleep(pause_ns);
	}
}

/* The kernel says with a port's next packet how many it dropped there. These are
 * not counted: while nobody receives they may be dropped, too. */
static void say_drops(int sock, const uint64_t *port, uint64_t ports)
{
	struct sockaddr_in to = {.sin_family = AF_INET};

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (uint64_t n = 0; n < 30 * ports; n++) {
		to.sin_port = htons((uint16_t)port[n % ports]);
		REQUIRE(sendto(sock, "drops", 5, 0, (struct sockaddr *)&to,
			       sizeof(to)) == 5);
		if (n % ports == 0)
			host_sleep(10 * MS);
	}
}

static void attacker(int fd)
{
	const int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t port[PORTS_MAX], ports;
	uint32_t qpn;

	REQUIRE(sock >= 0);
	qpn = (uint32_t)host_hear(fd);
	ports = host_hear(fd);
	REQUIRE(ports > 0 && ports <= PORTS_MAX);
	for (uint64_t i = 0; i < ports; i++)
		port[i] = host_hear(fd);
	flood(sock, port, ports, qpn, MS);
	flood(sock, port, ports, qpn, 0);
	say_drops(sock, port, ports);
	close(sock);
	host_say(fd, 2 * bursts * BURST);
	host_hear(fd);
}

/* --- who works ------------------------------------------------------------------- */

static void peer(int fd)
{
	uint8_t *buf = host_map(NULL, BYTES);
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	mr = host_reg(&h, buf, BYTES);
	link_open(&l, &h, fd, NULL);
	for (uint64_t n = 0; host_hear(fd); n++) {
		host_fill(buf, BYTES, n);
		link_post(&l, IBV_WR_RDMA_WRITE, mr, buf, BYTES, 0);
		link_post(&l, IBV_WR_SEND, NULL, &n, sizeof(n), 0);
		host_wait(&h, 2);
	}
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
}

/* --- whose NIC is flooded ---------------------------------------------------------- */

/* The UDP ports of this process where anybody's packets arrive: of bound sockets
 * without a peer. */
static uint64_t find_ports(uint64_t *port)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	uint64_t n = 0;

	REQUIRE(dir);
	while ((e = readdir(dir)) && n < PORTS_MAX) {
		const int fd = atoi(e->d_name);
		struct sockaddr_in6 at;
		socklen_t len = sizeof(at);
		int type = 0;
		socklen_t size = sizeof(type);
		struct sockaddr_in6 to;
		socklen_t to_len = sizeof(to);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
		    type != SOCK_DGRAM ||
		    getsockname(fd, (struct sockaddr *)&at, &len) != 0 ||
		    getpeername(fd, (struct sockaddr *)&to, &to_len) == 0 ||
		    (at.sin6_family != AF_INET && at.sin6_family != AF_INET6) ||
		    at.sin6_port == 0)
			continue;
		/* where both families have it */
		port[n++] = ntohs(at.sin6_port);
	}
	closedir(dir);
	REQUIRE(n > 0);
	return n;
}

static void begin(int fd, uint32_t qpn)
{
	uint64_t port[PORTS_MAX], n = find_ports(port);

	host_say(fd, qpn);
	host_say(fd, n);
	for (uint64_t i = 0; i < n; i++)
		host_say(fd, port[i]);
	REQUIRE(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
}

/* Return: how many packets the attacker sent, 0: it still does. */
static uint64_t ended(int fd)
{
	uint64_t sent;

	return read(fd, &sent, sizeof(sent)) == sizeof(sent) ? sent : 0;
}

static void round_of(struct host *h, struct link *l, struct ibv_mr *mr, int fd,
		     uint64_t n)
{
	uint8_t *buf = mr->addr;

	link_recv(l, mr, buf + BYTES, PAGE);
	host_say(fd, 1);
	host_wait(h, 1);
	REQUIRE(memcmp(buf + BYTES, &n, sizeof(n)) == 0);
	host_check(buf, BYTES, n);
}

static uint64_t dropped(void)
{
	static const char *const why[] = {
		"drop_short", "drop_opcode", "drop_version", "drop_length",
		"drop_pad",   "drop_pkey",   "drop_icrc",    "drop_nonce",
		"drop_qpn",   "drop_peer",   "drop_ext",     "kernel_drops",
		"gaps_rx",    "dups_rx"};
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(why); i++)
		sum += host_counter(why[i]);
	return sum;
}

int main(int argc, char **argv)
{
	const size_t bytes = BYTES + PAGE;
	uint64_t n = 0, sent;
	struct ibv_mr *mr;
	int bad, good;
	struct host h;
	struct link l;

	REQUIRE(argc == 2);
	bursts = strtoull(argv[1], NULL, 0);
	host_start();
	bad = host_fork(attacker);
	good = host_fork(peer);
	host_open(&h);
	mr = host_reg(&h, host_map(NULL, bytes), bytes);
	link_open(&l, &h, good, mr);
	round_of(&h, &l, mr, good, n++);
	begin(bad, l.qp->qp_num);
	while (!(sent = ended(bad)))
		round_of(&h, &l, mr, good, n++);
	for (int i = 0; i < 10; i++)
		round_of(&h, &l, mr, good, n++);
	host_say(good, 0);
	host_say(bad, 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	printf("%llu packets of garbage, %llu dropped; %llu rounds meanwhile\n",
	       (unsigned long long)sent, (unsigned long long)dropped(),
	       (unsigned long long)n);
	REQUIRE_LE(sent, dropped());
	REQUIRE_LE(1, host_counter("drop_icrc"));
	REQUIRE_LE(1, host_counter("drop_short"));
	host_join();
	return 0;
}
