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
 * struct nic - @engine: the engine lock and its hand-off (handoff.h). What is not said
 * to be otherwise is written and read with it.
 * @guid:	and the next: as they were at first
 * @gids:	read with the engine lock or @gids_lock, written with both; @mtu: atomic, too
 * @posted:	atomic stack, posted.c
 * @steps_free:	bit per free step (atomic)
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
	uint64_t nonce_key[2], guid;
	char netdev[16];
	uint32_t mtu;
	struct gids gids;
	pthread_mutex_t gids_lock;
	struct net_news news;
	struct handoff engine;
	struct nic_port *ports[OS_PORTS_MAX];
	struct roce roce;
	struct host_seen host;
	struct nic_peers peers;
	struct list qps, asyncs;
	unsigned nqps, ud_qps;
	size_t rcvbuf;
	bool closed, dead;
	struct idle_wait idle;
	struct prefetches prefetch;
	struct nic_qp *posted;
	struct step *steps;
	uint32_t steps_free;
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
