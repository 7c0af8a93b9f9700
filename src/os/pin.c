/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pin.c: memory that the kernel keeps in RAM, for the registration modes that
 * are there to be compared with. The caller has to know which regions lock a page,
 * and how often: the kernel keeps no count. And what a program that locks all that
 * it maps has left for us.
 */
#include "base/check.h"
#include "base/heap.h"
#include "base/page.h"
#include "os/fd.h"
#include "os/mapping.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/sys_memory.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Whole pages of the host. */
static struct range pin_range(uint64_t addr, uint64_t len)
{
	return (struct range){
		addr & ~(PAGE_BYTES - 1),
		(addr + len + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1),
	};
}

static int unlock(uint64_t start, uint64_t end)
{
	return (int)sys_call(SYS_munlock, (long)start, (long)(end - start), 0,
			     0, 0, 0);
}

/**
 * struct pin_scan - Mappings that lie in a range. On the heap: a program's
 * thread may have little stack.
 * @covered:	all up to here is mapped, and readable
 * @locked:	the part that pin_scan_next() gave last (smaps only)
 */
struct pin_scan {
	struct mapping_scan scan;
	struct mapping map;
	struct range in;
	uint64_t covered;
	bool more, locked;
};

/* Return: what pin_scan_end() is to be handed; NULL: /proc cannot be read. */
static struct pin_scan *pin_scan_begin(const char *path, struct range in)
{
	struct pin_scan *s = heap_alloc(sizeof(*s));

	if (!s)
		return NULL;
	s->in = in;
	s->covered = in.start;
	s->more = mapping_first(&s->scan, path, &s->map) == 0;
	if (s->more)
		return s;
	heap_free(s);
	return NULL;
}

/* Return: false: there is no further one. */
static bool pin_scan_next(struct pin_scan *s, struct range *part)
{
	while (s->more && s->map.range.start < s->in.end) {
		const struct mapping m = s->map;

		s->more = mapping_next(&s->scan, &s->map);
		if (m.range.end <= s->in.start)
			continue;
		part->start = MAX(m.range.start, s->in.start);
		part->end = MIN(m.range.end, s->in.end);
		s->locked = m.locked;
		if (part->start == s->covered && m.read)
			s->covered = part->end;
		return true;
	}
	return false;
}

static void pin_scan_end(struct pin_scan *s)
{
	mapping_end(&s->scan);
	heap_free(s);
}

/* munlock(2) stops at the first hole. Return: is there none? */
static bool unlock_mapped(struct range in)
{
	struct pin_scan *s = pin_scan_begin("/proc/self/maps", in);
	struct range part;
	bool whole;

	if (!s) {
		/* No /proc: page by page. */
		for (uint64_t at = in.start; at < in.end; at += PAGE_BYTES)
			(void)unlock(at, at + PAGE_BYTES);
		return true;
	}
	while (pin_scan_next(s, &part))
		(void)unlock(part.start, part.end);
	whole = s->covered == in.end;
	pin_scan_end(s);
	return whole;
}

/**
 * os_pin() - See pages.h.
 * @addr, @len: any range that does not wrap, @len > 0
 * @fetch: bring in what is absent, and wait for it
 *
 * The kernel leaves locked what is in front of the page that it could not lock.
 */
int os_pin(struct os *os, uint64_t addr, uint64_t len, bool fetch)
{
	const struct range in = pin_range(addr, len);
	long bytes = (long)(in.end - in.start), err;

	(void)os;
	if (fetch)
		err = sys_call(SYS_mlock, (long)in.start, bytes, 0, 0, 0, 0);
	else
		err = sys_call(SYS_mlock2, (long)in.start, bytes, MLOCK_ONFAULT,
			       0, 0, 0);
	if (!err)
		return 0;
	/* EPERM: the limit is 0. To a card too much is too much. */
	return unlock_mapped(in) ? -ENOMEM : -EFAULT;
}

int os_unpin(struct os *os, uint64_t addr, uint64_t len)
{
	const struct range in = pin_range(addr, len);

	(void)os;
	if (!unlock(in.start, in.end))
		return 0;
	(void)unlock_mapped(in);
	return -EFAULT;
}

static bool first_locked(struct range in, struct range *out)
{
	struct pin_scan *s = pin_scan_begin("/proc/self/smaps", in);
	bool found = false;

	if (!s)
		return false;
	while (!found && pin_scan_next(s, out))
		found = s->locked;
	pin_scan_end(s);
	return found;
}

/**
 * os_pinned() - See pages.h.
 *
 * MADV_COLD refuses locked memory (and other memory that is never reclaimed)
 * and costs a twentieth of reading smaps. What it tells the kernel, that these
 * pages are not used, does not matter to pages that are locked next.
 */
bool os_pinned(struct os *os, uint64_t *addr, uint64_t *len)
{
	const struct range in = pin_range(*addr, *len);
	struct range got;

	(void)os;
	if (!sys_madvise(in.start, in.end - in.start, MADV_COLD))
		return false;
	if (!first_locked(in, &got))
		return false;
	*addr = got.start;
	*len = got.end - got.start;
	return true;
}

/* mmap(2) says EAGAIN for what it would have to lock and may not; what is locked
 * cannot be called cold. */
static bool pin_is_for_all(void)
{
	int keep = errno;
	void *p = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool locks = errno == EAGAIN;

	if (p != MAP_FAILED) {
		locks = sys_madvise((uintptr_t)p, PAGE_BYTES, MADV_COLD) ==
			-EINVAL;
		munmap(p, PAGE_BYTES);
	}
	errno = keep;
	return locks;
}

bool os_memory_left(size_t bytes)
{
	const int keep = errno;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		munmap(p, bytes);
	errno = keep;
	return p != MAP_FAILED;
}

void os_memory_limit(char *text, size_t size)
{
	const uint64_t lock = fd_rlimit(RLIMIT_MEMLOCK, RLIM_INFINITY);
	const uint64_t space = fd_rlimit(RLIMIT_AS, RLIM_INFINITY);
	const uint64_t data = fd_rlimit(RLIMIT_DATA, RLIM_INFINITY);

	if (lock != RLIM_INFINITY && pin_is_for_all())
		snprintf(text, size, "RLIMIT_MEMLOCK is %llu KiB, and %s",
			 (unsigned long long)lock / 1024,
			 "all is locked (mlockall(MCL_FUTURE))");
	else if (space != RLIM_INFINITY)
		snprintf(text, size, "RLIMIT_AS is %llu KiB",
			 (unsigned long long)space / 1024);
	else if (data != RLIM_INFINITY)
		snprintf(text, size, "RLIMIT_DATA is %llu KiB",
			 (unsigned long long)data / 1024);
	else
		snprintf(text, size, "the system has none");
}
