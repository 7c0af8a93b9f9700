/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync.c: a semaphore and a wait queue of eight processes, as ordinary users, each
 * of which is killed (SIGKILL) in its turn: who has the unit, who waits for it, who
 * does neither, who waits to be woken, who is anywhere in between. The home learns
 * of each, and those who are left go on. With an argument the home is killed.
 *
 *   host-sync [home]
 */
#include "sync.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MEMBERS = 8, TURNS = 50, NONE = 0xffff };

/* What a member does when the home's process says so; it answers when it did. */
enum order { WAIT = 1, POST, SLEEP, WAKE, TAKE_TURNS, TAKE_TURNS_FOR_EVER };

/* 2 s, and 0.25 s for each retry, say connections of nopin; and a busy machine */

/** struct shared - @inside: how many think that they have the unit. */
static struct {
	unsigned inside, turns;
	pid_t pid[MEMBERS];
	uint32_t sem, waitq;
} * shared;

static struct host h;
static struct nopin_home *home;
static struct sync_link end[MEMBERS];
static int fd[MEMBERS];

/* --- members ------------------------------------------------------------------ */

static int turn(struct nopin_member *m)
{
	int rc = nopin_sem_wait(m, shared->sem, UINT64_MAX, NOPIN_WAIT_BLOCK);

	if (rc)
		return rc;
	REQUIRE(__atomic_fetch_add(&shared->inside, 1, __ATOMIC_ACQ_REL) == 0);
	shared->turns++;
	__atomic_fetch_sub(&shared->inside, 1, __ATOMIC_ACQ_REL);
	return nopin_sem_post(m, shared->sem);
}

static int be_woken(struct nopin_member *m)
{
	uint64_t ticket;
	int rc = nopin_waitq_prepare(m, shared->waitq, &ticket);

	return rc ? rc
		  : nopin_waitq_wait(m, shared->waitq, ticket, UINT64_MAX,
				     NOPIN_WAIT_BLOCK);
}

static int obey(struct nopin_member *m, uint64_t order)
{
	int rc = 0;

	switch (order) {
	case WAIT:
		return nopin_sem_wait(m, shared->sem, UINT64_MAX,
				      NOPIN_WAIT_BLOCK);
	case POST:
		return nopin_sem_post(m, shared->sem);
	case SLEEP:
		return be_woken(m);
	case WAKE:
		return nopin_waitq_wake(m, shared->waitq, 1);
	default:
		for (int i = 0; !rc && (i < TURNS || order != TAKE_TURNS); i++)
			rc = turn(m);
		return rc;
	}
}

static void member(int s)
{
	struct nopin_member *m;
	struct sync_link l;
	struct host mine;
	uint64_t order;

	host_open(&mine);
	sync_link_open(&l, &mine, s);
	m = member_open(&l, s);
	shared->pid[host_hear(s)] = getpid();
	for (;;) {
		order = order_take(s);
		order_done(s, order, obey(m, order));
	}
}

static void have(int i, enum order order)
{
	order_say(fd[i], order);
	REQUIRE_EQ(order_answer(fd[i], order), 0);
}

/* Returns when it is in the queue. */
static void queue(int i, enum order order)
{
	const uint32_t object = order == WAIT ? shared->sem : shared->waitq;
	uint32_t before, num;

	REQUIRE(nopin_home_waiting(home, object, &before) == 0);
	order_say(fd[i], order);
	do
		REQUIRE(nopin_home_waiting(home, object, &num) == 0);
	while (num == before);
}

/* --- the home ------------------------------------------------------------------- */

static pthread_mutex_t gone_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nopin_home_event gone = {.index = NONE};

static void *serve(void *arg)
{
	struct nopin_home_event e;

	(void)arg;
	while (nopin_home_serve(home, NOPIN_WAIT_BLOCK, &e) == 0) {
		REQUIRE(e.gone == NOPIN_GONE_DIED);
		REQUIRE(e.qp == end[e.index].l.qp);
		pthread_mutex_lock(&gone_lock);
		gone = e;
		pthread_mutex_unlock(&gone_lock);
	}
	return NULL;
}

static struct nopin_home_event who_is_gone(void)
{
	struct nopin_home_event e;

	pthread_mutex_lock(&gone_lock);
	e = gone;
	pthread_mutex_unlock(&gone_lock);
	return e;
}

/* Return: what it waited for. */
static uint32_t kill_one(uint32_t i)
{
	const uint64_t began = host_now();
	int status;

	REQUIRE(kill(shared->pid[i], SIGKILL) == 0);
	REQUIRE(waitpid(shared->pid[i], &status, 0) == shared->pid[i]);
	REQUIRE(WIFSIGNALED(status));
	while (who_is_gone().index != i)
		host_sleep(MS);
	printf("%u: known after %.0f ms\n", i,
	       (double)(host_now() - began) / 1e6);
	return who_is_gone().waited;
}

static void who_has_it(void)
{
	have(0, WAIT);
	queue(1, WAIT);
	REQUIRE_EQ(kill_one(0), 0);
	/* the program knows what was done under the semaphore: it gives it on */
	have(7, POST);
	REQUIRE_EQ(order_answer(fd[1], WAIT), 0);
}

static void who_waits(void)
{
	queue(2, WAIT);
	queue(3, WAIT);
	REQUIRE_EQ(kill_one(2), shared->sem);
	have(1, POST);
	REQUIRE_EQ(order_answer(fd[3], WAIT), 0);
	have(3, POST);
}

static void who_sleeps(void)
{
	queue(3, SLEEP);
	queue(4, SLEEP);
	REQUIRE_EQ(kill_one(3), shared->waitq);
	have(7, WAKE);
	REQUIRE_EQ(order_answer(fd[4], SLEEP), 0);
}

/* Did it die with the unit? Only one takes turns now, and the home knows of the end:
 * then that one is in the queue for ever. Else it has a turn, as soon as it runs. */
static bool stuck(void)
{
	const unsigned was = __atomic_load_n(&shared->turns, __ATOMIC_ACQUIRE);
	uint32_t num;

	for (;;) {
		REQUIRE(nopin_home_waiting(home, shared->sem, &num) == 0);
		if (num)
			return true;
		if (__atomic_load_n(&shared->turns, __ATOMIC_ACQUIRE) != was)
			return false;
		host_sleep(MS);
	}
}

static void who_is_anywhere(int i)
{
	order_say(fd[i], TAKE_TURNS_FOR_EVER);
	host_sleep(host_random() % (50 * MS));
	kill_one((uint32_t)i);
	if (!stuck())
		return;
	__atomic_store_n(&shared->inside, 0, __ATOMIC_RELEASE);
	have(7, POST);
	REQUIRE(!stuck());
}

static void start(int members)
{
	const struct nopin_home_attr attr = {.members = MEMBERS,
					     .alive_ns = 50 * MS};
	pthread_t thread;

	host_open(&h);
	REQUIRE(nopin_home_create(h.pd, &attr, &home) == 0);
	REQUIRE(nopin_sem_create(home, 1, &shared->sem) == 0);
	REQUIRE(nopin_waitq_create(home, &shared->waitq) == 0);
	for (int i = 0; i < members; i++) {
		sync_link_open(&end[i], &h, fd[i]);
		sync_join(home, &end[i], fd[i]);
		host_say(fd[i], (uint64_t)i);
	}
	REQUIRE(pthread_create(&thread, NULL, serve, NULL) == 0);
}

static void run(void)
{
	for (int i = 0; i < MEMBERS; i++)
		fd[i] = host_fork(member);
	start(MEMBERS);
	who_has_it();
	who_waits();
	who_sleeps();
	kill_one(1); /* who does nothing */
	order_say(fd[6], TAKE_TURNS_FOR_EVER);
	who_is_anywhere(4);
	who_is_anywhere(5);
}

/* --- no home any more -------------------------------------------------------- */

static void home_role(int s)
{
	shared->pid[0] = getpid();
	fd[0] = s;
	start(1);
	for (;;)
		pause();
}

static void kill_home(int signal)
{
	(void)signal;
	REQUIRE(kill(shared->pid[0], SIGKILL) == 0);
}

static void run_without_home(void)
{
	const int s = host_fork(home_role);
	const uint64_t began = host_now();
	struct nopin_member *m;
	struct sync_link l;

	host_open(&h);
	sync_link_open(&l, &h, s);
	m = member_open(&l, s);
	REQUIRE(host_hear(s) == 0);
	REQUIRE_EQ(obey(m, WAIT), 0);
	REQUIRE(signal(SIGALRM, kill_home) != SIG_ERR);
	alarm(1);
	REQUIRE_EQ(obey(m, WAIT), ENOTCONN);
	printf("the home's end: known after %.0f ms\n",
	       (double)(host_now() - began - SECOND) / 1e6);
	REQUIRE_EQ(obey(m, POST), ENOTCONN);
	REQUIRE_EQ(obey(m, WAKE), ENOTCONN);
	REQUIRE(nopin_member_destroy(m) == 0);
	sync_link_close(&l);
	host_close(&h);
}

int main(int argc, char **argv)
{
	(void)argv;
	host_start();
	host_user();
	link_timeout = 14;
	link_retries = 2;
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED);
	if (argc == 1)
		run();
	else
		run_without_home();
	return 0;
}
