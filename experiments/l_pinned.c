/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* l_pinned.c: records of a large table to a peer. The table is larger than what
 * may be locked, so a few buffers are registered, and each record is copied
 * through one of them.
 */
#include "l_table.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/** struct pool - Registered buffers; @free: those that no WRITE uses. */
struct pool {
	struct ibv_mr *mr;
	uint8_t *base;
	unsigned count;
	uint8_t *free[RECORDS_AT_ONCE];
	unsigned frees;
	uint8_t *busy[RECORDS_AT_ONCE]; /* in the order of their WRITEs */
	uint64_t first, next;
};

/* As many as may be locked. */
static unsigned pool_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_MEMLOCK, &l) || l.rlim_cur == RLIM_INFINITY)
		return RECORDS_AT_ONCE;
	if (l.rlim_cur / RECORD < RECORDS_AT_ONCE)
		return (unsigned)(l.rlim_cur / RECORD);
	return RECORDS_AT_ONCE;
}

static void pool_open(struct pool *p, struct host *h)
{
	*p = (struct pool){.count = pool_limit()};
	if (!p->count)
		host_skip("not one buffer may be locked");
	p->base = host_map(NULL, (size_t)p->count * RECORD);
	p->mr = ibv_reg_mr(h->pd, p->base, (size_t)p->count * RECORD,
			   IBV_ACCESS_LOCAL_WRITE);
	if (!p->mr)
		host_skip("the buffers cannot be locked");
	for (unsigned i = 0; i < p->count; i++)
		p->free[p->frees++] = p->base + (size_t)i * RECORD;
}

/* A WRITE has ended: its buffer is free. They end in order. */
static void pool_reap(struct pool *p, struct host *h)
{
	host_wait(h, 1);
	p->free[p->frees++] = p->busy[p->first++ % RECORDS_AT_ONCE];
}

/* A free buffer; waits for one. */
static uint8_t *pool_take(struct pool *p, struct host *h)
{
	uint8_t *buffer;

	if (!p->frees)
		pool_reap(p, h);
	buffer = p->free[--p->frees];
	p->busy[p->next++ % RECORDS_AT_ONCE] = buffer;
	return buffer;
}

static void pool_close(struct pool *p, struct host *h)
{
	while (p->first < p->next)
		pool_reap(p, h);
	host_dereg(p->mr);
	munmap(p->base, (size_t)p->count * RECORD);
}

int main(int argc, char **argv)
{
	const uint64_t ops = argc == 2 ? number(argv[1]) : 0;
	struct table t;
	struct pool p;
	uint64_t began;

	table_open(&t);
	pool_open(&p, &t.h);
	began = host_now();
	for (uint64_t i = 0; i < ops; i++) {
		uint8_t *buffer = pool_take(&p, &t.h);

		memcpy(buffer, table_record(&t, i), RECORD);
		table_write(&t, i, p.mr, buffer);
	}
	while (p.first < p.next)
		pool_reap(&p, &t.h);
	table_close(&t, ops, began);
	pool_close(&p, &t.h);
	return 0;
}
