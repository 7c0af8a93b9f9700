/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* account.c: names of what is accounted of page faults, and sums. */
#include "base/account.h"
#include "base/check.h"
#include "base/strategy.h"

const struct account_info account_info[ACCT_NUM] = {
#define ACCOUNT(name, unit, help) {#name, unit, help},
#include "base/account.def"
#undef ACCOUNT
};

void hist_note(struct hist *h, uint64_t ns)
{
	h->count++;
	h->sum_ns += ns;
	h->max_ns = MAX(h->max_ns, ns);
	h->bucket[hist_bucket(ns)]++;
}

static void hist_add(struct hist *to, const struct hist *from)
{
	to->count += from->count;
	to->sum_ns += from->sum_ns;
	to->max_ns = MAX(to->max_ns, from->max_ns);
	for (int i = 0; i < HIST_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

void account_add(struct account *to, const struct account *from)
{
	for (int i = 0; i < ACCT_NUM; i++)
		to->n[i] += from->n[i];
	for (int i = 0; i < STRATEGY_NUM; i++)
		to->strategy[i] += from->strategy[i];
	hist_add(&to->service, &from->service);
	hist_add(&to->delay, &from->delay);
}
