/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fake_nic.h"

#include <errno.h>

static void list__empty_without_address(void **state)
{
	struct ibv_device **list;
	int num = 5;

	(void)state;
	fake.present = false;
	list = ibv_get_device_list(&num);
	assert_non_null(list);
	assert_int_equal(num, 0);
	assert_null(list[0]);
	ibv_free_device_list(list);
}

/* Not to know is not the same as none. */
static void list__cannot_be_found_out(void **state)
{
	int num = 5;

	(void)state;
	fake.present = false;
	fake.present_error = -EMFILE;
	errno = 0;
	assert_null(ibv_get_device_list(&num));
	assert_int_equal(errno, EMFILE);
	assert_int_equal(num, 0);
}

static void list__one_device(void **state)
{
	struct ibv_device **list;
	int num = 0;

	(void)state;
	list = ibv_get_device_list(&num);
	assert_int_equal(num, 1);
	assert_null(list[1]);
	assert_string_equal(ibv_get_device_name(list[0]), "nopin0");
	assert_string_equal(list[0]->dev_name, "uverbs0");
	assert_string_equal(list[0]->ibdev_path,
			    "/sys/class/infiniband/nopin0");
	assert_int_equal(list[0]->node_type, IBV_NODE_CA);
	assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IB);
	assert_int_equal(ibv_get_device_index(list[0]), 0);
	ibv_free_device_list(list);
}

/* libmlx5 and libefa look for their own pointers there. */
static void list__zeroes_behind_the_device(void **state)
{
	static const uint8_t zeroes[64];
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	assert_memory_equal(list[0] + 1, zeroes, sizeof(zeroes));
	ibv_free_device_list(list);
}

static void guid__big_endian(void **state)
{
	static const uint8_t want[8] = {1,    0x23, 0x45, 0x67,
					0x89, 0xab, 0xcd, 0xef};
	struct ibv_device **list = ibv_get_device_list(NULL);
	const __be64 guid = ibv_get_device_guid(list[0]);

	(void)state;
	assert_memory_equal(&guid, want, sizeof(want));
	fake.fail_in = 1;
	assert_int_equal(ibv_get_device_guid(list[0]), 0);
	ibv_free_device_list(list);
}

static void open__context_as_programs_expect(void **state)
{
	struct ibv_context *context = fake_open();
	struct verbs_context *v = verbs_get_ctx(context);

	(void)state;
	assert_non_null(v);
	assert_int_equal(v->sz, sizeof(*v));
	assert_int_equal(context->async_fd, 42);
	assert_true(context->num_comp_vectors >= 1);
	assert_non_null(context->ops.poll_cq);
	ibv_close_device(context);
}

static void open__nic_refuses(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	for (unsigned nth = 1; nth <= 2; nth++) {
		fake.fail_in = nth;
		fake.error = -ENODEV;
		errno = 0;
		assert_null(ibv_open_device(list[0]));
		assert_int_equal(errno, ENODEV);
	}
	ibv_free_device_list(list);
}

static void open__not_our_device(void **state)
{
	struct ibv_device other = {0};

	(void)state;
	assert_null(ibv_open_device(&other));
	assert_int_equal(errno, ENODEV);
	assert_int_equal(ibv_get_device_index(&other), -1);
	assert_int_equal(ibv_get_device_guid(&other), 0);
}

/* fake_check() sees that nothing of it is left in the NIC. */
static void close__takes_down_what_is_left(void **state)
{
	struct rc rc;
	struct ibv_comp_channel *ch;
	struct ibv_mr *mr;

	(void)state;
	rc_open(&rc, 0, 0);
	ch = ibv_create_comp_channel(rc.context);
	mr = ibv_reg_mr(rc.pd, &rc, sizeof(rc), 0);
	assert_int_equal(ibv_close_device(rc.context), 0);
	assert_int_equal(fake.live, 0);
	/* destroyed too late: only their memory is left */
	assert_int_equal(ibv_destroy_qp(rc.qp), 0);
	assert_int_equal(ibv_destroy_cq(rc.cq), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	assert_int_equal(ibv_dealloc_pd(rc.pd), 0);
}

static void close__refused_in_a_child(void **state)
{
	struct ibv_context *context = fake_open();
	const int live = fake.live;

	(void)state;
	fake.child = true;
	assert_int_equal(ibv_close_device(context), ENODEV);
	assert_int_equal(fake.live, live);
	fake.child = false;
	assert_int_equal(ibv_close_device(context), 0);
}

static void fork__needs_nothing(void **state)
{
	(void)state;
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(ibv_dontfork_range(NULL, 1), 0);
	assert_int_equal(ibv_dofork_range(NULL, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(list__empty_without_address),
		fake_test(list__cannot_be_found_out),
		fake_test(list__one_device),
		fake_test(list__zeroes_behind_the_device),
		fake_test(guid__big_endian),
		fake_test(open__context_as_programs_expect),
		fake_test(open__nic_refuses),
		fake_test(open__not_our_device),
		fake_test(close__takes_down_what_is_left),
		fake_test(close__refused_in_a_child),
		fake_test(fork__needs_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
