/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend.h: commands of nopin(1) that suspend, move and resume. */
#ifndef NOPIN_NIC_SUSPEND_H
#define NOPIN_NIC_SUSPEND_H

struct ctl_answer;
struct nic;

void ctl_move(struct nic *nic, int argc, char **argv, struct ctl_answer *a);
void ctl_resume(struct nic *nic, int argc, char **argv, struct ctl_answer *a);
void ctl_suspend(struct nic *nic, int argc, char **argv, struct ctl_answer *a);

#endif
