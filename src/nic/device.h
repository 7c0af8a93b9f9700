/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.h: a NIC of this process: all of its state, its lock.
 *
 * Locks, in the order they are taken:
 *   nic_qp.sq_lock  ->  nic_qp.rq_lock  ->  engine lock
 *   nic_cq.poll              ->  engine lock
 *   nic.net_lock  ->  engine lock  ->  nic.idle_lock
 *   engine lock  ->  nic.gids_lock
 *   channel and async queues, counters: leaves
 * The engine lock is never held across a call that may block.
 */
#ifndef NOPIN_NIC_DEVICE_H
#define NOPIN_NIC_DEVICE_H

#include "base/counters.h"
#include "base/list.h"
#include "base/rand.h"
#include "base/timerq.h"
#include "nic/arbiter.h"
#include "nic/config.h"
#include "nic/gids.h"
#include "nic/handoff.h"
#include "nic/pins.h"
#include "nic/prefetch.h"
#include "nic/roce.h"
#include "nic/turn.h"
#include "os/names.h"
#include "os/net.h"
#include "os/run.h"
#include "xport/xport.h"

#include <pthread.h>

struct mem;
struct nic_port;
struct nic_qp;
struct os;
struct os_thread;
struct reg_ops;
struct step;

/**
 * struct nic
 * @engine:	the engine lock and its hand-off (handoff.h)
 * @token:	the receive token: who holds it since when (token.c)
 * @rest:	the step that moves while part of its burst is not planned yet
 * @heard:	all that had come by then has been taken from the sockets and
 *		committed; timers run no further (relaxed)
 * @hear_from, @hear_bytes:	what becomes @heard when so much was taken that
 *		nothing older can be left (token)
 * @last_poll, @last_poller: when a program's thread last polled, and which
 *		(relaxed)
 * @deadline:	next time anything is due (relaxed; for pollers)
 * @acks_owed:	some peer is owed an ACK (relaxed; for pollers)
 * @acks_now:	some peer is, or may be, owed one that is due, or it is on its way out
 *		(atomic; set before the completion that it is for)
 * @acks_begun, @acks_ended: bursts of nothing but ACKs that were planned, committed
 * @blocked:	threads that sleep in attend_block()
 * @asleep:	how often in turn they do not look first, before they sleep, as they
 *		did in vain; @asleep_left: of these (relaxed)
 * @steps_free:	bit per free step (atomic)
 * @closed:	the program closed our descriptors (relaxed); @dead: that has been
 *		told
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
	/* net.c, follow.c; read with the engine lock or @gids_lock, written with both */
	uint32_t mtu; /* atomic, too */
	struct gids gids;
	pthread_mutex_t gids_lock;
	uint64_t guid; /* and the next: as they were at first */
	char netdev[16];
	pthread_mutex_t net_lock; /* of the next two */
	bool net_news; /* the host said so and was not asked */
	uint64_t net_after_ns; /* not to be asked before */
	/* engine lock */
	struct handoff engine;
	struct nic_port *ports[OS_PORTS_MAX];
	/* roce.c, holder.c */
	int roce_port; /* index in os/ of 4791, or -1 */
	int roce_claim; /* the name, for os_unclaim(), or negative: none */
	int roce_guest; /* connection to who has it, or -1 */
	uint64_t roce_secret; /* ours, or the holder's */
	bool roce_told; /* that secret is known */
	bool roce_late; /* it was waited for once, too long */
	bool roce_short; /* there were no descriptors to ask by */
	enum roce_state roce_state, roce_said;
	bool roce_wanted; /* standard peers matter */
	bool roce_news; /* to be said (relaxed) */
	bool roce_orphan; /* none serves us, and one may soon (relaxed) */
	uint64_t roce_doubt_ns; /* since when its state may be about to change,
				 * or 0 */
	bool roce_begins; /* its name is taken, and nobody can be asked yet */
	struct os_holder roce_who; /* if another process holds it */
	uint64_t roce_try_ns;
	uint64_t forks; /* os_forks() that the shadow page table knows of */
	bool forking; /* and os_forking() */
	uint64_t protects; /* how often every page became readable only */
	struct list qps, peers, asyncs;
	struct list dests; /* peers that datagrams go to, the last used first */
	bool closed, dead;
	bool too_large; /* a packet, for some peer (relaxed) */
	struct timerq hello_timers;
	unsigned nqps, ud_qps, ndests, standard_peers, lined, sprayed;
	size_t rcvbuf;
	unsigned idle_waiters;
	pthread_mutex_t idle_lock;
	uint32_t idle_events; /* idle_lock */
	pthread_cond_t idle;
	struct {
		struct prefetch all[PREFETCHES];
		struct list idle, queue;
		unsigned out; /* pieces with the pagers */
	} prefetch;
	struct nic_qp *posted; /* atomic stack, posted.c */
	/* steps */
	struct step *steps;
	uint32_t steps_free;
	/* progress */
	uint64_t token;
	struct step *rest;
	uint64_t heard, hear_from, hear_bytes;
	uint64_t last_poll;
	uintptr_t last_poller;
	uint64_t deadline;
	uint32_t acks_owed, acks_now, acks_begun, acks_ended;
	uint32_t empty_polls;
	/* threads of the program that sleep for an event; how often one began or
	 * ended that; and how often it was when none came for a packet */
	uint32_t blocked, blocks, lapsed;
	uint32_t asleep, asleep_left;
	uint64_t bg_until; /* when the background thread wakes by itself */
	/* of that, and of the thread that stands in for it */
	struct left left[2];
	uint32_t peek; /* a large transfer is in progress (relaxed) */
	bool stop;
	struct os_thread *bg;
	/* standby.c */
	struct os_thread *standby;
	int standby_fd; /* event that wakes it */
	bool standby_asleep; /* until it is woken */
	struct arbiter arbiter;
	uint64_t bg_busy; /* since when the background thread works; 0: idle */
};

/** nic_child() - In a fork()ed child, where all our objects are zero (heap.h)? */
static inline bool nic_child(const struct nic *nic)
{
	return !nic || os_child(nic->os);
}

int nic_open(struct nic **out, const struct nic_config *cfg);
void nic_close(struct nic *nic);

#endif
