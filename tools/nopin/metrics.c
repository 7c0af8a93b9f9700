/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* metrics.c: nopin stat --openmetrics: text for a monitoring system (OpenMetrics
 * 1.0). The samples of a family stand together, whatever process they are of.
 */
#include "stat.h"

#include "base/account.h"
#include "base/counters.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct item {
	const char *name, *help;
};

static const struct item counters[] = {
#define COUNTER(name, unit, help) {#name, help " (" unit ")"},
#include "base/counters.def"
#undef COUNTER
};

static const struct item items[] = {
#define ACCOUNT(name, unit, help) {#name, help " (" unit ")"},
#include "base/account.def"
#undef ACCOUNT
};

enum { NUM_COUNTERS = CNT_NUM, NUM_ITEMS = ACCT_NUM };

/* Whom an account is of. @list: in what the NIC said; @id: names one of them. */
static const struct scope {
	const char *name, *list, *label, *id;
} scopes[] = {
	{"nic", NULL, NULL, NULL},
	{"qp", "qps", "qp", "qpn"},
	{"mr", "regions", "mr", "key"},
};

static void family(const char *prefix, const char *name, const char *type,
		   const char *help)
{
	printf("# TYPE nopin_%s%s %s\n# HELP nopin_%s%s %s\n", prefix, name,
	       type, prefix, name, help);
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

static void print_counters(const struct told *t, size_t n)
{
	for (int i = 0; i < NUM_COUNTERS; i++) {
		const char *name = counters[i].name;
		const bool most = ends_with(name, "_max");

		family("", name, most ? "gauge" : "counter", counters[i].help);
		for (size_t k = 0; k < n; k++)
			printf("nopin_%s%s{pid=\"%ld\"} %" PRIu64 "\n", name,
			       most ? "" : "_total", t[k].pid,
			       stat_number(
				       json_object_get(
					       json_object_get(t[k].all, "nic"),
					       "counters"),
				       name));
	}
}

/* --- accounts -------------------------------------------------------------- */

/** struct who - One account and the labels of its samples. */
struct who {
	char labels[96];
	const json_t *account;
};

typedef void sample_fn(const char *family, const struct who *w,
		       const char *name);

static void label(struct who *w, const struct scope *s, long pid,
		  const json_t *one)
{
	const json_t *id = s->id ? json_object_get(one, s->id) : NULL;
	int n = snprintf(w->labels, sizeof(w->labels), "pid=\"%ld\"", pid);

	if (json_is_string(id))
		snprintf(w->labels + n, sizeof(w->labels) - (size_t)n,
			 ",%s=\"%.24s\"", s->label, json_string_value(id));
	else if (id)
		snprintf(w->labels + n, sizeof(w->labels) - (size_t)n,
			 ",%s=\"0x%06" PRIx64 "\"", s->label,
			 (uint64_t)json_integer_value(id));
}

/* One family: @fn for every account of @s. */
static void for_all(const struct told *t, size_t n, const struct scope *s,
		    const char *name, const char *type, const char *help,
		    sample_fn *fn)
{
	char prefix[16], full[128];

	snprintf(prefix, sizeof(prefix), "%s_", s->name);
	snprintf(full, sizeof(full), "nopin_%s%s", prefix, name);
	family(prefix, name, type, help);
	for (size_t k = 0; k < n; k++) {
		const json_t *list, *one;
		struct who w = {.account = NULL};
		size_t i;

		if (!s->list) {
			one = json_object_get(t[k].all, "nic");
			label(&w, s, t[k].pid, one);
			w.account = json_object_get(one, "account");
			fn(full, &w, name);
			continue;
		}
		list = json_object_get(t[k].all, s->list);
		for (i = 0; (one = json_array_get(list, i)); i++) {
			label(&w, s, t[k].pid, one);
			w.account = json_object_get(one, "account");
			fn(full, &w, name);
		}
	}
}

static void sample_item(const char *family_name, const struct who *w,
			const char *name)
{
	printf("%s_total{%s} %" PRIu64 "\n", family_name, w->labels,
	       stat_number(w->account, name));
}

static void sample_answers(const char *family_name, const struct who *w,
			   const char *name)
{
	json_t *all = json_object_get(w->account, "strategies");

	(void)name;
	for (void *it = json_object_iter(all); it;
	     it = json_object_iter_next(all, it))
		printf("%s_total{%s,strategy=\"%.24s\"} %" PRIu64 "\n",
		       family_name, w->labels, json_object_iter_key(it),
		       (uint64_t)json_integer_value(
			       json_object_iter_value(it)));
}

static void sample_hist(const char *family_name, const struct who *w,
			const char *name)
{
	const json_t *h = json_object_get(
		w->account, strstr(name, "service") ? "service" : "delay");
	const json_t *buckets = json_object_get(h, "buckets");
	uint64_t sum = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		sum += (uint64_t)json_integer_value(json_array_get(buckets, i));
		if (i < HIST_BUCKETS - 1)
			printf("%s_bucket{%s,le=\"%.9g\"} %" PRIu64 "\n",
			       family_name, w->labels,
			       (double)hist_le(i) * 1e-9, sum);
		else
			printf("%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n",
			       family_name, w->labels, sum);
	}
	printf("%s_count{%s} %" PRIu64 "\n%s_sum{%s} %.9f\n", family_name,
	       w->labels, sum, family_name, w->labels,
	       (double)stat_number(h, "sum_ns") * 1e-9);
}

void metrics_print(const struct told *t, size_t n)
{
	print_counters(t, n);
	for (size_t s = 0; s < sizeof(scopes) / sizeof(scopes[0]); s++) {
		for (int i = 0; i < NUM_ITEMS; i++)
			for_all(t, n, &scopes[s], items[i].name, "counter",
				items[i].help, sample_item);
		for_all(t, n, &scopes[s], "answers", "counter",
			"missing pages answered, by strategy", sample_answers);
		for_all(t, n, &scopes[s], "fault_service_seconds", "histogram",
			"what pagers took for a fault", sample_hist);
		for_all(t, n, &scopes[s], "fault_delay_seconds", "histogram",
			"from the miss until the work went on", sample_hist);
	}
	puts("# EOF");
}
