/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nopin.h: what the subcommands of nopin(1) share. */
#ifndef NOPIN_TOOLS_NOPIN_H
#define NOPIN_TOOLS_NOPIN_H

/* What nopin itself exits with; what a program exits with is passed on. */
enum {
	EXIT_USAGE = 2,
	EXIT_BROKEN = 125,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127
};

/** complain() - A line on standard error, with our name before it. */
__attribute__((format(printf, 1, 2))) void complain(const char *fmt, ...);

/** run_main() - nopin run. argv[0] is "run". Return: exit status, on failure. */
int run_main(int argc, char **argv);

/** trace_main() - nopin trace. argv[0] is "trace". Return: exit status. */
int trace_main(int argc, char **argv);

#endif
