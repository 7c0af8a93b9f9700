/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* txbatch.h: what a step sends. */
#ifndef NOPIN_NIC_TXBATCH_H
#define NOPIN_NIC_TXBATCH_H

struct nic;
struct step;

void txbatch_send(struct nic *nic, struct step *s);

#endif
