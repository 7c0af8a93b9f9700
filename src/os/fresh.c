/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fresh.c: how long may a page be believed to be present? (design D7)
 *
 * Theory of operation
 *
 * What takes private anonymous pages away behind a program's back is reclaim,
 * and the kernel counts it: pgscan and pgsteal for memory pressure, of the
 * host or of a cgroup, and pswpout also for MADV_PAGEOUT by any process
 * (tests/platform/reclaim-counters.c). So while these counters stand still,
 * all that was learned since they last moved is still true, however old. A
 * pager reads them every LOOK_NS while a NIC wants to know.
 *
 * Not counted: MADV_PAGEOUT of clean file pages, and what a userfaultfd or
 * FUSE server takes away. So while pages of other mappings than private
 * anonymous ones are being served, or of mappings that are not known yet, readiness
 * lasts 10 ms, as it does while no pager reads the counters.
 *
 * All of this is about the process, not about one NIC.
 */
#include "os/fresh.h"
#include "base/check.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/fork.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/sys_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

enum { FRESH_BUF = 8192 };

static const uint64_t fresh_limit_ns = 10 * MS; /* without the counters */
static const uint64_t fresh_look_ns = 6 * MS; /* between two looks */
static const uint64_t fresh_wanted_ns = 100 * MS; /* then looking stops */
static const uint64_t fresh_unsure_ns = 10000 * MS;
static const uint64_t fresh_calm_ns = 10000 * MS; /* after reclaim */

/* Relaxed: each is a time of its own and only moves on. */
static uint64_t fresh_since; /* no reclaim from here ... */
static uint64_t fresh_looked; /* ... to here */
static uint64_t fresh_moved; /* when reclaim was seen last, or 0 */
static uint64_t fresh_asked; /* when os_fresh_after() was last called */
static uint64_t fresh_sure_at; /* other mappings were served until then */
static uint64_t fresh_doubts; /* mappings that may be others are being served */

/* Under fresh_lock: what the counters said. */
static pthread_mutex_t fresh_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t fresh_sum;
static char fresh_buf[FRESH_BUF];

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void store(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* Sum of the counters that only reclaim moves. They only grow, so their sum
 * stands still only if all do. Return: false if this kernel has them not.
 */
static bool fresh_read(uint64_t *sum)
{
	static const char *const names[] = {"\npgscan_", "\npgsteal_",
					    "\npswpout "};
	int fd = file_borrow("/proc/vmstat");
	unsigned found = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	n = sys_pread(fd, fresh_buf, FRESH_BUF - 1, 0);
	file_return(fd);
	if (n <= 0)
		return false;
	fresh_buf[n] = 0;
	*sum = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		char *p = fresh_buf;

		for (; (p = strstr(p, names[i])) != NULL; found++) {
			p = strchr(p + 1, ' ');
			if (!p)
				return false;
			*sum += strtoull(p, &p, 10);
		}
	}
	return found >= 5; /* two pairs, and a host with swap or without */
}

bool fresh_wanted(uint64_t now_ns)
{
	return now_ns - load(&fresh_asked) < fresh_wanted_ns;
}

void fresh_check(uint64_t now_ns)
{
	int keep = errno;
	uint64_t sum;

	if (now_ns - load(&fresh_looked) < fresh_look_ns ||
	    pthread_mutex_trylock(&fresh_lock) != 0)
		return;
	if (fresh_read(&sum)) {
		/* fresh_looked is from before the reading, fresh_since from
		 * after it: what is reclaimed meanwhile shows in this look or
		 * in the next.
		 */
		if (sum != fresh_sum && load(&fresh_since) != 0)
			store(&fresh_moved, clock_ns());
		if (sum != fresh_sum || load(&fresh_since) == 0 ||
		    load(&fresh_sure_at) > now_ns)
			store(&fresh_since, clock_ns());
		fresh_sum = sum;
		store(&fresh_looked, now_ns);
	}
	pthread_mutex_unlock(&fresh_lock);
	errno = keep;
}

void fresh_in_child(void)
{
	fresh_doubts = 0; /* of threads that are not here */
	fresh_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

bool fresh_still(uint64_t then_ns, uint64_t now_ns)
{
	const uint64_t moved = load(&fresh_moved);

	return load(&fresh_looked) + fresh_limit_ns >= now_ns &&
	       load(&fresh_since) <= then_ns &&
	       (moved == 0 || now_ns > moved + fresh_calm_ns);
}

void fresh_unsure(uint64_t now_ns)
{
	store(&fresh_sure_at, now_ns + fresh_unsure_ns);
}

void fresh_unknown(void)
{
	__atomic_add_fetch(&fresh_doubts, 1, __ATOMIC_RELAXED);
}

void fresh_known(void)
{
	__atomic_sub_fetch(&fresh_doubts, 1, __ATOMIC_RELEASE);
}

/** os_fresh_after() - See pages.h. */
uint64_t os_fresh_after(struct os *os, uint64_t now_ns)
{
	uint64_t limit = now_ns > fresh_limit_ns ? now_ns - fresh_limit_ns : 0;
	uint64_t since = load(&fresh_since);

	(void)os;
	/* Written by the engine: not while that may wait for a fork(). */
	if (now_ns - load(&fresh_asked) > MS && !fork_in_progress())
		store(&fresh_asked, now_ns);
	/* a doubt that has gone is in the next */
	if (load(&fresh_looked) >= limit &&
	    !__atomic_load_n(&fresh_doubts, __ATOMIC_ACQUIRE) &&
	    load(&fresh_sure_at) <= now_ns)
		return since;
	return MAX(since, limit);
}
