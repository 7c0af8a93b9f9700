/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* check.h: assertions about our own code, kept in every build.
 *
 * CHECK() is for defects of nopin itself. It must not be reachable from a
 * packet, from a work request or from any other thing a peer or the
 * application can choose: those get a value of enum verdict.
 */
#ifndef NOPIN_BASE_CHECK_H
#define NOPIN_BASE_CHECK_H

#include <assert.h>
#include <stddef.h>

#define ARRAY_SIZE(a)	   (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)	   ((a) < (b) ? (a) : (b))
#define MAX(a, b)	   ((a) > (b) ? (a) : (b))
#define DIV_ROUND_UP(a, b) (((a) + (b)-1) / (b))

#define container_of(ptr, type, member)                                        \
	((type *)((char *)(ptr)-offsetof(type, member)))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

_Noreturn void check_failed(const char *file, int line, const char *what);

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (unlikely(!(cond)))                                         \
			check_failed(__FILE__, __LINE__, #cond);               \
	} while (0)

#endif
