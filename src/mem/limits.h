/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* limits.h: application addresses, and how many there are. */
#ifndef NOPIN_MEM_LIMITS_H
#define NOPIN_MEM_LIMITS_H

#include "base/check.h"
#include "base/page.h"

enum {
	/* Application addresses end here: 57-bit x86 user space. */
	ADDR_BITS = 56,
	VPN_BITS = ADDR_BITS - PAGE_SHIFT,
};

#define ADDR_END (UINT64_C(1) << ADDR_BITS)
#define VPN_END	 (UINT64_C(1) << VPN_BITS)

/** pages_clip() - Return @pages, less those beyond the last page that there can be. */
static inline uint64_t pages_clip(uint64_t vpn, uint64_t pages)
{
	return vpn >= VPN_END ? 0 : MIN(pages, VPN_END - vpn);
}

#endif
