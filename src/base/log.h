/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log.h: messages to the user, on standard error, never on standard output.
 * The level comes from NOPIN_LOG (error, warn, info, debug; default warn).
 */
#ifndef NOPIN_BASE_LOG_H
#define NOPIN_BASE_LOG_H

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_NUM };

extern const char *const log_level_names[LOG_NUM];

/** log_set() - Level and the writer of a finished line. */
void log_set(enum log_level level, void (*write)(const char *line, int len));
/** log_to() - The writer only. */
void log_to(void (*write)(const char *line, int len));

enum log_level log_get(void);

__attribute__((format(printf, 2, 3))) void log_at(enum log_level level,
						  const char *fmt, ...);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
