/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.h: UDP port 4791. */
#ifndef NOPIN_NIC_ROCE_H
#define NOPIN_NIC_ROCE_H

#include "base/addr.h"

struct nic;
struct os_rx;
struct pkt;

/**
 * enum roce_state - Who serves us with what comes to UDP port 4791?
 * ROCE_UNASKED: that was not needed yet
 * ROCE_OURS:	we hold it
 * ROCE_SERVED:	a process of our user, or root's, passes on what is for us
 * ROCE_STRANGER: another user's has the name: nobody
 * ROCE_REFUSED: a process of our user, or root's, has the name, and refused us: nobody
 * ROCE_TAKEN:	something has the port that is no nopin: nobody
 */
enum roce_state {
	ROCE_UNASKED,
	ROCE_OURS,
	ROCE_SERVED,
	ROCE_STRANGER,
	ROCE_REFUSED,
	ROCE_TAKEN,
	ROCE_NUM
};

/* The port is tried for, and its holder looked for, that often. */
enum { CLAIM_AGAIN_NS = 50 * 1000 * 1000 };
void roce_claim(struct nic *nic);

void roce_release(struct nic *nic);
bool roce_local(const struct ipaddr *ip);

/** roce_here() - Is @ip an address of this host? Lock held. */
bool roce_here(const struct nic *nic, const struct ipaddr *ip);

/** roce_pass_on() - A packet that came to 4791 for another NIC of this host. */
void roce_pass_on(struct nic *nic, const struct pkt *p,
		  const struct os_rx *from, uint8_t *bytes, uint32_t len);

/** roce_trusts() - Did the FORWARD @p come from who may pass on to us? */
bool roce_trusts(struct nic *nic, const struct pkt *p,
		 const struct os_rx *from);

/** roce_needed() - Somebody can reach us through port 4791 only. */
void roce_needed(struct nic *nic);

#endif
