/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pager.c: pagers of a simulated host. Each serves one request at a time,
 * for as long as its pages take; the pages are there, and the answer is, at the
 * end. They may be gone again before anybody reads the answer.
 */
#include "base/check.h"
#include "base/list.h"
#include "base/page.h"
#include "base/range.h"
#include "simhost/impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { SIM_HANDOFF_MIN_NS = 3 * SIM_US, SIM_HANDOFF_MAX_NS = 40 * SIM_US };

static bool page_allowed(const struct sim_map *map, bool write)
{
	return map && (map->prot & (write ? SIM_WRITE : SIM_READ));
}

/* What bringing in the range takes, up to the first page that fails, or, if it
 * takes long, to where the answer comes early: @req.bytes then ends there.
 */
static uint64_t ask_cost(struct os *os, struct sim_ask *ask)
{
	struct os_page_req *req = &ask->req;
	uint64_t cost = sim_between(os->sim, SIM_HANDOFF_MIN_NS,
				    SIM_HANDOFF_MAX_NS);

	for (uint64_t off = 0; off < req->bytes && !req->probe && !req->look;
	     off += PAGE_BYTES) {
		const struct sim_map *map = sim_map_find(os, req->addr + off);
		const struct sim_page *page;

		if (!page_allowed(map, req->write))
			break;
		page = sim_page_get(os, page_of(req->addr + off));
		if (page->present)
			continue;
		ask->done.absent = true;
		ask->done.major |= sim_page_major(map, page);
		cost += sim_page_cost(os, map, page);
		if (cost > OS_PAGES_SLOW_NS && !req->whole)
			req->bytes = off + PAGE_BYTES;
	}
	return cost;
}

/* Return: is the page at @addr ready now, @done->error set if it never is? */
static bool ask_page(struct os *os, const struct os_page_req *req,
		     struct os_page_done *done, uint64_t addr)
{
	const struct sim_map *map = sim_map_find(os, addr);
	struct sim_page *page;

	if (!page_allowed(map, req->write)) {
		done->error = -EFAULT;
		return false;
	}
	page = sim_page_get(os, page_of(addr));
	if (req->probe) {
		if (!page->present || (req->write && page->cow))
			return false;
	} else {
		sim_page_in(os, page, req->write);
	}
	done->writable &= !page->cow && (map->prot & SIM_WRITE);
	return true;
}

static void ask_backing(struct os *os, struct sim_ask *ask)
{
	const struct sim_map *map = sim_map_find(os, ask->req.addr);
	struct os_page_done *done = &ask->done;

	if (!map)
		return;
	done->backing = BACKING_SLOW;
	if (map->backing != SIM_CHEAP || map->start + map->last == UINT64_MAX)
		return;
	done->backing = BACKING_CHEAP;
	done->cheap_start = map->start;
	done->cheap_end = map->start + map->last + 1;
}

/* What is it: memory that may be dropped? */
static void ask_plain(struct os *os, struct sim_ask *ask)
{
	const struct sim_map *map = sim_map_find(os, ask->req.addr);

	if (!map || map->backing == SIM_FILE || !(map->prot & SIM_WRITE) ||
	    map->start + map->last == UINT64_MAX)
		return;
	ask->done.plain_start = map->start;
	ask->done.plain_end = map->start + map->last + 1;
}

static void ask_start(struct os *os);

static void ask_finish(void *arg, uint64_t val)
{
	struct sim_ask *ask = arg;
	struct os_page_done *done = &ask->done;
	struct os *os = ask->os;
	struct sim *sim = os->sim;

	(void)val;
	os->serving--;
	if (!os->open) {
		free(ask);
		return;
	}
	done->id = ask->req.id;
	done->addr = ask->req.addr;
	done->writable = true;
	if (ask->req.look)
		ask_plain(os, ask);
	while (!ask->req.look && done->bytes < ask->req.bytes &&
	       ask_page(os, &ask->req, done, ask->req.addr + done->bytes))
		done->bytes += PAGE_BYTES;
	done->writable &= done->bytes != 0;
	done->service_ns = sim->now_ns - ask->began_ns;
	ask_backing(os, ask);
	sim->stats.page_fails += done->error != 0 && done->bytes == 0;
	sim->stats.page_partial += done->error != 0 && done->bytes != 0;
	sim_note(sim, 'A', done->bytes);
	sim_say(sim,
		"host %u: pager brought 0x%" PRIx64 " + %" PRIu64 " of %" PRIu64
		"%s, error %d",
		os->index, ask->req.addr, done->bytes, ask->req.bytes,
		ask->req.write ? " for writing" : "", done->error);
	list_add_tail(&os->answers, &ask->link);
	sim_wake(os, false);
	ask_start(os);
}

static bool ask_present(struct os *os, const struct os_page_req *req)
{
	for (uint64_t off = 0; off < req->bytes && !req->probe && !req->look;
	     off += PAGE_BYTES) {
		const uint64_t addr = req->addr + off;

		if (sim_map_find(os, addr) &&
		    !sim_page_get(os, page_of(addr))->present)
			return false;
	}
	return true;
}

/* The last pager takes no request that it would have to wait for. */
static struct sim_ask *ask_next(struct os *os)
{
	const unsigned most = os->os_cfg.pagers;

	if (os->serving >= most)
		return NULL;
	list_for_each(l, &os->asks) {
		struct sim_ask *ask = list_entry(l, struct sim_ask, link);

		if (most == 1 || os->serving + 1 < most ||
		    ask_present(os, &ask->req))
			return ask;
	}
	return NULL;
}

static void ask_start(struct os *os)
{
	struct sim *sim = os->sim;
	struct sim_ask *ask;

	while ((ask = ask_next(os))) {
		list_del(&ask->link);
		os->serving++;
		ask->began_ns = sim->now_ns;
		sim_at(sim, sim->now_ns + ask_cost(os, ask), ask_finish, ask,
		       0);
	}
}

/* Nothing is. */
void os_page_forget(struct os *os, uint64_t addr, uint64_t len)
{
	(void)os;
	(void)addr;
	(void)len;
}

int os_page_ask(struct os *os, const struct os_page_req *req)
{
	struct sim_ask *ask;

	CHECK(req->addr % PAGE_BYTES == 0 && req->bytes % PAGE_BYTES == 0);
	CHECK(req->bytes != 0 && !range_wraps(req->addr, req->bytes));
	if (os->asked == SIM_ASKS_MAX)
		return -EAGAIN;
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return -EAGAIN;
	ask->os = os;
	ask->req = *req;
	os->asked++;
	os->sim->stats.page_asks++;
	os->sim->stats.page_probes += req->probe;
	list_add_tail(&os->asks, &ask->link);
	sim_note(os->sim, 'Q', req->addr);
	ask_start(os);
	return 0;
}

bool os_pages_waiting(struct os *os)
{
	return !list_empty(&os->answers);
}

unsigned os_page_reap(struct os *os, struct os_page_done *out, unsigned max)
{
	unsigned num = 0;

	while (num < max && !list_empty(&os->answers)) {
		struct sim_ask *ask = list_entry(os->answers.next,
						 struct sim_ask, link);

		list_del(&ask->link);
		out[num++] = ask->done;
		os->asked--;
		free(ask);
	}
	return num;
}

/* A request that is being served frees itself when it is done. */
void sim_pager_close(struct os *os)
{
	struct list *lists[] = {&os->asks, &os->answers};

	os->open = false;
	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++) {
		list_for_each_safe(l, tmp, lists[i]) {
			list_del(l);
			free(list_entry(l, struct sim_ask, link));
		}
	}
}
