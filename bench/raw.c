/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw.c: the limits that nopin is compared with: what plain UDP does between
 * two processes of this host, with nothing on top of it.
 *
 *   raw [OPTION...] syscall             ns, of one that does nothing
 *   raw [OPTION...] polled | sleeping   us, half a round trip of one packet
 *   raw [OPTION...] stream              GB/s of payload in GSO/GRO bursts
 *
 *   -s BYTES   payload of a packet of the stream (4096)
 *   -t MS      for how long (300)
 *   -a A,B     addresses of the two (127.0.0.1,127.0.0.1)
 *   -n A,B     network namespaces of the two
 *
 * The stream is what a transport could do at best: segments with a header of
 * 16 and a trailer of 4 bytes are gathered from a buffer of 1 MiB and scattered
 * into another. Each burst is acknowledged, and no more of them are in flight
 * than the socket buffer of the receiver holds: nothing is ever lost. The two
 * run on a core each.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PACKET = 40, /* headers, 8 bytes and a CRC */
	HDR = 16,
	TRAILER = 4,
	BUF = 1 << 20,
	BURST_MAX = 65000, /* bytes of one send */
	SEG_MAX = 64,
	IN_FLIGHT_MAX = 16,
	BURST_CHARGE = 128 << 10, /* of the socket buffer, with its overhead */
	STALLED_MS = 1000,
	SAMPLES = 1 << 20,
};

struct options {
	unsigned payload, ms;
	const char *addr[2], *netns[2];
};

/** struct end - One of the two processes. @fd blocks; @peer: where it sends. */
struct end {
	struct sockaddr_in peer;
	int fd;
};

struct stream {
	unsigned seg; /* bytes of a packet */
	unsigned segs; /* packets of a burst */
	unsigned payload;
	char *buf;
	char edges[SEG_MAX * (HDR + TRAILER)];
	struct iovec iov[3 * SEG_MAX];
};

static void run_on(int cpu)
{
	cpu_set_t all, one;
	int n = 0;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && n++ == cpu)
			CPU_SET(i, &one);
	if (n > cpu)
		sched_setaffinity(0, sizeof(one), &one);
}

static void enter(const char *netns)
{
	char path[128];
	int fd;

	if (!netns)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(errno, "%s", path);
	close(fd);
}

/* A socket on a port of the kernel's choice, told to the other end by @sync. */
static void end_open(struct end *e, const struct options *o, int which,
		     int sync)
{
	struct sockaddr_in me = {.sin_family = AF_INET};
	socklen_t len = sizeof(me);
	int one = 1, bytes = 4 << 20;

	enter(o->netns[which]);
	run_on(which);
	if (inet_pton(AF_INET, o->addr[which], &me.sin_addr) != 1)
		die(0, "%s is no IPv4 address", o->addr[which]);
	e->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (e->fd < 0 || bind(e->fd, (struct sockaddr *)&me, sizeof(me)) ||
	    getsockname(e->fd, (struct sockaddr *)&me, &len))
		die(errno, "socket on %s", o->addr[which]);
	/* as much as an ordinary user gets; the answers are looked at later */
	setsockopt(e->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(e->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (setsockopt(e->fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)))
		skip("this kernel has no UDP_GRO");
	send_all(sync, &me, sizeof(me));
	recv_all(sync, &e->peer, sizeof(e->peer));
}

static void end_send(const struct end *e, struct msghdr *m)
{
	m->msg_name = (void *)&e->peer;
	m->msg_namelen = sizeof(e->peer);
	if (sendmsg(e->fd, m, 0) < 0)
		die(errno, "sendmsg");
}

static void send_packet(const struct end *e, void *buf, size_t bytes)
{
	struct iovec iov = {buf, bytes};

	end_send(e, &(struct msghdr){.msg_iov = &iov, .msg_iovlen = 1});
}

/* --- one packet there and back ------------------------------------------------ */

static void echo(const struct end *e, int flags)
{
	char buf[PACKET];

	for (;;)
		if (recv(e->fd, buf, sizeof(buf), flags) > 0)
			send_packet(e, buf, sizeof(buf));
}

static void ping(const struct end *e, const struct options *o, int flags)
{
	double *us = calloc(SAMPLES, sizeof(*us));
	char buf[PACKET] = {0};
	uint64_t start = now_ns(), t = start, before;
	size_t n = 0;

	if (!us)
		die(errno, "memory");
	while (n < SAMPLES && t - start < o->ms * UINT64_C(1000000)) {
		before = t;
		send_packet(e, buf, sizeof(buf));
		while (recv(e->fd, buf, sizeof(buf), flags) < 0)
			;
		t = now_ns();
		us[n++] = (double)(t - before) / 2000;
	}
	/* the first ones warm up */
	printf("median %.3f\n", quantile(us + n / 10, n - n / 10, 0.5));
	printf("p99 %.3f\n", quantile(us + n / 10, n - n / 10, 0.99));
	free(us);
}

/* --- the stream ----------------------------------------------------------------- */

static void stream_init(struct stream *s, unsigned payload)
{
	s->payload = payload;
	s->seg = HDR + payload + TRAILER;
	s->segs = BURST_MAX / s->seg;
	if (s->segs > SEG_MAX)
		s->segs = SEG_MAX;
	s->buf = aligned_alloc(PAGE, BUF);
	if (!s->buf)
		die(errno, "memory");
	memset(s->buf, 1, BUF);
	memset(s->edges, 0, sizeof(s->edges));
}

/* The next burst's pieces of memory, from byte @at of the stream on. */
static struct msghdr stream_burst(struct stream *s, uint64_t at)
{
	size_t n = 0;

	for (unsigned i = 0; i < s->segs; i++) {
		char *edge = s->edges + i * (HDR + TRAILER);
		uint64_t off = (at + (uint64_t)i * s->payload) %
			       (BUF - s->payload);

		s->iov[n++] = (struct iovec){edge, HDR};
		s->iov[n++] = (struct iovec){s->buf + off, s->payload};
		s->iov[n++] = (struct iovec){edge + HDR, TRAILER};
	}
	return (struct msghdr){.msg_iov = s->iov, .msg_iovlen = n};
}

static void sink(const struct end *e, struct stream *s)
{
	uint64_t packets = 0;

	for (;;) {
		struct msghdr m = stream_burst(s, packets * s->payload);
		ssize_t n = recvmsg(e->fd, &m, MSG_DONTWAIT);

		if (n < 0)
			continue;
		packets += (size_t)n / s->seg;
		send_packet(e, &packets, sizeof(packets));
	}
}

/* How many bursts a receiver like this one holds. */
static unsigned stream_in_flight(const struct end *e)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);
	unsigned n;

	getsockopt(e->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len);
	n = (unsigned)bytes / BURST_CHARGE;
	return n < 2 ? 2 : n > IN_FLIGHT_MAX ? IN_FLIGHT_MAX : n;
}

static void source(const struct end *e, struct stream *s, unsigned ms)
{
	const unsigned most = stream_in_flight(e) * s->segs;
	uint64_t sent = 0, acked = 0, ack, start, t, moved;
	const int seg = (int)s->seg;

	if (setsockopt(e->fd, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg)))
		skip("this kernel has no UDP_SEGMENT");
	start = t = moved = now_ns();
	while (t - start < ms * UINT64_C(1000000)) {
		if (sent + s->segs - acked <= most) {
			struct msghdr m = stream_burst(s, sent * s->payload);

			end_send(e, &m);
			sent += s->segs;
		}
		t = now_ns();
		while (recv(e->fd, &ack, sizeof(ack), MSG_DONTWAIT) > 0) {
			acked = ack;
			moved = t;
		}
		if (t - moved > STALLED_MS * UINT64_C(1000000))
			die(0, "the stream lost a burst");
	}
	printf("GB/s %.4f\n",
	       (double)(acked * s->payload) / (double)(t - start));
}

/* --- command line ----------------------------------------------------------------- */

static void measure_syscall(void)
{
	enum { CALLS = 1000000 };
	uint64_t t = now_ns();

	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	printf("ns %.1f\n", (double)(now_ns() - t) / CALLS);
}

/* What one of the two processes does; @which 1 is the one that answers. */
static void play(const struct options *o, const char *what, int which, int sync)
{
	const int flags = strcmp(what, "sleeping") ? MSG_DONTWAIT : 0;
	struct stream s;
	struct end e;

	end_open(&e, o, which, sync);
	if (!strcmp(what, "stream")) {
		stream_init(&s, o->payload);
		if (which)
			sink(&e, &s);
		source(&e, &s, o->ms);
	} else if (which) {
		echo(&e, flags);
	} else {
		ping(&e, o, flags);
	}
}

static void two_processes(const struct options *o, const char *what)
{
	int sync[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sync))
		die(errno, "socketpair");
	child = fork();
	if (child < 0)
		die(errno, "fork");
	if (!child) {
		close(sync[0]);
		/* it answers until the parent has measured enough, or died */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		play(o, what, 1, sync[1]);
	}
	close(sync[1]);
	play(o, what, 0, sync[0]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void split(char *arg, const char *to[2])
{
	char *comma = strchr(arg, ',');

	if (!comma)
		die(0, "%s: two, with a comma", arg);
	*comma = '\0';
	to[0] = arg;
	to[1] = comma + 1;
}

int main(int argc, char **argv)
{
	struct options o = {
		.payload = 4096, .ms = 300, .addr = {"127.0.0.1", "127.0.0.1"}};
	const char *what;
	int c;

	while ((c = getopt(argc, argv, "s:t:a:n:")) != -1)
		switch (c) {
		case 's':
			o.payload = (unsigned)atoi(optarg);
			break;
		case 't':
			o.ms = (unsigned)atoi(optarg);
			break;
		case 'a':
			split(optarg, o.addr);
			break;
		case 'n':
			split(optarg, o.netns);
			break;
		default:
			return 2;
		}
	what = optind < argc ? argv[optind] : "";
	if (o.payload < 1 || o.payload > BURST_MAX / 2)
		die(0, "payload: 1 to %d", BURST_MAX / 2);
	if (!strcmp(what, "syscall"))
		measure_syscall();
	else if (!strcmp(what, "polled") || !strcmp(what, "sleeping") ||
		 !strcmp(what, "stream"))
		two_processes(&o, what);
	else
		die(0, "syscall, polled, sleeping or stream");
	return 0;
}
