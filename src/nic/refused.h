/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refused.h: what a program is told when its limits are in the way. */
#ifndef NOPIN_NIC_REFUSED_H
#define NOPIN_NIC_REFUSED_H

/** nic_refused() - Log which limit of the program is in the way, if it is one.
 * Return: @err, for the program. */
int nic_refused(int err);

#endif
