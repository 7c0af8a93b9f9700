/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* n_sync.c: what semaphores and wait queues cost.
 *
 *   n_sync alone ROUNDS           a member alone: its calls, and the atomics that
 *                                 they are made of, by turns
 *   n_sync crowd MEMBERS TURNS    so many want the same unit all the time; by the
 *                                 semaphore, then, a tenth as often, by compare and
 *                                 swap until it succeeds
 */
#include "lib.h"
#include "sync.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { MEMBERS_MAX = 16, SAMPLES_MAX = 100000, WARM = 100 };

/** struct shared - @ready: so often somebody met the others. */
static struct {
	uint32_t sem, waitq;
	unsigned members, turns, ready, inside;
	double wait_us[2][SAMPLES_MAX];
} * shared;

static struct host h;
static struct nopin_home *home;
static struct sync_link end[MEMBERS_MAX], bare[MEMBERS_MAX];

/* --- the home ------------------------------------------------------------------ */

static void *serve(void *arg)
{
	struct nopin_home_event e;

	(void)arg;
	while (nopin_home_serve(home, NOPIN_WAIT_BLOCK, &e) == 0)
		REQUIRE(e.gone == NOPIN_GONE_LEFT);
	return NULL;
}

/* @fd: of each member. Until all have left. */
static void be_home(const int *fd)
{
	uint64_t *word = host_map(NULL, PAGE);
	struct ibv_mr *mr;
	pthread_t thread;

	host_open(&h);
	mr = ibv_reg_mr(h.pd, word, PAGE,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	REQUIRE(mr && nopin_home_create(h.pd, NULL, &home) == 0);
	REQUIRE(nopin_sem_create(home, 1, &shared->sem) == 0);
	REQUIRE(nopin_waitq_create(home, &shared->waitq) == 0);
	for (unsigned i = 0; i < shared->members; i++) {
		sync_link_open(&end[i], &h, fd[i]);
		sync_join(home, &end[i], fd[i]);
		sync_link_open(&bare[i], &h, fd[i]);
		host_say_mr(fd[i], mr);
		host_say(fd[i], i);
	}
	REQUIRE(pthread_create(&thread, NULL, serve, NULL) == 0);
	for (unsigned i = 0; i < shared->members; i++)
		REQUIRE(host_hear(fd[i]) == 1);
	REQUIRE(nopin_home_stop(home) == 0);
	REQUIRE(pthread_join(thread, NULL) == 0);
	REQUIRE(nopin_home_destroy(home) == 0);
	for (unsigned i = 0; i < shared->members; i++) {
		sync_link_close(&end[i]);
		sync_link_close(&bare[i]);
	}
	host_dereg(mr);
	host_close(&h);
}

/* --- members ------------------------------------------------------------------- */

static struct nopin_member *m;
static struct ibv_mr *old;
static unsigned number_of_mine;

static void member_begin(int fd)
{
	host_open(&h);
	old = host_reg(&h, host_map(NULL, PAGE), PAGE);
	sync_link_open(&end[0], &h, fd);
	m = member_open(&end[0], fd);
	sync_link_open(&bare[0], &h, fd);
	link_hear_mr(&bare[0].l, fd);
	number_of_mine = (unsigned)host_hear(fd);
}

static void member_end(int fd)
{
	REQUIRE(nopin_member_destroy(m) == 0);
	host_say(fd, 1);
	sync_link_close(&end[0]);
	sync_link_close(&bare[0]);
	host_dereg(old);
	host_close(&h);
}

/* Return: what the word was. */
static uint64_t swap(uint64_t compare, uint64_t to)
{
	struct ibv_sge sge = {(uintptr_t)old->addr, 8, old->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.atomic = {bare[0].l.va, compare,
						       to, bare[0].l.rkey},
				 };
	struct ibv_wc wc;
	int n;

	REQUIRE(ibv_post_send(bare[0].l.qp, &wr, &bad) == 0);
	while ((n = ibv_poll_cq(bare[0].h.cq, 1, &wc)) == 0)
		;
	REQUIRE(n == 1 && wc.status == IBV_WC_SUCCESS);
	return *(volatile uint64_t *)old->addr;
}

/* --- alone ----------------------------------------------------------------------- */

static void two_atomics(void)
{
	REQUIRE(swap(0, 1) == 0);
	REQUIRE(swap(1, 0) == 1);
}

static void sem_pair(void)
{
	REQUIRE(nopin_sem_wait(m, shared->sem, UINT64_MAX, NOPIN_WAIT_SPIN) ==
		0);
	REQUIRE(nopin_sem_post(m, shared->sem) == 0);
}

static void waitq_pair(void)
{
	uint64_t ticket;

	REQUIRE(nopin_waitq_prepare(m, shared->waitq, &ticket) == 0);
	REQUIRE(nopin_waitq_wake(m, shared->waitq, 1) == 0);
}

static void alone(int fd)
{
	static void (*const does[])(void) = {two_atomics, sem_pair, waitq_pair};
	static const char *const name[] = {"atomics", "semaphore", "waitq"};
	static double took[3][SAMPLES_MAX];

	member_begin(fd);
	for (unsigned i = 0; i < shared->turns + WARM; i++) {
		for (unsigned k = 0; k < 3; k++) {
			/* nobody is always the first of a round */
			const unsigned what = (i + k) % 3;
			const uint64_t from = host_now();

			does[what]();
			if (i >= WARM)
				took[what][i - WARM] =
					(double)(host_now() - from) / US;
		}
	}
	for (unsigned k = 0; k < 3; k++)
		out_dist(name[k], took[k], shared->turns);
	member_end(fd);
}

/* --- a crowd ----------------------------------------------------------------------- */

static void meet(unsigned n)
{
	__atomic_fetch_add(&shared->ready, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) <
	       n * shared->members)
		host_sleep(MS);
}

static unsigned turns_of(unsigned way)
{
	return way ? shared->turns / 10 : shared->turns;
}

static void turns(unsigned way)
{
	double *v = &shared->wait_us[way][number_of_mine * turns_of(way)];

	for (unsigned i = 0; i < turns_of(way); i++) {
		const uint64_t from = host_now();

		if (way == 0)
			REQUIRE(nopin_sem_wait(m, shared->sem, UINT64_MAX,
					       NOPIN_WAIT_BLOCK) == 0);
		else
			while (swap(0, 1) != 0)
				;
		v[i] = (double)(host_now() - from) / US;
		REQUIRE(__atomic_fetch_add(&shared->inside, 1,
					   __ATOMIC_ACQ_REL) == 0);
		__atomic_fetch_sub(&shared->inside, 1, __ATOMIC_ACQ_REL);
		if (way == 0)
			REQUIRE(nopin_sem_post(m, shared->sem) == 0);
		else
			REQUIRE(swap(1, 0) == 1);
	}
}

static void one_of_many(int fd)
{
	member_begin(fd);
	meet(1);
	turns(0);
	meet(2);
	turns(1);
	meet(3);
	member_end(fd);
}

static void crowd(void)
{
	int fd[MEMBERS_MAX];

	for (unsigned i = 0; i < shared->members; i++)
		fd[i] = host_fork(one_of_many);
	be_home(fd);
	out_dist("semaphore", shared->wait_us[0],
		 (size_t)shared->members * shared->turns);
	out_dist("atomics", shared->wait_us[1],
		 (size_t)shared->members * turns_of(1));
}

int main(int argc, char **argv)
{
	host_start();
	REQUIRE(argc >= 3);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED);
	shared->members = 1;
	shared->turns = (unsigned)number(argv[argc - 1]);
	if (!strcmp(argv[1], "crowd"))
		shared->members = (unsigned)number(argv[2]);
	REQUIRE(shared->members <= MEMBERS_MAX &&
		shared->members * shared->turns <= SAMPLES_MAX);
	if (argc == 3) {
		const int fd = host_fork(alone);

		be_home(&fd);
	} else {
		crowd();
	}
	host_join();
	return 0;
}
