/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lib.h: what the experiments' programs share, on top of what the tests on the
 * real host have (tests/host/host.h: processes, connections, slow pages, the
 * NIC's counters): memory that is cold, and results.
 *
 * Results are lines of fields separated by tabs, for experiments/lab.py.
 */
#ifndef NOPIN_EXPERIMENTS_LIB_H
#define NOPIN_EXPERIMENTS_LIB_H

#include "host.h"

#define US 1e3 /* in ns */

/* --- cold.c: memory whose pages are not there ---------------------------------- */

/**
 * enum cold_kind -
 * COLD_MINOR:	anonymous, never touched
 * COLD_SWAP:	swapped out; swap must be on
 * COLD_FILE:	a file of the current directory, not in the page cache
 * COLD_SLOW:	comes after a while (userfaultfd)
 */
enum cold_kind { COLD_MINOR, COLD_SWAP, COLD_FILE, COLD_SLOW };

/**
 * struct cold - @windows of @bytes each at @base, all one mapping. A never
 * touched page is cold only once, so each round of COLD_MINOR has a window of
 * its own; the others have one window that is made cold again.
 * @next:	the window of the next round
 */
struct cold {
	enum cold_kind kind;
	uint8_t *base;
	size_t bytes;
	unsigned windows, next;
	int fd;
	struct slow slow;
};

/**
 * cold_open() - @bytes of memory for @rounds rounds.
 * @kind: "minor", "swap", "file", "slow1" or "slow10" (ms); skips the program
 * where this host has no such memory.
 */
void cold_open(struct cold *c, const char *kind, size_t bytes, unsigned rounds);

/** cold_size() - Of the whole mapping, for its registration. */
size_t cold_size(const struct cold *c);

/** cold_round() - Return: the window of a new round, none of whose pages is
 * present. The NIC has had the time to notice.
 */
uint8_t *cold_round(struct cold *c);

/* --- out.c: results ------------------------------------------------------------- */

/** out_row() - A line: @name, then the fields of @fmt. */
void out_row(const char *name, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** out_dist() - The distribution of @n values, which it sorts: "dist", @series,
 * n, mean and the quantiles that lab.py names.
 */
void out_dist(const char *series, double *v, size_t n);

/** out_counters() - After host_close(): "counter", @side, name, value. */
void out_counters(const char *side);

/** median() - Sorts @v. */
double median(double *v, size_t n);

/** status_kib() - A field of /proc/self/status, such as "VmRSS". */
uint64_t status_kib(const char *name);

/** number() - Parse @s, or end with 2. */
uint64_t number(const char *s);

#endif
