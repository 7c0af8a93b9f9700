/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.h: UDP port 4791. */
#ifndef NOPIN_NIC_ROCE_H
#define NOPIN_NIC_ROCE_H

#include "base/addr.h"
#include "os/names.h"

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct os_rx;
struct pkt;

/**
 * enum roce_state - Which process serves us with what comes to UDP port 4791?
 * ROCE_UNASKED: that was not needed yet
 * ROCE_OURS:	we hold it
 * ROCE_SERVED:	a process of our user, or root's, passes on what is for us
 * ROCE_STRANGER: another user's has the name: none
 * ROCE_REFUSED: a process of our user, or root's, has the name, and refused us: none
 * ROCE_SILENT: a process has the name, and does not answer: none
 * ROCE_TAKEN:	something has the port that is no nopin: none
 */
enum roce_state {
	ROCE_UNASKED,
	ROCE_OURS,
	ROCE_SERVED,
	ROCE_STRANGER,
	ROCE_REFUSED,
	ROCE_SILENT,
	ROCE_TAKEN,
	ROCE_NUM
};

/**
 * struct roce - UDP port 4791, and the process that has it.
 * @port:	index in os/, or -1: we have not
 * @claim:	the name, for os_unclaim(), or negative: none
 * @guest:	connection to the process that has it, or -1
 * @secret:	ours, or the holder's; @told: that is known
 * @who:	the process, if another has it
 * @state:	what it was found to be; @said: what the log says that it is
 * @wanted:	standard peers matter
 * @news:	there is something to be said (relaxed)
 * @orphan:	none serves us, and one may soon (relaxed)
 * @begins:	its name is taken, and no process can be asked yet
 * @late:	it was waited for once, too long
 * @doubt_ns:	since when the state may be about to change, or 0
 * @try_ns:	not to be looked at before
 * @short_of:	there were no descriptors to ask by
 */
struct roce {
	int port, claim, guest;
	uint64_t secret, doubt_ns, try_ns;
	struct os_holder who;
	enum roce_state state, said;
	bool told, wanted, news, orphan, begins, late, short_of;
};

/* The port is tried for, and its holder looked for, that often. */
enum { CLAIM_AGAIN_NS = 50 * 1000 * 1000 };
void roce_claim(struct nic *nic);

void roce_release(struct nic *nic);

/** roce_leave() - Go by no holder any more. */
void roce_leave(struct nic *nic);
bool roce_local(const struct ipaddr *ip);

/** roce_here() - Is @ip an address of this host? Lock held. */
bool roce_here(const struct nic *nic, const struct ipaddr *ip);

/** roce_pass_on() - Pass on a packet that came to 4791 for another NIC of this host. */
void roce_pass_on(struct nic *nic, const struct pkt *p,
		  const struct os_rx *from, uint8_t *bytes, uint32_t len);

/** roce_trusts() - Did the FORWARD @p come from the process that may pass on to us? */
bool roce_trusts(struct nic *nic, const struct pkt *p,
		 const struct os_rx *from);

/** roce_needed() - Note that a peer can reach us through port 4791 only: claim it, or find
 * its holder, and say so if neither can be had. */
void roce_needed(struct nic *nic);

#endif
