/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* follow.c: the host is asked for its addresses again when it says that something
 * changed, and programs get events.
 */
#include "nic/follow.h"
#include "base/check.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/net.h"
#include "nic/progress.h"
#include "os/net.h"
#include "os/run.h"

/* Interfaces come and go by the hundred: no more of our time than a part. */
enum { NET_AGAIN_NS = 10 * 1000 * 1000 };

int net_follow(struct nic *nic)
{
	struct os_net net;
	int err = os_net_read(nic->os, &net);

	if (err)
		return err;
	nic_lock(nic);
	net_tell(nic, net_update(nic, &net));
	nic_unlock(nic);
	os_net_free(&net);
	return 0;
}

uint64_t net_turn(struct nic *nic, uint64_t until)
{
	uint64_t now;

	/* The thread that stands in may be here, too: what was read last counts. */
	pthread_mutex_lock(&nic->news.lock);
	nic->news.heard |= os_net_changed(nic->os);
	if (nic->news.heard) {
		now = os_now(nic->os);
		if (now >= nic->news.after_ns) {
			nic->news.after_ns = now + NET_AGAIN_NS;
			nic->news.heard = net_follow(nic) != 0;
		}
		if (nic->news.heard)
			until = MIN(until, nic->news.after_ns);
	}
	pthread_mutex_unlock(&nic->news.lock);
	return until;
}
