/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fact.h: for the programs here, each of which proves one thing about the
 * kernel that src/os relies on: 0 it is so, 1 it is not, 77 cannot be tried.
 */
#ifndef NOPIN_TESTS_FACT_H
#define NOPIN_TESTS_FACT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

#define FACT(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__,       \
				__LINE__, #cond);                              \
			exit(1);                                               \
		}                                                              \
	} while (0)

#define SKIP_UNLESS(cond, why)                                                 \
	do {                                                                   \
		if (!(cond)) {                                                 \
			printf("SKIP: %s\n", why);                             \
			exit(77);                                              \
		}                                                              \
	} while (0)

#endif
