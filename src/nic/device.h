/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.h: a NIC of this process: all of its state, its lock.
 * The order of locks is in doc/threads.md. The engine lock is never held across a
 * call that may block.
 */
#ifndef NOPIN_NIC_DEVICE_H
#define NOPIN_NIC_DEVICE_H

#include "base/counters.h"
#include "base/list.h"
#include "base/rand.h"
#include "nic/acks.h"
#include "nic/arbiter.h"
#include "nic/background.h"
#include "nic/config.h"
#include "nic/follow.h"
#include "nic/gids.h"
#include "nic/handoff.h"
#include "nic/lock.h"
#include "nic/peers.h"
#include "nic/pins.h"
#include "nic/prefetch.h"
#include "nic/refresh.h"
#include "nic/roce.h"
#include "nic/sleepers.h"
#include "nic/token.h"
#include "os/names.h"
#include "os/net.h"
#include "os/run.h"
#include "xport/xport.h"

#include <pthread.h>

struct mem;
struct nic_port;
struct nic_qp;
struct os;
struct reg_ops;
struct step;

/**
 * struct nic_iface - The interface whose address was the first (net.c).
 * @name, @guid: as they were at first
 * @mtu:	of the port; atomic, too
 */
struct nic_iface {
	char name[16];
	uint64_t guid;
	uint32_t mtu;
};

/** struct nic_qps - All QPs, and how many; @ud: of these, for datagrams (pair.c). */
struct nic_qps {
	struct list all;
	unsigned num, ud;
};

/** struct nic_steps - @free: bit per free step (atomic; stint.c) */
struct nic_steps {
	struct step *v;
	uint32_t free;
};

/**
 * struct nic - @engine: the engine lock and its hand-off (handoff.h). What is not said
 * to be otherwise is written and read with it.
 * @gids:	read with the engine lock or @gids_lock, written with both
 * @posted:	atomic stack, posted.c
 * @deadline:	next time anything is due (relaxed; for pollers)
 * @closed:	the program closed our descriptors (relaxed); @dead: that has been told
 */
struct nic {
	struct nic_config cfg;
	struct os *os;
	struct mem *mem;
	struct counters cnt;
	const struct reg_ops *reg;
	struct pins pins;
	struct xport x;
	struct rnd rnd;
	uint64_t nonce_key[2];
	struct nic_iface iface;
	struct gids gids;
	pthread_mutex_t gids_lock;
	struct net_news news;
	struct handoff engine;
	struct nic_port *ports[OS_PORTS_MAX];
	struct roce roce;
	struct host_seen host;
	struct nic_peers peers;
	struct nic_qps qps;
	struct list asyncs;
	struct list armed; /* shared receive queues with a limit */
	size_t rcvbuf;
	bool closed, dead;
	struct idle_wait idle;
	struct prefetches prefetch;
	struct nic_qp *posted;
	struct nic_steps steps;
	uint64_t deadline;
	struct nic_rx rx;
	struct acks_out acks;
	struct polls polls;
	struct sleepers sleepers;
	struct background bg;
	struct arbiter arbiter;
};

/** nic_child() - In a fork()ed child, where all our objects are zero (heap.h)? */
static inline bool nic_child(const struct nic *nic)
{
	return !nic || os_child(nic->os);
}

int nic_open(struct nic **out, const struct nic_config *cfg);
void nic_close(struct nic *nic);

#endif
