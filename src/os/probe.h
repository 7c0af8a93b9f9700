/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.h: system calls that a filter denies. */
#ifndef NOPIN_OS_PROBE_H
#define NOPIN_OS_PROBE_H

/** probe_calls() - Return: 0; -errno: one that is needed is denied, as was logged. */
int probe_calls(void);

#endif
