/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* util.c: time, TCP on loopback and the pattern that every byte is checked
 * against. Leaves verbs to link.c.
 */
#include "demo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

void sleep_until(uint64_t ns)
{
	const struct timespec t = {
		.tv_sec = (time_t)(ns / (1000 * MS)),
		.tv_nsec = (long)(ns % (1000 * MS)),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

void die(int err, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, err ? ": %s\n" : "\n", strerror(err));
	exit(1);
}

uint64_t number(const char *s)
{
	char *end;
	uint64_t n = strtoull(s, &end, 10);

	if (end == s || *end)
		die(0, "'%s' is not a number", s);
	return n;
}

void must_send(int fd, const void *buf, size_t n)
{
	const char *p = buf;

	while (n) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

		if (sent < 0)
			die(errno, "send");
		p += sent;
		n -= (size_t)sent;
	}
}

void must_recv(int fd, void *buf, size_t n)
{
	ssize_t got;

	if (!n)
		return;
	got = recv(fd, buf, n, MSG_WAITALL);
	if (got < 0)
		die(errno, "recv");
	if ((size_t)got != n)
		die(0, "the other side is gone");
}

static int tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die(errno, "socket");
	return fd;
}

int tcp_listen(uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd = tcp_socket();

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		die(errno, "listen");
	*port = ntohs(a.sin_port);
	return fd;
}

int tcp_connect(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = tcp_socket(), one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		die(errno, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Word @i of slot @s. Before the first WRITE there are zeros. */
static uint64_t word(const struct slot *s, uint32_t i)
{
	uint64_t which = (uint64_t)s->id << 32 | s->seq;

	return s->seq ? mix(mix(which) + i) : 0;
}

void fill(const struct slot *s, uint8_t *to)
{
	for (uint32_t at = 0; at < s->bytes; at += 8) {
		const uint64_t w = word(s, at / 8);
		const uint32_t left = s->bytes - at;

		memcpy(to + at, &w, left < 8 ? left : 8);
	}
}

uint32_t wrong_bytes(const struct slot *s, const uint8_t *have)
{
	uint32_t wrong = 0;

	for (uint32_t at = 0; at < s->bytes; at += 8) {
		const uint64_t w = word(s, at / 8);
		const uint32_t left = s->bytes - at, n = left < 8 ? left : 8;
		const uint8_t *want = (const uint8_t *)&w;

		if (!memcmp(have + at, want, n))
			continue;
		for (uint32_t i = 0; i < n; i++)
			wrong += have[at + i] != want[i];
	}
	return wrong;
}
