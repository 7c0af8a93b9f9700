/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"

#include <errno.h>
#include <stddef.h>

static void create__refuses(void **state)
{
	struct ibv_context *context = fake_open();
	const int vectors = context->num_comp_vectors;
	const struct {
		int cqe, vector;
	} rows[] = {
		{0, 0}, {-1, 0}, {NIC_MAX_CQE + 1, 0}, {1, -1}, {1, vectors},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		errno = 0;
		assert_null(ibv_create_cq(context, rows[i].cqe, NULL, NULL,
					  rows[i].vector));
		assert_int_equal(errno, EINVAL);
	}
	ibv_close_device(context);
}

static void create__counts_users_of_the_channel(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(context);
	int cookie;
	struct ibv_cq *cq;

	(void)state;
	cq = ibv_create_cq(context, 5, &cookie, ch, 0);
	assert_non_null(cq);
	assert_ptr_equal(cq->channel, ch);
	assert_ptr_equal(cq->cq_context, &cookie);
	assert_int_equal(cq->cqe, 5);
	/* as a card has room for more */
	for (int i = 0; i < 16; i++)
		fake_complete(cq, &(struct cqe){.wr_id = 1});
	assert_int_equal(ibv_destroy_comp_channel(ch), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	ibv_close_device(context);
}

static void create__foreign_channel(void **state)
{
	struct ibv_context *a = fake_open(), *b = fake_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(a);

	(void)state;
	assert_null(ibv_create_cq(b, 1, NULL, ch, 0));
	assert_int_equal(errno, EINVAL);
	ibv_destroy_comp_channel(ch);
	ibv_close_device(a);
	ibv_close_device(b);
}

static void create__nic_refuses(void **state)
{
	struct ibv_context *context = fake_open();
	const uint32_t slot = fake_next_slot();

	(void)state;
	fake.fail_in = 1;
	assert_null(ibv_create_cq(context, 1, NULL, NULL, 0));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(fake_next_slot(), slot);
	ibv_close_device(context);
}

/* Before the table of events is locked. */
static void create__refused_in_a_child(void **state)
{
	struct ibv_context *context = fake_open();

	(void)state;
	fake.child = true;
	assert_null(ibv_create_cq(context, 1, NULL, NULL, 0));
	assert_int_equal(errno, ENODEV);
	fake.child = false;
	ibv_close_device(context);
}

static void create_ex__flags(void **state)
{
	struct ibv_context *context = fake_open();
	const struct {
		struct ibv_cq_init_attr_ex attr;
		int error;
	} rows[] = {
		{{.cqe = 1, .wc_flags = IBV_WC_STANDARD_FLAGS}, 0},
		{{.cqe = 1, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP},
		 EOPNOTSUPP},
		{{.cqe = 1, .comp_mask = 1 << 7}, EOPNOTSUPP},
		{{.cqe = 1,
		  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		  .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED},
		 0},
		{{.cqe = 1,
		  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		  .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN},
		 EOPNOTSUPP},
		{{.cqe = 0}, EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_cq_init_attr_ex attr = rows[i].attr;
		struct ibv_cq_ex *cq;

		errno = 0;
		cq = ibv_create_cq_ex(context, &attr);
		assert_int_equal(errno, rows[i].error);
		assert_int_equal(cq == NULL, rows[i].error != 0);
		if (cq)
			ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
	}
	ibv_close_device(context);
}

static void resize__only_if_nic_agrees(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_cq *cq = ibv_create_cq(context, 5, NULL, NULL, 0);

	(void)state;
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, NIC_MAX_CQE + 1), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 7), 0);
	assert_int_equal(cq->cqe, 7);
	assert_int_equal(ibv_resize_cq(cq, 20), 0);
	assert_int_equal(cq->cqe, 20);
	fake.fail_in = 1;
	fake.error = -EINVAL;
	assert_int_equal(ibv_resize_cq(cq, 3), EINVAL);
	assert_int_equal(cq->cqe, 20);
	ibv_destroy_cq(cq);
	ibv_close_device(context);
}

static void *resizes(void *arg)
{
	for (int i = 0; i < 1000; i++)
		assert_int_equal(ibv_resize_cq(arg, 20 + i), 0);
	return NULL;
}

/* ThreadSanitizer judges. */
static void resize__by_two_threads(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_cq *cq = ibv_create_cq(context, 5, NULL, NULL, 0);
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, resizes, cq);
	resizes(cq);
	pthread_join(thread, NULL);
	ibv_destroy_cq(cq);
	ibv_close_device(context);
}

static void destroy__busy_while_used(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, 0, 0);
	assert_int_equal(ibv_destroy_cq(rc.cq), EBUSY);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(create__refuses),
		fake_test(create__counts_users_of_the_channel),
		fake_test(create__foreign_channel),
		fake_test(create__nic_refuses),
		fake_test(create__refused_in_a_child),
		fake_test(create_ex__flags),
		fake_test(resize__only_if_nic_agrees),
		fake_test(resize__by_two_threads),
		fake_test(destroy__busy_while_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
