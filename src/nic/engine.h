/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* engine.h: the three phases of a step. The lock is held to plan and to commit. */
#ifndef NOPIN_NIC_ENGINE_H
#define NOPIN_NIC_ENGINE_H

#include "base/base.h"
#include "nic/device.h"
#include "os/copy.h"

struct step;

/** engine_refresh() - Ask the host how it is, before any page is looked up. */
void engine_refresh(struct nic *nic, uint64_t now_ns);

/** engine_closed() - The program closed our descriptors. Any thread. */
void engine_closed(struct nic *nic);

/** accounted() - Are faults to be counted as @whose, engine_majflt or own_majflt? */
static inline bool accounted(const struct nic *nic, enum counter whose)
{
	return whose == CNT_own_majflt ? nic->cfg.account_own
				       : nic->cfg.account;
}

/**
 * usage_begin(), usage_end() - If they are accounted: major faults between the two
 * count as @whose, and minor ones of moves as engine_minflt.
 * @slept:	NULL, or set to whether the thread did
 * Return: how many major ones.
 */
struct os_usage usage_begin(const struct nic *nic, enum counter whose);
uint64_t usage_end(struct nic *nic, enum counter whose, struct os_usage before,
		   bool *slept);

/** engine_receive() - Fill @s from the sockets. No lock. false: nothing. */
bool engine_receive(struct nic *nic, struct step *s);

/** engine_inherit() - We overtook who held the token: take what it did not plan yet
 * of its burst, as if we had received it. Lock held. false: nothing. */
bool engine_inherit(struct nic *nic, struct step *s);

/** engine_rx_plan() - true: @s has moves to execute and commit; call again. */
bool engine_rx_plan(struct nic *nic, struct step *s, uint64_t now_ns);

/** engine_plan() - Anything but receiving. true: move and commit; call again. */
bool engine_plan(struct nic *nic, struct step *s, bool flush_acks,
		 uint64_t now_ns);

/** engine_plan_acks() - ACKs that are due, and nothing else. Lock held. true: move and
 * commit; call again. */
bool engine_plan_acks(struct nic *nic, struct step *s, uint64_t now_ns);

/**
 * engine_settled() - After a commit, lock held: is there nothing that
 * engine_plan() would do now? Then it is told when there will be, as by a plan.
 */
bool engine_settled(struct nic *nic, bool flush_acks, uint64_t now_ns);

/** engine_move() - No lock: copy or send. */
void engine_move(struct nic *nic, struct step *s);
void engine_commit(struct nic *nic, struct step *s, uint64_t now_ns);

#endif
