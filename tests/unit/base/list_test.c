/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* list_test.c: order, removal, and removal twice. */
#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct item {
	int n;
	struct list link;
};

/* The numbers on @head as decimal digits, both ways round. */
static void check_list(struct list *head, const char *digits)
{
	size_t i = 0, n = strlen(digits);

	list_for_each(pos, head) {
		assert_true(i < n);
		assert_int_equal(list_entry(pos, struct item, link)->n,
				 digits[i++] - '0');
	}
	assert_int_equal(i, n);
	for (struct list *pos = head->prev; pos != head; pos = pos->prev)
		assert_int_equal(list_entry(pos, struct item, link)->n,
				 digits[--i] - '0');
	assert_int_equal(i, 0);
	assert_int_equal(list_empty(head), n == 0);
}

static void list__order(void **state)
{
	struct item a = {.n = 1}, b = {.n = 2}, c = {.n = 3};
	struct list head;

	(void)state;
	list_init(&head);
	check_list(&head, "");
	list_add_tail(&head, &a.link);
	list_add_tail(&head, &b.link);
	check_list(&head, "12");
	list_insert_after(&head, &c.link);
	check_list(&head, "312");
	list_del(&a.link);
	check_list(&head, "32");
	list_insert_after(&b.link, &a.link);
	check_list(&head, "321");
}

static void list_del__twice(void **state)
{
	struct item a = {.n = 1}, b = {.n = 2};
	struct list head;

	(void)state;
	list_init(&head);
	list_add_tail(&head, &a.link);
	list_add_tail(&head, &b.link);
	list_del(&a.link);
	assert_true(list_empty(&a.link));
	list_del(&a.link);
	check_list(&head, "2");
	list_del(&b.link);
	check_list(&head, "");
	list_add_tail(&head, &a.link);
	check_list(&head, "1");
}

static void list_for_each_safe__deletes_all(void **state)
{
	struct item items[5];
	struct list head;

	(void)state;
	list_init(&head);
	for (int i = 0; i < 5; i++) {
		items[i].n = i;
		list_add_tail(&head, &items[i].link);
	}
	list_for_each_safe(pos, tmp, &head) {
		if (list_entry(pos, struct item, link)->n % 2)
			list_del(pos);
	}
	check_list(&head, "024");
	list_for_each_safe(pos, tmp, &head)
		list_del(pos);
	check_list(&head, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list__order),
		cmocka_unit_test(list_del__twice),
		cmocka_unit_test(list_for_each_safe__deletes_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
