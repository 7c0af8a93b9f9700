/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "base/counters.h"
#include "fake_nic.h"
#include "verbs/query.h"

#include <errno.h>
#include <stddef.h>

static struct ibv_context *context;

static int open_device(void **state)
{
	fake_reset(state);
	context = fake_open();
	return 0;
}

static int close_device(void **state)
{
	ibv_close_device(context);
	return fake_check(state);
}

static void device__says(void **state)
{
	struct ibv_device_attr attr;

	(void)state;
	assert_int_equal(ibv_query_device(context, &attr), 0);
	assert_int_equal(attr.max_qp_wr, 32768);
	assert_int_equal(attr.max_sge, 32);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(attr.max_pkeys, 1);
	assert_true(attr.page_size_cap & 4096);
	assert_false(attr.page_size_cap & 4095);
	assert_int_not_equal(attr.node_guid, 0);
	/* perftest's table and pyverbs' mlx5 tests */
	assert_int_equal(attr.vendor_part_id, 26428);
	assert_int_not_equal(attr.vendor_id, 0x02c9);
}

static void device_ex__on_demand_paging(void **state)
{
	const uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
			    IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			    IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
	struct ibv_device_attr_ex attr;

	(void)state;
	assert_int_equal(ibv_query_device_ex(context, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps,
			 IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, rc);
	assert_int_equal(attr.phys_port_cnt_ex, 1);
	assert_int_equal(attr.orig_attr.max_qp_wr, 32768);
	assert_int_equal(attr.orig_attr.max_srq_wr, 32768);
	assert_int_equal(attr.orig_attr.max_srq_sge, 32);
	assert_true(attr.orig_attr.max_srq > 0);
}

static void device_ex__honours_size(void **state)
{
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct {
		struct ibv_device_attr_ex attr;
		uint8_t more[32];
	} big;
	const size_t small = sizeof(struct ibv_device_attr);
	uint8_t *bytes = (uint8_t *)&big;

	(void)state;
	memset(&big, 0xee, sizeof(big));
	assert_int_equal(
		query_device_ext(context, &input, &big.attr, sizeof(big)),
		EINVAL);
	assert_int_equal(query_device_ext(context, NULL, &big.attr, small - 1),
			 EINVAL);
	assert_int_equal(bytes[0], 0xee);
	assert_int_equal(query_device_ext(context, NULL, &big.attr, small), 0);
	assert_int_equal(big.attr.orig_attr.max_sge, 32);
	assert_int_equal(bytes[small], 0xee);
	assert_int_equal(
		query_device_ext(context, NULL, &big.attr, sizeof(big)), 0);
	assert_int_equal(big.attr.phys_port_cnt_ex, 1);
	for (size_t i = 0; i < sizeof(big.more); i++)
		assert_int_equal(big.more[i], 0);
}

static void mtu__fits(void **state)
{
	static const struct {
		uint32_t bytes;
		enum ibv_mtu mtu;
	} rows[] = {
		{0, IBV_MTU_256},     {256, IBV_MTU_256},
		{511, IBV_MTU_256},   {512, IBV_MTU_512},
		{1024, IBV_MTU_1024}, {1400, IBV_MTU_1024},
		{2048, IBV_MTU_2048}, {4095, IBV_MTU_2048},
		{4096, IBV_MTU_4096}, {9000, IBV_MTU_4096},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(mtu_to_verbs(rows[i].bytes), rows[i].mtu);
}

static void port__says(void **state)
{
	struct {
		struct ibv_port_attr attr;
		uint8_t more[8];
	} port;

	(void)state;
	fake.counters.v[CNT_drop_pkey] = 3;
	fake.counters.v[CNT_drop_qkey] = UINT64_C(1) << 33;
	memset(&port, 0xee, sizeof(port));
	assert_int_equal(ibv_query_port(context, 1, (void *)&port.attr), 0);
	assert_int_equal(((uint8_t *)&port)[47], IBV_QPF_GRH_REQUIRED);
	assert_int_equal(((uint8_t *)&port)[48], 0xee);
	assert_int_equal(query_port_ext(context, 1, &port.attr, sizeof(port)),
			 0);
	assert_int_equal(port.attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.attr.active_mtu, IBV_MTU_1024);
	assert_int_equal(port.attr.max_mtu, IBV_MTU_4096);
	assert_int_equal(port.attr.gid_tbl_len, NIC_GIDS_MAX);
	assert_int_equal(port.attr.pkey_tbl_len, 1);
	assert_int_equal(port.attr.bad_pkey_cntr, 3);
	assert_int_equal(port.attr.qkey_viol_cntr, UINT32_MAX);
	assert_int_equal(port.attr.max_msg_sz, UINT32_C(1) << 31);
	for (size_t i = 0; i < sizeof(port.more); i++)
		assert_int_equal(port.more[i], 0);
	fake.down = true;
	assert_int_equal(query_port_ext(context, 1, &port.attr, 52), 0);
	assert_int_equal(port.attr.state, IBV_PORT_DOWN);
	assert_int_equal(port.attr.phys_state, 3);
	assert_int_equal(query_port_ext(context, 0, &port.attr, 52), EINVAL);
	assert_int_equal(query_port_ext(context, 2, &port.attr, 52), EINVAL);
}

static void gid__table(void **state)
{
	struct ibv_gid_entry entry[3];
	enum verbs_gid_type type;
	union ibv_gid gid;

	(void)state;
	assert_int_equal(ibv_query_gid(context, 1, 1, &gid), 0);
	assert_int_equal(gid.raw[15], 2);
	assert_int_equal(ibv_query_gid_ex(context, 1, 1, &entry[0], 0), 0);
	assert_memory_equal(&entry[0].gid, &gid, 16);
	assert_int_equal(entry[0].gid_index, 1);
	assert_int_equal(entry[0].port_num, 1);
	assert_int_equal(entry[0].gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry[0].ndev_ifindex, 7);
	assert_int_equal(ibv_query_gid_table(context, entry, 3, 0), 2);
	assert_int_equal(entry[1].gid_index, 1);
	assert_int_equal(entry[1].gid.raw[15], 2);
	assert_int_equal(ibv_query_gid_table(context, entry, 2, 0), 2);
	assert_int_equal(ibv_query_gid_type(context, 1, 0, &type), 0);
	assert_int_equal(type, 1);
}

/* To calls that have no error for it an empty slot is one of zeroes. */
static void gid__empty_slots(void **state)
{
	static const union ibv_gid zero;
	struct ibv_gid_entry entry[3];
	enum verbs_gid_type type = VERBS_GID_ROCE_V2;
	union ibv_gid gid;

	(void)state;
	memset(&gid, 0xee, sizeof(gid));
	errno = 0;
	assert_int_equal(ibv_query_gid(context, 1, 2, &gid), 0);
	assert_memory_equal(&gid, &zero, sizeof(gid));
	assert_int_equal(ibv_query_gid_type(context, 1, 2, &type), 0);
	assert_int_equal(type, VERBS_GID_IB_OR_V1);
	assert_int_equal(errno, 0);
	assert_int_equal(ibv_query_gid_ex(context, 1, 2, entry, 0), ENODATA);
	fake.gids = 0;
	assert_int_equal(ibv_query_gid_table(context, entry, 3, 0), 0);
}

static void gid__mistakes(void **state)
{
	struct ibv_gid_entry entry[3];
	enum verbs_gid_type type;
	union ibv_gid gid;

	(void)state;
	assert_int_equal(ibv_query_gid(context, 1, NIC_GIDS_MAX, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(context, 2, 0, &gid), -1);
	assert_int_equal(ibv_query_gid_ex(context, 1, 2, entry, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(context, 2, 0, entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(context, 1, 0, entry, 1), EOPNOTSUPP);
	assert_int_equal(_ibv_query_gid_ex(context, 1, 0, entry, 0, 31),
			 EINVAL);
	assert_int_equal(ibv_query_gid_table(context, entry, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(context, entry, 3, 1),
			 -EOPNOTSUPP);
	assert_int_equal(ibv_query_gid_ex(context, 1, NIC_GIDS_MAX, entry, 0),
			 EINVAL);
	assert_int_equal(ibv_query_gid_type(context, 1, NIC_GIDS_MAX, &type),
			 -1);
	assert_int_equal(ibv_query_gid_type(context, 2, 0, &type), -1);
}

static void pkey__only_the_default(void **state)
{
	__be16 pkey = 0;

	(void)state;
	assert_int_equal(ibv_query_pkey(context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(context, 2, 0, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(context, 1, 0xffff), 0);
	assert_int_equal(ibv_get_pkey_index(context, 1, 0x7fff), -1);
	assert_int_equal(ibv_get_pkey_index(context, 2, 0xffff), -1);
}

static void resolve__mac(void **state)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	const uint8_t own[6] = {2, 0, 0, 0, 0, 1};
	const uint8_t link_local[16] = {0xfe, 0x80, [8] = 0x50, 0x54, 0,
					0xff, 0xfe, 0x12,	0x34, 0x56};
	const uint8_t derived[6] = {0x52, 0x54, 0, 0x12, 0x34, 0x56};
	uint8_t mac[6];
	uint16_t vid;

	(void)state;
	ibv_query_gid(context, 1, 1, &attr.grh.dgid);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vid),
			 0);
	assert_memory_equal(mac, own, 6);
	assert_int_equal(vid, 0xffff);
	memcpy(attr.grh.dgid.raw, link_local, 16);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(context, &attr, mac, NULL),
			 0);
	assert_memory_equal(mac, derived, 6);
	attr.grh.dgid.raw[11] = 1;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(context, &attr, mac, NULL),
			 EHOSTUNREACH);
	attr.port_num = 2;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(context, &attr, mac, NULL),
			 EINVAL);
}

#define device_test(name)                                                      \
	cmocka_unit_test_setup_teardown(name, open_device, close_device)

int main(void)
{
	const struct CMUnitTest tests[] = {
		device_test(device__says),
		device_test(device_ex__on_demand_paging),
		device_test(device_ex__honours_size),
		device_test(mtu__fits),
		device_test(port__says),
		device_test(gid__table),
		device_test(gid__empty_slots),
		device_test(gid__mistakes),
		device_test(pkey__only_the_default),
		device_test(resolve__mac),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
