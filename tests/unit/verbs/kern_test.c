/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fake_nic.h"

#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst,
				struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst,
				 struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst,
			       struct ibv_sa_path_rec *src);

/* Every field with a value of its own, and what it becomes. */
static struct ib_uverbs_qp_attr src = {
	.qp_state = 1,
	.cur_qp_state = 2,
	.path_mtu = 3,
	.path_mig_state = 1,
	.qkey = 5,
	.rq_psn = 6,
	.sq_psn = 7,
	.dest_qp_num = 8,
	.qp_access_flags = 9,
	.ah_attr = {.grh = {.flow_label = 10,
			    .sgid_index = 11,
			    .hop_limit = 12,
			    .traffic_class = 13},
		    .dlid = 14,
		    .sl = 15,
		    .src_path_bits = 16,
		    .static_rate = 17,
		    .is_global = 1,
		    .port_num = 18},
	.alt_ah_attr = {.dlid = 19},
	.max_send_wr = 20,
	.max_recv_wr = 21,
	.max_send_sge = 22,
	.max_recv_sge = 23,
	.max_inline_data = 24,
	.pkey_index = 25,
	.alt_pkey_index = 26,
	.en_sqd_async_notify = 27,
	.sq_draining = 28,
	.max_rd_atomic = 29,
	.max_dest_rd_atomic = 30,
	.min_rnr_timer = 31,
	.port_num = 32,
	.timeout = 33,
	.retry_cnt = 34,
	.rnr_retry = 35,
	.alt_port_num = 36,
	.alt_timeout = 37,
};

static const struct ibv_qp_attr want = {
	.qp_state = 1,
	.cur_qp_state = 2,
	.path_mtu = 3,
	.path_mig_state = 1,
	.qkey = 5,
	.rq_psn = 6,
	.sq_psn = 7,
	.dest_qp_num = 8,
	.qp_access_flags = 9,
	.cap = {20, 21, 22, 23, 24},
	.ah_attr = {.grh = {.dgid.raw = {0xaa, [15] = 0xbb},
			    .flow_label = 10,
			    .sgid_index = 11,
			    .hop_limit = 12,
			    .traffic_class = 13},
		    .dlid = 14,
		    .sl = 15,
		    .src_path_bits = 16,
		    .static_rate = 17,
		    .is_global = 1,
		    .port_num = 18},
	.alt_ah_attr = {.dlid = 19},
	.pkey_index = 25,
	.alt_pkey_index = 26,
	.en_sqd_async_notify = 27,
	.sq_draining = 28,
	.max_rd_atomic = 29,
	.max_dest_rd_atomic = 30,
	.min_rnr_timer = 31,
	.port_num = 32,
	.timeout = 33,
	.retry_cnt = 34,
	.rnr_retry = 35,
	.alt_port_num = 36,
	.alt_timeout = 37,
};

static void qp_attr__every_field(void **state)
{
	struct ibv_qp_attr dst;

	(void)state;
	src.ah_attr.grh.dgid[0] = 0xaa;
	src.ah_attr.grh.dgid[15] = 0xbb;
	memset(&dst, 0, sizeof(dst));
	ibv_copy_qp_attr_from_kern(&dst, &src);
	assert_memory_equal(&dst, &want, sizeof(want));
}

static void path_rec__survives_both_ways(void **state)
{
	struct ib_user_path_rec in, back;
	struct ibv_sa_path_rec mid;
	uint8_t *bytes = (uint8_t *)&in;

	(void)state;
	for (size_t i = 0; i < sizeof(in); i++)
		bytes[i] = (uint8_t)(i + 1);
	in.mtu = 5; /* a byte on the way */
	memset(&mid, 0, sizeof(mid));
	memset(&back, 0, sizeof(back));
	ibv_copy_path_rec_from_kern(&mid, &in);
	assert_memory_equal(&mid.dgid, in.dgid, 16);
	assert_int_equal(mid.packet_life_time, in.packet_life_time);
	assert_int_equal(mid.rate, in.rate);
	ibv_copy_path_rec_to_kern(&back, &mid);
	assert_memory_equal(&back, &in, sizeof(in));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp_attr__every_field),
		cmocka_unit_test(path_rec__survives_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
