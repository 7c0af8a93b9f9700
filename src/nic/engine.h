/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* engine.h: the three phases of a step. The lock is held to plan and to commit. */
#ifndef NOPIN_NIC_ENGINE_H
#define NOPIN_NIC_ENGINE_H

#include "nic/device.h"
#include "os/copy.h"

struct step;

/** engine_rx_plan() - Plan the next packets that @s received. true: @s has moves to execute
 * and commit; call again. */
bool engine_rx_plan(struct nic *nic, struct step *s, uint64_t now_ns);

/** engine_plan() - Plan anything but receiving. true: move and commit; call again. */
bool engine_plan(struct nic *nic, struct step *s, bool flush_acks,
		 uint64_t now_ns);

/** engine_plan_acks() - Plan ACKs that are due, and nothing else. Lock held. true: move
 * and commit; call again. */
bool engine_plan_acks(struct nic *nic, struct step *s, uint64_t now_ns);

/**
 * engine_settled() - Is there nothing that engine_plan() would do now? Then it publishes
 * when there will be, as a plan does. Context: after a commit, lock held.
 */
bool engine_settled(struct nic *nic, bool flush_acks, uint64_t now_ns);

/** engine_move() - Copy or send what is planned in @s. No lock. */
void engine_move(struct nic *nic, struct step *s);
void engine_commit(struct nic *nic, struct step *s, uint64_t now_ns);

#endif
