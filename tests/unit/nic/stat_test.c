/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stat_test.c: what is told of a NIC, read by another's JSON parser. */
#include "mem/account.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "nic/ctl.h"
#include "nic/stat.h"
#include "nic/text.h"
#include "steps.h"

#include <jansson.h>

static json_t *told(void)
{
	struct ctl_answer a = {.text = NULL};
	json_error_t err;
	json_t *all;

	stat_text(side[0].nic, &a);
	assert_non_null(a.text);
	assert_int_equal(strlen(a.text), a.len);
	all = json_loadb(a.text, a.len, 0, &err);
	if (!all)
		fail_msg("%s at %d", err.text, err.position);
	free(a.text);
	return all;
}

static uint64_t number(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	assert_true(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

static void check_hist(const json_t *o, const struct hist *h)
{
	const json_t *buckets = json_object_get(o, "buckets");

	assert_int_equal(number(o, "count"), h->count);
	assert_int_equal(number(o, "sum_ns"), h->sum_ns);
	assert_int_equal(number(o, "max_ns"), h->max_ns);
	assert_int_equal(json_array_size(buckets), HIST_BUCKETS);
	for (size_t i = 0; i < HIST_BUCKETS; i++)
		assert_int_equal(json_integer_value(json_array_get(buckets, i)),
				 h->bucket[i]);
}

static void check_account(const json_t *o, const struct account *a)
{
	const json_t *strategies = json_object_get(o, "strategies");

	for (int i = 0; i < ACCT_NUM; i++)
		assert_int_equal(number(o, account_info[i].name), a->n[i]);
	assert_int_equal(number(strategies, "park"),
			 a->strategy[STRATEGY_PARK]);
	check_hist(json_object_get(o, "service"), &a->service);
	check_hist(json_object_get(o, "delay"), &a->delay);
}

static void stat_text__what_was_met(void **state)
{
	const struct account *qp;
	const json_t *list, *nic;
	char key[16];
	json_t *all;

	(void)state;
	know_pages(&side[0]);
	know_pages(&side[1]);
	spt_unmap(side[0].nic->mem, page_of((uintptr_t)side[0].buf), 1);
	post(&side[0], WR_WRITE, 64);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	all = told();
	nic = json_object_get(all, "nic");
	assert_int_equal(number(json_object_get(nic, "counters"), "faults"),
			 side[0].nic->cnt.v[CNT_faults]);
	qp = side[0].qp->qp.account;
	assert_true(qp->n[ACCT_faults] > 0);
	check_account(json_object_get(nic, "account"), qp);

	list = json_object_get(all, "qps");
	assert_int_equal(json_array_size(list), 1);
	assert_int_equal(number(all, "qps_total"), 1);
	assert_int_equal(number(json_array_get(list, 0), "qpn"), side[0].qpn);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(list, 0), "state")),
			    "RTS");
	check_account(json_object_get(json_array_get(list, 0), "account"), qp);

	list = json_object_get(all, "regions");
	assert_int_equal(json_array_size(list), 1);
	snprintf(key, sizeof(key), "0x%08x", side[0].key);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(list, 0), "key")),
			    key);
	json_decref(all);
}

/* Of very many regions those are told that met faults; all are counted. */
static void stat_text__many_regions(void **state)
{
	/* faults: as many as no region meets by itself */
	enum { MANY = 1500, FAULTS = 7777777 };
	static uint32_t key[MANY];
	struct mr_attr mr = {.pd = side[0].pd,
			     .length = UINT64_MAX,
			     .access = ACCESS_LOCAL_WRITE};
	struct nic *nic = side[0].nic;
	uint64_t faults = 0;
	const json_t *list, *one;
	json_t *all;
	size_t i;

	(void)state;
	for (i = 0; i < MANY; i++)
		assert_int_equal(nic_mr_reg(nic, &mr, &key[i]), 0);
	mem_account(nic->mem, NULL, key[MANY - 1], ACCT_faults, FAULTS);
	all = told();
	list = json_object_get(all, "regions");
	assert_int_equal(number(all, "regions_total"), MANY + 1);
	assert_int_equal(json_array_size(list), 1024);
	for (i = 0; (one = json_array_get(list, i)); i++)
		faults += number(json_object_get(one, "account"), "faults") ==
			  FAULTS;
	assert_int_equal(faults, 1);
	json_decref(all);
	for (i = 0; i < MANY; i++)
		assert_int_equal(nic_mr_dereg(nic, key[i]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stat_text__what_was_met, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(stat_text__many_regions, setup,
						sides_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
