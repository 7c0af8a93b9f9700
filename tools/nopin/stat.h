/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stat.h: what the files of `nopin stat` share. */
#ifndef NOPIN_TOOLS_STAT_H
#define NOPIN_TOOLS_STAT_H

#include <jansson.h>
#include <stdint.h>

/**
 * struct told - What a NIC said of itself.
 * @name:	of the program
 */
struct told {
	long pid;
	char name[32];
	json_t *all;
};

/** stat_number() - Member @name of @o; 0 if there is none. */
uint64_t stat_number(const json_t *o, const char *name);

/** metrics_print() - All of @n processes as OpenMetrics text. */
void metrics_print(const struct told *t, size_t n);

#endif
