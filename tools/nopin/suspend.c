/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend.c: nopin suspend, move and resume: what a host calls that takes memory
 * from below a running program and gives it other memory. The NIC of the program
 * does it; here is only the question.
 */
#include "nopin.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Copying a region takes longer than the questions of others. */
enum { MOVE_PATIENCE_MS = 60 * 1000, REQUEST_MAX = 1024 };

/** struct order - @region: a key, or "all". */
struct order {
	const char *name;
	long pid;
	const char *region, *expect, *to, *arg;
};

static bool is_move(const struct order *o)
{
	return strcmp(o->name, "move") == 0;
}

static bool is_suspend(const struct order *o)
{
	return strcmp(o->name, "suspend") == 0;
}

/* As the NIC reads it: no sign, no space. */
static bool is_number(const char *word, int base, long min, long max)
{
	long n;

	return isdigit((unsigned char)word[0]) &&
	       parse_number(word, base, min, max, &n);
}

static bool take_to(struct order *o, const char *to, const char *arg)
{
	if (!is_move(o) || o->to)
		return false;
	o->to = to;
	o->arg = arg;
	return true;
}

static bool take_option(struct order *o, int c)
{
	switch (c) {
	case 'r':
	case 'a':
		if (o->region || (c == 'a' && is_move(o)))
			return false;
		o->region = c == 'a' ? "all" : optarg;
		return c == 'a' || is_number(optarg, 0, 1, UINT32_MAX);
	case 'e':
		o->expect = optarg;
		return is_suspend(o) && is_number(optarg, 10, 0, UINT32_MAX);
	case 'c':
		return take_to(o, "recreate", "");
	case 'f':
		return take_to(o, "file", optarg);
	case 'n':
		return is_number(optarg, 10, 0, INT_MAX) &&
		       take_to(o, "node", optarg);
	default:
		return false;
	}
}

static bool parse(struct order *o, int argc, char **argv)
{
	static const struct option options[] = {
		{"region", required_argument, NULL, 'r'},
		{"all", no_argument, NULL, 'a'},
		{"expect", required_argument, NULL, 'e'},
		{"recreate", no_argument, NULL, 'c'},
		{"to-file", required_argument, NULL, 'f'},
		{"to-node", required_argument, NULL, 'n'},
		{0},
	};
	int c;

	optind = 0; /* begins anew, behind the subcommand */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(o, c))
			return false;
	if (optind + 1 != argc || !parse_pid(argv[optind], &o->pid))
		return false;
	if (is_move(o))
		return o->region && o->to;
	if (!o->region)
		o->region = "all";
	return true;
}

/* A file is named as the program would name it: from the root. false: too long. */
static bool write_request(const struct order *o, char req[REQUEST_MAX])
{
	const bool relative = o->to && strcmp(o->to, "file") == 0 &&
			      o->arg[0] != '/';
	char here[PATH_MAX] = "";
	int n;

	if (relative && !getcwd(here, sizeof(here)))
		return false;
	if (is_move(o))
		n = snprintf(req, REQUEST_MAX, "move %s %s %s%s%s", o->region,
			     o->to, here, relative ? "/" : "", o->arg);
	else
		n = snprintf(req, REQUEST_MAX, "%s %s %s", o->name, o->region,
			     o->expect ? o->expect : "");
	return n < REQUEST_MAX;
}

int suspend_main(int argc, char **argv)
{
	struct order o = {.name = argv[0]};
	char why[ASK_WHY_MAX], req[REQUEST_MAX], *text;
	size_t len;

	if (!parse(&o, argc, argv))
		return complain_usage(argv[0]);
	if (!write_request(&o, req)) {
		complain("%s: that is too long", o.name);
		return EXIT_USAGE;
	}
	text = ask_nic(o.pid, req,
		       is_move(&o) ? MOVE_PATIENCE_MS : ASK_PATIENCE_MS, &len,
		       why);
	if (!text) {
		complain("%s: process %ld: %s", o.name, o.pid, why);
		return EXIT_BROKEN;
	}
	fputs(text, stdout);
	free(text);
	return fflush(stdout) == 0 ? 0 : EXIT_BROKEN;
}
