/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* acks.h: the ACKs of a NIC that have not left. */
#ifndef NOPIN_NIC_ACKS_H
#define NOPIN_NIC_ACKS_H

#include <stdint.h>

/**
 * struct acks_out
 * @owed:	some peer is owed an ACK (relaxed; for pollers)
 * @due:	some peer is, or may be, owed one that is due, or it is on its way out
 *		(atomic; set before the completion that it is for)
 * @begun, @ended: bursts of nothing but ACKs that were planned, committed (engine lock;
 *		@ended atomic)
 */
struct acks_out {
	uint32_t owed, due, begun, ended;
};

#endif
