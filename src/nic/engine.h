/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* engine.h: the three phases of a step. The lock is held to plan and to commit. */
#ifndef NOPIN_NIC_ENGINE_H
#define NOPIN_NIC_ENGINE_H

#include "nic/device.h"
#include "os/copy.h"

struct step;

/** engine_closed() - The program closed our descriptors. Any thread. */
void engine_closed(struct nic *nic);

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
