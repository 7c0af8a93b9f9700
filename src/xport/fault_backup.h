/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_backup.h: slots for datagrams. */
#ifndef NOPIN_XPORT_FAULT_BACKUP_H
#define NOPIN_XPORT_FAULT_BACKUP_H

#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/payload.h"

struct qp;

/**
 * backup_keep() - Keep a datagram in a slot, as number @number.
 * Return: false: no slot is free, or its sender or @qp has too many.
 */
bool backup_keep(struct qp *qp, const struct pkt *pkt, struct payload payload,
		 psn_t number);

#endif
