/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flight.c: the flight recorder's events, for people. */
#include "base/flight.h"
#include "base/check.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

const struct flight_info flight_info[FLIGHT_NUM] = {
	[FLIGHT_NONE] = {"none", "", "", ""},
#define FLIGHT(name, a, b, help) [FLIGHT_##name] = {#name, a, b, help},
#include "base/flight.def"
#undef FLIGHT
};

size_t flight_line(char *buf, size_t size, const struct flight_event *e,
		   uint64_t now_ns)
{
	const struct flight_info *info =
		&flight_info[e->kind < FLIGHT_NUM ? e->kind : FLIGHT_NONE];
	const uint64_t ago = now_ns > e->at_ns ? now_ns - e->at_ns : 0;
	const int n = snprintf(buf, size,
			       "-%" PRIu64 ".%03" PRIu64
			       " us %s, psn 0x%06" PRIx32
			       ", %s 0x%x, %s %" PRIu64,
			       ago / 1000, ago % 1000, info->name, e->psn,
			       info->a, e->a, info->b, e->b);

	return MIN((size_t)MAX(n, 0), size - 1);
}

void flight_log(const struct flight *f, uint64_t now_ns)
{
	char line[256];

	if (log_get() < LOG_DEBUG)
		return;
	for (uint64_t i = f->next - MIN(f->next, FLIGHT_EVENTS); i < f->next;
	     i++) {
		flight_line(line, sizeof(line), &f->ev[i % FLIGHT_EVENTS],
			    now_ns);
		log_debug("  %s", line);
	}
}
