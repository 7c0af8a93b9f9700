/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ah_test.c: address handles, and requests that take one. */
#include "base/check.h"
#include "fake_nic.h"

#include "wire/grh.h"
#include "wire/pkt.h"

#include <errno.h>
#include <stddef.h>

static void ah__checks_attributes(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	const struct {
		uint8_t dgid, sgid_index, is_global, port;
		int error;
	} rows[] = {
		{9, 0, 1, 1, 0},       {9, 1, 1, 1, 0},
		{9, 2, 1, 1, ENODATA}, {9, NIC_GIDS_MAX, 1, 1, EINVAL},
		{9, 0, 0, 1, EINVAL},  {9, 0, 1, 2, EINVAL},
		{9, 0, 1, 0, EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_ah_attr attr = {
			.grh = {.dgid.raw = {[10] = 0xff,
					     0xff,
					     10,
					     [15] = rows[i].dgid},
				.sgid_index = rows[i].sgid_index},
			.is_global = rows[i].is_global,
			.port_num = rows[i].port,
		};
		struct ibv_ah *ah;

		errno = 0;
		ah = ibv_create_ah(pd, &attr);
		assert_int_equal(errno, rows[i].error);
		assert_int_equal(ah == NULL, rows[i].error != 0);
		if (ah) {
			assert_ptr_equal(ah->pd, pd);
			assert_int_equal(ibv_destroy_ah(ah), 0);
		}
	}
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
}

static const struct ipaddr v4_peer = {
	{[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [14] = 2, [15] = 3}};
static const struct ipaddr v6_peer = {{0xfd, [15] = 3}};

static int create(struct ibv_pd *pd, const struct ipaddr *dgid)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	memcpy(&attr.grh.dgid, dgid, sizeof(*dgid));
	errno = 0;
	ah = ibv_create_ah(pd, &attr);
	if (ah)
		ibv_destroy_ah(ah);
	return errno;
}

static void create__no_groups(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ipaddr group4 = v4_peer;
	const struct ipaddr group6 = {{0xff, 0x02, [15] = 1}};

	(void)state;
	group4.b[12] = 224;
	assert_int_equal(create(pd, &v4_peer), 0);
	/* the fake NIC has no IPv6 address */
	assert_int_equal(create(pd, &v6_peer), EINVAL);
	assert_int_equal(create(pd, &group4), EOPNOTSUPP);
	assert_int_equal(create(pd, &group6), EOPNOTSUPP);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
}

/* The header in front of a datagram from @src, as the NIC makes it. */
static struct ibv_grh grh_from(struct ibv_context *context,
			       const struct ipaddr *src)
{
	struct pkt p = {.fwd_src.ip = *src,
			.fwd_mark = {0xa7, 9},
			.hdr_len = 20,
			.payload_len = 4};
	struct ibv_grh grh;
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(context, 1, 1, &gid), 0);
	memcpy(&p.fwd_dst, &gid, sizeof(p.fwd_dst));
	grh_build(&p, (uint8_t *)&grh);
	return grh;
}

static void init_from_wc__the_way_back(void **state)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH}, no_grh = {0};
	struct ibv_context *context = fake_open();
	struct ibv_ah_attr attr;
	struct ibv_grh grh = grh_from(context, &v6_peer);

	(void)state;
	assert_int_equal(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), 0);
	assert_memory_equal(&attr.grh.dgid, &v6_peer, 16);
	assert_int_equal(attr.grh.sgid_index, 1);
	assert_int_equal(attr.grh.traffic_class, 0xa7);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(ibv_init_ah_from_wc(context, 2, &wc, &grh, &attr), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_init_ah_from_wc(context, 1, &no_grh, &grh, &attr),
			 -1);
	memset(&grh.dgid, 0x77, sizeof(grh.dgid)); /* not to us */
	assert_int_equal(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), -1);
	ibv_close_device(context);
}

/* An IPv4 header is in the last 20 bytes, and what is before it is anybody's. */
static void init_from_wc__ipv4(void **state)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_context *context = fake_open();
	uint8_t ip[20] = {0x45, 106, 0, 80, 0, 7, 0x40, 0, 64, 17};
	struct ibv_ah_attr attr;
	struct ibv_grh grh;
	union ibv_gid gid;
	uint32_t sum = 0;

	(void)state;
	assert_int_equal(ibv_query_gid(context, 1, 1, &gid), 0);
	memcpy(ip + 12, v4_peer.b + 12, 4);
	memcpy(ip + 16, gid.raw + 12, 4);
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = ~((sum & 0xffff) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
	memset(&grh, 0x66, 20);
	memcpy((uint8_t *)&grh + 20, ip, 20);
	assert_int_equal(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), 0);
	assert_memory_equal(&attr.grh.dgid, &v4_peer, 16);
	assert_int_equal(attr.grh.sgid_index, 1);
	assert_int_equal(attr.grh.traffic_class, 106);
	((uint8_t *)&grh)[33]++; /* its checksum is wrong now */
	assert_int_equal(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), -1);
	ibv_close_device(context);
}

struct uds {
	struct rc rc;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
};

static void ud_open(struct uds *u, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = 8,
			.max_recv_wr = 8,
			.max_send_sge = 3,
			.max_recv_sge = 2,
			.max_inline_data = 32},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = ops};
	struct ibv_ah_attr ah = {
		.grh = {.sgid_index = 1, .traffic_class = 106, .hop_limit = 7},
		.is_global = 1,
		.port_num = 1};

	rc_open(&u->rc, 0, 0);
	attr.pd = u->rc.pd;
	attr.send_cq = attr.recv_cq = u->rc.cq;
	u->qp = ibv_create_qp_ex(u->rc.context, &attr);
	assert_non_null(u->qp);
	memcpy(&ah.grh.dgid, &v4_peer, sizeof(v4_peer));
	u->ah = ibv_create_ah(u->rc.pd, &ah);
	assert_non_null(u->ah);
}

static void ud_close(struct uds *u)
{
	ibv_destroy_qp(u->qp);
	rc_close(&u->rc);
}

static void check_to(const struct wqe *wqe, uint32_t qpn, uint32_t qkey)
{
	assert_memory_equal(&wqe->to.dgid, &v4_peer, sizeof(v4_peer));
	assert_int_equal(wqe->to.local.b[15], 2); /* GID 1 */
	assert_int_equal(wqe->to.mark.tclass, 106);
	assert_int_equal(wqe->to.mark.hops, 7);
	assert_int_equal(wqe->to.qpn, qpn);
	assert_int_equal(wqe->to.qkey, qkey);
}

/* The handle is gone before it is looked at again. */
static void post__says_where_to(void **state)
{
	struct ibv_sge sge = {0x1000, 8, 5};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct uds u;

	(void)state;
	ud_open(&u, 0);
	wr.wr.ud.ah = u.ah;
	wr.wr.ud.remote_qpn = 0x123;
	wr.wr.ud.remote_qkey = 0x80000001;
	assert_int_equal(ibv_post_send(u.qp, &wr, &bad), 0);
	ibv_destroy_ah(u.ah);
	check_to(fake_wqe(u.qp, true, 0), 0x123, 0x80000001);
	ud_close(&u);
}

static void post__only_what_a_datagram_can(void **state)
{
	struct ibv_sge sge = {0x1000, 8, 5};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct uds u;

	(void)state;
	ud_open(&u, 0);
	assert_int_equal(ibv_post_send(u.qp, &wr, &bad), EINVAL);
	wr.wr.ud.ah = u.ah;
	sge.length = fake.mtu + 1;
	assert_int_equal(ibv_post_send(u.qp, &wr, &bad), EINVAL);
	sge.length = fake.mtu;
	assert_int_equal(ibv_post_send(u.qp, &wr, &bad), 0);
	wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(ibv_post_send(u.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	assert_int_equal(ibv_post_send(u.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	assert_int_equal(ibv_post_send(u.qp, &wr, &bad), 0);
	assert_int_equal(fake_published(u.qp), 2);
	ibv_destroy_ah(u.ah);
	ud_close(&u);
}

static struct ibv_ah *ah_in(struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	memcpy(&attr.grh.dgid, &v4_peer, sizeof(v4_peer));
	return ibv_create_ah(pd, &attr);
}

/* Of another PD, to no QPN, or no handle at all: by both ways to post. */
static void post__handle_of_the_qps_pd_only(void **state)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};
	struct ibv_qp_ex *qp;
	struct ibv_pd *other;
	struct uds u;

	(void)state;
	ud_open(&u, IBV_QP_EX_WITH_SEND);
	other = ibv_alloc_pd(u.rc.context);
	const struct {
		struct ibv_ah *ah;
		uint32_t qpn;
		int error;
	} rows[] = {{NULL, 7, EINVAL},
		    {ah_in(other), 7, EINVAL},
		    {u.ah, 1 << 24, EINVAL},
		    {u.ah, 0xffffff, 0}};

	qp = ibv_qp_to_qp_ex(u.qp);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		wr.wr.ud.ah = rows[i].ah;
		wr.wr.ud.remote_qpn = rows[i].qpn;
		assert_int_equal(ibv_post_send(u.qp, &wr, &bad), rows[i].error);
		ibv_wr_start(qp);
		ibv_wr_send(qp);
		ibv_wr_set_ud_addr(qp, rows[i].ah, rows[i].qpn, 8);
		assert_int_equal(ibv_wr_complete(qp), rows[i].error);
	}
	assert_int_equal(fake_published(u.qp), 2);
	ibv_destroy_ah(rows[1].ah);
	ibv_destroy_ah(u.ah);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	ud_close(&u);
}

/* A PD is in use by its handles, too; who closes the device first may destroy both
 * in any order. */
static void destroy__lets_the_pd_go(void **state)
{
	struct ibv_context *context = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(context), *pd2 = ibv_alloc_pd(context);
	struct ibv_ah *ah = ah_in(pd), *ah2 = ah_in(pd2);

	(void)state;
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	fake.child = true;
	assert_int_equal(ibv_destroy_ah(ah), ENODEV);
	assert_int_equal(ibv_dealloc_pd(pd), ENODEV);
	fake.child = false;
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	ibv_close_device(context);
	assert_int_equal(ibv_dealloc_pd(pd2), 0);
	assert_int_equal(ibv_destroy_ah(ah2), 0);
}

static void wr__says_where_to(void **state)
{
	struct ibv_qp_ex *qp;
	struct uds u;

	(void)state;
	ud_open(&u, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	qp = ibv_qp_to_qp_ex(u.qp);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, u.ah, 7, 8);
	ibv_wr_set_sge(qp, 1, 2, fake.mtu);
	assert_int_equal(ibv_wr_complete(qp), 0);
	check_to(fake_wqe(u.qp, true, 0), 7, 8);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, u.ah, 7, 8);
	ibv_wr_set_sge(qp, 1, 2, fake.mtu + 1);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_int_equal(fake_published(u.qp), 1);
	ibv_destroy_ah(u.ah);
	ud_close(&u);
}

static void wr__not_what_datagrams_lack(void **state)
{
	struct rc rc;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};

	(void)state;
	rc_open(&rc, 0, 0);
	attr.pd = rc.pd;
	attr.send_cq = attr.recv_cq = rc.cq;
	errno = 0;
	assert_null(ibv_create_qp_ex(rc.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(ah__checks_attributes),
		fake_test(create__no_groups),
		fake_test(init_from_wc__the_way_back),
		fake_test(init_from_wc__ipv4),
		fake_test(post__says_where_to),
		fake_test(post__only_what_a_datagram_can),
		fake_test(post__handle_of_the_qps_pd_only),
		fake_test(destroy__lets_the_pd_go),
		fake_test(wr__says_where_to),
		fake_test(wr__not_what_datagrams_lack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
