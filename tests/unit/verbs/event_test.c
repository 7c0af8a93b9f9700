/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"
#include "verbs/event.h"
#include "verbs/object.h"

#include <errno.h>
#include <unistd.h>

static void cq_event__carries_cq_and_context(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(context);
	int mine;
	struct ibv_cq *cq = ibv_create_cq(context, 1, &mine, ch, 0), *got;
	void *got_context;

	(void)state;
	assert_int_equal(ibv_get_cq_event(ch, &got, &got_context), -1);
	assert_int_equal(errno, EAGAIN);
	fake_cq_event(cq);
	assert_int_equal(ibv_get_cq_event(ch, &got, &got_context), 0);
	assert_ptr_equal(got, cq);
	assert_ptr_equal(got_context, &mine);
	ibv_ack_cq_events(cq, 1);
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(ch);
	ibv_close_device(context);
}

/* An event that was queued for a CQ which is gone, before one that is not. */
static void cq_event__of_a_destroyed_cq_is_dropped(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(context);
	struct ibv_cq *old = ibv_create_cq(context, 1, NULL, ch, 0);
	struct ibv_cq *cq, *got;
	void *got_context;

	(void)state;
	fake_cq_event(old);
	ibv_destroy_cq(old);
	cq = ibv_create_cq(context, 1, NULL, ch, 0); /* the same table slot */
	fake_cq_event(cq);
	assert_int_equal(ibv_get_cq_event(ch, &got, &got_context), 0);
	assert_ptr_equal(got, cq);
	assert_int_equal(ibv_get_cq_event(ch, &got, &got_context), -1);
	ibv_ack_cq_events(cq, 1);
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(ch);
	ibv_close_device(context);
}

struct waiter_thread {
	struct ibv_cq *cq;
	bool destroyed;
};

static void *destroys(void *arg)
{
	struct waiter_thread *w = arg;

	ibv_destroy_cq(w->cq);
	__atomic_store_n(&w->destroyed, true, __ATOMIC_RELEASE);
	return NULL;
}

static void destroy__waits_for_acknowledgements(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(context);
	struct waiter_thread w = {0};
	struct ibv_async_event event;
	struct ibv_cq *got;
	void *got_context;
	pthread_t thread;

	(void)state;
	w.cq = ibv_create_cq(context, 1, NULL, ch, 0);
	for (int i = 0; i < 2; i++) {
		fake_cq_event(w.cq);
		ibv_get_cq_event(ch, &got, &got_context);
	}
	fake_async(context, NIC_EVENT_CQ_ERR, vcq_of(w.cq)->events.cookie);
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	pthread_create(&thread, NULL, destroys, &w);
	usleep(20000);
	assert_false(__atomic_load_n(&w.destroyed, __ATOMIC_ACQUIRE));
	ibv_ack_cq_events(w.cq, 1);
	ibv_ack_async_event(&event);
	usleep(20000);
	assert_false(__atomic_load_n(&w.destroyed, __ATOMIC_ACQUIRE));
	ibv_ack_cq_events(w.cq, 0);
	ibv_ack_cq_events(w.cq, 1);
	pthread_join(thread, NULL);
	ibv_destroy_comp_channel(ch);
	ibv_close_device(context);
}

/* While it waits it is no cancellation point (rping cancels its threads). */
static void destroy__is_not_cancelled(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(context);
	struct waiter_thread w = {0};
	struct ibv_cq *got;
	void *got_context;
	pthread_t thread;

	(void)state;
	w.cq = ibv_create_cq(context, 1, NULL, ch, 0);
	fake_cq_event(w.cq);
	ibv_get_cq_event(ch, &got, &got_context);
	pthread_create(&thread, NULL, destroys, &w);
	usleep(20000);
	pthread_cancel(thread);
	usleep(20000);
	ibv_ack_cq_events(w.cq, 1);
	pthread_join(thread, NULL);
	assert_true(w.destroyed);
	ibv_destroy_comp_channel(ch);
	ibv_close_device(context);
}

static void async__of_cq_qp_and_device(void **state)
{
	struct ibv_async_event event;
	struct rc rc;

	(void)state;
	rc_open(&rc, 0, 0);
	fake_async(rc.context, NIC_EVENT_CQ_ERR, vcq_of(rc.cq)->events.cookie);
	assert_int_equal(ibv_get_async_event(rc.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, rc.cq);
	ibv_ack_async_event(&event);
	assert_int_equal(rc.cq->async_events_completed, 1);
	assert_int_equal(rc.cq->comp_events_completed, 0);

	fake_async(rc.context, NIC_EVENT_QP_ACCESS_ERR,
		   vqp_of(rc.qp)->events.cookie);
	assert_int_equal(ibv_get_async_event(rc.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, rc.qp);
	ibv_ack_async_event(&event);
	assert_int_equal(rc.qp->events_completed, 1);

	fake_async(rc.context, NIC_EVENT_DEVICE_FATAL, NULL);
	assert_int_equal(ibv_get_async_event(rc.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);

	assert_int_equal(ibv_get_async_event(rc.context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	rc_close(&rc);
}

static void tracked__many(void **state)
{
	static struct tracked t[40];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(tracked_add(&t[i]), 0);
		for (size_t j = 0; j < i; j++)
			assert_ptr_not_equal(t[i].cookie, t[j].cookie);
	}
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		void *old = t[i].cookie;

		tracked_del(&t[i]);
		assert_int_equal(tracked_add(&t[i]), 0);
		assert_ptr_not_equal(t[i].cookie, old);
	}
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		tracked_del(&t[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(cq_event__carries_cq_and_context),
		fake_test(cq_event__of_a_destroyed_cq_is_dropped),
		fake_test(destroy__waits_for_acknowledgements),
		fake_test(destroy__is_not_cancelled),
		fake_test(async__of_cq_qp_and_device),
		fake_test(tracked__many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
