/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* posted.h: QPs to which a program has posted. */
#ifndef NOPIN_NIC_POSTED_H
#define NOPIN_NIC_POSTED_H

#include <stdint.h>

struct nic;
struct nic_qp;

void posted_push(struct nic_qp *qp);
void posted_take(struct nic *nic);

#endif
