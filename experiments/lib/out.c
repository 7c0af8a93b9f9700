/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* out.c: results of the experiments' programs, as lines of fields. */
#include "lib.h"

#include <stdarg.h>
#include <string.h>

/* lab.py has the same list. */
static const double quantiles[] = {0,	 0.01, 0.05, 0.1,  0.25,  0.5,
				   0.75, 0.9,  0.95, 0.99, 0.999, 1};

void out_row(const char *name, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	printf("%s\t", name);
	vprintf(fmt, args);
	putchar('\n');
	va_end(args);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void out_dist(const char *series, double *v, size_t n)
{
	double sum = 0;

	REQUIRE(n > 0);
	qsort(v, n, sizeof(*v), compare);
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	printf("dist\t%s\t%zu\t%.3f", series, n, sum / (double)n);
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		printf("\t%.3f", v[(size_t)((double)(n - 1) * quantiles[i])]);
	putchar('\n');
}

double median(double *v, size_t n)
{
	REQUIRE(n > 0);
	qsort(v, n, sizeof(*v), compare);
	return v[(n - 1) / 2];
}

void out_counters(const char *side)
{
	static const char *const names[] = {
		"tx_packets",	   "retransmits",      "timeouts",
		"naks_tx",	   "rnr_tx",	       "read_restarts",
		"kernel_drops",	   "drop_no_slot",     "faults",
		"tickets",	   "tickets_merged",   "fault_park",
		"fault_inline",	   "fault_redirect",   "fault_resume",
		"fault_rnr",	   "fault_silence",    "fault_replay",
		"fault_block",	   "redirected_bytes", "engine_majflt",
		"engine_minflt",   "service_ns",       "spt_evictions",
		"fault_overwrite", "fault_drop",       "fault_backup",
		"drop_no_backup",  "drop_no_recv",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		printf("counter\t%s\t%s\t%llu\n", side, names[i],
		       (unsigned long long)host_counter(names[i]));
}

uint64_t status_kib(const char *name)
{
	const size_t n = strlen(name);
	uint64_t kib = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, n) && line[n] == ':')
			kib = strtoull(line + n + 1, NULL, 10);
	fclose(f);
	return kib;
}

uint64_t number(const char *s)
{
	char *end;
	const uint64_t n = strtoull(s, &end, 0);

	if (end == s || *end) {
		fprintf(stderr, "not a number: %s\n", s);
		exit(2);
	}
	return n;
}
