/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fake_nic.h"

#include <errno.h>

static void pd__create_and_destroy(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);

	(void)state;
	assert_ptr_equal(pd->context, context);
	assert_int_equal(pd->handle, fake.keys);
	fake.fail_in = 1;
	fake.error = -EBUSY;
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	fake.fail_in = 1;
	fake.error = -ENOMEM;
	assert_null(ibv_alloc_pd(context));
	assert_int_equal(errno, ENOMEM);
	ibv_close_device(context);
}

static void channel__create_and_destroy(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(context);

	(void)state;
	assert_ptr_equal(ch->context, context);
	assert_int_equal(ch->fd, 43);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	fake.fail_in = 1;
	fake.error = -EMFILE;
	assert_null(ibv_create_comp_channel(context));
	assert_int_equal(errno, EMFILE);
	ibv_close_device(context);
}

/* Its lock may be held for ever. */
static void channel__not_destroyed_in_a_child(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(context);

	(void)state;
	fake.child = true;
	assert_int_equal(ibv_destroy_comp_channel(ch), ENODEV);
	fake.child = false;
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	ibv_close_device(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(pd__create_and_destroy),
		fake_test(channel__create_and_destroy),
		fake_test(channel__not_destroyed_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
