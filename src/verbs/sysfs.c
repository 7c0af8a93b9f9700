/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sysfs.c: the files that a kernel has about an RDMA device, answered from
 * memory. Programs reach them through ibv_read_sysfs_file(), or by opening them,
 * which the preload library turns into the same call. Files of other devices,
 * and all others, do not exist here.
 */
#include "base/be.h"
#include "base/check.h"
#include "nic/nic.h"
#include "verbs/query.h"
#include "verbs/verbs.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define CLASS  "/sys/class/"
#define DEVICE "infiniband/" DEVICE_NAME
#define PORT   DEVICE "/ports/1"

enum { WORD = 4 }; /* bytes that one of port_*_data counts */

enum content {
	DIRECTORY, /* children are the rows below it */
	TEXT,
	GUID,
	COUNTER,
	/* text that depends on whether the port is active */
	STATE,
	PHYS_STATE,
	/* directories with a file for each GID, or one for the interface */
	GIDS,
	GID_TYPES,
	GID_NDEVS,
	NETDEV,
};

#define COUNTS(name, div, ...)                                                 \
	{                                                                      \
		.path = PORT name, .content = COUNTER                          \
		, .unit = div, .num = sizeof((uint8_t[]){__VA_ARGS__}),        \
		  .of = { __VA_ARGS__ }                                        \
	}

static_assert(CNT_NUM <= UINT8_MAX, "a counter's number fits");

static const struct row {
	const char *path; /* below CLASS */
	enum content content;
	const char *text;
	/* of a counter: the sum of @num of ours, divided by @unit */
	uint8_t unit, num, of[5];
} rows[] = {
	{.path = "infiniband", .content = DIRECTORY},
	{.path = DEVICE, .content = DIRECTORY},
	{.path = DEVICE "/board_id", .content = TEXT, .text = "nopin"},
	{.path = DEVICE "/fw_ver", .content = TEXT, .text = FW_VERSION},
	{.path = DEVICE "/hca_type", .content = TEXT, .text = "nopin"},
	{.path = DEVICE "/hw_rev", .content = TEXT, .text = "0x0"},
	{.path = DEVICE "/node_desc", .content = TEXT, .text = DEVICE_NAME},
	{.path = DEVICE "/node_guid", .content = GUID},
	{.path = DEVICE "/node_type", .content = TEXT, .text = "1: CA"},
	{.path = DEVICE "/sys_image_guid", .content = GUID},
	{.path = DEVICE "/device", .content = DIRECTORY},
	{.path = DEVICE "/device/net", .content = NETDEV},
	{.path = DEVICE "/device/numa_node", .content = TEXT, .text = "-1"},
	{.path = DEVICE "/ports", .content = DIRECTORY},
	{.path = PORT, .content = DIRECTORY},
	{.path = PORT "/cap_mask", .content = TEXT, .text = "0x04010000"},
	{.path = PORT "/lid", .content = TEXT, .text = "0x0"},
	{.path = PORT "/lid_mask_count", .content = TEXT, .text = "0"},
	{.path = PORT "/link_layer", .content = TEXT, .text = "Ethernet"},
	{.path = PORT "/phys_state", .content = PHYS_STATE},
	{.path = PORT "/rate", .content = TEXT, .text = "56 Gb/sec (4X FDR)"},
	{.path = PORT "/sm_lid", .content = TEXT, .text = "0x0"},
	{.path = PORT "/sm_sl", .content = TEXT, .text = "0"},
	{.path = PORT "/state", .content = STATE},
	{.path = PORT "/gids", .content = GIDS},
	{.path = PORT "/gid_attrs", .content = DIRECTORY},
	{.path = PORT "/gid_attrs/ndevs", .content = GID_NDEVS},
	{.path = PORT "/gid_attrs/types", .content = GID_TYPES},
	{.path = PORT "/pkeys", .content = DIRECTORY},
	{.path = PORT "/pkeys/0", .content = TEXT, .text = "0xffff"},
	/* as IBTA 16.1.3.5 has them, of this process's NIC */
	{.path = PORT "/counters", .content = DIRECTORY},
	COUNTS("/counters/port_rcv_data", WORD, CNT_rx_bytes),
	COUNTS("/counters/port_rcv_packets", 1, CNT_rx_packets),
	COUNTS("/counters/port_rcv_errors", 1, CNT_drop_short, CNT_drop_version,
	       CNT_drop_length, CNT_drop_pad, CNT_drop_icrc),
	COUNTS("/counters/port_rcv_constraint_errors", 1, CNT_drop_pkey),
	COUNTS("/counters/port_xmit_data", WORD, CNT_tx_bytes),
	COUNTS("/counters/port_xmit_packets", 1, CNT_tx_packets),
	COUNTS("/counters/unicast_rcv_packets", 1, CNT_rx_packets),
	COUNTS("/counters/unicast_xmit_packets", 1, CNT_tx_packets),
	COUNTS("/counters/excessive_buffer_overrun_errors", 1,
	       CNT_kernel_drops),
	/* by the names that drivers give them */
	{.path = PORT "/hw_counters", .content = DIRECTORY},
	COUNTS("/hw_counters/duplicate_request", 1, CNT_dups_rx),
	COUNTS("/hw_counters/local_ack_timeout_err", 1, CNT_timeouts),
	COUNTS("/hw_counters/out_of_buffer", 1, CNT_drop_no_recv),
	COUNTS("/hw_counters/out_of_sequence", 1, CNT_gaps_rx),
	COUNTS("/hw_counters/rcvd_rnr_err", 1, CNT_rnr_rx),
	COUNTS("/hw_counters/retransmits", 1, CNT_retransmits),
	COUNTS("/hw_counters/send_rnr_err", 1, CNT_rnr_tx),
	{.path = "infiniband_verbs", .content = DIRECTORY},
	{.path = "infiniband_verbs/abi_version", .content = TEXT, .text = "6"},
	{.path = "infiniband_verbs/" UVERBS_NAME, .content = DIRECTORY},
	{.path = "infiniband_verbs/" UVERBS_NAME "/abi_version",
	 .content = TEXT,
	 .text = "1"},
	{.path = "infiniband_verbs/" UVERBS_NAME "/dev",
	 .content = TEXT,
	 .text = "231:192"},
	{.path = "infiniband_verbs/" UVERBS_NAME "/ibdev",
	 .content = TEXT,
	 .text = DEVICE_NAME},
};

/** struct out - Text that grows; @full once it did not fit. */
struct out {
	char *buf;
	size_t size, len;
	bool full;
};

__attribute__((format(printf, 2, 3))) static void put(struct out *o,
						      const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	/* clang-tidy 14 loses track of va_start()
	 * NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
	n = vsnprintf(o->buf + o->len, o->size - o->len, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= o->size - o->len)
		o->full = true;
	else
		o->len += (size_t)n;
}

/* The row of the first @len bytes of @path. */
static const struct row *find_row(const char *path, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strlen(rows[i].path) == len &&
		    memcmp(rows[i].path, path, len) == 0)
			return &rows[i];
	return NULL;
}

static void put_groups(struct out *o, const uint8_t *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 2)
		put(o, "%s%02x%02x", i ? ":" : "", b[i], b[i + 1]);
}

static void put_gid(struct out *o, enum content content,
		    const struct nic_gid *gid)
{
	if (content == GIDS)
		put_groups(o, gid->ip.b, sizeof(gid->ip));
	else
		put(o, "%s", content == GID_TYPES ? "RoCE v2" : gid->ifname);
}

static bool is_file(const struct row *row)
{
	return row->content == TEXT || row->content == GUID ||
	       row->content == COUNTER
	|| row->content == STATE || row->content == PHYS_STATE;
}

static void list_children(struct out *o, const struct row *parent)
{
	const size_t len = strlen(parent->path);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *path = rows[i].path;

		if (strncmp(path, parent->path, len) != 0 || path[len] != '/' ||
		    strchr(path + len + 1, '/'))
			continue;
		put(o, "%s%s\n", path + len + 1, is_file(&rows[i]) ? "" : "/");
	}
}

/* The NIC is opened only for what it alone knows: a program that lists
 * directories need not have one.
 */
static int sysfs_ask(struct nic_attr *attr)
{
	struct nic *nic;
	int rc = nic_get(&nic);

	if (rc)
		return rc;
	rc = nic_query(nic, attr);
	nic_put(nic);
	return rc;
}

static int read_slot(unsigned index, struct nic_gid *gid)
{
	struct nic *nic;
	int rc = nic_get(&nic);

	*gid = (struct nic_gid){.ifindex = 0};
	if (rc)
		return rc;
	rc = nic_gid(nic, index, gid);
	nic_put(nic);
	return rc;
}

static int put_counter(struct out *o, const struct row *row)
{
	struct counters c;
	uint64_t sum = 0;
	struct nic *nic;
	const int rc = nic_get(&nic);

	if (rc)
		return rc;
	nic_counters(nic, &c);
	nic_put(nic);
	for (unsigned i = 0; i < row->num; i++)
		sum += c.v[row->of[i]];
	put(o, "%" PRIu64, sum / row->unit);
	return 0;
}

static int list_row(struct out *o, const struct row *row)
{
	struct nic_attr attr;
	int rc;

	if (is_file(row))
		return -ENOTDIR;
	if (row->content == DIRECTORY) {
		list_children(o, row);
		return 0;
	}
	rc = sysfs_ask(&attr);
	if (rc)
		return rc;
	if (row->content == NETDEV) {
		put(o, "%s/\n", attr.netdev);
		return 0;
	}
	for (unsigned i = 0; i < attr.gids; i++)
		put(o, "%u\n", i);
	return 0;
}

static int read_row(struct out *o, const struct row *row)
{
	struct nic_attr attr;
	be64_t guid;
	int rc;

	if (row->content == TEXT) {
		put(o, "%s", row->text);
		return 0;
	}
	if (row->content == COUNTER)
		return put_counter(o, row);
	if (!is_file(row))
		return -EISDIR;
	rc = sysfs_ask(&attr);
	if (rc)
		return rc;
	guid = be64_put(attr.guid);
	if (row->content == GUID)
		put_groups(o, guid.b, sizeof(guid.b));
	else if (row->content == STATE)
		put(o, "%s", attr.active ? "4: ACTIVE" : "1: DOWN");
	else
		put(o, "%s", attr.active ? "5: LinkUp" : "3: Disabled");
	return 0;
}

/* A child of a directory that has one for each GID. */
static int read_gid(struct out *o, enum content content, const char *name)
{
	struct nic_gid gid;
	unsigned long index;
	char *end;
	int rc;

	if (*name < '0' || *name > '9')
		return -ENOENT;
	index = strtoul(name, &end, 10);
	if (*end || index >= NIC_GIDS_MAX)
		return -ENOENT;
	rc = read_slot((unsigned)index, &gid);
	/* Of an empty slot there is a GID of zeroes, and nothing else. */
	if (rc == -ENODATA && content == GIDS)
		rc = 0;
	if (rc)
		return rc == -ENODATA ? -EINVAL : rc;
	put_gid(o, content, &gid);
	return 0;
}

/* The interface's directory below device/net exists, but nothing in it. */
static int find_netdev(const char *name, bool list)
{
	struct nic_attr attr;
	const int rc = sysfs_ask(&attr);

	if (rc)
		return rc;
	if (strcmp(name, attr.netdev) != 0)
		return -ENOENT;
	return list ? 0 : -EISDIR;
}

/* @path is below CLASS; @list: its names, for a directory. */
static int read_path(struct out *o, const char *path, bool list)
{
	const struct row *row = find_row(path, strlen(path));
	const char *slash = strrchr(path, '/');

	if (row)
		return list ? list_row(o, row) : read_row(o, row);
	row = slash ? find_row(path, (size_t)(slash - path)) : NULL;
	if (row && row->content == NETDEV)
		return find_netdev(slash + 1, list);
	if (row && row->content >= GIDS && !list)
		return read_gid(o, row->content, slash + 1);
	return -ENOENT;
}

const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

/**
 * ibv_read_sysfs_file() - Read the text of a file, without the end of its line.
 * @file:	"." gives the names in directory @dir, one a line, those of
 *		directories with a slash: what the preload library needs
 * Return: bytes in @buf, NUL not counted; or -1 with errno.
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size)
{
	const bool list = strcmp(file, ".") == 0;
	struct out o = {.buf = buf, .size = size};
	char path[256];
	int rc;

	if (strncmp(dir, CLASS, strlen(CLASS)) != 0 || nic_present() != 0) {
		errno = ENOENT;
		return -1;
	}
	rc = snprintf(path, sizeof(path), "%s%s%s", dir + strlen(CLASS),
		      list ? "" : "/", list ? "" : file);
	rc = rc < (int)sizeof(path) ? read_path(&o, path, list) : -ENAMETOOLONG;
	if (!rc && o.full)
		rc = -EOVERFLOW;
	if (rc) {
		errno = -rc;
		return -1;
	}
	if (size)
		buf[o.len] = '\0';
	return (int)o.len;
}
