/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stint.h: steps of the engine, one for each thread that runs it. */
#ifndef NOPIN_NIC_STINT_H
#define NOPIN_NIC_STINT_H

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct step;

struct step *step_get(struct nic *nic);
void step_put(struct nic *nic, struct step *s);

/** step_plan_rx(), step_plan() - Call engine_rx_plan() or engine_plan(), and account its
 * faults and sleeps. */
bool step_plan_rx(struct nic *nic, struct step *s, uint64_t now_ns);
bool step_plan(struct nic *nic, struct step *s, bool flush_acks,
	       uint64_t now_ns);

/** step_run() - Move what is planned and commit it. The lock is held, but not during
 * the move. Return: the time after the move: reading the clock costs 30 ns. */
uint64_t step_run(struct nic *nic, struct step *s);

#endif
