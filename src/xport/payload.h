/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* payload.h: where the bytes of a packet are that is being taken. */
#ifndef NOPIN_XPORT_PAYLOAD_H
#define NOPIN_XPORT_PAYLOAD_H

#include <stdint.h>

struct accepted;

/**
 * struct payload - The payload of one packet; a value.
 * @at:		its bytes, as the NIC end of moves; NULL: none are to be moved (the
 *		packet has none, or they were received in place)
 * @kept:	the packet waits in a window, and the bytes are in its slot; NULL: they
 *		are in the buffer of the step, until the run is committed
 */
struct payload {
	uint8_t *at;
	struct accepted *kept;
};

/** payload_of_step() - Return the payload at @bytes of the step, or none for NULL. */
static inline struct payload payload_of_step(uint8_t *bytes)
{
	return (struct payload){.at = bytes};
}

#endif
