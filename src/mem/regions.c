/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* regions.c: which region a key names. */
#include "mem/regions.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/state.h"

struct mr *mr_by_key(struct mem *m, uint32_t key)
{
	uint32_t i;
	const struct key_row *row = key_find(&m->keys, key, &i);

	return row && row->kind == KEY_REGION ? row->mr : NULL;
}

struct mr *mr_live(struct mem *m, uint32_t key)
{
	uint32_t i;
	const struct key_row *row = key_lookup(&m->keys, key, &i);

	return row && row->kind == KEY_REGION ? row->mr : NULL;
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
