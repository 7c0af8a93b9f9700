/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"

#include <stddef.h>

static const char *status(unsigned i)
{
	return ibv_wc_status_str((enum ibv_wc_status)i);
}

static const char *event(unsigned i)
{
	return ibv_event_type_str((enum ibv_event_type)i);
}

static const char *node(unsigned i)
{
	return ibv_node_type_str((enum ibv_node_type)i);
}

static const char *port(unsigned i)
{
	return ibv_port_state_str((enum ibv_port_state)i);
}

static const char *opcode(unsigned i)
{
	return ibv_wr_opcode_str((enum ibv_wr_opcode)i);
}

/* Every number from @first to @last has words of its own, none beyond has. */
static void str__whole_ranges(void **state)
{
	static const struct {
		const char *(*str)(unsigned i);
		unsigned first, last;
	} rows[] = {
		{status, 0, IBV_WC_TM_RNDV_INCOMPLETE},
		{event, 0, IBV_EVENT_WQ_FATAL},
		{node, IBV_NODE_CA, IBV_NODE_UNSPECIFIED},
		{port, 0, IBV_PORT_ACTIVE_DEFER},
		{opcode, 0, IBV_WR_DRIVER1},
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		for (unsigned i = rows[k].first; i <= rows[k].last; i++) {
			assert_string_not_equal(rows[k].str(i), "unknown");
			for (unsigned j = rows[k].first; j < i; j++)
				assert_string_not_equal(rows[k].str(i),
							rows[k].str(j));
		}
		assert_string_equal(rows[k].str(rows[k].last + 1), "unknown");
		assert_string_equal(rows[k].str(UINT32_MAX), "unknown");
		if (rows[k].first)
			assert_string_equal(rows[k].str(0), "unknown");
	}
}

static void str__some(void **state)
{
	(void)state;
	assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "PORT_ACTIVE");
	assert_string_equal(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
	assert_string_equal(ibv_wr_opcode_str(IBV_WR_ATOMIC_WRITE),
			    "ATOMIC WRITE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(str__whole_ranges),
		cmocka_unit_test(str__some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
