/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* util.c: time, statistics and messages of the programs of bench/. */
#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void die(int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("bench: ", stderr);
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "%s%s\n", err ? ": " : "", err ? strerror(err) : "");
	va_end(args);
	exit(1);
}

void skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("SKIP: ", stdout);
	vprintf(fmt, args);
	putchar('\n');
	va_end(args);
	exit(EXIT_SKIP);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double quantile(double *v, size_t n, double q)
{
	if (n == 0)
		die(0, "nothing was measured");
	qsort(v, n, sizeof(*v), compare);
	return v[(size_t)((double)(n - 1) * q)];
}

char *untouched(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die(errno, "%zu bytes of address space", bytes);
	/* a huge page would make one first touch of 512 */
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

void send_all(int fd, const void *buf, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = write(fd, (const char *)buf + at, bytes - at);

		if (n <= 0)
			die(errno, "the other process is gone");
		at += (size_t)n;
	}
}

void recv_all(int fd, void *buf, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = read(fd, (char *)buf + at, bytes - at);

		if (n <= 0)
			die(n ? errno : 0, "the other process is gone");
		at += (size_t)n;
	}
}
