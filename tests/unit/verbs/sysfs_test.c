/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "base/counters.h"
#include "fake_nic.h"

#include <errno.h>
#include <stddef.h>

#define DEV "/sys/class/infiniband/nopin0"

static void read__files(void **state)
{
	static const struct {
		const char *dir, *file, *text;
		int error;
	} rows[] = {
		{DEV, "board_id", "nopin", 0},
		{DEV, "node_type", "1: CA", 0},
		{DEV, "node_guid", "0123:4567:89ab:cdef", 0},
		{DEV "/ports/1", "state", "4: ACTIVE", 0},
		{DEV, "ports/1/link_layer", "Ethernet", 0},
		{DEV "/ports/1/pkeys", "0", "0xffff", 0},
		{DEV "/ports/1/gid_attrs/types", "0", "RoCE v2", 0},
		{DEV "/ports/1/gid_attrs/types", "1", "RoCE v2", 0},
		{DEV "/ports/1/gid_attrs/types", "2", NULL, EINVAL},
		{DEV "/ports/1/gid_attrs/types", "63", NULL, EINVAL},
		{DEV "/ports/1/gid_attrs/types", "64", NULL, ENOENT},
		{DEV "/ports/1/gid_attrs/ndevs", "2", NULL, EINVAL},
		{DEV "/ports/1/gids", "2",
		 "0000:0000:0000:0000:0000:0000:0000:0000", 0},
		{DEV "/ports/1", "phys_state", "5: LinkUp", 0},
		{DEV "/ports/1/gid_attrs/types", "0x", NULL, ENOENT},
		{DEV "/ports/1/gid_attrs/types", "", NULL, ENOENT},
		{DEV "/ports/1/gid_attrs/types", "-1", NULL, ENOENT},
		{DEV "/ports/1/gid_attrs/ndevs", "1", "eth0", 0},
		{DEV "/ports/1/gids", "1",
		 "0000:0000:0000:0000:0000:ffff:c000:0202", 0},
		{"/sys/class/infiniband_verbs/uverbs0", "ibdev", "nopin0", 0},
		{DEV "/ports", "1", NULL, EISDIR},
		{DEV "/ports/1/gid_attrs", "types", NULL, EISDIR},
		{DEV "/device/net", "eth0", NULL, EISDIR},
		{DEV "/device/net", "eth1", NULL, ENOENT},
		{DEV, "nothing", NULL, ENOENT},
		{DEV "/board_id", "x", NULL, ENOENT},
		{"/sys/class/infiniband/mlx5_0", "board_id", NULL, ENOENT},
		{"/sys/class/net/lo", "mtu", NULL, ENOENT},
		{"/etc", "passwd", NULL, ENOENT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char buf[64] = "?";
		int len;

		errno = 0;
		len = ibv_read_sysfs_file(rows[i].dir, rows[i].file, buf,
					  sizeof(buf));
		assert_int_equal(errno, rows[i].error);
		if (rows[i].error) {
			assert_int_equal(len, -1);
			continue;
		}
		assert_string_equal(buf, rows[i].text);
		assert_int_equal(len, strlen(rows[i].text));
	}
}

/* Each says what its name says. */
static void read__counters(void **state)
{
	static const struct {
		const char *file, *text;
	} rows[] = {
		{"counters/port_rcv_data", "250"},
		{"counters/port_rcv_packets", "2"},
		{"counters/unicast_rcv_packets", "2"},
		{"counters/port_rcv_errors", "93000"},
		{"counters/port_rcv_constraint_errors", "9"},
		{"counters/port_xmit_data", "1152921504606846976"},
		{"counters/port_xmit_packets", "4"},
		{"counters/unicast_xmit_packets", "4"},
		{"counters/excessive_buffer_overrun_errors", "10"},
		{"hw_counters/duplicate_request", "11"},
		{"hw_counters/local_ack_timeout_err", "12"},
		{"hw_counters/out_of_buffer", "13"},
		{"hw_counters/out_of_sequence", "14"},
		{"hw_counters/rcvd_rnr_err", "15"},
		{"hw_counters/retransmits", "16"},
		{"hw_counters/send_rnr_err", "17"},
	};
	char buf[64], names[1024];
	size_t listed = 0;

	(void)state;
	fake.counters =
		(struct counters){.v = {[CNT_rx_bytes] = 1003,
					[CNT_rx_packets] = 2,
					[CNT_tx_bytes] = UINT64_C(1) << 62,
					[CNT_tx_packets] = 4,
					[CNT_drop_short] = 1000,
					[CNT_drop_version] = 2000,
					[CNT_drop_length] = 10000,
					[CNT_drop_pad] = 20000,
					[CNT_drop_icrc] = 60000,
					[CNT_drop_pkey] = 9,
					[CNT_kernel_drops] = 10,
					[CNT_dups_rx] = 11,
					[CNT_timeouts] = 12,
					[CNT_drop_no_recv] = 13,
					[CNT_gaps_rx] = 14,
					[CNT_rnr_rx] = 15,
					[CNT_retransmits] = 16,
					[CNT_rnr_tx] = 17}};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(ibv_read_sysfs_file(DEV "/ports/1", rows[i].file,
						buf, sizeof(buf)) > 0);
		assert_string_equal(buf, rows[i].text);
	}
	/* and there are no others */
	for (unsigned d = 0; d < 2; d++) {
		assert_true(ibv_read_sysfs_file(d ? DEV "/ports/1/counters"
						  : DEV "/ports/1/hw_counters",
						".", names, sizeof(names)) > 0);
		for (const char *n = names; *n; n++)
			listed += *n == '\n';
	}
	assert_int_equal(listed, ARRAY_SIZE(rows));
}

static void read__buffer_sizes(void **state)
{
	char buf[8];

	(void)state;
	assert_int_equal(ibv_read_sysfs_file(DEV, "board_id", buf, 6), 5);
	assert_int_equal(ibv_read_sysfs_file(DEV, "board_id", buf, 5), -1);
	assert_int_equal(errno, EOVERFLOW);
	assert_int_equal(ibv_read_sysfs_file(DEV, "board_id", buf, 0), -1);
	assert_int_equal(ibv_read_sysfs_file(DEV, "node_guid", buf, 8), -1);
}

static void list__directories(void **state)
{
	static const struct {
		const char *dir, *names;
	} rows[] = {
		{"/sys/class/infiniband", "nopin0/\n"},
		{"/sys/class/infiniband_verbs", "abi_version\nuverbs0/\n"},
		{DEV "/device", "net/\nnuma_node\n"},
		{DEV "/device/net", "eth0/\n"},
		{DEV "/device/net/eth0", ""},
		{DEV "/ports", "1/\n"},
		{DEV "/ports/1/gid_attrs", "ndevs/\ntypes/\n"},
		{DEV "/ports/1/pkeys", "0\n"},
		{DEV "/board_id", NULL},
		{DEV "/nothing", NULL},
		{"/sys/class", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char buf[256];
		const int len = ibv_read_sysfs_file(rows[i].dir, ".", buf,
						    sizeof(buf));

		assert_int_equal(len < 0, rows[i].names == NULL);
		if (rows[i].names)
			assert_string_equal(buf, rows[i].names);
	}
}

/* Slots do not come and go with the addresses in them. */
static void list__slots(void **state)
{
	char buf[512];
	unsigned n = 0;

	(void)state;
	assert_true(ibv_read_sysfs_file(DEV "/ports/1/gids", ".", buf,
					sizeof(buf)) > 0);
	for (const char *c = buf; *c; c++)
		n += *c == '\n';
	assert_int_equal(n, NIC_GIDS_MAX);
	assert_non_null(strstr(buf, "\n63\n"));
}

static void read__the_port_is_down(void **state)
{
	char buf[64];

	(void)state;
	fake.down = true;
	assert_true(ibv_read_sysfs_file(DEV "/ports/1", "state", buf,
					sizeof(buf)) > 0);
	assert_string_equal(buf, "1: DOWN");
	assert_true(ibv_read_sysfs_file(DEV "/ports/1", "phys_state", buf,
					sizeof(buf)) > 0);
	assert_string_equal(buf, "3: Disabled");
}

/* What a directory lists can be read, down to the leaves. */
static void list__names_exist(void **state)
{
	static const char *const dirs[] = {DEV,
					   DEV "/ports/1",
					   DEV "/ports/1/gids",
					   DEV "/ports/1/counters",
					   DEV "/ports/1/hw_counters",
					   DEV "/ports/1/gid_attrs/types"};

	(void)state;
	fake.gids = NIC_GIDS_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		char names[512], text[64], *save = NULL;

		assert_true(ibv_read_sysfs_file(dirs[i], ".", names,
						sizeof(names)) > 0);
		for (char *n = strtok_r(names, "\n", &save); n;
		     n = strtok_r(NULL, "\n", &save))
			if (n[strlen(n) - 1] != '/')
				assert_true(
					ibv_read_sysfs_file(dirs[i], n, text,
							    sizeof(text)) > 0);
	}
}

/* What needs the NIC says why there is none; the rest does without. */
static void read__no_nic(void **state)
{
	static const struct {
		const char *dir, *file;
		bool needs_nic;
	} rows[] = {
		{DEV, "board_id", false},
		{DEV, ".", false},
		{DEV, "node_guid", true},
		{DEV "/device/net", ".", true},
		{DEV "/device/net", "eth0", true},
		{DEV "/ports/1/gids", ".", true},
		{DEV "/ports/1/gids", "0", true},
		{DEV "/ports/1/counters", ".", false},
		{DEV "/ports/1/counters", "port_rcv_data", true},
	};
	char buf[256];

	(void)state;
	fake.error = -ENODEV;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fake.fail_in = 1;
		errno = 0;
		assert_int_equal(ibv_read_sysfs_file(rows[i].dir, rows[i].file,
						     buf, sizeof(buf)) < 0,
				 rows[i].needs_nic);
		assert_int_equal(errno, rows[i].needs_nic ? ENODEV : 0);
	}
	assert_string_equal(ibv_get_sysfs_path(), "/sys");
}

static void read__no_address(void **state)
{
	char buf[64];

	(void)state;
	fake.present = false;
	assert_int_equal(ibv_read_sysfs_file(DEV, "board_id", buf, 64), -1);
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(read__files),
		fake_test(read__counters),
		fake_test(read__buffer_sizes),
		fake_test(list__directories),
		fake_test(list__slots),
		fake_test(read__the_port_is_down),
		fake_test(list__names_exist),
		fake_test(read__no_nic),
		fake_test(read__no_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
