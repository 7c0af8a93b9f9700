/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pin.c: pages that stay, as mlock(2) has it: no count is kept, so one unlock
 * undoes any number of locks, and what is unmapped is not locked any more.
 * Nothing here sleeps, and no hook is called: a lock of the NIC may be held.
 */
#include "base/page.h"
#include "simhost/impl.h"

#include <errno.h>
#include <stdint.h>

void sim_lock_limit(struct os *os, uint64_t bytes)
{
	os->lock_limit = bytes / PAGE_BYTES;
}

bool sim_locked(struct os *os, uint64_t addr)
{
	const struct sim_page *page = sim_page_find(os, page_of(addr));

	return page && page->locked;
}

uint64_t sim_locked_bytes(const struct os *os)
{
	return os->locked * PAGE_BYTES;
}

static void set_locked(struct os *os, struct sim_page *page, bool locked)
{
	if (page->locked == locked)
		return;
	page->locked = locked;
	os->locked = locked ? os->locked + 1 : os->locked - 1;
}

static bool may_read(struct os *os, uint64_t vpn)
{
	const struct sim_map *map = sim_map_find(os, vpn << PAGE_SHIFT);

	return map && (map->prot & SIM_READ);
}

int os_pin(struct os *os, uint64_t addr, uint64_t len, bool fetch)
{
	const uint64_t first = page_of(addr), pages = pages_spanned(addr, len);
	uint64_t more = 0;

	for (uint64_t i = 0; i < pages; i++) {
		if (!may_read(os, first + i))
			return -EFAULT;
		more += !sim_locked(os, (first + i) << PAGE_SHIFT);
	}
	if (os->locked + more > os->lock_limit)
		return -ENOMEM;
	for (uint64_t i = 0; i < pages; i++) {
		struct sim_page *page = sim_page_get(os, first + i);

		if (fetch && !page->present)
			sim_page_in(os, page, false);
		set_locked(os, page, true);
	}
	return 0;
}

int os_unpin(struct os *os, uint64_t addr, uint64_t len)
{
	int err = 0;

	for (uint64_t i = 0; i < pages_spanned(addr, len); i++) {
		const uint64_t vpn = page_of(addr) + i;
		struct sim_page *page = sim_page_find(os, vpn);

		if (page)
			set_locked(os, page, false);
		if (!sim_map_find(os, vpn << PAGE_SHIFT))
			err = -EFAULT;
	}
	return err;
}

bool os_pinned(struct os *os, uint64_t *addr, uint64_t *len)
{
	const uint64_t end = page_of(*addr) + pages_spanned(*addr, *len);
	uint64_t from = page_of(*addr), to;

	while (from < end && !sim_locked(os, from << PAGE_SHIFT))
		from++;
	for (to = from; to < end && sim_locked(os, to << PAGE_SHIFT);)
		to++;
	*addr = from << PAGE_SHIFT;
	*len = (to - from) << PAGE_SHIFT;
	return from < to;
}

/* A move here sleeps in whatever fault is legal, so this is not needed where one
 * failed. */
int os_page_now(struct os *os, uint64_t addr, uint64_t bytes, bool write)
{
	for (uint64_t i = 0; i < pages_spanned(addr, bytes); i++) {
		const uint64_t vpn = page_of(addr) + i;
		const struct sim_map *map = sim_map_find(os, vpn << PAGE_SHIFT);

		if (!map || !(map->prot & (write ? SIM_WRITE : SIM_READ)))
			return -EFAULT;
		sim_page_in(os, sim_page_get(os, vpn), write);
	}
	return 0;
}

int os_mapped(struct os *os, uint64_t addr, uint64_t len)
{
	for (uint64_t i = 0; i < pages_spanned(addr, len); i++)
		if (!sim_map_find(os, (page_of(addr) + i) << PAGE_SHIFT))
			return -EFAULT;
	return 0;
}

/* Tests move memory themselves. */
int os_move(struct os *os, const struct os_move_req *req, uint64_t *copied)
{
	(void)os;
	(void)req;
	*copied = 0;
	return -EOPNOTSUPP;
}
