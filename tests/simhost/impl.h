/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* impl.h: what the files of the simulated host share. */
#ifndef NOPIN_SIMHOST_IMPL_H
#define NOPIN_SIMHOST_IMPL_H

#include "base/list.h"
#include "base/page.h"
#include "base/rand.h"
#include "os/copy.h"
#include "os/names.h"
#include "os/net.h"
#include "os/pages.h"
#include "os/run.h"
#include "os/wait.h"
#include "simhost/sim.h"

struct sim_thread;

/* --- sim.c ------------------------------------------------------------------ */

struct sim_event {
	uint64_t at_ns, seq;
	void (*fn)(void *arg, uint64_t val);
	void *arg;
	uint64_t val;
};

enum { SIM_PATHS = 16, SIM_LINE_FIRST = 32768, SIM_LINES = 16384 };

struct sim_link {
	struct sim_link_config cfg;
	bool cut;
	uint64_t busy_until_ns, last_ns[SIM_PATHS];
};

enum { SIM_GUEST = 1 << 24 }; /* added to the claim's: a guest's "descriptor" */

/** struct sim_claim - A name held on a machine; its "descriptor" is @fd. */
struct sim_claim {
	struct list link;
	unsigned machine;
	struct os *os;
	int fd;
	bool shared;
	uint64_t secret;
	char name[64];
};

struct sim {
	uint64_t seed, now_ns, seq, hash[SIM_HASHES];
	bool hash_all;
	uint64_t busy_ns, busy; /* calls since the clock last moved */
	struct rnd rnd;
	struct sim_event *heap;
	size_t num, cap;
	struct os *host[SIM_HOSTS_MAX];
	unsigned hosts;
	struct sim_link link[SIM_HOSTS_MAX][SIM_HOSTS_MAX];
	bool (*filter)(void *arg, const uint8_t *bytes, uint32_t len);
	void *filter_arg;
	struct list claims;
	struct list threads;
	struct sim_thread *running;
	void *main_sp;
	uint32_t preempt, full;
	uint64_t preempt_max_ns;
	struct sim_stats stats;
	uint64_t minflt, majflt;
	FILE *out;
};

/** struct sim_block - os_memory(): freed by os_close(). */
struct sim_block {
	struct list link;
	void *p;
};

struct sim_port {
	bool open;
	uint16_t number;
	struct list queue;
	size_t charged;
};

enum { SIM_ERRORS_MAX = 64, SIM_ASKS_MAX = 256, SIM_PAGE_HASH = 4096 };

struct sim_error {
	struct endpoint dst;
	int err;
	uint32_t mtu;
};

struct sim_ask {
	struct list link;
	struct os *os;
	struct os_page_req req;
	struct os_page_done done;
	uint64_t began_ns;
};

struct os {
	struct sim *sim;
	struct sim_host_config cfg;
	struct os_config os_cfg;
	unsigned index;
	bool open, dead;
	bool posted; /* has a note up */
	bool gone[2]; /* its IPv4 address, its IPv6 address */
	bool unplugged, net_changed;
	struct os_note note;
	int told; /* as which guest it was told the secret */
	uint64_t paused_until_ns;
	struct list blocks;
	/* thread.c */
	bool kicked;
	/* net.c */
	struct sim_port port[OS_PORTS_MAX];
	unsigned next_port;
	unsigned lines, line_next;
	uint64_t kernel_drops;
	struct sim_error error[SIM_ERRORS_MAX];
	unsigned errors;
	/* mem.c */
	struct list maps;
	struct sim_page *page[SIM_PAGE_HASH];
	uint64_t next_addr;
	struct sim_mem_config mem;
	struct sim_mmu_hook hook;
	void (*watch)(void *arg, uint64_t addr, uint64_t len);
	void (*watch_drop)(void *arg, uint64_t addr);
	void *watch_arg, *drop_arg;
	uint64_t forks;
	/* pin.c */
	uint64_t locked, lock_limit; /* pages */
	/* pager.c */
	struct list asks, answers;
	unsigned asked, serving;
};

/** sim_world - Whose event is running: for calls that name no struct os. */
extern struct sim *sim_world;
/** sim_event_is_set() - The state of an os_event_open() descriptor. */
bool sim_event_is_set(int fd);

/** sim_busy() - CHECKs that a NIC does not work for ever in no time. */
void sim_busy(struct sim *sim);

/* --- hash.c --------------------------------------------------------------- */

/** sim_mix_send() - @os sends @len @bytes, as @tx says, from UDP port @sport. */
void sim_mix_send(struct os *os, const struct os_tx *tx, uint16_t sport,
		  const uint8_t *bytes, uint32_t len);

/* --- thread.c -------------------------------------------------------------- */

/** sim_wake() - End os_wait() of threads of @os (@packet: that want packets). */
void sim_wake(struct os *os, bool packet);
/** sim_wake_fd() - End os_wait() of threads that wait for this descriptor. */
void sim_wake_fd(struct sim *sim, int fd);
void sim_threads_end(struct os *os);
void sim_threads_free(struct sim *sim);

/* --- net.c ------------------------------------------------------------------- */

void sim_net_close(struct os *os);

/* --- mem.c --------------------------------------------------------------------- */

struct sim_map {
	struct list link;
	uint64_t start, last; /* [start, start + last] */
	enum sim_backing backing;
	int prot;
};

/**
 * struct sim_page - A page that was touched or evicted once; others of a
 * mapping are absent and zero.
 * @stored:	its content must come from a disk when it is absent
 * @cow:	present, but a write must copy it first
 * @ready_ns:	absent, being brought in by a move until then; else 0
 */
struct sim_page {
	struct sim_page *next;
	uint64_t vpn;
	bool present, stored, cow, locked;
	uint64_t ready_ns, touched_ns, slow_ns;
	uint8_t bytes[PAGE_BYTES];
};

/** sim_is_app() - Is it a virtual address, or a pointer of the NIC's? */
bool sim_is_app(const void *p);
struct sim_map *sim_map_find(struct os *os, uint64_t addr);
/** sim_page_get() - Find or make. */
struct sim_page *sim_page_get(struct os *os, uint64_t vpn);
struct sim_page *sim_page_find(struct os *os, uint64_t vpn);
/** sim_page_major() - Would bringing in this absent page need I/O? */
bool sim_page_major(const struct sim_map *map, const struct sim_page *page);
/** sim_page_cost() - Draw how long it would take, anew each time. */
uint64_t sim_page_cost(struct os *os, const struct sim_map *map,
		       const struct sim_page *page);
/** sim_page_in() - Present and just touched; not shared any more if @write. */
void sim_page_in(struct os *os, struct sim_page *page, bool write);
void sim_mem_free(struct os *os);

/* --- move.c ---------------------------------------------------------------------- */

/** sim_copy() - As a kernel copy: blocks, tears. Return: 0 or -EFAULT. */
int sim_copy(struct os *os, uint64_t addr, void *nic, uint64_t len, bool write);
/** sim_lose_cpu() - As sim_preempt() has it, the thread does not run for a while. */
void sim_lose_cpu(struct sim *sim);
/** sim_moment() - Time passes for no reason. */
void sim_moment(struct os *os);

/* --- pager.c ---------------------------------------------------------------------- */

void sim_pager_close(struct os *os);

#endif
