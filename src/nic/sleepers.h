/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sleepers.h: threads of the program that poll, or sleep for an event. */
#ifndef NOPIN_NIC_SLEEPERS_H
#define NOPIN_NIC_SLEEPERS_H

#include <stdint.h>

/**
 * struct polls - When a thread of the program polled last, and which (relaxed).
 * @empty:	how often in turn nothing was found
 */
struct polls {
	uint64_t last_ns;
	uintptr_t last;
	uint32_t empty;
};

/**
 * struct sleepers - Threads of the program that sleep for an event.
 * @blocked:	how many sleep in attend_block()
 * @blocks:	how often one began or ended that
 * @lapsed:	how often it was when none came for a packet
 * @asleep:	how often in turn they do not look first, before they sleep, as they
 *		did in vain; @asleep_left: of these (relaxed)
 */
struct sleepers {
	uint32_t blocked, blocks, lapsed;
	uint32_t asleep, asleep_left;
};

#endif
