/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nopin.h: what the subcommands of nopin(1) share. */
#ifndef NOPIN_TOOLS_NOPIN_H
#define NOPIN_TOOLS_NOPIN_H

#include <stdbool.h>
#include <stddef.h>

/* What nopin itself exits with; what a program exits with is passed on. */
enum {
	EXIT_USAGE = 2,
	EXIT_BROKEN = 125,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127
};

/** complain() - A line on standard error, with our name before it. */
__attribute__((format(printf, 1, 2))) void complain(const char *fmt, ...);

/** complain_usage() - Complain that command @name is used otherwise. Return: EXIT_USAGE. */
int complain_usage(const char *name);

enum { ASK_WHY_MAX = 256, ASK_PATIENCE_MS = 5000 };

/**
 * ask_nic() - Ask the NIC of process @pid. Enters its network namespace.
 * @len:	set to the length of the answer, which a 0 follows
 * @why:	if there is none: set to the reason, for people
 * Return: the answer, to be freed, or NULL.
 */
char *ask_nic(long pid, const char *request, int patience_ms, size_t *len,
	      char why[ASK_WHY_MAX]);

/** parse_number() - false: @word is no number in [@min, @max], in base @base. */
bool parse_number(const char *word, int base, long min, long max, long *n);

/** parse_pid() - false: @word is no process id. */
bool parse_pid(const char *word, long *pid);

/** run_main() - nopin run. argv[0] is "run". Return: exit status, on failure. */
int run_main(int argc, char **argv);

/** stat_main() - nopin stat. argv[0] is "stat". Return: exit status. */
int stat_main(int argc, char **argv);

/** suspend_main() - nopin suspend, move, resume: argv[0]. Return: exit status. */
int suspend_main(int argc, char **argv);

/** trace_main() - nopin trace. argv[0] is "trace". Return: exit status. */
int trace_main(int argc, char **argv);

#endif
