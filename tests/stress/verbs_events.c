/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs_events.c: fetching events and acknowledging them, also from another
 * thread, so that destroying has to wait.
 */
#include "verbs.h"

#include <time.h>

enum { ACKS = 64 };

/** struct ack - An event that somebody else is to acknowledge. */
struct ack {
	struct ibv_cq *cq; /* NULL: @async */
	struct ibv_async_event async;
};

static pthread_mutex_t acks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ack acks[ACKS];
static unsigned num_acks;
static bool acks_end, events_end;
static pthread_t acker, waiter;

static void ack_now(struct ack *a)
{
	if (a->cq)
		ibv_ack_cq_events(a->cq, 1);
	else
		ibv_ack_async_event(&a->async);
}

static void ack_some_time(struct ack *a, uint32_t *seed)
{
	bool later = rnd(seed, 2);

	if (later) {
		pthread_mutex_lock(&acks_lock);
		later = num_acks < ACKS;
		if (later)
			acks[num_acks++] = *a;
		pthread_mutex_unlock(&acks_lock);
	}
	if (!later)
		ack_now(a);
}

static void *acker_main(void *arg)
{
	while (!__atomic_load_n(&acks_end, __ATOMIC_RELAXED)) {
		struct ack a;
		bool any;

		usleep(300);
		pthread_mutex_lock(&acks_lock);
		any = num_acks != 0;
		if (any)
			a = acks[--num_acks];
		pthread_mutex_unlock(&acks_lock);
		if (any) {
			ack_now(&a);
			DID(acked);
		}
	}
	return arg;
}

void event_get(struct ibv_comp_channel *channel, uint32_t *seed)
{
	struct ack a = {0};
	void *cookie;

	if (ibv_get_cq_event(channel, &a.cq, &cookie)) {
		REQUIRE(errno == EAGAIN);
		return;
	}
	REQUIRE(a.cq->channel == channel && cookie == channel);
	DID(events);
	ack_some_time(&a, seed);
}

void events_open(void)
{
	pthread_create(&acker, NULL, acker_main, NULL);
}

void events_close(void)
{
	__atomic_store_n(&acks_end, true, __ATOMIC_RELAXED);
	pthread_join(acker, NULL);
	REQUIRE(num_acks == 0);
}

/* The channel of side 0 is not waited on. */
void do_event(uint32_t *seed)
{
	event_get(world.channels[0], seed);
}

void do_async(uint32_t *seed)
{
	struct ack a = {0};

	if (ibv_get_async_event(world.ctx, &a.async)) {
		REQUIRE(errno == EAGAIN);
		return;
	}
	REQUIRE(a.async.element.qp->context == world.ctx);
	DID(asyncs);
	ack_some_time(&a, seed);
}

void do_arm(uint32_t *seed)
{
	REQUIRE(ibv_req_notify_cq(world.cqs[rnd(seed, SIDES)][0],
				  (int)rnd(seed, 2)) == 0);
}

/* Waits for events of side 1, as the thread of a program would. */
static void *waiter_main(void *arg)
{
	unsigned got = 0;
	struct ibv_cq *cq;
	void *cookie;

	while (!__atomic_load_n(&events_end, __ATOMIC_RELAXED)) {
		REQUIRE(ibv_req_notify_cq(world.cqs[1][0], 0) == 0);
		while (take(1, 8, false))
			;
		REQUIRE(ibv_get_cq_event(world.channels[1], &cq, &cookie) == 0);
		REQUIRE(cq == world.cqs[1][0] && cookie == world.channels[1]);
		DID(events);
		if (++got % 8 == 0)
			ibv_ack_cq_events(cq, 8);
	}
	ibv_ack_cq_events(world.cqs[1][0], got % 8);
	return arg;
}

void waiter_start(void)
{
	pthread_create(&waiter, NULL, waiter_main, NULL);
}

/* It may find the completion itself and go on to wait: then another. */
void waiter_end(void)
{
	struct timespec soon;

	__atomic_store_n(&events_end, true, __ATOMIC_RELAXED);
	do {
		pairs_last();
		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_sec++;
	} while (pthread_timedjoin_np(waiter, NULL, &soon) == ETIMEDOUT);
}
