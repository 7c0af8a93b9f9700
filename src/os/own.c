/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* own.c: what a process has of its own, whatever kind of fork made it (heap.h). */
#include "base/check.h"
#include "base/heap.h"
#include "base/page.h"
#include "os/sys_memory.h"

#include <sys/mman.h>

void *heap_own(void **place, size_t bytes)
{
	const size_t all = DIV_ROUND_UP(bytes, PAGE_BYTES) * PAGE_BYTES;
	void *there = __atomic_load_n(place, __ATOMIC_ACQUIRE), *made;

	if (there)
		return there;
	made = mmap(NULL, all, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return NULL;
	if (sys_madvise((uintptr_t)made, all, MADV_WIPEONFORK) == 0 &&
	    __atomic_compare_exchange_n(place, &there, made, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return made;
	munmap(made, all);
	return there;
}
