// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* evict.c: with VERIFY_EVICT=MS, all boxes and the arena are taken from the
 * program's page tables every MS milliseconds, and out of memory where there is
 * swap. They are in a file in memory then, so nothing of them is lost. Locked
 * memory cannot be taken: that is counted, too.
 */
#include "verify.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MEMORIES = 2 };

static struct {
	void *memory[MEMORIES];
	size_t bytes[MEMORIES];
	unsigned num;
	struct evictions done;
} evict;

static long interval_ms(void)
{
	const char *ms = getenv("VERIFY_EVICT");

	return ms ? strtol(ms, NULL, 10) : 0;
}

static void evict_one(void *memory, size_t bytes)
{
	uint64_t *to = &evict.done.taken;

	if (madvise(memory, bytes, MADV_DONTNEED))
		to = errno == EINVAL ? &evict.done.locked : NULL;
	else
		(void)madvise(memory, bytes, MADV_PAGEOUT);
	if (to)
		__atomic_fetch_add(to, 1, __ATOMIC_RELAXED);
}

static void *evict_all(void *arg)
{
	const long ms = interval_ms();
	const struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	for (;;) {
		unsigned n = __atomic_load_n(&evict.num, __ATOMIC_ACQUIRE);

		nanosleep(&ts, NULL);
		for (unsigned i = 0; i < n; i++)
			evict_one(evict.memory[i], evict.bytes[i]);
	}
	return arg;
}

/** evict_memory() - As mmap(2) of anonymous memory, that is evicted from now on. */
void *evict_memory(size_t bytes)
{
	pthread_t thread;
	void *memory;
	int fd;

	if (interval_ms() <= 0 || evict.num == MEMORIES)
		return mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fd = memfd_create("verify", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return MAP_FAILED;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return memory;
	evict.memory[evict.num] = memory;
	evict.bytes[evict.num] = bytes;
	__atomic_store_n(&evict.num, evict.num + 1, __ATOMIC_RELEASE);
	if (evict.num == 1 && pthread_create(&thread, NULL, evict_all, NULL))
		report_problem("no thread to evict with");
	return memory;
}

struct evictions evict_done(void)
{
	return (struct evictions){
		__atomic_load_n(&evict.done.taken, __ATOMIC_RELAXED),
		__atomic_load_n(&evict.done.locked, __ATOMIC_RELAXED),
	};
}
