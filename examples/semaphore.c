/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* semaphore.c: two processes take turns, each waiting for a semaphore that the other
 * one posts; a third is the semaphores' home.
 *
 *   cc semaphore.c $(pkg-config --cflags --libs nopin) && nopin run -- ./a.out
 */
#include "rc.h"

enum { TURNS = 1000 };

static void player(int fd, int me)
{
	struct ibv_qp *qp = rc_connect(rc_device(), fd);
	struct nopin_card mine, home;
	struct nopin_member *m;
	uint32_t turn[2];

	TRY(!nopin_member_create(qp, &m, &mine));
	swap(fd, &mine, &home, sizeof(mine));
	hear(fd, turn, sizeof(turn));
	TRY(!nopin_member_start(m, &home));
	for (int i = 0; i < TURNS; i++) {
		TRY(!nopin_sem_wait(m, turn[me], UINT64_MAX, NOPIN_WAIT_BLOCK));
		if (i % 100 == 0)
			dprintf(1, "process %d has turn %d\n", me, 2 * i + me);
		TRY(!nopin_sem_post(m, turn[!me]));
	}
	TRY(!nopin_member_destroy(m));
	exit(0);
}

int main(void)
{
	struct nopin_home_event event;
	struct nopin_card mine, theirs;
	struct nopin_home *home;
	uint32_t turn[2];
	int fd[2];
	struct ibv_pd *pd;

	for (int i = 0; i < 2; i++) {
		if (!rc_fork(&fd[i]))
			player(fd[i], i);
	}
	pd = rc_device();
	TRY(!nopin_home_create(pd, NULL, &home));
	for (int i = 0; i < 2; i++) /* the first turn is player 0's */
		TRY(!nopin_sem_create(home, i == 0, &turn[i]));
	for (int i = 0; i < 2; i++) {
		struct ibv_qp *qp = rc_connect(pd, fd[i]);

		hear(fd[i], &theirs, sizeof(theirs));
		TRY(!nopin_home_join(home, qp, &theirs, &mine));
		tell(fd[i], &mine, sizeof(mine));
		tell(fd[i], turn, sizeof(turn));
	}
	for (int i = 0; i < 2; i++) { /* until both have left, or died */
		TRY(!nopin_home_serve(home, NOPIN_WAIT_BLOCK, &event));
		TRY(event.gone == NOPIN_GONE_LEFT);
	}
	return 0;
}
