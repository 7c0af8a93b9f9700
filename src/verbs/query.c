/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* query.c: what the device, its port and their tables say. Numbers that bound
 * something come from nic.h; the others are what hardware of this kind says.
 */
#include "verbs/query.h"
#include "base/be.h"
#include "base/page.h"
#include "nic/nic.h"
#include "verbs/object.h"
#include "verbs/verbs.h"

#include <errno.h>

/* A locally administered OUI, so nobody's. The part is that of an old adapter
 * (ConnectX-2): perftest chooses by part alone whether a device is worth inline
 * data. Newer adapters get it, too, but since perftest 24 they are asked for their
 * own extensions, of whatever vendor, and a refusal ends it. Other programs that
 * mean an adapter's own extensions look at the vendor.
 */
enum { VENDOR_ID = 0x4e504e, PART_ID = 26428 };

enum { ACK_DELAY_CODE = 12 }; /* 4.096 us << 12: we answer within 17 ms */

enum {
	DEVICE_CAPS = IBV_DEVICE_CURR_QP_STATE_MOD |
		      IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
		      IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_MGT_EXTENSIONS,
	RC_ODP_CAPS = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		      IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
		      IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV,
	UD_ODP_CAPS = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		      IBV_ODP_SUPPORT_SRQ_RECV,
};

/* Not in the headers: what the fields of struct ibv_port_attr encode. */
enum { WIDTH_4X = 2, SPEED_FDR = 16, PHYS_DISABLED = 3, PHYS_LINK_UP = 5 };

static __be64 be64(uint64_t v)
{
	const be64_t be = be64_put(v);
	__be64 out;

	memcpy(&out, &be, sizeof(out));
	return out;
}

static void fill_device(const struct nic_attr *nic, struct ibv_device_attr *a)
{
	*a = (struct ibv_device_attr){
		.fw_ver = FW_VERSION,
		.node_guid = be64(nic->guid),
		.sys_image_guid = be64(nic->guid),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = ~(PAGE_BYTES - 1),
		.vendor_id = VENDOR_ID,
		.vendor_part_id = PART_ID,
		.max_qp = NIC_MAX_QP,
		.max_qp_wr = NIC_MAX_QP_WR,
		.device_cap_flags = DEVICE_CAPS,
		.max_sge = NIC_MAX_SGE,
		.max_sge_rd = NIC_MAX_SGE,
		.max_cq = NIC_MAX_CQ,
		.max_cqe = NIC_MAX_CQE,
		.max_mr = NIC_MAX_MR,
		.max_pd = NIC_MAX_PD,
		.max_srq = NIC_MAX_SRQ,
		.max_srq_wr = NIC_MAX_SRQ_WR,
		.max_srq_sge = NIC_MAX_SGE,
		.max_qp_rd_atom = NIC_MAX_RD_ATOMIC,
		.max_res_rd_atom = NIC_MAX_RD_ATOMIC * NIC_MAX_QP,
		.max_qp_init_rd_atom = NIC_MAX_RD_ATOMIC,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_ah = INT32_MAX, /* they are the program's memory */
		.max_pkeys = 1,
		.local_ca_ack_delay = ACK_DELAY_CODE,
		.phys_port_cnt = 1,
	};
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct nic_attr nic;
	const int rc = nic_query(vctx_of(context)->nic, &nic);

	if (rc)
		return -rc;
	fill_device(&nic, attr);
	return 0;
}

/** query_device_ext() - Fill in @attr. @size: of what the program's headers call *@attr. */
int query_device_ext(struct ibv_context *context,
		     const struct ibv_query_device_ex_input *input,
		     struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex all = {0};
	struct nic_attr nic;
	int rc;

	if ((input && input->comp_mask) || size < sizeof(all.orig_attr))
		return EINVAL;
	rc = nic_query(vctx_of(context)->nic, &nic);
	if (rc)
		return -rc;
	fill_device(&nic, &all.orig_attr);
	all.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	all.odp_caps.per_transport_caps.rc_odp_caps = RC_ODP_CAPS;
	all.odp_caps.per_transport_caps.ud_odp_caps = UD_ODP_CAPS;
	all.device_cap_flags_ex = DEVICE_CAPS;
	all.phys_port_cnt_ex = 1;
	memset(attr, 0, size);
	memcpy(attr, &all, MIN(size, sizeof(all)));
	return 0;
}

enum ibv_mtu mtu_to_verbs(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && (UINT32_C(256) << mtu) <= bytes)
		mtu++;
	return mtu;
}

int query_port_ext(struct ibv_context *context, uint8_t port,
		   struct ibv_port_attr *attr, size_t size)
{
	struct nic_attr nic;
	struct ibv_port_attr all = {
		.max_mtu = IBV_MTU_4096,
		.port_cap_flags = IBV_PORT_IP_BASED_GIDS | IBV_PORT_CM_SUP,
		.max_msg_sz = UINT32_C(1) << 31,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = WIDTH_4X,
		.active_speed = SPEED_FDR,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	struct counters c;
	int rc;

	if (port != PORT_NUM)
		return EINVAL;
	rc = nic_query(vctx_of(context)->nic, &nic);
	if (rc)
		return -rc;
	all.state = nic.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	all.phys_state = nic.active ? PHYS_LINK_UP : PHYS_DISABLED;
	nic_counters(vctx_of(context)->nic, &c);
	all.bad_pkey_cntr = (uint32_t)MIN(c.v[CNT_drop_pkey], UINT32_MAX);
	all.qkey_viol_cntr = (uint32_t)MIN(c.v[CNT_drop_qkey], UINT32_MAX);
	all.active_mtu = mtu_to_verbs(nic.active_mtu);
	all.gid_tbl_len = (int)nic.gids;
	memset(attr, 0, size);
	memcpy(attr, &all, MIN(size, sizeof(all)));
	return 0;
}

/**
 * ibv_query_port() - Answer old binaries that call it by name: their struct ends before
 * the link layer's neighbours that came later, at 48 bytes.
 */
int ibv_query_port(struct ibv_context *context, uint8_t port,
		   struct _compat_ibv_port_attr *attr)
{
	enum { COMPAT_BYTES = 48 };

	return query_port_ext(context, port, (struct ibv_port_attr *)attr,
			      COMPAT_BYTES);
}

/* An empty slot is a GID of zeroes to calls that have no way to say that it is empty. */
static int ask_gid(struct ibv_context *context, uint8_t port, unsigned index,
		   struct nic_gid *gid, bool *empty)
{
	int rc = port == PORT_NUM ? nic_gid(vctx_of(context)->nic, index, gid)
				  : -EINVAL;

	*empty = rc == -ENODATA;
	if (*empty)
		*gid = (struct nic_gid){.ifindex = 0};
	if (!rc || *empty)
		return 0;
	errno = -rc;
	return -1;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
		  union ibv_gid *gid)
{
	struct nic_gid nic;
	bool empty;

	if (ask_gid(context, port, (unsigned)index, &nic, &empty))
		return -1;
	memcpy(gid, &nic.ip, sizeof(*gid));
	return 0;
}

static void fill_gid_entry(const struct nic_gid *nic, uint32_t index,
			   struct ibv_gid_entry *entry)
{
	memcpy(&entry->gid, &nic->ip, sizeof(entry->gid));
	entry->gid_index = index;
	entry->port_num = PORT_NUM;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	entry->ndev_ifindex = nic->ifindex;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port,
		      uint32_t index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	struct nic_gid nic;
	int rc;

	if (flags)
		return EOPNOTSUPP;
	if (port != PORT_NUM || entry_size < sizeof(*entry))
		return EINVAL;
	rc = nic_gid(vctx_of(context)->nic, index, &nic);
	if (rc)
		return -rc;
	memset(entry, 0, entry_size);
	fill_gid_entry(&nic, index, entry);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
			     struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t entry_size)
{
	uint8_t *at = (uint8_t *)entries;
	struct nic_gid nic;
	size_t n = 0;

	if (flags)
		return -EOPNOTSUPP;
	if (entry_size < sizeof(*entries))
		return -EINVAL;
	for (uint32_t i = 0; i < NIC_GIDS_MAX; i++) {
		const int rc = nic_gid(vctx_of(context)->nic, i, &nic);

		if (rc == -ENODATA)
			continue;
		if (rc)
			return rc;
		if (n == max)
			return -EINVAL;
		memset(at, 0, entry_size);
		fill_gid_entry(&nic, i, (struct ibv_gid_entry *)(void *)at);
		at += entry_size;
		n++;
	}
	return (ssize_t)n;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port,
		       unsigned int index, enum verbs_gid_type *type)
{
	struct nic_gid nic;
	bool empty;

	if (ask_gid(context, port, index, &nic, &empty))
		return -1;
	*type = empty ? VERBS_GID_IB_OR_V1 : VERBS_GID_ROCE_V2;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index,
		   __be16 *pkey)
{
	(void)context;
	if (port != PORT_NUM || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = DEFAULT_PKEY; /* the same in either byte order */
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	(void)context;
	if (port != PORT_NUM || pkey != DEFAULT_PKEY) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

/* The MAC address inside an EUI-64 link-local address, if it is one. */
static bool mac_in_link_local(const uint8_t *gid, uint8_t *mac)
{
	if (gid[0] != 0xfe || gid[1] != 0x80 || gid[11] != 0xff ||
	    gid[12] != 0xfe)
		return false;
	memcpy(mac, gid + 8, 3);
	memcpy(mac + 3, gid + 13, 3);
	mac[0] ^= 2;
	return true;
}

/**
 * ibv_resolve_eth_l2_from_gid() - Find the MAC address of a GID that is our own, or that
 * contains the answer. Only drivers of hardware need others.
 */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
				struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE],
				uint16_t *vid)
{
	struct nic_gid own;
	struct ipaddr dgid;

	if (attr->port_num != PORT_NUM || !attr->is_global)
		return EINVAL;
	memcpy(&dgid, &attr->grh.dgid, sizeof(dgid));
	if (vid)
		*vid = 0xffff; /* not in a VLAN */
	for (unsigned i = 0; i < NIC_GIDS_MAX; i++)
		if (!nic_gid(vctx_of(context)->nic, i, &own) &&
		    ipaddr_eq(&own.ip, &dgid)) {
			memcpy(eth_mac, own.mac, ETHERNET_LL_SIZE);
			return 0;
		}
	return mac_in_link_local(dgid.b, eth_mac) ? 0 : EHOSTUNREACH;
}
