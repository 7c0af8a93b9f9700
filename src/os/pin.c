/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pin.c: memory that the kernel keeps in RAM, for the registration modes that
 * are there to be compared with. Who locked what, and how often, is for the
 * caller to know: the kernel keeps no count.
 */
#include "os/mapping.h"

#include <sys/mman.h>

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
 * os_pin() - See os.h.
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
 * os_pinned() - See os.h.
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
