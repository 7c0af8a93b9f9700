/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* holder.h: waiting for the holder of UDP port 4791, and telling of it. */
#ifndef NOPIN_NIC_HOLDER_H
#define NOPIN_NIC_HOLDER_H

#include <stdint.h>

struct nic;
struct text;

/** roce_welcome() - Wait until the holder has let us in, before packets may come from
 * standard peers: else what it passes on is not believed. It may be about to begin, and its
 * thread may not run at once. On a thread of the program, no lock held. */
void roce_welcome(struct nic *nic);

/** roce_turn() - Serve others, see to it that we are served, and tell the program if we
 * are not. Return: do it again by then, @until at most. Context: background thread. */
uint64_t roce_turn(struct nic *nic, uint64_t until);

/** roce_text() - Add the state of the port and its holder, for `nopin stat --host`. Takes
 * the engine lock. */
void roce_text(struct nic *nic, struct text *t);

#endif
