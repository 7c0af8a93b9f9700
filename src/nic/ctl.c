/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl.c: what nopin(1) may ask a running NIC for, over the control socket
 * (os/ctl.c, which lets our user and root in and nobody else). A request is a
 * line of words, the first of which names a command: one line of the table below
 * for each. Commands run on the background thread, without a lock; what they do
 * has to be short, or to be left to others.
 */
#include "nic/ctl.h"
#include "base/check.h"
#include "base/log.h"
#include "nic/arbiter.h"
#include "nic/busy.h"
#include "nic/device.h"
#include "nic/stat.h"
#include "nic/suspend.h"
#include "nic/text.h"
#include "nic/trace.h"
#include "os/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { CTL_REQUEST_MAX = 1024, CTL_WORDS_MAX = 4 };

/**
 * struct ctl_command
 * @args_max:	words that may follow the name
 * @run:	@argv[0] is the name. Fills in @a, which is zeroed
 */
struct ctl_command {
	const char *name;
	int args_max;
	void (*run)(struct nic *nic, int argc, char **argv,
		    struct ctl_answer *a);
};

static void run_trace(struct nic *nic, int argc, char **argv,
		      struct ctl_answer *a)
{
	(void)argc;
	(void)argv;
	trace_text(nic, a);
}

static void run_stat(struct nic *nic, int argc, char **argv,
		     struct ctl_answer *a)
{
	(void)argc;
	(void)argv;
	stat_text(nic, a);
}

static void run_host(struct nic *nic, int argc, char **argv,
		     struct ctl_answer *a)
{
	(void)argc;
	(void)argv;
	arbiter_text(nic, a);
}

static const struct ctl_command commands[] = {
	{"host", 0, run_host},	     {"move", 3, ctl_move},
	{"resume", 1, ctl_resume},   {"stat", 0, run_stat},
	{"suspend", 2, ctl_suspend}, {"trace", 0, run_trace},
};

static const struct ctl_command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

/* Cut @line into words; the last that there may be, the name of a file, is all of
 * the rest. Return: how many, or -1: that is no request. */
static int split(char *line, size_t len, char *argv[CTL_WORDS_MAX])
{
	bool in_word = false;
	int n = 0;

	for (size_t i = 0; i < len; i++) {
		const uint8_t c = (uint8_t)line[i];

		if (c < ' ' || c == 0x7f || (c > 0x7f && n < CTL_WORDS_MAX))
			return -1;
		if (in_word && n == CTL_WORDS_MAX)
			continue;
		if (c == ' ') {
			line[i] = '\0';
			in_word = false;
			continue;
		}
		if (!in_word)
			argv[n++] = &line[i];
		in_word = true;
	}
	return n ? n : -1;
}

static void say_commands(struct ctl_answer *a, const char *what)
{
	size_t n = (size_t)snprintf(a->error, sizeof(a->error),
				    "no command '%.40s'; there are:", what);

	for (size_t i = 0; i < ARRAY_SIZE(commands) && n < sizeof(a->error);
	     i++)
		n += (size_t)snprintf(a->error + n, sizeof(a->error) - n, " %s",
				      commands[i].name);
}

void ctl_request(struct nic *nic, const char *req, size_t len,
		 struct ctl_answer *a)
{
	char line[CTL_REQUEST_MAX + 1], *argv[CTL_WORDS_MAX];
	const struct ctl_command *c;
	int argc = -1;

	*a = (struct ctl_answer){.text = NULL};
	if (len < sizeof(line)) {
		memcpy(line, req, len);
		line[len] = '\0';
		argc = split(line, len, argv);
	}
	if (argc < 0) {
		snprintf(a->error, sizeof(a->error), "that is no request");
		return;
	}
	c = find_command(argv[0]);
	if (!c) {
		say_commands(a, argv[0]);
		return;
	}
	if (argc - 1 > c->args_max) {
		snprintf(a->error, sizeof(a->error), "%s takes %d arguments",
			 c->name, c->args_max);
		return;
	}
	c->run(nic, argc, argv, a);
	if (!a->text && !a->error[0])
		snprintf(a->error, sizeof(a->error), "no memory");
}

void ctl_serve(struct nic *nic)
{
	char req[CTL_REQUEST_MAX];
	int len = os_ctl_take(nic->os, req, sizeof(req)), err;
	struct ctl_answer a;

	if (len <= 0)
		return;
	/* A command may take longer than a step. */
	busy_call(nic);
	ctl_request(nic, req, (size_t)len, &a);
	err = os_ctl_answer(nic->os, a.error[0] ? a.error : NULL, a.text,
			    a.len);
	busy_mark(nic, false);
	if (err)
		log_debug("nobody got the answer: error %d", -err);
	free(a.text);
}
