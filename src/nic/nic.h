/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nic.h: the device of this process, for the API edge. Its objects and the calls on
 * them are in the other façades, which LAYERS names. Types are nopin's; nothing here
 * knows verbs.h, but numbers of states, masks, access rights and statuses are verbs'
 * numbers.
 *
 * Every function may be called from any thread and returns 0 or -errno unless it
 * says otherwise. None is a cancellation point, but nic_channel_get(),
 * nic_async_get() and nic_upcalls_get() while they sleep: nothing is held then, and
 * no event is lost (programs cancel their CQ thread there). In a fork()ed child of
 * the process that opened the NIC every function answers -ENODEV and touches
 * nothing.
 */
#ifndef NOPIN_NIC_NIC_H
#define NOPIN_NIC_NIC_H

#include "base/addr.h"
#include "base/counters.h"
#include "base/strategy.h"
#include "ring/wqe.h"

struct nic;

/**
 * nic_get() - Get the NIC of this process, one reference for each call. The first
 * opens it and reads the NOPIN_* environment; a bad value is logged with the list of
 * valid ones and answers -EINVAL.
 */
int nic_get(struct nic **out);
/** nic_put() - Drop a reference; the last one closes the NIC. */
void nic_put(struct nic *nic);

/** nic_of_parent() - Are we a fork()ed child of the process that opened it? */
bool nic_of_parent(const struct nic *nic);

/**
 * nic_present() - Tell if nic_get() would find an address to offer. Opens no NIC.
 * Return: 0; -ENODEV: no, or a bad value of the environment was logged; -ENOMEM, -EMFILE,
 * ...: that cannot be found out, as was logged.
 */
int nic_present(void);

enum {
	NIC_MAX_QP = 48384, /* 3/4 of the QPNs of all ports but 4791 */
	NIC_MAX_QP_WR = 32768,
	NIC_MAX_SRQ = 65536,
	NIC_MAX_SRQ_WR = 32768,
	NIC_MAX_SGE = 32,
	NIC_MAX_INLINE = 512,
	NIC_MAX_CQ = 65536,
	NIC_MAX_CQE = 4194303,
	NIC_MAX_MR = 261120,
	NIC_MAX_PD = 65536,
	NIC_MAX_RD_ATOMIC = 16,
	NIC_GIDS_MAX = 64,
	NIC_MAX_MESSAGE = 1U << 31,
};

/**
 * struct nic_attr - What the device and its only port say.
 * @active_mtu:	payload bytes: 256..4096
 * @guid:	EUI-64 of the first interface
 * @gids:	slots of the table, which never changes
 * @netdev:	of GID 0 when the device was opened
 * @active:	packets can go out
 */
struct nic_attr {
	uint64_t guid;
	uint32_t active_mtu;
	unsigned gids;
	char netdev[16];
	bool active;
};
/** nic_query() - Describe the device and its port.
 * Return: 0; -ENODEV in a child of fork(): *@out is zero then. */
int nic_query(struct nic *nic, struct nic_attr *out);

/** nic_fault() - Tell what answers missing pages where nothing else was chosen. */
int nic_fault(struct nic *nic, enum strategy *out);

struct nic_gid {
	struct ipaddr ip;
	uint32_t ifindex;
	uint8_t mac[6];
	char ifname[16];
};
/** nic_gid() - Read a slot of the GID table.
 * Return: 0; -ENODATA: an empty slot; -EINVAL: beyond the table. */
int nic_gid(struct nic *nic, unsigned index, struct nic_gid *out);
/**
 * nic_path() - Find where the datagrams of an address vector go.
 * @to:	set but for QPN and Q_Key
 * Return: 0; as nic_gid(); -EINVAL: @dgid is none, or of the other family.
 */
int nic_path(struct nic *nic, unsigned sgid_index, const struct ipaddr *dgid,
	     struct wqe_to *to);

/** nic_now() - Read the clock that all timeouts go by, in ns. */
uint64_t nic_now(const struct nic *nic);

/** nic_counters() - Take a snapshot of the counters; all zero in a child of fork(). */
void nic_counters(struct nic *nic, struct counters *out);

#endif
