/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* regions.c: find the region of a key, and tell its attributes. Regions are made, changed
 * and freed in mr.c; keys in key_table.c.
 */
#include "mem/regions.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/state.h"

/* A window's row names its region, too, but its key is not the region's: NULL. */
static struct mr *row_region(const struct key_row *row)
{
	return row && row->kind == KEY_REGION ? row->mr : NULL;
}

struct mr *mr_by_key(struct mem *m, uint32_t key)
{
	uint32_t i;

	return row_region(key_find(&m->keys, key, &i));
}

struct mr *mr_live(struct mem *m, uint32_t key)
{
	uint32_t i;

	return row_region(key_lookup(&m->keys, key, &i));
}

void mr_attr_copy(const struct mr *mr, struct mr_attr *out)
{
	const struct key_row *row = mr->row;

	out->pd = row->pd;
	out->addr = row->addr;
	out->iova = row->iova;
	out->length = row->length;
	out->access = row->access;
	out->fault = (enum strategy)row->fault;
	out->minimum = mr->minimum;
	out->weight = mr->weight;
	out->upcalls = mr->upcalls;
	out->cookie = mr->cookie;
}
