/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c: nopin(1): finds the subcommand. Each has its own file. */
#include "nopin.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *usage, *what;
} commands[] = {
	{"move", suspend_main, "move PID --region R_KEY (--recreate | ...)",
	 "give a region other memory"},
	{"resume", suspend_main, "resume PID [--region R_KEY | --all]",
	 "let its peers use it again"},
	{"run", run_main, "run [--] PROGRAM [ARGUMENT...]",
	 "start any verbs program on nopin"},
	{"stat", stat_main, "stat [PID | --host] [--json | ...]",
	 "show what page faults cost"},
	{"suspend", suspend_main, "suspend PID [--region R_KEY | --all]",
	 "hold up who uses regions of a program"},
	{"trace", trace_main, "trace PID",
	 "print what the NIC of a program did last"},
};

enum { NUM_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

void complain(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("nopin: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

static void usage(FILE *out)
{
	fputs("usage:\n", out);
	for (int i = 0; i < NUM_COMMANDS; i++)
		fprintf(out, "  nopin %-44s %s\n", commands[i].usage,
			commands[i].what);
	fprintf(out, "  nopin %-44s %s\n", "--help | --version", "");
	fputs("The environment of the NIC is described in nopin(7).\n", out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	int c;

	/* "+": what follows the subcommand is not ours to look at */
	while ((c = getopt_long(argc, argv, "+hV", options, NULL)) != -1) {
		switch (c) {
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			puts("nopin " NOPIN_VERSION);
			return 0;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc) {
		usage(stderr);
		return EXIT_USAGE;
	}
	for (int i = 0; i < NUM_COMMANDS; i++)
		if (strcmp(argv[optind], commands[i].name) == 0)
			return commands[i].main(argc - optind, argv + optind);
	complain("no command '%s'", argv[optind]);
	usage(stderr);
	return EXIT_USAGE;
}
