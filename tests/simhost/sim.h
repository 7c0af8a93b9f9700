/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim.h: façade of the simulated host, for tests. Behind the façades of os/ it puts a
 * virtual clock, a lossy network and application memory whose pages come and
 * go, all of it decided by one seed (design D2, D7).
 *
 * A struct os is one process with a NIC. Whatever calls NIC functions should
 * be a virtual thread (sim_spawn()): there a move that meets an absent page, or
 * os_wait(), blocks that thread and not the world. Everything runs on the one
 * real thread that calls sim_run(), so that the same seed gives the same run.
 */
#ifndef NOPIN_SIMHOST_SIM_H
#define NOPIN_SIMHOST_SIM_H

#include "base/addr.h"

#include <stdio.h>

struct os;
struct sim;

enum {
	SIM_HOSTS_MAX = 16,
	SIM_US = 1000,
	SIM_MS = 1000 * 1000,
	SIM_PPM = 1000 * 1000, /* probabilities are in parts per million */
};

/* --- the world ------------------------------------------------------------- */

struct sim *sim_open(uint64_t seed);
/** sim_close() - Also ends virtual threads wherever they are. */
void sim_close(struct sim *sim);

uint64_t sim_now(const struct sim *sim);

/** sim_at() - Call @fn(@arg, @val) at @at_ns (not before now). */
void sim_at(struct sim *sim, uint64_t at_ns,
	    void (*fn)(void *arg, uint64_t val), void *arg, uint64_t val);

/** sim_step() - The next event. Return: false: there is none. */
bool sim_step(struct sim *sim);
/** sim_run() - All events up to @until_ns; the clock is there afterwards. */
void sim_run(struct sim *sim, uint64_t until_ns);

uint64_t sim_rand(struct sim *sim);
/** sim_between() - Uniform in [lo, hi]. */
uint64_t sim_between(struct sim *sim, uint64_t lo, uint64_t hi);
bool sim_chance(struct sim *sim, uint32_t ppm);

/**
 * enum sim_hash - What a run did, in numbers (hash.c).
 * SIM_HASH_EVENTS: sim_note(): what happened when
 * SIM_HASH_PACKETS: each byte that was sent, from where to where
 * SIM_HASH_COMPLETIONS: the test's: what the programs were told
 * SIM_HASH_COUNTS: the test's: counters and accounts at the end
 * SIM_HASH_MEMORY: of applications at the end
 */
enum sim_hash {
	SIM_HASH_EVENTS,
	SIM_HASH_PACKETS,
	SIM_HASH_COMPLETIONS,
	SIM_HASH_COUNTS,
	SIM_HASH_MEMORY,
	SIM_HASHES
};
/** sim_note() - Mix something that happened now into SIM_HASH_EVENTS. */
void sim_note(struct sim *sim, uint64_t a, uint64_t b);
/** sim_hash_all() - Mix the other four, too: that takes time. */
void sim_hash_all(struct sim *sim);
/** sim_mix() - Mix @len bytes, without a pointer or padding among them. */
void sim_mix(struct sim *sim, enum sim_hash which, const void *bytes,
	     size_t len);
/** sim_mix_memory() - Mix what the memory of @os holds. */
void sim_mix_memory(struct os *os);
uint64_t sim_hash(const struct sim *sim, enum sim_hash which);

/** sim_verbose() - Print what happens to @out (NULL: nothing). */
void sim_verbose(struct sim *sim, FILE *out);
__attribute__((format(printf, 2, 3))) void sim_say(const struct sim *sim,
						   const char *fmt, ...);

/**
 * struct sim_stats - How often what happened, in the whole world.
 * @lock_waits:	a thread found a mutex locked that another holds while it
 *		sleeps
 * @dropped:	pages that are not fetched, as moves overwrite them
 * @exact_misses: a move met an absent page that needs I/O on an exact host
 */
struct sim_stats {
	uint64_t sent, lost, bursts_lost, bursts_split, duplicated, reordered;
	uint64_t corrupted, checksum_drops, unreachable, kernel_drops;
	uint64_t moves, torn, efaults, minor, major, exact_misses, cows,
		dropped;
	uint64_t evictions, evict_busy, unmaps, unmap_busy, protects, forks;
	uint64_t page_asks, page_fails, page_partial, page_probes;
	uint64_t pauses, preempts, full, lock_waits;
};
struct sim_stats *sim_stats(struct sim *sim);

/* --- hosts -------------------------------------------------------------------- */

/**
 * struct sim_host_config
 * @machine:	processes with the same number share addresses and ports; its
 *		address is 10.0.machine.1
 * @user:	whose process it is; 0: root's
 * @v6:	an IPv6 address in addition
 * @mtu:	of its interface, IP bytes
 * @rcvbuf:	what a socket holds, charged as Linux does; 0: 212,992 bytes
 * @exact:	moves never meet a page that the MMU hook did not announce
 */
struct sim_host_config {
	unsigned machine, user;
	bool v6;
	uint32_t mtu;
	size_t rcvbuf;
	bool exact;
};

/** sim_host_add() - The host exists until sim_close(), open or not. */
struct os *sim_host_add(struct sim *sim, const struct sim_host_config *cfg);
/** sim_host_use() - The next os_open() opens @os. */
void sim_host_use(struct os *os);
struct sim *sim_of(const struct os *os);
/** sim_host_mtu() - Its interface takes IP packets of @mtu bytes from now on. */
void sim_host_mtu(struct os *os, uint32_t mtu);
/** sim_host_ip() - Its IPv4 (or, @v6, IPv6) address. */
struct ipaddr sim_host_ip(const struct os *os, bool v6);

/**
 * sim_addr_set() - From now on that address is there, or is not: nothing can be sent
 * from it then, and what is sent to it is lost. At first all are.
 */
void sim_addr_set(struct os *os, bool v6, bool there);
/** sim_link_up() - Its interface has another state, or IP MTU. At first it runs. */
void sim_link_up(struct os *os, bool running, uint32_t mtu);

/**
 * sim_kill() - As kill -9, for everybody else: its ports and names are gone and
 * nothing comes from it any more. Its threads go on unnoticed, so that a test
 * can take its NIC down.
 */
void sim_kill(struct os *os);
/** sim_pause() - None of its threads is scheduled for @ns. */
void sim_pause(struct os *os, uint64_t ns);

/* --- virtual threads -------------------------------------------------------------- */

/** sim_spawn() - Run @fn(@arg) as a thread of @os, beginning @delay_ns from now. */
void sim_spawn(struct os *os, void (*fn)(void *arg), void *arg,
	       uint64_t delay_ns);
/** sim_sleep() - Outside of a virtual thread it does nothing. */
void sim_sleep(struct sim *sim, uint64_t ns);
bool sim_in_thread(const struct sim *sim);
/**
 * sim_preempt() - A thread does not run for up to @max_ns as it enters or leaves a
 * receiving call, when there is something, sends or moves: with the probability
 * @chance.
 */
void sim_preempt(struct sim *sim, uint32_t chance, uint64_t max_ns);
/** sim_full() - The probability that a send buffer is full: -EAGAIN. */
void sim_full(struct sim *sim, uint32_t chance);
/** sim_threads() - Count those that have not ended. */
unsigned sim_threads(const struct sim *sim);

/* --- network ------------------------------------------------------------------------ */

/**
 * struct sim_link_config - One direction between two machines.
 * @loss:	of single packets; also inside a burst, which it splits
 * @burst_loss:	of whole sends
 * @corrupt:	bits flipped in the headers of extension packets and anywhere
 *		in standard ones; half of the extension packets are dropped as
 *		the UDP checksum would
 * @bytes_per_us: bandwidth; 0: no limit
 * @path_ns:	what comes from another source port takes another path, of which the
 *		longest is so much longer than the shortest (0: one path)
 * @renumber:	the sender's card numbers the segments of a burst in its own way:
 *		of the standard packets in it the ICRC of all but the first is
 *		wrong at the receiver
 */
struct sim_link_config {
	uint64_t latency_min_ns, latency_max_ns, reorder_ns, path_ns;
	uint32_t loss, burst_loss, dup, reorder, corrupt;
	uint32_t bytes_per_us;
	bool renumber;
};

/** sim_link_default() - For all pairs of machines. */
void sim_link_default(struct sim *sim, const struct sim_link_config *cfg);
void sim_link_set(struct sim *sim, unsigned from, unsigned to,
		  const struct sim_link_config *cfg);
/** sim_filter() - Packets and bursts for which @pass says false are lost. */
void sim_filter(struct sim *sim,
		bool (*pass)(void *arg, const uint8_t *bytes, uint32_t len),
		void *arg);
/**
 * sim_forge() - Somebody sends a packet that claims to be from port @sport of @as:
 * it passes no filter and meets no mishap.
 */
void sim_forge(struct os *as, uint16_t sport, const struct endpoint *dst,
	       const uint8_t *bytes, uint32_t len);
/** sim_forge_error() - The same: @to hears that nobody is at @dst. */
void sim_forge_error(struct os *to, const struct endpoint *dst);
/** sim_partition() - Nothing passes between these machines, both ways. */
void sim_partition(struct sim *sim, unsigned a, unsigned b, bool on);

/* --- application memory ---------------------------------------------------------------- */

/*
 * SIM_CHEAP: anonymous, never evicted: a fault needs no I/O.
 * SIM_SWAP: anonymous; the first touch is cheap, evicted pages need I/O.
 * SIM_FILE: shared file: absent pages need I/O, fork changes nothing.
 */
enum sim_backing { SIM_CHEAP, SIM_SWAP, SIM_FILE, SIM_BACKING_NUM };
enum sim_prot { SIM_NONE = 0, SIM_READ = 1, SIM_WRITE = 2 };

/**
 * struct sim_mem_config - Costs of faults and how moves are disturbed.
 * @tear:	probability, a page, that a copy is interrupted at some byte
 * @delay_max_ns: how long it, and the time before and after moves, may take
 */
struct sim_mem_config {
	uint64_t minor_min_ns, minor_max_ns, major_min_ns, major_max_ns;
	uint32_t tear;
	uint64_t delay_max_ns;
};
void sim_mem_set(struct os *os, const struct sim_mem_config *cfg);

/**
 * struct sim_mmu_hook - What an exact host tells the NIC's page table: as
 * spt_map(), spt_unmap(), spt_protect(), spt_protect_all() say.
 */
struct sim_mmu_hook {
	void (*map)(void *arg, uint64_t vpn, uint64_t pages, bool writable);
	int (*unmap)(void *arg, uint64_t vpn, uint64_t pages);
	int (*protect)(void *arg, uint64_t vpn, uint64_t pages);
	void (*protect_all)(void *arg);
	void *arg;
};
void sim_mmu_hook(struct os *os, const struct sim_mmu_hook *hook);

/**
 * sim_watch() - Have @fn called right after each piece that a move or a receive
 * wrote to application memory of @os.
 */
void sim_watch(struct os *os,
	       void (*fn)(void *arg, uint64_t addr, uint64_t len), void *arg);

/** sim_watch_drop() - The same right before a page is dropped. */
void sim_watch_drop(struct os *os, void (*fn)(void *arg, uint64_t addr),
		    void *arg);

/** sim_mmap() - Map @bytes somewhere. Return: a virtual address of @os. */
uint64_t sim_mmap(struct os *os, uint64_t bytes, enum sim_backing backing,
		  int prot);
/** sim_mmap_at() - At @addr exactly. Return: 0, or -EEXIST. */
int sim_mmap_at(struct os *os, uint64_t addr, uint64_t bytes,
		enum sim_backing backing, int prot);
/** sim_munmap() - A whole mapping. Return: 0; -EBUSY: held, try again. */
int sim_munmap(struct os *os, uint64_t addr);
/** sim_mprotect() - A whole mapping. Return: 0; -EBUSY: held, try again. */
int sim_mprotect(struct os *os, uint64_t addr, int prot);
/**
 * sim_evict() - Write one page out.
 * Return: 0; -EBUSY: held, try again; -EAGAIN: absent, locked or of a mapping
 * that is never evicted; or, without @force, touched in the last 10 ms on a
 * host that is not exact.
 */
int sim_evict(struct os *os, uint64_t addr, bool force);
/** sim_slow() - Bringing in the page of @addr takes @ns from now on. */
void sim_slow(struct os *os, uint64_t addr, uint64_t ns);
/** sim_fork() - Pages of private mappings become copy-on-write. */
void sim_fork(struct os *os);
bool sim_present(struct os *os, uint64_t addr);
/** sim_lock_limit() - Limit what may be locked; at first there is no limit. */
void sim_lock_limit(struct os *os, uint64_t bytes);
/** sim_locked() - Is this page? */
bool sim_locked(struct os *os, uint64_t addr);
/** sim_locked_bytes() - VmLck. */
uint64_t sim_locked_bytes(const struct os *os);

/**
 * sim_read(), sim_write() - The application's own loads and stores: they bring
 * pages in at once. Return: 0, or -EFAULT where it would get SIGSEGV.
 */
int sim_read(struct os *os, uint64_t addr, void *buf, uint64_t len);
int sim_write(struct os *os, uint64_t addr, const void *buf, uint64_t len);
/** sim_peek() - Copy what memory holds; touches nothing. Return: as sim_read(). */
int sim_peek(struct os *os, uint64_t addr, void *buf, uint64_t len);

#endif
