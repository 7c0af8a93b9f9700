// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* report.c: what this copy found, for programs.py. */
#include "verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROBLEMS = 10, LINE = 160 };

static const char *const names[KIND_NUM] = {"flush", "receive", "send",
					    "write", "read",	"atomic"};
static struct {
	uint64_t posted[KIND_NUM], checked[KIND_NUM], bytes[KIND_NUM];
	uint64_t problems;
	char lines[MAX_PROBLEMS][LINE];
} report;

void report_posted(enum kind kind)
{
	report.posted[kind]++;
}

void report_checked(enum kind kind, uint64_t bytes)
{
	report.checked[kind]++;
	report.bytes[kind] += bytes;
}

void report_problem(const char *what)
{
	if (report.problems < MAX_PROBLEMS)
		snprintf(report.lines[report.problems], LINE, "%s", what);
	report.problems++;
}

/** report_wrong() - Compares, and says what is different. */
void report_wrong(const char *what, const void *have, const void *want,
		  uint64_t length, uint64_t where)
{
	const uint8_t *h = have, *w = want;
	uint64_t first = 0, count = 0;
	char line[LINE];

	if (memcmp(have, want, length) == 0)
		return;
	while (h[first] == w[first])
		first++;
	for (uint64_t i = first; i < length; i++)
		count += h[i] != w[i];
	snprintf(line, sizeof(line),
		 "%s at %#" PRIx64 ", %" PRIu64 " bytes long: %" PRIu64
		 " bytes are wrong, first is %" PRIu64 ": %#x, not %#x",
		 what, where, length, count, first, h[first], w[first]);
	report_problem(line);
}

static void __attribute__((destructor)) report_write(void)
{
	const struct evictions ev = evict_done();
	char path[4096];
	FILE *out;

	if (!share_on() || !track_next(NULL))
		return;
	/* some programs end without destroying anything */
	share_done();
	snprintf(path, sizeof(path), "%s/%s.report", getenv("VERIFY_DIR"),
		 share_role());
	out = fopen(path, "we");
	if (!out)
		return;
	for (int i = 0; i < KIND_NUM; i++)
		if (report.posted[i] || report.checked[i])
			fprintf(out,
				"%s: posted %" PRIu64 ", checked %" PRIu64
				", %" PRIu64 " bytes\n",
				names[i], report.posted[i], report.checked[i],
				report.bytes[i]);
	if (ev.taken || ev.locked)
		fprintf(out, "evicted %" PRIu64 ", locked %" PRIu64 "\n",
			ev.taken, ev.locked);
	for (uint64_t i = 0; i < report.problems && i < MAX_PROBLEMS; i++)
		fprintf(out, "WRONG: %s\n", report.lines[i]);
	fprintf(out, "%" PRIu64 " wrong\n", report.problems);
	fclose(out);
}
