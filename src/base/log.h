/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log.h: format messages to the user, of a level or more urgent. The writer that is
 * installed writes them (nic/: os_log(), standard error), and nic/config.c reads the
 * level (NOPIN_LOG: none, error, warn, info, debug). Any thread, at any time.
 */
#ifndef NOPIN_BASE_LOG_H
#define NOPIN_BASE_LOG_H

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_NUM };

extern const char *const log_level_names[LOG_NUM];

/** log_set() - Set the level, and the writer as log_to() does. */
void log_set(enum log_level level, void (*write)(const char *line, int len));

/** log_to() - Install the writer of finished lines; NULL, as at first: none is written.
 * @write:	@line ends with a newline, is @len bytes long and gone on return */
void log_to(void (*write)(const char *line, int len));

/** log_get() - Return the level. */
enum log_level log_get(void);

/** log_at() - Write a line "nopin: LEVEL: ...", cut at 511 bytes, if @level is on. Keeps
 * errno. */
__attribute__((format(printf, 2, 3))) void log_at(enum log_level level,
						  const char *fmt, ...);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
