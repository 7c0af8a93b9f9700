/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mem_test.c: opening with bounds that make sense, and with others. */
#include "base/check.h"
#include "fixture.h"
#include "mem/cheap.h"
#include "mem/mem.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/tickets.h"
#include "mem/use.h"

static void mem_open__bounds(void **state)
{
	static const struct {
		uint32_t entries, slots, tickets;
		int ret;
	} cases[] = {
		{16, 1, 1, 0},
		{17, 1, 1, 0},
		{1 << 20, 8, TICKETS_MAX, 0},
		{15, 1, 1, -EINVAL},
		{0, 1, 1, -EINVAL},
		{16, 0, 1, -EINVAL},
		{16, UINT32_MAX, 1, -EINVAL},
		{16, 1, 0, -EINVAL},
		{16, 1, TICKETS_MAX + 1, -EINVAL},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		static struct counters cnt;
		static uint8_t slot[8 * SLOT_BYTES];
		struct mem_config cfg = {
			.entries = cases[i].entries,
			.slots = cases[i].slots,
			.slot_base = slot,
			.tickets = cases[i].tickets,
			.pagers = 1,
			.counters = &cnt,
		};
		struct mem *m = NULL;

		assert_int_equal(mem_open(&m, &cfg), cases[i].ret);
		assert_int_equal(m != NULL, cases[i].ret == 0);
		if (m)
			mem_close(m);
	}
}

/* D12: never more entries than asked for. */
static void mem_open__rounds_entries_down(void **state)
{
	struct fix f;

	(void)state;
	fix_open(&f, (struct mem_config){.entries = 63});
	assert_int_equal((f.m->spt.sets.mask + 1) * SPT_WAYS, 32);
	fix_close(&f);
	fix_open(&f, (struct mem_config){.entries = 64});
	assert_int_equal((f.m->spt.sets.mask + 1) * SPT_WAYS, 64);
	fix_close(&f);
}

static void mem_inline_budget__replaces(void **state)
{
	struct fix f;

	(void)state;
	fix_open(&f, (struct mem_config){.entries = 64});
	mem_inline_budget(f.m, 5);
	mem_inline_budget(f.m, 2);
	cheap_learn(&f.m->cheap, 100, 200, f.now);
	assert_int_equal(fix_access(&f, 100, 3, true, NULL), V_WAIT);
	assert_int_equal(fix_access(&f, 100, 2, true, NULL), V_OK);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mem_open__bounds),
		cmocka_unit_test(mem_open__rounds_entries_down),
		cmocka_unit_test(mem_inline_budget__replaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
