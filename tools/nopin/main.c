/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c: nopin(1): finds the subcommand. Each has its own file. */
#include "nopin.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/**
 * struct command - @brief: its usage, for the list of all
 * @usage:	all of it
 * @options:	a line each, or ""
 */
static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *brief, *what, *usage, *options;
} commands[] = {
	{"move", suspend_main, "move PID --region R_KEY (--recreate | ...)",
	 "give a region other memory",
	 "move PID --region R_KEY (--recreate | --to-file FILE | --to-node N)",
	 "  --region R_KEY   which region, by its key\n"
	 "  --recreate       new anonymous memory with the same content\n"
	 "  --to-file FILE   a shared mapping of FILE, which is made\n"
	 "  --to-node N      pages of the NUMA node N\n"},
	{"resume", suspend_main, "resume PID [--region R_KEY | --all]",
	 "let its peers use it again", "resume PID [--region R_KEY | --all]",
	 "  --region R_KEY   which region, by its key\n"
	 "  --all            all that are suspended; also without an option\n"},
	{"run", run_main, "run [--] PROGRAM [ARGUMENT...]",
	 "start any verbs program on nopin", "run [--] PROGRAM [ARGUMENT...]",
	 ""},
	{"stat", stat_main, "stat [PID | --host] [--json | ...]",
	 "show what page faults cost",
	 "stat [PID] [--json | --openmetrics | --watch[=SECONDS]], or "
	 "nopin stat --host [--json]",
	 "  --host             what all programs of yours on this host share\n"
	 "  --json             as JSON\n"
	 "  --openmetrics      for a monitoring system\n"
	 "  --watch[=SECONDS]  again and again, what came in between\n"},
	{"suspend", suspend_main, "suspend PID [--region R_KEY | --all]",
	 "hold up who uses regions of a program",
	 "suspend PID [--region R_KEY | --all] [--expect MS]",
	 "  --region R_KEY   which region, by its key\n"
	 "  --all            all that can be; also without an option\n"
	 "  --expect MS      tell peers for how long, in milliseconds\n"},
	{"trace", trace_main, "trace PID",
	 "print what the NIC of a program did last", "trace PID", ""},
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

static const struct command *command_find(const char *name)
{
	for (int i = 0; i < NUM_COMMANDS; i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

int complain_usage(const char *name)
{
	complain("usage: nopin %s", command_find(name)->usage);
	return EXIT_USAGE;
}

static int help(const struct command *c)
{
	printf("usage: nopin %s\n%s\n%s", c->usage, c->what, c->options);
	return 0;
}

static bool asks_for_help(int argc, char **argv)
{
	return argc > 1 &&
	       (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

static void usage(FILE *out)
{
	fputs("usage:\n", out);
	for (int i = 0; i < NUM_COMMANDS; i++)
		fprintf(out, "  nopin %-44s %s\n", commands[i].brief,
			commands[i].what);
	fprintf(out, "  nopin %-44s %s\n", "[COMMAND] --help",
		"say what options there are");
	fputs("  nopin --version\n", out);
	fputs("The environment of the NIC is described in nopin(7).\n", out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	const struct command *command;
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
	argc -= optind;
	argv += optind;
	command = command_find(argv[0]);
	if (command)
		return asks_for_help(argc, argv) ? help(command)
						 : command->main(argc, argv);
	complain("no command '%s'", argv[0]);
	usage(stderr);
	return EXIT_USAGE;
}
