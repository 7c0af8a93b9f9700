/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* page.h: the page size that the NIC counts in, whatever the host's is. */
#ifndef NOPIN_BASE_PAGE_H
#define NOPIN_BASE_PAGE_H

#include <stdint.h>

#define PAGE_SHIFT 12
#define PAGE_BYTES (UINT64_C(1) << PAGE_SHIFT)

/** struct pages - Page numbers [start, end). */
struct pages {
	uint64_t start, end;
};

/** page_of() - Return the virtual page number of an application address. */
static inline uint64_t page_of(uint64_t addr)
{
	return addr >> PAGE_SHIFT;
}

/** pages_spanned() - Count the pages that the @len bytes from @addr touch. */
static inline uint64_t pages_spanned(uint64_t addr, uint64_t len)
{
	return len == 0 ? 0 : page_of(addr + (len - 1)) - page_of(addr) + 1;
}

#endif
