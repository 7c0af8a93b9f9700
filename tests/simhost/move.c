/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* move.c: copies between the NIC and virtual pages, as the kernel does them
 * for a NIC: at any byte they may block in a fault, be interrupted, or find that
 * what was mapped is not any more.
 *
 * After every moment in which other things could happen the page is looked up
 * again, so a copy that blocked lands in whatever is mapped there afterwards,
 * as on a real host (design D8).
 */
#include "base/check.h"
#include "base/page.h"
#include "simhost/impl.h"

#include <errno.h>
#include <inttypes.h>

void sim_watch(struct os *os,
	       void (*fn)(void *arg, uint64_t addr, uint64_t len), void *arg)
{
	os->watch = fn;
	os->watch_arg = arg;
}

void sim_watch_drop(struct os *os, void (*fn)(void *arg, uint64_t addr),
		    void *arg)
{
	os->watch_drop = fn;
	os->drop_arg = arg;
}

void sim_moment(struct os *os)
{
	if (!os->sim->running || os->mem.delay_max_ns == 0)
		return;
	sim_sleep(os->sim, sim_between(os->sim, 0, os->mem.delay_max_ns));
}

/* The move waits for an absent page, which it begins to bring in if nobody has. */
static void move_block(struct os *os, const struct sim_map *map,
		       struct sim_page *page)
{
	const uint64_t vpn = page->vpn;
	struct sim *sim = os->sim;
	bool major = sim_page_major(map, page);
	uint64_t until;

	if (page->ready_ns == 0)
		page->ready_ns = sim->now_ns + sim_page_cost(os, map, page);
	until = page->ready_ns;
	sim->stats.major += major;
	sim->stats.minor += !major;
	sim->stats.exact_misses += major && os->cfg.exact;
	sim->majflt += major;
	sim->minflt += !major;
	sim_note(sim, 'B', vpn);
	sim_say(sim,
		"host %u: a move blocks on page 0x%" PRIx64 " for %" PRIu64
		" ns",
		os->index, vpn, until - sim->now_ns);
	if (sim->running)
		sim_sleep(sim, until - sim->now_ns);
	else
		sim_page_in(os, page, false);
}

/* As madvise(MADV_DONTNEED): what was stored is gone, present or not. */
static void move_drop(struct os *os, const struct move *m)
{
	for (uint64_t at = 0; at < m->drop_len; at += PAGE_BYTES) {
		const struct sim_map *map = sim_map_find(os, m->drop + at);
		struct sim_page *page;

		if (!map || map->backing == SIM_FILE)
			continue;
		if (os->watch_drop)
			os->watch_drop(os->drop_arg, m->drop + at);
		page = sim_page_get(os, page_of(m->drop + at));
		os->sim->stats.dropped += page->stored && !page->present;
		page->stored = false;
		page->slow_ns = page->ready_ns = 0;
		memset(page->bytes, 0, sizeof(page->bytes));
		sim_note(os->sim, 'd', page->vpn);
	}
}

void os_drop(struct os *os, const struct moves *mv)
{
	for (unsigned i = 0; i < mv->num; i++)
		if (mv->m[i].kind == MOVE_OVERWRITE)
			move_drop(os, &mv->m[i]);
}

/* A page that can be used this very moment, or NULL: EFAULT. */
static struct sim_page *move_touch(struct os *os, uint64_t addr, bool write)
{
	const struct sim_map *map;
	struct sim_page *page;

	for (;;) {
		map = sim_map_find(os, addr);
		if (!map || !(map->prot & (write ? SIM_WRITE : SIM_READ))) {
			os->sim->stats.efaults++;
			sim_note(os->sim, 'V', addr);
			sim_say(os->sim, "host %u: EFAULT at 0x%" PRIx64,
				os->index, addr);
			return NULL;
		}
		page = sim_page_get(os, page_of(addr));
		if (page->present)
			break;
		move_block(os, map, page);
	}
	os->sim->stats.cows += write && page->cow;
	sim_page_in(os, page, write);
	return page;
}

static void move_tear(struct os *os, uint64_t *len)
{
	if (*len < 2 || !os->sim->running || !sim_chance(os->sim, os->mem.tear))
		return;
	*len = sim_between(os->sim, 1, *len - 1);
	os->sim->stats.torn++;
}

int sim_copy(struct os *os, uint64_t addr, void *nic, uint64_t len, bool write)
{
	uint8_t *at = nic;

	while (len > 0) {
		struct sim_page *page = move_touch(os, addr, write);
		const uint64_t off = addr % PAGE_BYTES;
		const uint64_t whole = MIN(len, PAGE_BYTES - off);
		uint64_t n = whole;

		if (!page)
			return -EFAULT;
		move_tear(os, &n);
		if (write)
			memcpy(page->bytes + off, at, n);
		else
			memcpy(at, page->bytes + off, n);
		sim_note(os->sim, write ? 'w' : 'r', addr);
		if (write && os->watch)
			os->watch(os->watch_arg, addr, n);
		if (n < whole)
			sim_moment(os);
		at += n;
		addr += n;
		len -= n;
	}
	return 0;
}

static int move_atomic(struct os *os, struct move *m)
{
	struct sim_page *page;
	uint64_t now;

	CHECK(m->len == 8 && m->addr % 8 == 0);
	page = move_touch(os, m->addr, true);
	if (!page)
		return -EFAULT;
	memcpy(&m->result, page->bytes + m->addr % PAGE_BYTES, 8);
	now = m->result;
	if (m->kind == MOVE_FETCH_ADD)
		now += m->operand;
	else if (m->result == m->compare)
		now = m->operand;
	memcpy(page->bytes + m->addr % PAGE_BYTES, &now, 8);
	sim_note(os->sim, 'a', now);
	if (os->watch)
		os->watch(os->watch_arg, m->addr, 8);
	return 0;
}

static int move_run(struct os *os, struct move *m)
{
	CHECK(m->len > 0);
	os->sim->stats.moves++;
	if (!sim_is_app((void *)(uintptr_t)m->addr)) {
		os->sim->stats.efaults++;
		return -EFAULT;
	}
	switch ((enum move_kind)m->kind) {
	case MOVE_GATHER:
		return sim_copy(os, m->addr, m->nic, m->len, false);
	case MOVE_OVERWRITE:
		move_drop(os, m);
		/* fall through */
	case MOVE_SCATTER:
		return sim_copy(os, m->addr, m->nic, m->len, true);
	case MOVE_FETCH_ADD:
	case MOVE_CMP_SWP:
		return move_atomic(os, m);
	default:
		check_failed(__FILE__, __LINE__, "a kind of move");
	}
}

void os_moves(struct os *os, struct moves *mv)
{
	sim_moment(os);
	sim_lose_cpu(os->sim);
	mv->error = 0;
	for (; mv->done < mv->num; mv->done++) {
		mv->error = move_run(os, &mv->m[mv->done]);
		if (mv->error)
			break;
	}
	sim_moment(os);
}
