/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inlet.h: where packets come in: the sockets of the NIC, at which only the holder of the
 * receive token (token.h) looks. Another link would be looked at here, too. */
#ifndef NOPIN_NIC_INLET_H
#define NOPIN_NIC_INLET_H

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct step;

/** inlet_receive() - Fill @s with what came. No lock. false: nothing. */
bool inlet_receive(struct nic *nic, struct step *s);

/** inlet_rest() - Note if @s has packets that are not planned yet. Lock held. */
void inlet_rest(struct nic *nic, struct step *s);

/** inlet_inherit() - Take what a thread whose token we took over did not plan yet of its
 * burst, as if we had received it. Takes the lock if there is something. false: nothing. */
bool inlet_inherit(struct nic *nic, struct step *s);

/**
 * inlet_taken() - Note that what was received is committed.
 * @mine:	the token of this thread
 * @bytes:	received, at least 1; 0: nothing was there
 */
void inlet_taken(struct nic *nic, uint64_t mine, uint32_t bytes);

/** inlet_heard() - Return until when all that came is committed, ns. Any thread. */
uint64_t inlet_heard(const struct nic *nic);

#endif
