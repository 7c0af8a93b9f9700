/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scatter.h: bursts that are received in place. */
#ifndef NOPIN_NIC_SCATTER_H
#define NOPIN_NIC_SCATTER_H

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct step;

/**
 * scatter_receive() - Peek and receive in place if that is possible.
 * Return: true: a burst was taken that way (or was lost); the rest of it, if
 * any, is in s->buf. No lock held; takes it to plan.
 */
bool scatter_receive(struct nic *nic, struct step *s);

/** scatter_packets() - Hand what was received in place to the QP. Lock held. */
void scatter_packets(struct nic *nic, struct step *s);

#endif
