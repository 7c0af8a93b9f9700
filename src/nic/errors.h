/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* errors.h: what the network says of packets that were sent. */
#ifndef NOPIN_NIC_ERRORS_H
#define NOPIN_NIC_ERRORS_H

struct nic;

/** errors_take() - Take the ICMP errors. Takes the engine lock. */
void errors_take(struct nic *nic);

#endif
