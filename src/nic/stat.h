/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stat.h: what is accounted, as text. */
#ifndef NOPIN_NIC_STAT_H
#define NOPIN_NIC_STAT_H

struct ctl_answer;
struct nic;

/** stat_text() - Write what is accounted of the NIC, its QPs and regions, as JSON. */
void stat_text(struct nic *nic, struct ctl_answer *a);

#endif
