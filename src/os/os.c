/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* os.c: a real Linux host: NIC memory, clock, randomness, spare descriptors. It is
 * opened and closed in open.c. Sockets are in port.c and udp.c, application memory in
 * copy.c (moves) and pager.c (presence), sleeping in wait.c. Design D2, D6, D13.
 */
#include "os/os.h"
#include "base/check.h"
#include "base/page.h"
#include "os/clock.h"
#include "os/copy.h"
#include "os/fd.h"
#include "os/fork.h"
#include "os/kept.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

void spares_fill(struct os *os, struct fd_kept *spare, unsigned n,
		 int (*open)(int arg), int arg)
{
	pthread_mutex_lock(&os->lock);
	for (unsigned i = 0; i < n; i++)
		(void)fd_kept(&spare[i], true, open, arg);
	pthread_mutex_unlock(&os->lock);
}

int spares_take(struct os *os, struct fd_kept *spare, unsigned n)
{
	int fd = -1;

	__atomic_store_n(&os->spares.used, true, __ATOMIC_RELAXED);
	pthread_mutex_lock(&os->lock);
	for (unsigned i = 0; i < n && fd < 0; i++)
		fd = fd_take(&spare[i]);
	pthread_mutex_unlock(&os->lock);
	return fd;
}

void spares_drop(struct fd_kept *spare, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fd_drop(&spare[i]);
}

bool os_prepare_due(struct os *os)
{
	return __atomic_load_n(&os->spares.used, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&os->spares.used, false, __ATOMIC_RELAXED);
}

uint64_t os_now(struct os *os)
{
	(void)os;
	return clock_ns();
}

/**
 * os_random() - See run.h. Where getrandom(2) is refused it is read from the
 * device.
 */
void os_random(struct os *os, void *buf, size_t len)
{
	uint8_t *p = buf;
	int fd = -1;

	(void)os;
	while (len > 0) {
		ssize_t n;

		if (fd < 0)
			n = sys_call(SYS_getrandom, SYS_PTR(p), (long)len, 0, 0,
				     0, 0);
		else
			n = sys_read(fd, p, len);
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (n != -EINTR) {
			CHECK(fd < 0);
			fd = sys_open("/dev/urandom", O_RDONLY);
			CHECK(fd >= 0);
		}
	}
	fd_close(fd);
}

static int os_memory_map(struct os *os, size_t bytes)
{
	struct os_region *r = &os->memory.region[os->memory.nregions];
	int ret;

	if (os->memory.nregions == OS_REGIONS_MAX)
		return -ENOMEM;
	ret = fd_resize(os->memory.fd, os->memory.bytes + bytes);
	r->file = ret == 0;
	/* Memory that is no file has no limit, but costs a copy more. */
	if (ret == -EFBIG)
		r->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	else if (ret < 0)
		return ret;
	else
		r->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			       os->memory.fd, (off_t)os->memory.bytes);
	if (r->base == MAP_FAILED)
		return -ENOMEM;
	/* A child never touches it (os_child()), and fork gets cheaper. */
	(void)sys_madvise((uintptr_t)r->base, bytes, MADV_DONTFORK);
	fork_keep_present((uintptr_t)r->base, bytes);
	r->bytes = bytes;
	r->off = os->memory.bytes;
	os->memory.bytes += r->file ? bytes : 0;
	__atomic_store_n(&os->memory.nregions, os->memory.nregions + 1,
			 __ATOMIC_RELEASE);
	return 0;
}

/**
 * os_memory() - See copy.h.
 * @bytes: > 0, rounded up to whole pages
 * Return: the memory; NULL when there is none.
 */
void *os_memory(struct os *os, size_t bytes)
{
	int keep = errno, ret = -ENOMEM;
	void *p = NULL;

	pthread_mutex_lock(&os->lock);
	if (bytes > 0 && bytes < SIZE_MAX / 2) {
		bytes = DIV_ROUND_UP(bytes, PAGE_BYTES) * PAGE_BYTES;
		ret = os_memory_map(os, bytes);
	}
	if (ret == 0)
		p = os->memory.region[os->memory.nregions - 1].base;
	pthread_mutex_unlock(&os->lock);
	errno = keep;
	return p;
}

struct os_usage os_usage(void)
{
	struct rusage ru;

	if (sys_getrusage(RUSAGE_THREAD, &ru) < 0)
		return (struct os_usage){.majflt = 0};
	return (struct os_usage){.minflt = (uint64_t)ru.ru_minflt,
				 .majflt = (uint64_t)ru.ru_majflt,
				 .sleeps = (uint64_t)ru.ru_nvcsw};
}

uintptr_t os_self(void)
{
	return (uintptr_t)pthread_self();
}

void os_relax(void)
{
	__builtin_ia32_pause();
}

bool os_child(const struct os *os)
{
	/* There @os is zero, too, or has been copied (heap.c). */
	return !os || !os->alive ||
	       __atomic_load_n(os->alive, __ATOMIC_RELAXED) == 0;
}

uint64_t os_forks(const struct os *os)
{
	return fork_count() - os->forks_at_open;
}

bool os_forking(const struct os *os)
{
	(void)os;
	return fork_in_progress();
}
