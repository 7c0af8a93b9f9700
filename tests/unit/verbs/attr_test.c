/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"
#include "mem/mr.h"
#include "verbs/qp_api.h"

#include <errno.h>
#include <stddef.h>

static void from_verbs__checks_what_the_mask_names(void **state)
{
	static const struct {
		struct ibv_qp_attr attr;
		int mask, rc;
	} rows[] = {
		{{.qp_state = IBV_QPS_ERR}, IBV_QP_STATE, 0},
		{{.qp_state = IBV_QPS_UNKNOWN}, IBV_QP_STATE, -EINVAL},
		{{.qp_state = IBV_QPS_UNKNOWN}, IBV_QP_PORT, 0},
		{{.cur_qp_state = IBV_QPS_UNKNOWN}, IBV_QP_CUR_STATE, -EINVAL},
		{{.path_mtu = 0}, IBV_QP_PATH_MTU, -EINVAL},
		{{.path_mtu = IBV_MTU_4096 + 1}, IBV_QP_PATH_MTU, -EINVAL},
		{{.path_mtu = 0}, IBV_QP_QKEY, 0},
		{{.ah_attr.port_num = 2}, IBV_QP_AV, -EINVAL},
		{{.ah_attr.port_num = 0}, IBV_QP_AV, -EINVAL},
		{{.ah_attr.port_num = 1}, IBV_QP_AV, 0},
		{{.ah_attr = {.port_num = 1, .sl = 15}}, IBV_QP_AV, 0},
		{{.ah_attr = {.port_num = 1, .sl = 16}}, IBV_QP_AV, -EINVAL},
		{{.path_mig_state = IBV_MIG_MIGRATED},
		 IBV_QP_PATH_MIG_STATE,
		 0},
		{{.path_mig_state = IBV_MIG_REARM},
		 IBV_QP_PATH_MIG_STATE,
		 -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct qp_attr out;

		assert_int_equal(
			qp_attr_from_verbs(&rows[i].attr, rows[i].mask, &out),
			rows[i].rc);
	}
}

static void mtu__both_ways(void **state)
{
	(void)state;
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		const struct ibv_qp_attr in = {.path_mtu = mtu};
		struct ibv_qp_attr back;
		struct qp_attr out;

		assert_int_equal(qp_attr_from_verbs(&in, IBV_QP_PATH_MTU, &out),
				 0);
		assert_int_equal(out.path_mtu, 128 << mtu);
		qp_attr_to_verbs(&out, &back);
		assert_int_equal(back.path_mtu, mtu);
	}
}

/* Every field that a reliable connection has, with a value of its own. */
static void attr__survives_both_ways(void **state)
{
	const int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MTU |
			 IBV_QP_AV;
	struct ibv_qp_attr in = {
		.qp_state = IBV_QPS_RTR,
		.cur_qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.qkey = 1,
		.rq_psn = 2,
		.sq_psn = 3,
		.dest_qp_num = 4,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
		.ah_attr = {.grh = {.flow_label = 5,
				    .sgid_index = 6,
				    .hop_limit = 7,
				    .traffic_class = 8},
			    .sl = 4,
			    .static_rate = IBV_RATE_10_GBPS,
			    .is_global = 1,
			    .port_num = 1},
		.pkey_index = 9,
		.en_sqd_async_notify = 1,
		.max_rd_atomic = 10,
		.max_dest_rd_atomic = 11,
		.min_rnr_timer = 12,
		.port_num = 1,
		.timeout = 13,
		.retry_cnt = 5,
		.rnr_retry = 6,
	};
	struct ibv_qp_attr back;
	struct qp_attr ours;

	(void)state;
	memset(in.ah_attr.grh.dgid.raw, 0xa5, 16);
	assert_int_equal(qp_attr_from_verbs(&in, mask, &ours), 0);
	assert_int_equal(ours.dgid.b[15], 0xa5);
	assert_true(ours.has_grh);
	qp_attr_to_verbs(&ours, &back);
	assert_memory_equal(&back, &in, sizeof(in));
}

static void access__local_rights_are_none_of_a_qp(void **state)
{
	const struct ibv_qp_attr in = {
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_MW_BIND,
	};
	struct qp_attr out;

	(void)state;
	assert_int_equal(qp_attr_from_verbs(&in, IBV_QP_ACCESS_FLAGS, &out), 0);
	assert_int_equal(out.access, ACCESS_REMOTE_ATOMIC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(from_verbs__checks_what_the_mask_names),
		fake_test(mtu__both_ways),
		fake_test(attr__survives_both_ways),
		fake_test(access__local_rights_are_none_of_a_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
