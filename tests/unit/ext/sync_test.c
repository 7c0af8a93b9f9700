/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_test.c: semaphores and wait queues as a program uses them: a home and four
 * members in one process, each with a thread.
 */
#include "pair.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMBERS = 4, ROUNDS = 200 };

#define MS   UINT64_C(1000000)
#define HOUR (3600 * 1000 * MS)

static struct nopin_home *home;
static struct end {
	struct pair_ends ends;
	struct nopin_member *m;
	struct nopin_card theirs, card;
	unsigned gone;
} end[MEMBERS];
static pthread_t server;
static uint32_t sem, waitq;
static uint64_t alive_ns = 40 * MS;

/* --- a home and its members ------------------------------------------------ */

static void *serve(void *arg)
{
	struct nopin_home_event e;
	int rc;

	(void)arg;
	while (!(rc = nopin_home_serve(home, NOPIN_WAIT_BLOCK, &e)))
		for (int i = 0; i < MEMBERS; i++)
			if (e.qp == end[i].ends.qp[1])
				__atomic_store_n(&end[i].gone, e.gone,
						 __ATOMIC_RELEASE);
	assert_int_equal(rc, ECANCELED);
	return NULL;
}

static void end_open(struct end *e)
{
	e->gone = 0;
	pair_ends_open(&e->ends);
	assert_int_equal(nopin_member_create(e->ends.qp[0], &e->m, &e->theirs),
			 0);
	assert_int_equal(nopin_sem_post(e->m, 1), EINVAL);
	assert_int_equal(
		nopin_home_join(home, e->ends.qp[1], &e->theirs, &e->card), 0);
	assert_int_equal(nopin_member_start(e->m, &e->card), 0);
	assert_int_equal(nopin_member_start(e->m, &e->card), EINVAL);
}

static void server_start(void)
{
	assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
}

/* Nobody is in nopin_home_serve() yet. */
static int setup_unserved(void **state)
{
	const struct nopin_home_attr attr = {.members = MEMBERS,
					     .alive_ns = alive_ns};

	pair_retries = 0; /* 2 s until a peer is given up */
	pair_open(state);
	assert_int_equal(nopin_home_create(pd, &attr, &home), 0);
	assert_int_equal(nopin_sem_create(home, 1, &sem), 0);
	assert_int_equal(nopin_waitq_create(home, &waitq), 0);
	for (int i = 0; i < MEMBERS; i++)
		end_open(&end[i]);
	return 0;
}

static int setup(void **state)
{
	setup_unserved(state);
	server_start();
	return 0;
}

static void home_end(void)
{
	assert_int_equal(nopin_home_stop(home), 0);
	assert_int_equal(pthread_join(server, NULL), 0);
	assert_int_equal(nopin_home_destroy(home), 0);
}

static int teardown(void **state)
{
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(nopin_member_destroy(end[i].m), 0);
	home_end();
	for (int i = 0; i < MEMBERS; i++)
		pair_ends_close(&end[i].ends);
	return pair_close(state);
}

/* The home looks only when its bell rings. */
static int setup_silent(void **state)
{
	alive_ns = HOUR;
	return setup(state);
}

static void silent_end(void)
{
	alive_ns = 40 * MS;
}

static int teardown_silent(void **state)
{
	teardown(state);
	silent_end();
	return 0;
}

/* After home_end(). */
static int teardown_members(void **state)
{
	for (int i = 0; i < MEMBERS; i++) {
		assert_int_equal(nopin_member_destroy(end[i].m), 0);
		pair_ends_close(&end[i].ends);
	}
	silent_end();
	return pair_close(state);
}

static unsigned gone(struct end *e)
{
	unsigned why;

	while (!(why = __atomic_load_n(&e->gone, __ATOMIC_ACQUIRE)))
		usleep(1000);
	return why;
}

/* --- calls, each on a thread ----------------------------------------------- */

struct call {
	pthread_t thread;
	struct end *e;
	uint64_t timeout_ns;
	enum nopin_wait how;
	int rc;
	unsigned place;
};
static unsigned places;

static void *sem_thread(void *arg)
{
	struct call *c = arg;

	c->rc = nopin_sem_wait(c->e->m, sem, c->timeout_ns, c->how);
	c->place = __atomic_add_fetch(&places, 1, __ATOMIC_ACQ_REL);
	return NULL;
}

static void *waitq_thread(void *arg)
{
	struct call *c = arg;
	uint64_t ticket;

	assert_int_equal(nopin_waitq_prepare(c->e->m, waitq, &ticket), 0);
	c->rc = nopin_waitq_wait(c->e->m, waitq, ticket, c->timeout_ns, c->how);
	c->place = __atomic_add_fetch(&places, 1, __ATOMIC_ACQ_REL);
	return NULL;
}

static uint32_t waiting(uint32_t object)
{
	uint32_t num;

	assert_int_equal(nopin_home_waiting(home, object, &num), 0);
	return num;
}

static void start(struct call *c, int i, void *(*fn)(void *),
		  uint64_t timeout_ns)
{
	*c = (struct call){.e = &end[i],
			   .timeout_ns = timeout_ns,
			   .how = (enum nopin_wait)(i % 3)};
	assert_int_equal(pthread_create(&c->thread, NULL, fn, c), 0);
}

/* Returns when it is in the queue, which nobody leaves meanwhile. */
static void begin(struct call *c, int i, void *(*fn)(void *))
{
	const uint32_t object = fn == sem_thread ? sem : waitq;
	const uint32_t before = waiting(object);

	start(c, i, fn, UINT64_MAX);
	while (waiting(object) == before)
		;
}

static int finish(struct call *c)
{
	assert_int_equal(pthread_join(c->thread, NULL), 0);
	return c->rc;
}

/* --- semaphores ------------------------------------------------------------ */

static void sem__one(void **state)
{
	struct nopin_member *m = end[0].m;

	(void)state;
	assert_int_equal(nopin_sem_wait(m, sem, UINT64_MAX, NOPIN_WAIT_BLOCK),
			 0);
	assert_int_equal(nopin_sem_trywait(m, sem), EAGAIN);
	assert_int_equal(nopin_sem_trywait(end[1].m, sem), EAGAIN);
	assert_int_equal(nopin_sem_wait(m, sem, 30 * MS, NOPIN_WAIT_BLOCK),
			 ETIMEDOUT);
	assert_int_equal(nopin_sem_wait(m, sem, 0, NOPIN_WAIT_SPIN), ETIMEDOUT);
	assert_int_equal(nopin_sem_post(end[1].m, sem), 0);
	assert_int_equal(nopin_sem_trywait(m, sem), 0);
	assert_int_equal(nopin_sem_post(m, sem), 0);
}

static void sem__wrong(void **state)
{
	struct nopin_member *m = end[0].m;
	uint32_t id, num;

	(void)state;
	assert_int_equal(nopin_home_waiting(home, sem + 1, &num), EINVAL);
	assert_int_equal(nopin_sem_post(m, waitq), EINVAL);
	assert_int_equal(nopin_sem_post(m, 0), EINVAL);
	assert_int_equal(nopin_sem_post(m, sem + 1000), EINVAL);
	assert_int_equal(nopin_sem_wait(m, sem, 1, (enum nopin_wait)3), EINVAL);
	assert_int_equal(nopin_waitq_wake(m, waitq, 0), EINVAL);
	assert_int_equal(nopin_waitq_wake(m, sem, 1), EINVAL);
	assert_int_equal(nopin_sem_create(home, UINT32_MAX, &id), EINVAL);
	assert_int_equal(nopin_sem_create(home, INT32_MAX, &id), 0);
	assert_int_equal(nopin_sem_post(m, id), EOVERFLOW);
	/* one that was not made */
	assert_int_equal(nopin_sem_wait(m, id + 1, MS, NOPIN_WAIT_BLOCK),
			 EINVAL);
	for (int i = 3; i < 16; i++)
		assert_int_equal(nopin_sem_create(home, 0, &id), 0);
	assert_int_equal(nopin_sem_create(home, 0, &id), ENOSPC);
}

static void sem__first_come_first_served(void **state)
{
	struct call c[MEMBERS];

	(void)state;
	places = 0;
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	for (int i = 1; i < MEMBERS; i++)
		begin(&c[i], i, sem_thread);
	assert_int_equal(nopin_sem_post(end[1].m, sem), EBUSY);
	for (int i = 1; i < MEMBERS; i++) {
		assert_int_equal(nopin_sem_post(end[0].m, sem), 0);
		assert_int_equal(finish(&c[i]), 0);
		assert_int_equal(c[i].place, i);
	}
}

/* One who gives up is passed over. */
static void sem__times_out_in_the_queue(void **state)
{
	struct call c[3];

	(void)state;
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	start(&c[1], 1, sem_thread, 300 * MS);
	while (!waiting(sem))
		;
	start(&c[2], 2, sem_thread, UINT64_MAX);
	assert_int_equal(finish(&c[1]), ETIMEDOUT);
	assert_int_equal(nopin_sem_post(end[0].m, sem), 0);
	assert_int_equal(finish(&c[2]), 0);
	assert_int_equal(nopin_sem_post(end[2].m, sem), 0);
	assert_int_equal(nopin_sem_trywait(end[1].m, sem), 0);
}

/* A call needs none that it does not have: it would leave its request behind. */
static void sem__no_descriptor_left(void **state)
{
	struct rlimit was;

	(void)state;
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	was = pair_no_descriptors();
	assert_int_equal(
		nopin_sem_wait(end[1].m, sem, 20 * MS, NOPIN_WAIT_BLOCK),
		ETIMEDOUT);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(nopin_sem_post(end[0].m, sem), 0);
	assert_int_equal(
		nopin_sem_wait(end[1].m, sem, UINT64_MAX, NOPIN_WAIT_BLOCK), 0);
	assert_int_equal(nopin_sem_post(end[1].m, sem), 0);
}

static unsigned inside, turns;

static void *turns_thread(void *arg)
{
	struct end *e = arg;

	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(
			nopin_sem_wait(e->m, sem, UINT64_MAX, NOPIN_WAIT_BLOCK),
			0);
		assert_int_equal(
			__atomic_fetch_add(&inside, 1, __ATOMIC_ACQ_REL), 0);
		turns++;
		__atomic_fetch_sub(&inside, 1, __ATOMIC_ACQ_REL);
		assert_int_equal(nopin_sem_post(e->m, sem), 0);
	}
	return NULL;
}

static void sem__excludes(void **state)
{
	pthread_t t[MEMBERS];

	(void)state;
	inside = turns = 0;
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(
			pthread_create(&t[i], NULL, turns_thread, &end[i]), 0);
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_int_equal(turns, MEMBERS * ROUNDS);
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	assert_int_equal(nopin_sem_trywait(end[1].m, sem), EAGAIN);
}

/* --- a home that does not serve ------------------------------------------------ */

/* Returns in time, though it was asked what nobody answers. */
static void times_out(int i, void *(*fn)(void *))
{
	struct call c;

	start(&c, i, fn, 10 * MS);
	assert_int_equal(pthread_join(c.thread, NULL), 0);
	assert_int_equal(c.rc, ETIMEDOUT);
}

static int trywait_soon(int i)
{
	int rc;

	while ((rc = nopin_sem_trywait(end[i].m, sem)) == EAGAIN)
		usleep(1000);
	return rc;
}

/* It has a unit for one who has given up since, and does not call again. */
static void unserved__sem(void **state)
{
	(void)state;
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	for (int i = 0; i < 3; i++)
		times_out(1, sem_thread);
	times_out(2, sem_thread);
	assert_int_equal(nopin_sem_trywait(end[1].m, sem), EAGAIN);
	/* what needs no home goes on */
	assert_int_equal(nopin_sem_post(end[0].m, sem), 0);
	assert_int_equal(nopin_sem_trywait(end[1].m, sem), 0);
	assert_int_equal(nopin_sem_post(end[1].m, sem), 0);
	server_start();
	assert_int_equal(trywait_soon(3), 0);
	times_out(1, sem_thread);
	assert_int_equal(nopin_sem_post(end[3].m, sem), 0);
	for (int i = 1; i < MEMBERS; i++) {
		assert_int_equal(nopin_sem_wait(end[i].m, sem, UINT64_MAX,
						NOPIN_WAIT_BLOCK),
				 0);
		assert_int_equal(nopin_sem_post(end[i].m, sem), 0);
	}
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), EAGAIN);
}

/* The wake-up of one who has given up is the next one's. */
static void unserved__waitq(void **state)
{
	struct call c;

	(void)state;
	for (int i = 0; i < 2; i++)
		times_out(1, waitq_thread);
	server_start();
	begin(&c, 2, waitq_thread);
	assert_int_equal(nopin_waitq_wake(end[1].m, waitq, 1), 0);
	assert_int_equal(finish(&c), 0);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* What it is told late is no news: while it waits for something else, it sleeps. */
static void unserved__is_answered_late(void **state)
{
	const uint64_t *answer = (uint64_t *)(uintptr_t)end[1].theirs.mail;
	int64_t began, cpu;

	(void)state;
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	times_out(1, sem_thread);
	server_start();
	while (!__atomic_load_n(answer, __ATOMIC_ACQUIRE))
		usleep(1000);
	pair_break(end[1].ends.qp[1]);
	began = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	assert_int_equal(nopin_sem_post(end[1].m, sem), ENOTCONN);
	began = now_ns(CLOCK_MONOTONIC) - began;
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	assert_in_range(cpu, 0, began / 2);
}

/* Nor does who leaves wait for it. */
static void unserved__leaves(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	times_out(1, sem_thread);
	assert_int_equal(nopin_member_destroy(end[1].m), 0);
	/* whatever the home hears of it, and however long its QP is there */
	assert_int_equal(
		ibv_query_qp(end[1].ends.qp[0], &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	server_start();
	assert_int_equal(gone(&end[1]), NOPIN_GONE_DIED);
	assert_int_equal(nopin_sem_post(end[0].m, sem), 0);
	pair_ends_close(&end[1].ends);
	end_open(&end[1]);
	assert_int_equal(trywait_soon(1), 0);
}

/* --- wait queues ----------------------------------------------------------- */

static void waitq__woken_before_it_waits(void **state)
{
	uint64_t ticket;

	(void)state;
	assert_int_equal(nopin_waitq_prepare(end[0].m, waitq, &ticket), 0);
	assert_int_equal(nopin_waitq_wake(end[1].m, waitq, 1), 0);
	assert_int_equal(nopin_waitq_wait(end[0].m, waitq, ticket, UINT64_MAX,
					  NOPIN_WAIT_BLOCK),
			 0);
	assert_int_equal(nopin_waitq_prepare(end[0].m, waitq, &ticket), 0);
	assert_int_equal(nopin_waitq_wait(end[0].m, waitq, ticket, 20 * MS,
					  NOPIN_WAIT_SPIN),
			 ETIMEDOUT);
}

static void waitq__one_and_all(void **state)
{
	struct call c[MEMBERS];

	(void)state;
	places = 0;
	for (int i = 1; i < MEMBERS; i++)
		begin(&c[i], i, waitq_thread);
	assert_int_equal(nopin_waitq_wake(end[0].m, waitq, 1), 0);
	assert_int_equal(finish(&c[1]), 0);
	assert_int_equal(c[1].place, 1);
	assert_int_equal(__atomic_load_n(&places, __ATOMIC_ACQUIRE), 1);
	assert_int_equal(nopin_waitq_wake(end[0].m, waitq, UINT64_MAX), 0);
	assert_int_equal(finish(&c[2]), 0);
	assert_int_equal(finish(&c[3]), 0);
}

static void sync__in_a_child(void **state)
{
	struct nopin_member *m = end[0].m;
	struct nopin_home_event e;
	uint64_t ticket;
	uint32_t id;
	int status;

	(void)state;
	if (fork() == 0)
		_exit(nopin_sem_wait(m, sem, 0, NOPIN_WAIT_SPIN) != ENODEV ||
		      nopin_sem_post(m, sem) != ENODEV ||
		      nopin_waitq_prepare(m, waitq, &ticket) != ENODEV ||
		      nopin_waitq_wake(m, waitq, 1) != ENODEV ||
		      nopin_member_destroy(m) != ENODEV ||
		      nopin_member_start(m, &end[0].card) != ENODEV ||
		      nopin_home_serve(home, NOPIN_WAIT_SPIN, &e) != ENODEV ||
		      nopin_home_stop(home) != ENODEV ||
		      nopin_home_destroy(home) != ENODEV ||
		      nopin_home_waiting(home, sem, &id) != ENODEV ||
		      nopin_sem_create(home, 1, &id) != ENODEV);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	assert_int_equal(nopin_home_destroy(home), EBUSY);
	assert_int_equal(nopin_sem_trywait(m, sem), 0);
}

/* --- the end --------------------------------------------------------------- */

static void link_break(const struct end *e)
{
	pair_break(e->ends.qp[0]);
}

static void member__leaves(void **state)
{
	struct nopin_card card, ours;
	struct nopin_member *m;

	(void)state;
	assert_int_equal(nopin_member_create(end[0].ends.qp[0], &m, &card), 0);
	assert_int_equal(nopin_home_join(home, end[0].ends.qp[1], &card, &ours),
			 EUSERS);
	assert_int_equal(nopin_member_destroy(m), 0);
	assert_int_equal(nopin_member_destroy(end[0].m), 0);
	assert_int_equal(gone(&end[0]), NOPIN_GONE_LEFT);
	pair_ends_close(&end[0].ends);
	end_open(&end[0]);
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
}

static void member__lies(void **state)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE};

	(void)state;
	/* it raises its counter, and its box is empty */
	assert_int_equal(nopin_post_write_notify(end[0].ends.qp[0], &wr,
						 end[0].card.counter, &bad),
			 0);
	assert_int_equal(gone(&end[0]), NOPIN_GONE_LIED);
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), ENOTCONN);
	assert_int_equal(nopin_sem_trywait(end[1].m, sem), 0);
}

/* Who waits with a member's QP gone; who is behind it is served. */
static void member__dies_waiting(void **state)
{
	struct call c[3];

	(void)state;
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	begin(&c[1], 1, sem_thread);
	begin(&c[2], 2, sem_thread);
	/* its library goes on to run in this process, and cannot reach anybody */
	link_break(&end[1]);
	assert_int_equal(finish(&c[1]), ENOTCONN);
	assert_int_equal(gone(&end[1]), NOPIN_GONE_DIED);
	assert_int_equal(nopin_sem_post(end[0].m, sem), 0);
	assert_int_equal(finish(&c[2]), 0);
}

/* Member 1 waits for the unit, and is granted it. */
static void granted(void)
{
	struct call c;

	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	begin(&c, 1, sem_thread);
	assert_int_equal(nopin_sem_post(end[0].m, sem), 0);
	assert_int_equal(finish(&c), 0);
}

/* What it said that it has is gone with it. */
static void member__dies_with_a_unit(void **state)
{
	(void)state;
	granted();
	link_break(&end[1]);
	pair_break(end[1].ends.qp[1]);
	assert_int_equal(gone(&end[1]), NOPIN_GONE_DIED);
	assert_int_equal(nopin_sem_trywait(end[2].m, sem), EAGAIN);
}

/* It is granted a unit and never hears of it: the next one gets that. */
static void dies_before_it_confirms(void)
{
	struct call c[3];

	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	begin(&c[1], 1, sem_thread);
	begin(&c[2], 2, sem_thread);
	link_break(&end[1]);
	assert_int_equal(nopin_sem_post(end[0].m, sem), 0);
	pair_break(end[1].ends.qp[1]); /* what the home finds out in time */
	assert_int_equal(finish(&c[1]), ENOTCONN);
	assert_int_equal(gone(&end[1]), NOPIN_GONE_DIED);
	assert_int_equal(finish(&c[2]), 0);
}

static void member__dies_before_it_confirms(void **state)
{
	(void)state;
	dies_before_it_confirms();
}

/* Who had the seat before confirmed a request with the same number. */
static void member__dies_in_a_seat_of_another(void **state)
{
	(void)state;
	granted();
	assert_int_equal(nopin_sem_post(end[1].m, sem), 0);
	assert_int_equal(nopin_member_destroy(end[1].m), 0);
	assert_int_equal(gone(&end[1]), NOPIN_GONE_LEFT);
	pair_ends_close(&end[1].ends);
	end_open(&end[1]);
	assert_int_equal(end[1].card.index, 1);
	dies_before_it_confirms();
}

/* --- the home ---------------------------------------------------------------- */

/* It has to answer, and says that it did. */
static void home__lies(void **state)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct call c;

	(void)state;
	assert_int_equal(nopin_sem_trywait(end[1].m, sem), 0);
	begin(&c, 0, sem_thread);
	assert_int_equal(nopin_post_write_notify(end[0].ends.qp[1], &wr,
						 end[0].theirs.counter, &bad),
			 0);
	assert_int_equal(finish(&c), ENOTCONN);
	assert_int_equal(nopin_sem_post(end[0].m, sem), ENOTCONN);
}

/* Its thread sleeps, and is woken; who waits for it hears of that, though its
 * program's QPs are there still. */
static void home__destroyed(void **state)
{
	struct call c[3];

	(void)state;
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	for (int i = 1; i < 3; i++)
		begin(&c[i], i, sem_thread);
	home_end();
	for (int i = 1; i < 3; i++)
		assert_int_equal(finish(&c[i]), ENOTCONN);
	for (int i = 0; i < MEMBERS; i++)
		link_break(&end[i]);
}

static void home__one_server(void **state)
{
	struct nopin_home_event e;
	struct call c;

	(void)state;
	/* its thread is there, if it did that */
	assert_int_equal(nopin_sem_trywait(end[0].m, sem), 0);
	begin(&c, 1, sem_thread);
	assert_int_equal(nopin_home_serve(home, NOPIN_WAIT_SPIN, &e), EBUSY);
	assert_int_equal(nopin_sem_post(end[0].m, sem), 0);
	assert_int_equal(finish(&c), 0);
}

static void join_refused(struct ibv_qp *q)
{
	struct nopin_card card, ours;
	struct nopin_member *m;

	assert_non_null(q);
	assert_int_equal(nopin_member_create(q, &m, &card), EINVAL);
	assert_int_equal(nopin_home_join(home, q, &end[0].theirs, &ours),
			 EINVAL);
	assert_int_equal(ibv_destroy_qp(q), 0);
}

static void join__wrong_qp(void **state)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};

	(void)state;
	join_refused(pair_qp(IBV_QPT_UD));
	init.cap = (struct ibv_qp_cap){.max_send_wr = 7, .max_send_sge = 1};
	join_refused(ibv_create_qp(pd, &init));
	init.cap = (struct ibv_qp_cap){.max_send_wr = 8};
	join_refused(ibv_create_qp(pd, &init));
}

/* Of another protection domain it could not reach what the card says. */
static void join__wrong_pd(void **state)
{
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	struct nopin_home *mine;
	struct nopin_card ours;

	(void)state;
	assert_int_equal(nopin_home_create(other, NULL, &mine), 0);
	assert_int_equal(
		nopin_home_join(mine, end[0].ends.qp[1], &end[0].theirs, &ours),
		EINVAL);
	assert_int_equal(nopin_home_destroy(mine), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* It is all there, but messages would lie elsewhere. */
static void join__of_another_version(void **state)
{
	struct nopin_card card = end[0].theirs, ours;
	struct nopin_home *mine;

	(void)state;
	card.objects--;
	assert_int_equal(nopin_home_create(pd, NULL, &mine), 0);
	assert_int_equal(nopin_home_join(mine, end[0].ends.qp[1], &card, &ours),
			 EINVAL);
	assert_int_equal(nopin_home_destroy(mine), 0);
}

/* Nor does who serves need one, not even the first time. */
static void home__no_descriptor_left(void **state)
{
	struct nopin_home_event e;
	struct rlimit was;
	int rc;

	(void)state;
	/* which is not seen at the first look: so it waits */
	pair_break(end[0].ends.qp[1]);
	was = pair_no_descriptors();
	rc = nopin_home_serve(home, NOPIN_WAIT_BLOCK, &e);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	link_break(&end[0]);
	server_start();
	assert_int_equal(rc, 0);
	assert_ptr_equal(e.qp, end[0].ends.qp[1]);
	assert_int_equal(e.gone, NOPIN_GONE_DIED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(sem__one),
		T(sem__wrong),
		T(sem__first_come_first_served),
		T(sem__times_out_in_the_queue),
		T(sem__no_descriptor_left),
		T(sem__excludes),
#define U(name) cmocka_unit_test_setup_teardown(name, setup_unserved, teardown)
		U(unserved__sem),
		U(unserved__waitq),
		U(unserved__is_answered_late),
		U(unserved__leaves),
		cmocka_unit_test_setup_teardown(sem__excludes, setup_silent,
						teardown_silent),
		T(waitq__woken_before_it_waits),
		T(waitq__one_and_all),
		T(sync__in_a_child),
		T(member__leaves),
		T(member__lies),
		T(member__dies_waiting),
		T(member__dies_with_a_unit),
		T(member__dies_before_it_confirms),
		T(member__dies_in_a_seat_of_another),
		T(home__lies),
		cmocka_unit_test_setup_teardown(home__destroyed, setup_silent,
						teardown_members),
		cmocka_unit_test_setup_teardown(home__one_server, setup_silent,
						teardown_silent),
		T(join__wrong_qp),
		T(join__wrong_pd),
		T(join__of_another_version),
		cmocka_unit_test_setup_teardown(home__no_descriptor_left,
						setup_unserved, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
