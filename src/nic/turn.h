/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* turn.h: one turn of the background thread, or of the thread that stands in for it. */
#ifndef NOPIN_NIC_TURN_H
#define NOPIN_NIC_TURN_H

#include "os/wait.h"

#include <stdint.h>

struct nic;
struct step;

/**
 * struct left - At its last look a thread left the NIC to those of the program that sleep:
 * for @ns, and nic.sleepers.blocks was @blocks. Atomic: tests look at them.
 */
struct left {
	uint64_t ns;
	uint32_t blocks;
};

/** turn_run() - Run one turn of the background thread, or (@step NULL) of the thread that
 * stands in for it. Return: when to wake at the latest, and for @what.
 */
uint64_t turn_run(struct nic *nic, struct step *step, enum os_wait_for *what);

/** turn_sleep() - Sleep between two turns. Context: the background thread, which is kicked
 * for what is due before @until. */
void turn_sleep(struct nic *nic, uint64_t until, enum os_wait_for what);

#endif
