/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mem.c: the virtual memory of an application: mappings, pages that come and
 * go, and the loads and stores of the application itself. How the NIC's moves
 * fare on them is in move.c, the pagers are in pager.c.
 *
 * Theory of operation
 *
 * A process has a terabyte of virtual addresses of its own, so an address says
 * whose it is and never looks like a real pointer (the very last pages of the
 * address space belong to everybody). The content of a page is in ordinary
 * memory and survives its eviction.
 *
 * An exact host asks the MMU hook before it takes a page or a right away, and
 * tries again later if the page is held; it also tells the hook what becomes
 * present by the application's own touch. What a pager brings in the NIC learns
 * from the pager's answer, and what its moves touch it knows itself.
 */
#include "base/check.h"
#include "base/list.h"
#include "base/page.h"
#include "base/range.h"
#include "simhost/impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { SIM_FRESH_NS = 10 * SIM_MS };
#define SIM_APP_FIRST (UINT64_C(1) << 40)
#define SIM_APP_END   ((uint64_t)(SIM_HOSTS_MAX + 1) << 40)
#define SIM_APP_TOP   (UINT64_MAX << 32)

/* --- mappings -------------------------------------------------------------- */

bool sim_is_app(const void *p)
{
	const uint64_t addr = (uintptr_t)p;

	return (addr >= SIM_APP_FIRST && addr < SIM_APP_END) ||
	       addr >= SIM_APP_TOP;
}

struct sim_map *sim_map_find(struct os *os, uint64_t addr)
{
	list_for_each(l, &os->maps) {
		struct sim_map *map = list_entry(l, struct sim_map, link);

		if (addr >= map->start && addr - map->start <= map->last)
			return map;
	}
	return NULL;
}

int sim_mmap_at(struct os *os, uint64_t addr, uint64_t bytes,
		enum sim_backing backing, int prot)
{
	struct sim_map *map;

	CHECK(addr % PAGE_BYTES == 0 && bytes % PAGE_BYTES == 0 && bytes != 0);
	CHECK(!range_wraps(addr, bytes));
	list_for_each(l, &os->maps) {
		map = list_entry(l, struct sim_map, link);
		if (addr <= map->start + map->last &&
		    map->start <= addr + (bytes - 1))
			return -EEXIST;
	}
	map = calloc(1, sizeof(*map));
	CHECK(map);
	map->start = addr;
	map->last = bytes - 1;
	map->backing = backing;
	map->prot = prot;
	list_add_tail(&os->maps, &map->link);
	return 0;
}

uint64_t sim_mmap(struct os *os, uint64_t bytes, enum sim_backing backing,
		  int prot)
{
	const uint64_t addr = os->next_addr;
	const uint64_t whole = DIV_ROUND_UP(bytes, PAGE_BYTES) * PAGE_BYTES;

	/* A hole behind each, so that running over an end is noticed. */
	os->next_addr += whole + PAGE_BYTES;
	CHECK(sim_mmap_at(os, addr, whole, backing, prot) == 0);
	return addr;
}

/* --- pages ------------------------------------------------------------------- */

struct sim_page *sim_page_find(struct os *os, uint64_t vpn)
{
	struct sim_page *p = os->page[vpn % SIM_PAGE_HASH];

	while (p && p->vpn != vpn)
		p = p->next;
	if (p && p->ready_ns != 0 && p->ready_ns <= os->sim->now_ns) {
		p->present = true;
		p->ready_ns = 0;
	}
	return p;
}

struct sim_page *sim_page_get(struct os *os, uint64_t vpn)
{
	struct sim_page *p = sim_page_find(os, vpn);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	CHECK(p);
	p->vpn = vpn;
	p->next = os->page[vpn % SIM_PAGE_HASH];
	return os->page[vpn % SIM_PAGE_HASH] = p;
}

static void page_free(struct os *os, uint64_t vpn)
{
	struct sim_page **at = &os->page[vpn % SIM_PAGE_HASH], *p;

	while (*at && (*at)->vpn != vpn)
		at = &(*at)->next;
	p = *at;
	if (p) {
		*at = p->next;
		os->locked -= p->locked;
		free(p);
	}
}

void sim_mem_free(struct os *os)
{
	for (unsigned i = 0; i < SIM_PAGE_HASH; i++) {
		while (os->page[i])
			page_free(os, os->page[i]->vpn);
	}
	list_for_each_safe(l, tmp, &os->maps) {
		list_del(l);
		free(list_entry(l, struct sim_map, link));
	}
}

bool sim_page_major(const struct sim_map *map, const struct sim_page *page)
{
	return page->slow_ns != 0 || page->stored || map->backing == SIM_FILE;
}

uint64_t sim_page_cost(struct os *os, const struct sim_map *map,
		       const struct sim_page *page)
{
	const struct sim_mem_config *m = &os->mem;

	if (page->slow_ns != 0)
		return page->slow_ns;
	if (sim_page_major(map, page))
		return sim_between(os->sim, m->major_min_ns, m->major_max_ns);
	return sim_between(os->sim, m->minor_min_ns, m->minor_max_ns);
}

void sim_page_in(struct os *os, struct sim_page *page, bool write)
{
	page->present = true;
	page->ready_ns = 0;
	page->touched_ns = os->sim->now_ns;
	if (write)
		page->cow = false;
}

bool sim_present(struct os *os, uint64_t addr)
{
	const struct sim_page *p = sim_page_find(os, page_of(addr));

	return p && p->present;
}

void sim_slow(struct os *os, uint64_t addr, uint64_t ns)
{
	sim_page_get(os, page_of(addr))->slow_ns = ns;
}

/* --- what happens to mappings and pages -------------------------------------------- */

void sim_mem_set(struct os *os, const struct sim_mem_config *cfg)
{
	os->mem = *cfg;
}

void sim_mmu_hook(struct os *os, const struct sim_mmu_hook *hook)
{
	os->hook = *hook;
}

static int hook_unmap(struct os *os, uint64_t vpn, uint64_t pages)
{
	return os->hook.unmap ? os->hook.unmap(os->hook.arg, vpn, pages) : 0;
}

static int hook_protect(struct os *os, uint64_t vpn, uint64_t pages)
{
	return os->hook.protect ? os->hook.protect(os->hook.arg, vpn, pages)
				: 0;
}

int sim_munmap(struct os *os, uint64_t addr)
{
	struct sim_map *map = sim_map_find(os, addr);
	uint64_t vpn, pages;

	CHECK(map && map->start == addr);
	vpn = page_of(addr);
	pages = map->last / PAGE_BYTES + 1;
	if (hook_unmap(os, vpn, pages) != 0) {
		os->sim->stats.unmap_busy++;
		return -EBUSY;
	}
	for (uint64_t i = 0; i < pages; i++)
		page_free(os, vpn + i);
	list_del(&map->link);
	free(map);
	os->sim->stats.unmaps++;
	sim_note(os->sim, 'U', addr);
	sim_say(os->sim, "host %u: munmap 0x%" PRIx64, os->index, addr);
	return 0;
}

int sim_mprotect(struct os *os, uint64_t addr, int prot)
{
	struct sim_map *map = sim_map_find(os, addr);
	uint64_t vpn, pages;
	int err;

	CHECK(map && map->start == addr);
	vpn = page_of(addr);
	pages = map->last / PAGE_BYTES + 1;
	err = prot & SIM_READ ? hook_protect(os, vpn, pages)
			      : hook_unmap(os, vpn, pages);
	if (err != 0) {
		os->sim->stats.unmap_busy++;
		return -EBUSY;
	}
	map->prot = prot;
	os->sim->stats.protects++;
	sim_note(os->sim, 'P', addr);
	sim_say(os->sim, "host %u: mprotect 0x%" PRIx64 " %d", os->index, addr,
		prot);
	return 0;
}

int sim_evict(struct os *os, uint64_t addr, bool force)
{
	struct sim_page *page = sim_page_find(os, page_of(addr));
	struct sim_map *map = sim_map_find(os, addr);
	struct sim *sim = os->sim;

	if (!map || map->backing == SIM_CHEAP || !page || !page->present ||
	    page->locked)
		return -EAGAIN;
	if (!force && !os->cfg.exact &&
	    sim->now_ns - page->touched_ns < SIM_FRESH_NS)
		return -EAGAIN;
	if (hook_unmap(os, page->vpn, 1) != 0) {
		sim->stats.evict_busy++;
		return -EBUSY;
	}
	page->present = false;
	page->stored = true;
	sim->stats.evictions++;
	sim_note(sim, 'E', addr);
	sim_say(sim, "host %u: evicted page 0x%" PRIx64, os->index, page->vpn);
	return 0;
}

void sim_fork(struct os *os)
{
	list_for_each(l, &os->maps) {
		const struct sim_map *map = list_entry(l, struct sim_map, link);

		if (map->backing == SIM_FILE)
			continue;
		for (uint64_t i = 0; i <= map->last / PAGE_BYTES; i++) {
			struct sim_page *page =
				sim_page_find(os, page_of(map->start) + i);

			if (page && page->present)
				page->cow = true;
		}
	}
	os->forks++;
	if (os->hook.protect_all)
		os->hook.protect_all(os->hook.arg);
	os->sim->stats.forks++;
	sim_note(os->sim, 'F', os->index);
	sim_say(os->sim, "host %u: fork", os->index);
}

/* --- the application's own accesses ----------------------------------------------- */

/* Bring in what is not there, and tell. Return: NULL: SIGSEGV. */
static struct sim_page *app_touch(struct os *os, uint64_t addr, bool write)
{
	const struct sim_map *map = sim_map_find(os, addr);
	struct sim_page *page;
	bool news;

	if (!map || !(map->prot & (write ? SIM_WRITE : SIM_READ)))
		return NULL;
	page = sim_page_get(os, page_of(addr));
	news = !page->present || (write && page->cow);
	sim_page_in(os, page, write);
	if (news && os->hook.map)
		os->hook.map(os->hook.arg, page->vpn, 1,
			     !page->cow && (map->prot & SIM_WRITE));
	return page;
}

int sim_read(struct os *os, uint64_t addr, void *buf, uint64_t len)
{
	uint8_t *out = buf;

	while (len > 0) {
		const struct sim_page *page = app_touch(os, addr, false);
		const uint64_t off = addr % PAGE_BYTES;
		const uint64_t n = MIN(len, PAGE_BYTES - off);

		if (!page)
			return -EFAULT;
		memcpy(out, page->bytes + off, n);
		out += n;
		addr += n;
		len -= n;
	}
	return 0;
}

int sim_write(struct os *os, uint64_t addr, const void *buf, uint64_t len)
{
	const uint8_t *in = buf;

	while (len > 0) {
		struct sim_page *page = app_touch(os, addr, true);
		const uint64_t off = addr % PAGE_BYTES;
		const uint64_t n = MIN(len, PAGE_BYTES - off);

		if (!page)
			return -EFAULT;
		memcpy(page->bytes + off, in, n);
		in += n;
		addr += n;
		len -= n;
	}
	return 0;
}

int sim_peek(struct os *os, uint64_t addr, void *buf, uint64_t len)
{
	uint8_t *out = buf;

	while (len > 0) {
		const struct sim_page *page = sim_page_find(os, page_of(addr));
		const uint64_t off = addr % PAGE_BYTES;
		const uint64_t n = MIN(len, PAGE_BYTES - off);

		if (!sim_map_find(os, addr))
			return -EFAULT;
		if (page)
			memcpy(out, page->bytes + off, n);
		else
			memset(out, 0, n);
		out += n;
		addr += n;
		len -= n;
	}
	return 0;
}

uint64_t os_fresh_after(struct os *os, uint64_t now_ns)
{
	(void)os;
	return now_ns > SIM_FRESH_NS ? now_ns - SIM_FRESH_NS : 0;
}
