/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ah.c: address handles: where datagrams go. One is a copy of what the program
 * said; a request takes a copy of that, so a handle may be destroyed while what was
 * posted with it is still to be sent. Multicast groups are not there.
 */
#include "verbs/ah.h"
#include "nic/nic.h"
#include "verbs/object.h"
#include "verbs/query.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

enum { QPN_MAX = 0xffffff };

enum {
	IP4_AT = 20, /* of a GRH */
	IP4_TOS = 1,
	IP4_BYTES = 20,
	IP4_SRC = 12,
	IP4_DST = 16,
	IP4_VERSION_IHL = 0x45,
	HOPS_MAX = 0xff,
};

static bool is_multicast(const struct ipaddr *ip)
{
	return ip->b[0] == 0xff ||
	       (ipaddr_is_v4(ip) && (ip->b[12] & 0xf0) == 0xe0);
}

/**
 * ibv_create_ah() - Create an address handle. Programs also create one to see whether a
 * GID can be reached. On Ethernet a global route header is mandatory (IBTA A16.5.1).
 */
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ipaddr dgid;
	struct wqe_to to;
	struct vah *ah;
	int rc;

	memcpy(&dgid, &attr->grh.dgid, sizeof(dgid));
	if (attr->port_num != PORT_NUM || !attr->is_global)
		return fail(EINVAL);
	if (is_multicast(&dgid))
		return fail(EOPNOTSUPP);
	rc = nic_path(vctx_of(pd->context)->nic, attr->grh.sgid_index, &dgid,
		      &to);
	if (rc)
		return fail(-rc);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return fail(ENOMEM);
	ah->base.context = pd->context;
	ah->base.pd = pd;
	ah->to = to;
	ah->to.mark = (struct ip_mark){attr->grh.traffic_class,
				       attr->grh.hop_limit};
	vobj_add(vctx_of(pd->context), &ah->obj, VOBJ_AH);
	return &ah->base;
}

int ibv_destroy_ah(struct ibv_ah *ibah)
{
	struct vah *ah = container_of(ibah, struct vah, base);

	if (ah->obj.ctx) {
		if (in_child(ibah->context))
			return ENODEV;
		vobj_del(&ah->obj);
	}
	free(ah);
	return 0;
}

int ah_to_wqe(const struct ibv_ah *ah, const struct ibv_pd *pd, uint32_t qpn,
	      uint32_t qkey, struct wqe_to *to)
{
	if (!ah || ah->pd != pd || qpn > QPN_MAX)
		return EINVAL;
	*to = container_of(ah, const struct vah, base)->to;
	to->qpn = qpn;
	to->qkey = qkey;
	return 0;
}

/* Of the 40 bytes in front of a datagram an IPv4 header takes the last 20. What is
 * before it may be anything. */
static const uint8_t *find_ip4(const struct ibv_grh *grh)
{
	const uint8_t *h = (const uint8_t *)grh + IP4_AT;
	uint32_t sum = 0;

	for (unsigned i = 0; i < IP4_BYTES; i++)
		sum += (uint32_t)h[i] << (i % 2 ? 0 : 8);
	sum = (sum & 0xffff) + (sum >> 16);
	return h[0] == IP4_VERSION_IHL && sum == 0xffff ? h : NULL;
}

static struct ipaddr mapped(const uint8_t *ip4)
{
	struct ipaddr ip = {{[10] = 0xff, [11] = 0xff}};

	memcpy(ip.b + 12, ip4, 4);
	return ip;
}

/* Behind the four bits of the version. */
static uint8_t ip6_class(const struct ibv_grh *grh)
{
	const uint8_t *h = (const uint8_t *)grh;

	return (uint8_t)(h[0] << 4 | h[1] >> 4);
}

/* Our GID that is @ip, or -1. */
static int gid_index(struct nic *nic, const struct ipaddr *ip)
{
	struct nic_gid gid;

	for (unsigned i = 0; i < NIC_GIDS_MAX; i++)
		if (!nic_gid(nic, i, &gid) && ipaddr_eq(&gid.ip, ip))
			return (int)i;
	return -1;
}

/**
 * ibv_init_ah_from_wc() - Find the way back to where a datagram came from.
 * Return: 0, or -1 with errno.
 */
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	const uint8_t *ip4 = find_ip4(grh);
	struct ipaddr src, dst;
	int index;

	memcpy(&src, &grh->sgid, sizeof(src));
	memcpy(&dst, &grh->dgid, sizeof(dst));
	if (ip4) {
		src = mapped(ip4 + IP4_SRC);
		dst = mapped(ip4 + IP4_DST);
	}
	index = gid_index(vctx_of(context)->nic, &dst);
	if (port_num != PORT_NUM || !(wc->wc_flags & IBV_WC_GRH) ||
	    (!ip4 && *(const uint8_t *)grh >> 4 != 6) || index < 0) {
		errno = EINVAL;
		return -1;
	}
	*attr = (struct ibv_ah_attr){.dlid = wc->slid,
				     .sl = wc->sl,
				     .src_path_bits = wc->dlid_path_bits,
				     .is_global = 1,
				     .port_num = port_num};
	memcpy(&attr->grh.dgid, &src, sizeof(attr->grh.dgid));
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.traffic_class = ip4 ? ip4[IP4_TOS] : ip6_class(grh);
	attr->grh.hop_limit = HOPS_MAX;
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
