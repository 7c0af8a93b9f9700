/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* l_table.h: what the three versions of one program share: a connection, and a
 * table of records that is larger than memory. The program gathers records from
 * all over the table and WRITEs them to a peer; what it must do so that the NIC
 * may read them is what the versions differ in, and what is counted.
 *
 *   l_pinned|l_cached|l_unpinned OPS
 */
#ifndef NOPIN_EXPERIMENTS_L_TABLE_H
#define NOPIN_EXPERIMENTS_L_TABLE_H

#include "lib.h"

enum { RECORD = 4096, RECORDS_AT_ONCE = 16 };

/** TABLE_BYTES - Of address space: 1 TiB. WORKING_BYTES - of it in use. */
#define TABLE_BYTES   (UINT64_C(1) << 40)
#define WORKING_BYTES (UINT64_C(64) << 20)

/**
 * struct table - @base: the table. @to: the peer's end.
 */
struct table {
	struct host h;
	struct link to;
	uint8_t *base;
};

/** table_open() - With a peer that takes records. */
void table_open(struct table *t);

/** table_record() - The @i-th record of a program that never ends; filled. */
uint8_t *table_record(struct table *t, uint64_t i);

/** table_write() - Post a WRITE of the record @i, which is at @p of @mr. */
void table_write(struct table *t, uint64_t i, struct ibv_mr *mr, void *p);

/** table_close() - The peer has checked what came; prints what was used. */
void table_close(struct table *t, uint64_t ops, uint64_t began_ns);

#endif
