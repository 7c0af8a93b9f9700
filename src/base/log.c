/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log.c: see log.h; and check_failed(). */
#include "base/log.h"
#include "base/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *const log_level_names[LOG_NUM] = {"none", "error", "warn", "info",
					      "debug"};

/* Any thread may open or look for a device while others log. */
static enum log_level log_threshold = LOG_WARN;
static void (*log_writer)(const char *line, int len);

void log_set(enum log_level level, void (*write)(const char *line, int len))
{
	__atomic_store_n(&log_threshold, level, __ATOMIC_RELAXED);
	log_to(write);
}

void log_to(void (*write)(const char *line, int len))
{
	__atomic_store_n(&log_writer, write, __ATOMIC_RELAXED);
}

enum log_level log_get(void)
{
	return __atomic_load_n(&log_threshold, __ATOMIC_RELAXED);
}

void log_at(enum log_level level, const char *fmt, ...)
{
	void (*write)(const char *line,
		      int len) = __atomic_load_n(&log_writer, __ATOMIC_RELAXED);
	int saved = errno, n, m;
	char line[512];
	va_list ap;

	if (level > log_get() || !write)
		return;
	n = snprintf(line, sizeof(line), "nopin: %s: ", log_level_names[level]);
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	n = MIN(n + MAX(m, 0), (int)sizeof(line) - 2);
	line[n++] = '\n';
	write(line, n);
	errno = saved;
}

_Noreturn void check_failed(const char *file, int line, const char *what)
{
	log_error("%s:%d: defect in nopin: %s", file, line, what);
	abort();
}
