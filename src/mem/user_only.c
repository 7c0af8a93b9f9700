/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* user_only.c: memory that only user mode may fault in (a userfaultfd of
 * UFFD_USER_MODE_ONLY): to the kernel a page of it that went a moment ago is
 * EFAULT. A copy is made again then, but a burst that recvmsg() was to scatter there
 * is lost. So what pagers had to touch themselves, because the kernel refused to, is
 * remembered, in stretches of 1 GiB and for ever: to be wrong costs a copy.
 */
#include "mem/dma.h"
#include "mem/state.h"

enum { STRETCH_SHIFT = 30 };

static struct user_only_bit {
	uint64_t word, mask;
} bit_of(uint64_t stretch)
{
	const uint64_t h = stretch * UINT64_C(0x9e3779b97f4a7c15) >> 54;

	return (struct user_only_bit){h / 64, UINT64_C(1) << h % 64};
}

void user_only_learn(struct mem *m, uint64_t addr, uint64_t len)
{
	const uint64_t last = (addr + len - 1) >> STRETCH_SHIFT;

	for (uint64_t s = addr >> STRETCH_SHIFT; s <= last; s++) {
		const struct user_only_bit b = bit_of(s);

		m->user_only[b.word] |= b.mask;
	}
}

bool user_only(const struct mem *m, uint64_t addr, uint64_t len)
{
	const uint64_t last = (addr + len - 1) >> STRETCH_SHIFT;

	for (uint64_t s = addr >> STRETCH_SHIFT; s <= last; s++) {
		const struct user_only_bit b = bit_of(s);

		if (m->user_only[b.word] & b.mask)
			return true;
	}
	return false;
}
