/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nic.c: composition and lifetime of the device (design D1): one NIC a process,
 * made at the first nic_get(), gone with the last nic_put().
 */
#include "nic/nic.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/log.h"
#include "base/strategy.h"
#include "base/timerq.h"
#include "mem/mem.h"
#include "nic/arbiter.h"
#include "nic/background.h"
#include "nic/config.h"
#include "nic/demux.h"
#include "nic/device.h"
#include "nic/handoff.h"
#include "nic/net.h"
#include "nic/peers.h"
#include "nic/prefetch.h"
#include "nic/qp.h"
#include "nic/refused.h"
#include "nic/reg.h"
#include "nic/roce.h"
#include "nic/step.h"
#include "os/copy.h"
#include "os/names.h"
#include "os/net.h"
#include "os/run.h"
#include "wire/roce.h"
#include "xport/xport.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* What a NIC makes do with where the program has set itself limits. */
enum {
	TICKETS = 1024,
	POOL_LEAST = 256 << 10,
	ENTRIES_LEAST = 4096,
	OBJECTS_ROOM = 1 << 20, /* bytes left for what the program makes */
};

/** struct global - The process's NIC. A child has none: it finds this zeroed, and
 * so the lock free, whichever thread of its parent held it. */
struct global {
	pthread_mutex_t lock;
	struct nic *nic;
	unsigned refs;
};

static void *global_place;

static int open_memory(struct nic *nic)
{
	uint32_t slots = (uint32_t)(nic->cfg.pool_bytes / MTU_MAX);
	struct mem_config cfg = {.entries = nic->cfg.entries,
				 .slots = slots,
				 .tickets = nic->cfg.tickets ? nic->cfg.tickets
							     : TICKETS,
				 .pagers = MAX(2, nic->cfg.os.pagers) - 1,
				 .exact = nic->cfg.exact,
				 .ahead = nic->cfg.ahead,
				 .always_ready = nic->cfg.always_ready ||
						 (nic->cfg.strategies &
						  STRATEGY_BIT(STRATEGY_BLOCK)),
				 .counters = &nic->cnt};
	uint64_t seed[2];
	int err;

	nic->steps.v = os_memory(nic->os, STEPS_MAX * sizeof(struct step));
	cfg.slot_base = os_memory(nic->os, (size_t)slots * MTU_MAX);
	if (!nic->steps.v || !cfg.slot_base)
		return -ENOMEM;
	os_random(nic->os, cfg.seed, sizeof(cfg.seed));
	os_random(nic->os, seed, sizeof(seed));
	err = mem_open(&nic->mem, &cfg);
	if (err)
		return err;
	err = xport_open(&nic->x, nic->mem, &nic->cnt, slots, seed);
	if (err)
		mem_close(nic->mem);
	return err;
}

/* Our receive budget (D14): what READs ask for, what peers may push, and the
 * rest for ACKs and for what a change of shares overlaps. */
static void share_budget(struct nic *nic)
{
	const size_t rcvbuf = os_rcvbuf(nic->os);

	nic->rcvbuf = rcvbuf;
	nic->x.budget.push = (uint32_t)(rcvbuf / 100 * 45);
	nic->x.budget.read = (uint32_t)(rcvbuf / 100 * 30);
}

static void init_fields(struct nic *nic, const struct nic_config *cfg)
{
	pthread_condattr_t attr;

	nic->cfg = *cfg;
	handoff_init(&nic->engine);
	pthread_condattr_init(&attr);
	pthread_cond_init(&nic->idle.committed, &attr);
	pthread_mutex_init(&nic->idle.lock, NULL);
	pthread_mutex_init(&nic->gids_lock, NULL);
	pthread_mutex_init(&nic->news.lock, NULL);
	list_init(&nic->qps.all);
	list_init(&nic->peers.all);
	list_init(&nic->peers.dests);
	list_init(&nic->asyncs);
	list_init(&nic->armed);
	timerq_init(&nic->peers.timers);
	prefetch_init(nic);
	nic->roce.port = -1;
	nic->roce.claim = -1;
	nic->roce.guest = -1;
	nic->deadline = TIME_NEVER;
	nic->steps.free = ((1u << STEPS_MAX) - 1) & ~(1u << BACKGROUND_STEP);
}

static int open_once(struct nic **out, const struct nic_config *cfg)
{
	struct nic *nic = heap_alloc(sizeof(*nic));
	int err;

	if (!nic)
		return -ENOMEM;
	init_fields(nic, cfg);
	err = os_open(&nic->os, &cfg->os);
	if (err)
		goto free_nic;
	os_random(nic->os, nic->nonce_key, sizeof(nic->nonce_key));
	os_random(nic->os, &nic->rnd, sizeof(nic->rnd));
	err = net_open(nic);
	if (err)
		goto close_os;
	err = open_memory(nic);
	if (err)
		goto close_os;
	err = demux_open(nic);
	if (err)
		goto close_mem;
	share_budget(nic);
	reg_open(nic);
	nic->x.strategies = cfg->strategies;
	for (int i = 0; i < STEPS_MAX; i++)
		nic->steps.v[i].index = i;
	arbiter_open(nic);
	err = os_ctl_open(nic->os);
	if (err)
		log_debug("no control socket: error %d", -err);
	os_prepare(nic->os);
	err = background_start(nic);
	if (err)
		goto close_ports;
	*out = nic;
	return 0;

close_ports:
	reg_close(nic);
	demux_close(nic);
close_mem:
	xport_close(&nic->x);
	mem_close(nic->mem);
close_os:
	os_close(nic->os);
free_nic:
	heap_free(nic);
	return err;
}

/* A limit of the program may leave room for less. false: it is little already. */
static bool halve_memory(struct nic_config *cfg)
{
	if (cfg->pool_bytes <= POOL_LEAST && cfg->entries <= ENTRIES_LEAST)
		return false;
	cfg->pool_bytes = MAX(cfg->pool_bytes / 2, (uint64_t)POOL_LEAST);
	cfg->entries = MAX(cfg->entries / 2, (uint32_t)ENTRIES_LEAST);
	return true;
}

/* EAGAIN: of a thread, which needs a stack. */
static bool is_short(int err)
{
	return err == -ENOMEM || err == -EAGAIN ||
	       (!err && !os_memory_left(OBJECTS_ROOM));
}

int nic_open(struct nic **out, const struct nic_config *cfg)
{
	struct nic_config less = *cfg;
	char limit[128];
	int err = open_once(out, &less);

	while (is_short(err) && halve_memory(&less)) {
		if (!err)
			nic_close(*out);
		err = open_once(out, &less);
	}
	if (err)
		return nic_refused(err);
	if (less.pool_bytes < cfg->pool_bytes) {
		os_memory_limit(limit, sizeof(limit));
		log_warn("the NIC has a pool of %llu KiB and %u entries: %s",
			 (unsigned long long)less.pool_bytes / 1024,
			 less.entries, limit);
	}
	return 0;
}

static void log_counters(const struct nic *nic)
{
	for (int i = 0; i < CNT_NUM; i++)
		if (nic->cnt.v[i])
			log_info("%s: %llu %s", counter_info[i].name,
				 (unsigned long long)nic->cnt.v[i],
				 counter_info[i].unit);
}

void nic_close(struct nic *nic)
{
	background_stop(nic);
	reg_close(nic);
	log_counters(nic);
	roce_release(nic);
	demux_close(nic);
	peers_close(nic);
	CHECK(list_empty(&nic->peers.all));
	timerq_fini(&nic->peers.timers);
	xport_close(&nic->x);
	mem_close(nic->mem);
	os_close(nic->os);
	pthread_cond_destroy(&nic->idle.committed);
	pthread_mutex_destroy(&nic->idle.lock);
	pthread_mutex_destroy(&nic->gids_lock);
	pthread_mutex_destroy(&nic->news.lock);
	heap_free(nic);
}

static void write_line(const char *line, int len)
{
	os_log(line, (size_t)len);
}

static int open_from_environment(struct nic **out)
{
	struct nic_config cfg;
	int err;

	log_set(LOG_WARN, write_line);
	err = config_read(&cfg);
	if (err)
		return err;
	log_set(cfg.log, write_line);
	return nic_open(out, &cfg);
}

int nic_get(struct nic **out)
{
	struct global *g = heap_own(&global_place, sizeof(*g));
	int err = 0;

	if (!g)
		return nic_refused(-ENOMEM);
	pthread_mutex_lock(&g->lock);
	if (!g->nic)
		err = open_from_environment(&g->nic);
	if (!err) {
		g->refs++;
		*out = g->nic;
	}
	pthread_mutex_unlock(&g->lock);
	return err;
}

void nic_put(struct nic *nic)
{
	struct global *g = global_place;

	if (nic_child(nic))
		return;
	pthread_mutex_lock(&g->lock);
	CHECK(nic == g->nic && g->refs);
	if (!--g->refs) {
		g->nic = NULL;
		nic_close(nic);
	}
	pthread_mutex_unlock(&g->lock);
}

/* A program may leave it to exit() to end its QPs. A card has acknowledged by then
 * what it had received; a peer that we leave without that would wait for seconds. */
__attribute__((destructor)) static void at_exit(void)
{
	struct global *g = global_place;

	if (!g || pthread_mutex_trylock(&g->lock))
		return;
	if (g->nic)
		nic_flush(g->nic);
	pthread_mutex_unlock(&g->lock);
}

bool nic_of_parent(const struct nic *nic)
{
	return nic_child(nic);
}

/* Is there an address to offer? The first is of an interface that is up, if any is.
 * Return: 0, -errno. */
static int has_address(struct os *os)
{
	struct os_net net;
	int err = os_net_read(os, &net);

	if (err)
		return err;
	err = net.naddrs && net.addr[0].up ? 0 : -ENODEV;
	os_net_free(&net);
	return err;
}

int nic_present(void)
{
	struct nic_config cfg;
	struct os *os;
	int err;

	log_to(write_line);
	if (config_read(&cfg))
		return -ENODEV;
	cfg.os.pagers = 0;
	err = os_open(&os, &cfg.os);
	if (err)
		return nic_refused(err == -EAFNOSUPPORT ? -ENODEV : err);
	err = config_check(&cfg, os);
	if (!err)
		err = has_address(os);
	os_close(os);
	if (err == -EINVAL) /* what is set is not understood, as was said */
		err = -ENODEV;
	return nic_refused(err);
}

uint64_t nic_now(const struct nic *nic)
{
	return os_now(nic->os);
}
