/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* l_unpinned.c: records of a large table to a peer. The table is registered. */
#include "l_table.h"

int main(int argc, char **argv)
{
	const uint64_t ops = argc == 2 ? number(argv[1]) : 0;
	struct ibv_mr *mr;
	struct table t;
	uint64_t began;

	table_open(&t);
	mr = host_reg(&t.h, t.base, TABLE_BYTES);
	began = host_now();
	for (uint64_t i = 0; i < ops; i++) {
		if (i >= RECORDS_AT_ONCE)
			host_wait(&t.h, 1);
		table_write(&t, i, mr, table_record(&t, i));
	}
	host_wait(&t.h, RECORDS_AT_ONCE);
	table_close(&t, ops, began);
	host_dereg(mr);
	return 0;
}
