/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* due.h: when anything is to be done next. */
#ifndef NOPIN_NIC_DUE_H
#define NOPIN_NIC_DUE_H

#include <stdint.h>

struct nic;

/* A thread that polled is back within so long. */
enum { POLLED_RECENTLY_NS = 200 * 1000 };

/**
 * due_left() - Wake the background thread, if it relies for long on a thread of the program
 * that looked after the NIC and does not any more.
 */
void due_left(struct nic *nic, uint64_t now_ns);

/** due_set() - Set when anything is due next, and wake the threads that must know. */
void due_set(struct nic *nic, uint64_t at_ns, uint64_t now_ns);

#endif
