/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cache.c: a process writes to the memory of another one, which is pinned nowhere, and
 * asks before each WRITE whether the pages are ready.
 *
 *   cc cache.c $(pkg-config --cflags --libs nopin) && nopin run -- ./a.out
 */
#include "rc.h"

#include <string.h>

enum { BLOCK = 65536, BLOCKS = 64, WRITES = 1000 };

static void user(int fd)
{
	struct nopin_cache_attr attr = {.block = BLOCK, .blocks = BLOCKS / 2};
	struct ibv_pd *pd = rc_device();
	struct ibv_qp *asks = rc_connect(pd, fd), *writes = rc_connect(pd, fd);
	static char data[BLOCK] = "written";
	struct nopin_card mine, owner;
	struct nopin_cache_stats s;
	struct nopin_cache *cache;
	struct ibv_mr *mr = ibv_reg_mr(pd, data, BLOCK, 0);
	uint64_t to[2];

	TRY(mr && !nopin_cache_create(asks, &attr, &cache, &mine));
	swap(fd, &mine, &owner, sizeof(mine));
	hear(fd, to, sizeof(to));
	TRY(!nopin_cache_start(cache, &owner));
	for (int i = 0; i < WRITES; i++) { /* most of them to a few blocks */
		uint64_t at = to[0] + (i % 10 ? i % 8 : i % BLOCKS) * BLOCK;

		/* whatever it says, the WRITE is right */
		(void)nopin_cache_ready(cache, at, BLOCK, 1000000,
					NOPIN_WAIT_BLOCK);
		rc_write(writes, mr, at, (uint32_t)to[1]);
	}
	TRY(!nopin_cache_query(cache, &s, sizeof(s)));
	dprintf(1, "%d WRITEs: %d blocks were known to be ready, %d were not\n",
		WRITES, (int)s.hits, (int)s.misses);
	TRY(s.hits > s.misses && !nopin_cache_destroy(cache));
	exit(0);
}

int main(void)
{
	static _Alignas(BLOCK) char memory[BLOCKS * BLOCK];
	struct nopin_reg_attr attr = {
		.addr = memory, .length = sizeof(memory), .access = WRITABLE};
	struct nopin_owner_event event;
	struct nopin_card mine, theirs;
	struct nopin_owner *owner;
	struct ibv_qp *qp;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int fd;

	if (!rc_fork(&fd))
		user(fd);
	pd = rc_device();
	TRY(!nopin_owner_create(pd, NULL, &owner));
	TRY(mr = nopin_owner_reg(owner, &attr, sizeof(attr)));
	qp = rc_connect(pd, fd);
	rc_connect(pd, fd);
	hear(fd, &theirs, sizeof(theirs));
	TRY(!nopin_owner_join(owner, qp, &theirs, &mine));
	tell(fd, &mine, sizeof(mine));
	tell(fd, (uint64_t[2]){(uintptr_t)memory, mr->rkey}, 16);
	TRY(!nopin_owner_serve(owner, NOPIN_WAIT_BLOCK, &event));
	TRY(event.gone == NOPIN_GONE_LEFT);
	TRY(!strcmp(memory, "written"));
	return 0;
}
