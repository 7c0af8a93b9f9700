/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stat.c: nopin stat: what page faults cost a running program, or a line for
 * each program of ours that has a NIC. The NICs tell in JSON (ask.c); here it is
 * made readable.
 */
#include "stat.h"

#include "nopin.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PROCESSES_MAX = 4096, LIST_PATIENCE_MS = 1000 };

enum form { FORM_TEXT, FORM_JSON, FORM_METRICS, FORM_WATCH };

static struct {
	enum form form;
	double every_s;
	long pid; /* 0: all */
	bool host;
} args = {.every_s = 1};

uint64_t stat_number(const json_t *o, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(o, name));
}

static const char *word(const json_t *o, const char *name)
{
	const char *value = json_string_value(json_object_get(o, name));

	return value ? value : "?";
}

/* --- whom to ask ------------------------------------------------------------- */

static void read_name(struct told *t)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/comm", t->pid);
	f = fopen(path, "re");
	if (!f || !fgets(t->name, sizeof(t->name), f))
		snprintf(t->name, sizeof(t->name), "?");
	t->name[strcspn(t->name, "\n")] = '\0';
	if (f)
		fclose(f);
}

/* Return: whether it told; else @why. */
static bool ask(struct told *t, long pid, int patience_ms, char why[])
{
	json_error_t err;
	size_t len;
	char *text = ask_nic(pid, "stat", patience_ms, &len, why);

	*t = (struct told){.pid = pid};
	if (!text)
		return false;
	t->all = json_loadb(text, len, 0, &err);
	free(text);
	if (!t->all)
		snprintf(why, ASK_WHY_MAX, "cannot read its answer: %.100s",
			 err.text);
	read_name(t);
	return t->all != NULL;
}

static int by_number(const void *a, const void *b)
{
	const long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

/* The processes that listen, in this network namespace. Return: how many. */
static size_t find_processes(long pids[PROCESSES_MAX])
{
	static const char name[] = " @nopin/ctl/";
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512];
	size_t n = 0, k = 0;

	while (f && n < PROCESSES_MAX && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, name);

		line[strcspn(line, "\n")] = '\0';
		if (at && parse_pid(at + strlen(name), &pids[n]))
			n++;
	}
	if (f)
		fclose(f);
	qsort(pids, n, sizeof(*pids), by_number);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || pids[i] != pids[i - 1])
			pids[k++] = pids[i];
	return k;
}

/* All that tell, into a new array. Others' are passed over. */
static size_t ask_all(struct told **out)
{
	static long pids[PROCESSES_MAX];
	const size_t all = find_processes(pids);
	char why[ASK_WHY_MAX];
	size_t n = 0;

	*out = calloc(all + 1, sizeof(**out));
	for (size_t i = 0; *out && i < all; i++)
		n += ask(&(*out)[n], pids[i], LIST_PATIENCE_MS, why);
	return n;
}

static void forget(struct told *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_decref(t[i].all);
	free(t);
}

/* --- readable ---------------------------------------------------------------- */

/* @out: e.g. "12.5us". */
static const char *time_text(char out[16], uint64_t ns)
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if ((double)ns >= units[i].ns) {
			snprintf(out, 16, "%.3g%s", (double)ns / units[i].ns,
				 units[i].unit);
			return out;
		}
	snprintf(out, 16, "%" PRIu64 "ns", ns);
	return out;
}

/* At most so long were @share of the times in @h; its max if that is less. */
static uint64_t quantile(const json_t *all, const json_t *h, double share)
{
	const json_t *le = json_object_get(all, "bucket_le_ns");
	const json_t *buckets = json_object_get(h, "buckets"), *b;
	const uint64_t most = stat_number(h, "max_ns");
	double want = share * (double)stat_number(h, "count");
	uint64_t bound;
	size_t i;

	for (i = 0; (b = json_array_get(buckets, i)); i++) {
		want -= (double)json_integer_value(b);
		if (want > 0 || i + 1 >= json_array_size(buckets))
			continue;
		bound = (uint64_t)json_integer_value(json_array_get(le, i));
		return bound < most ? bound : most;
	}
	return most;
}

static void print_times(const json_t *all, const json_t *h)
{
	char p50[16], p99[16], most[16];

	if (stat_number(h, "count"))
		printf(" %8s %8s %8s", time_text(p50, quantile(all, h, 0.5)),
		       time_text(p99, quantile(all, h, 0.99)),
		       time_text(most, stat_number(h, "max_ns")));
	else
		printf(" %8s %8s %8s", "-", "-", "-");
}

static void print_head(void)
{
	printf("%-22s %9s %9s %9s %7s %9s %8s %8s %8s %8s %8s %8s  %s\n", "",
	       "faults", "minor", "major", "access", "cheap",
	       "service<=", "99%<=", "max", "delay<=", "99%<=", "max",
	       "answered by");
}

static void print_account(const json_t *all, const char *who, const json_t *a)
{
	json_t *strategies = json_object_get(a, "strategies");

	printf("%-22s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %7" PRIu64
	       " %9" PRIu64,
	       who, stat_number(a, "faults"), stat_number(a, "minor"),
	       stat_number(a, "major"), stat_number(a, "access"),
	       stat_number(a, "cheap"));
	print_times(all, json_object_get(a, "service"));
	print_times(all, json_object_get(a, "delay"));
	printf(" ");
	for (void *it = json_object_iter(strategies); it;
	     it = json_object_iter_next(strategies, it)) {
		const json_int_t n =
			json_integer_value(json_object_iter_value(it));

		if (n)
			printf(" %s %" PRIu64, json_object_iter_key(it),
			       (uint64_t)n);
	}
	putchar('\n');
}

static void print_lists(const json_t *all)
{
	const json_t *list, *one;
	char who[64];
	size_t i;

	list = json_object_get(all, "qps");
	for (i = 0; (one = json_array_get(list, i)); i++) {
		snprintf(who, sizeof(who), "QP 0x%06" PRIx64 " %s",
			 stat_number(one, "qpn"), word(one, "state"));
		print_account(all, who, json_object_get(one, "account"));
	}
	list = json_object_get(all, "regions");
	for (i = 0; (one = json_array_get(list, i)); i++) {
		snprintf(who, sizeof(who), "region %.24s", word(one, "key"));
		print_account(all, who, json_object_get(one, "account"));
	}
	if (stat_number(all, "qps_total") >
		    json_array_size(json_object_get(all, "qps")) ||
	    stat_number(all, "regions_total") >
		    json_array_size(json_object_get(all, "regions")))
		printf("(of %" PRIu64 " QPs and %" PRIu64
		       " regions; not all are listed)\n",
		       stat_number(all, "qps_total"),
		       stat_number(all, "regions_total"));
}

static void print_one(const struct told *t)
{
	const json_t *nic = json_object_get(t->all, "nic");
	const json_t *a = json_object_get(nic, "account");

	printf("process %ld (%s): %" PRIu64 " bytes redirected, %" PRIu64
	       " copied, %" PRIu64 " faults merged, %" PRIu64 " table misses,\n"
	       "%" PRIu64 " of %" PRIu64 " pages fetched ahead were used\n",
	       t->pid, t->name, stat_number(a, "redirected_bytes"),
	       stat_number(a, "copied_bytes"), stat_number(a, "merged"),
	       stat_number(a, "table_misses"), stat_number(a, "prefetch_hits"),
	       stat_number(a, "prefetch_pages"));
	print_head();
	print_account(t->all, "NIC", a);
	print_lists(t->all);
}

static void print_list(const struct told *t, size_t n)
{
	printf("%7s %-16s %5s %7s %9s %9s %9s\n", "PID", "PROGRAM", "QPS",
	       "REGIONS", "FAULTS", "MAJOR", "DELAY99");
	for (size_t i = 0; i < n; i++) {
		const json_t *a = json_object_get(
			json_object_get(t[i].all, "nic"), "account");
		char p99[16];

		printf("%7ld %-16s %5" PRIu64 " %7" PRIu64 " %9" PRIu64
		       " %9" PRIu64 " %9s\n",
		       t[i].pid, t[i].name, stat_number(t[i].all, "qps_total"),
		       stat_number(t[i].all, "regions_total"),
		       stat_number(a, "faults"), stat_number(a, "major"),
		       time_text(p99,
				 quantile(t[i].all, json_object_get(a, "delay"),
					  0.99)));
	}
}

/* --- rates --------------------------------------------------------------------- */

static uint64_t counter(const struct told *t, const char *name)
{
	return stat_number(
		json_object_get(json_object_get(t->all, "nic"), "counters"),
		name);
}

static void print_rates(const struct told *t, const struct told *before)
{
	static const struct {
		const char *name;
		double unit;
	} rates[] = {{"faults", 1},
		     {"tickets", 1},
		     {"fault_redirect", 1},
		     {"fault_rnr", 1},
		     {"redirected_bytes", 1e6},
		     {"rx_bytes", 1e6},
		     {"tx_bytes", 1e6}};
	const double s = (double)(stat_number(t->all, "time_ns") -
				  stat_number(before->all, "time_ns")) *
			 1e-9;

	printf("%7ld %-16s", t->pid, t->name);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		printf(" %10.1f",
		       s > 0 ? (double)(counter(t, rates[i].name) -
					counter(before, rates[i].name)) /
				       rates[i].unit / s
			     : 0.0);
	putchar('\n');
}

static const struct told *find(const struct told *t, size_t n, long pid)
{
	for (size_t i = 0; i < n; i++)
		if (t[i].pid == pid)
			return &t[i];
	return NULL;
}

/* What is to be told of: all, or the one. Return: how many; 0 also on failure. */
static size_t collect(struct told **out)
{
	char why[ASK_WHY_MAX];

	if (!args.pid)
		return ask_all(out);
	*out = calloc(1, sizeof(**out));
	if (*out && ask(*out, args.pid, ASK_PATIENCE_MS, why))
		return 1;
	complain("stat: process %ld: %s", args.pid, *out ? why : "no memory");
	free(*out);
	*out = NULL;
	return 0;
}

static int watch(void)
{
	const struct timespec pause = {
		.tv_sec = (time_t)args.every_s,
		.tv_nsec =
			(long)((args.every_s - (double)(time_t)args.every_s) *
			       1e9)};
	struct told *now, *before = NULL;
	size_t n, was = 0;

	for (;;) {
		n = collect(&now);
		if (args.pid && !n) {
			forget(now, n);
			forget(before, was);
			return was ? 0 : EXIT_BROKEN;
		}
		if (before)
			printf("%7s %-16s %10s %10s %10s %10s %10s %10s %10s\n",
			       "PID", "PER SECOND", "faults", "tickets",
			       "redirects", "RNRs", "MB redir", "MB in",
			       "MB out");
		for (size_t i = 0; i < n; i++)
			if (find(before, was, now[i].pid))
				print_rates(&now[i],
					    find(before, was, now[i].pid));
		forget(before, was);
		if (fflush(stdout) != 0) {
			forget(now, n);
			return EXIT_BROKEN;
		}
		before = now;
		was = n;
		nanosleep(&pause, NULL);
	}
}

/* --- */

static void print_json(const struct told *t, size_t n)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++) {
		json_object_set_new(t[i].all, "pid", json_integer(t[i].pid));
		json_object_set_new(t[i].all, "program",
				    json_string(t[i].name));
		json_array_append(all, t[i].all);
	}
	json_dumpf(args.pid ? json_array_get(all, 0) : all, stdout,
		   JSON_COMPACT);
	putchar('\n');
	json_decref(all);
}

/* --- of the host ---------------------------------------------------------------- */

/* The process that has the port, as far as it is known. */
static void print_holder(const json_t *p, const char *before, const char *after)
{
	const uint64_t pid = stat_number(p, "pid");

	printf("%s", before);
	if (pid)
		printf("process %" PRIu64, pid);
	else
		printf("a process");
	if (json_object_get(p, "uid"))
		printf(" of user %" PRIu64, stat_number(p, "uid"));
	printf("%s\n", after);
}

/* Whether what standard peers send to this host reaches the process that told. */
static void print_port(const json_t *p)
{
	const char *state = word(p, "state");

	printf("standard peers (UDP port 4791): ");
	if (strcmp(state, "ours") == 0)
		printf("served by a process of yours\n");
	else if (strcmp(state, "served") == 0)
		print_holder(p, "served by ", "");
	else if (strcmp(state, "stranger") == 0)
		print_holder(p, "NOT served, ", " has the port");
	else if (strcmp(state, "refused") == 0)
		print_holder(p, "NOT served, ", " has the port and refuses");
	else if (strcmp(state, "silent") == 0)
		print_holder(p, "NOT served, ",
			     " has the port and does not answer");
	else if (strcmp(state, "taken") == 0)
		printf("NOT served, something else has the port\n");
	else
		printf("none yet\n");
}

static void print_host(const json_t *all)
{
	static const char *const what[] = {"entries", "slots",
					   "pager_ms_per_s"};
	const json_t *list = json_object_get(all, "processes"), *one;
	size_t i;

	printf("%7s %-16s %6s  %-14s %10s %10s %10s %10s\n", "PID", "PROGRAM",
	       "WEIGHT", "OF", "MINIMUM", "DEMAND", "USED", "SHARE");
	for (i = 0; (one = json_array_get(list, i)); i++)
		for (size_t k = 0; k < sizeof(what) / sizeof(what[0]); k++) {
			const json_t *r = json_object_get(one, what[k]);

			if (k == 0)
				printf("%7" PRIu64 " %-16s %6" PRIu64,
				       stat_number(one, "pid"),
				       word(one, "program"),
				       stat_number(one, "weight"));
			else
				printf("%7s %-16s %6s", "", "", "");
			printf("  %-14s %10" PRIu64 " %10" PRIu64 " %10" PRIu64
			       " %10" PRIu64 "\n",
			       what[k], stat_number(r, "minimum"),
			       stat_number(r, "demand"), stat_number(r, "used"),
			       stat_number(r, "share"));
		}
	printf("budget:");
	for (size_t k = 0; k < sizeof(what) / sizeof(what[0]); k++)
		printf(" %" PRIu64 " %s",
		       stat_number(json_object_get(all, "budget"), what[k]),
		       what[k]);
	putchar('\n');
	print_port(json_object_get(all, "port_4791"));
}

/* Any process that shares knows of all of them. */
static json_t *ask_host(void)
{
	static long pids[PROCESSES_MAX];
	const size_t all = find_processes(pids);
	char why[ASK_WHY_MAX];
	json_t *told = NULL;

	for (size_t i = 0; i < all && !told; i++) {
		size_t len;
		char *text = ask_nic(pids[i], "host", LIST_PATIENCE_MS, &len,
				     why);

		if (text)
			told = json_loadb(text, len, 0, NULL);
		free(text);
	}
	if (!told && all)
		complain("stat: process %ld: %s", pids[all - 1], why);
	else if (!told)
		complain("stat: no program of yours runs on nopin here");
	return told;
}

static int host(void)
{
	json_t *all = ask_host();

	if (!all)
		return EXIT_BROKEN;
	if (args.form == FORM_JSON) {
		json_dumpf(all, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		print_host(all);
	}
	json_decref(all);
	return fflush(stdout) == 0 ? 0 : EXIT_BROKEN;
}

static bool parse_seconds(const char *word)
{
	char *end;

	args.every_s = strtod(word, &end);
	return end != word && !*end && args.every_s >= 0.05 &&
	       args.every_s <= 86400;
}

static bool parse(int argc, char **argv)
{
	static const struct option options[] = {
		{"host", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},
		{"openmetrics", no_argument, NULL, 'o'},
		{"watch", optional_argument, NULL, 'w'},
		{0},
	};
	int c;

	optind = 0; /* main() used it */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h') {
			args.host = true;
			continue;
		}
		if (c == '?' || args.form != FORM_TEXT)
			return false;
		args.form = c == 'j'   ? FORM_JSON
			    : c == 'o' ? FORM_METRICS
				       : FORM_WATCH;
		if (c == 'w' && optarg && !parse_seconds(optarg))
			return false;
	}
	if (optind < argc && !parse_pid(argv[optind++], &args.pid))
		return false;
	/* --watch SECONDS, behind the process */
	if (optind < argc && args.form == FORM_WATCH &&
	    parse_seconds(argv[optind]))
		optind++;
	if (args.host &&
	    (args.pid || (args.form != FORM_TEXT && args.form != FORM_JSON)))
		return false;
	return optind == argc;
}

int stat_main(int argc, char **argv)
{
	struct told *t;
	size_t n;

	if (!parse(argc, argv))
		return complain_usage(argv[0]);
	if (args.host)
		return host();
	if (args.form == FORM_WATCH)
		return watch();
	n = collect(&t);
	if (args.pid && !n) {
		forget(t, n);
		return EXIT_BROKEN;
	}
	if (args.form == FORM_JSON)
		print_json(t, n);
	else if (args.form == FORM_METRICS)
		metrics_print(t, n);
	else if (args.pid)
		print_one(t);
	else
		print_list(t, n);
	forget(t, n);
	if (fflush(stdout) == 0)
		return 0;
	complain("stat: %s", strerror(errno));
	return EXIT_BROKEN;
}
