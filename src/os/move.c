/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* move.c: gives memory of this process another backing at the same address, while
 * its threads go on to use it.
 *
 * Theory of operation. No thread may see the memory half moved, and no store may get
 * lost between its copy and its replacement. So the range is registered with a
 * userfaultfd, and mremap(MREMAP_DONTUNMAP) takes all its pages away at once. A thread
 * that touches one from then on, be it in a system call, sleeps in the fault until the
 * page is there again: copied one by one into new memory, or with the mapping of
 * a file that replaces the empty range as a whole. If that fails, what was taken
 * away and is not there yet is put back, again at once.
 *
 * That needs a userfaultfd which also stops system calls, for which the kernel
 * wants privilege, or vm.unprivileged_userfaultfd=1, or access to
 * /dev/userfaultfd. Where it is refused nothing is moved. A child that is forked
 * meanwhile would find holes: fork() waits. Nothing here is called between the
 * taking away and the putting back that could touch the program's memory.
 */
#include "base/check.h"
#include "base/page.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/fork.h"
#include "os/mapping.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/sys.h"
#include "os/sys_file.h"

#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

enum { PIECES_MAX = 32, ENTRIES = 128, NODES_MAX = 1024 };
enum { STACK_BYTES = 64 * 1024 }; /* more than a move runs on */

#define PAGEMAP_THERE (UINT64_C(3) << 62) /* present, or swapped out */

/** struct piece - Of one mapping; its pages are at @aside meanwhile. */
struct piece {
	uint64_t start, len, aside;
};

struct moving {
	int uffd, pagemap, file;
	unsigned num, taken;
	uint64_t start, end, copied;
	struct piece piece[PIECES_MAX];
};

int os_mapped(struct os *os, uint64_t addr, uint64_t len)
{
	const uint64_t start = addr & ~(PAGE_BYTES - 1);
	long ret;

	(void)os;
	if (!len)
		return 0;
	/* looks at mappings only, and does nothing */
	ret = sys_call(SYS_msync, (long)start,
		       (long)(pages_spanned(addr, len) << PAGE_SHIFT), MS_ASYNC,
		       0, 0, 0);
	return ret < 0 ? -EFAULT : 0;
}

/* --- what may be moved ------------------------------------------------------- */

static bool movable(const struct mapping *map)
{
	return map->anon && map->read && map->write && !map->uffd &&
	       !map->huge && !map->device && !map->locked;
}

/* Is what we run on in it? @top: of the caller's frame; what it calls is below that. A
 * sanitizer keeps variables elsewhere, but no frames. */
static bool own_stack(const struct moving *m, const void *top)
{
	const uint64_t here = (uintptr_t)top;

	return m->start <= here && m->end > here - STACK_BYTES;
}

/* Return: 0; -EFAULT: a hole; -EOPNOTSUPP: memory that cannot be taken away. */
static int find_pieces(struct moving *m)
{
	uint64_t at = m->start;
	struct mapping_scan s;
	struct mapping map;
	int ret = mapping_first(&s, "/proc/self/smaps", &map);

	if (ret)
		return ret;
	do {
		uint64_t end = MIN(map.range.end, m->end);

		if (map.range.end <= at)
			continue;
		if (map.range.start > at)
			break;
		if (!movable(&map) || m->num == PIECES_MAX) {
			ret = -EOPNOTSUPP;
			break;
		}
		m->piece[m->num++] = (struct piece){at, end - at, 0};
		at = end;
	} while (at < m->end && mapping_next(&s, &map));
	mapping_end(&s);
	return ret || at == m->end ? ret : -EFAULT;
}

static int uffd_open(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	long fd = sys_call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0,
			   0);
	int dev, err;

	if (fd == -EPERM) {
		dev = sys_open("/dev/userfaultfd", O_RDWR);
		if (dev >= 0) {
			fd = sys_call(SYS_ioctl, dev, USERFAULTFD_IOC_NEW,
				      O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
			sys_close(dev);
		}
	}
	if (fd < 0)
		return fd == -EACCES || fd == -ENOENT ? -EPERM : (int)fd;
	err = (int)sys_call(SYS_ioctl, fd, UFFDIO_API, SYS_PTR(&api), 0, 0, 0);
	if (err == 0)
		return fd_high((int)fd);
	sys_close((int)fd);
	return err;
}

static int uffd_register(const struct moving *m)
{
	struct uffdio_register reg = {
		.range = {m->start, m->end - m->start},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return (int)sys_call(SYS_ioctl, m->uffd, UFFDIO_REGISTER, SYS_PTR(&reg),
			     0, 0, 0);
}

/* --- taking away, putting back ------------------------------------------------ */

static long remap(uint64_t from, uint64_t len, int flags, uint64_t to)
{
	return sys_call(SYS_mremap, (long)from, (long)len, (long)len,
			MREMAP_MAYMOVE | flags, (long)to, 0);
}

static int take_away(struct moving *m)
{
	for (; m->taken < m->num; m->taken++) {
		struct piece *p = &m->piece[m->taken];
		long ret = remap(p->start, p->len, MREMAP_DONTUNMAP, 0);

		if (ret < 0)
			return (int)ret;
		p->aside = (uint64_t)ret;
	}
	return 0;
}

/* The memory behind @at is where it was. */
static void move_put_back(struct moving *m, uint64_t at)
{
	for (unsigned i = 0; i < m->taken; i++) {
		struct piece *p = &m->piece[i];
		uint64_t off = at > p->start ? at - p->start : 0;

		if (off < p->len)
			(void)remap(p->aside + off, p->len - off, MREMAP_FIXED,
				    p->start + off);
	}
}

/* Of what was moved, or not put back. */
static void drop_aside(struct moving *m, uint64_t to)
{
	for (unsigned i = 0; i < m->taken; i++) {
		struct piece *p = &m->piece[i];
		uint64_t len = to > p->start ? MIN(to - p->start, p->len) : 0;

		if (len)
			(void)sys_call(SYS_munmap, (long)p->aside, (long)len, 0,
				       0, 0, 0);
	}
}

/* --- copying ------------------------------------------------------------------ */

static int copy_in(struct moving *m, uint64_t to, uint64_t from, uint64_t len)
{
	while (len) {
		struct uffdio_copy c = {.dst = to, .src = from, .len = len};
		long ret = sys_call(SYS_ioctl, m->uffd, UFFDIO_COPY,
				    SYS_PTR(&c), 0, 0, 0);

		if (c.copy > 0) {
			to += (uint64_t)c.copy;
			from += (uint64_t)c.copy;
			len -= (uint64_t)c.copy;
		} else if (ret != -EAGAIN) {
			return ret < 0 ? (int)ret : -EIO;
		}
	}
	return 0;
}

static int move_copy_out(struct moving *m, uint64_t to, uint64_t from,
			 uint64_t len)
{
	while (len) {
		ssize_t n = sys_call(SYS_pwrite64, m->file, (long)from,
				     (long)len, (long)(to - m->start), 0, 0);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		to += (uint64_t)n;
		from += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* Pages that have some content, of @num from @aside on. @at: where they belong.
 * Moves @at on to what failed. */
static int copy_some(struct moving *m, uint64_t *at, uint64_t aside,
		     const uint64_t *there, uint64_t num)
{
	for (uint64_t i = 0, n; i < num; i += n) {
		const bool is = there[i] & PAGEMAP_THERE;
		uint64_t bytes;
		int err = 0;

		for (n = 1; i + n < num; n++)
			if (is != !!(there[i + n] & PAGEMAP_THERE))
				break;
		bytes = n << PAGE_SHIFT;
		if (is)
			err = (m->file < 0 ? copy_in : move_copy_out)(
				m, *at, aside + (i << PAGE_SHIFT), bytes);
		if (err)
			return err;
		m->copied += is ? bytes : 0;
		*at += bytes;
	}
	return 0;
}

/* @at: what is before it is there again. */
static int copy_pieces(struct moving *m, uint64_t *at)
{
	uint64_t there[ENTRIES];

	for (unsigned i = 0; i < m->num; i++) {
		const struct piece *p = &m->piece[i];

		for (uint64_t off = 0; off < p->len;) {
			uint64_t num = MIN((p->len - off) >> PAGE_SHIFT,
					   (uint64_t)ENTRIES);
			ssize_t n = sys_pread(
				m->pagemap, there, num * sizeof(*there),
				page_of(p->aside + off) * sizeof(*there));
			int err = n == (ssize_t)(num * sizeof(*there)) ? 0
								       : -EIO;

			*at = p->start + off;
			if (!err)
				err = copy_some(m, at, p->aside + off, there,
						num);
			if (err)
				return err;
			off += num << PAGE_SHIFT;
		}
	}
	*at = m->end;
	return 0;
}

static int map_file(const struct moving *m)
{
	long ret = sys_call(SYS_mmap, (long)m->start, (long)(m->end - m->start),
			    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			    m->file, 0);

	return ret < 0 ? (int)ret : 0;
}

/* Between fork_stop() and fork_go_on(). */
static int move_pages_of(struct moving *m)
{
	uint64_t at = m->start;
	int err = take_away(m);

	if (!err)
		err = copy_pieces(m, &at);
	/* A page that was copied lives already, one in a file does not. */
	if (m->file >= 0)
		at = m->start;
	if (!err && m->file >= 0)
		err = map_file(m);
	if (!err)
		at = m->end;
	else
		move_put_back(m, at);
	drop_aside(m, at);
	return err;
}

static int move_all(struct moving *m)
{
	int err;

	m->pagemap = file_share("/proc/self/pagemap");
	m->uffd = m->pagemap < 0 ? m->pagemap : uffd_open();
	if (m->uffd < 0) {
		file_return(m->pagemap);
		return m->uffd;
	}
	fork_stop();
	err = uffd_register(m);
	if (!err)
		err = move_pages_of(m);
	/* a thread that waits looks again */
	sys_close(m->uffd);
	fork_go_on();
	file_return(m->pagemap);
	return err;
}

/* --- the ways ----------------------------------------------------------------- */

static int move_recreate(struct moving *m)
{
	int err = find_pieces(m);

	return err ? err : move_all(m);
}

static int move_to_file(struct moving *m, const char *path)
{
	int err = find_pieces(m);

	if (err)
		return err;
	m->file = sys_open(path, O_RDWR | O_CREAT | O_EXCL);
	if (m->file < 0)
		return m->file;
	err = fd_resize(m->file, m->end - m->start);
	if (!err)
		err = move_all(m);
	if (err)
		(void)sys_call(SYS_unlink, SYS_PTR(path), 0, 0, 0, 0, 0);
	sys_close(m->file);
	return err;
}

/* The kernel migrates page by page, and a thread that touches one meanwhile waits. */
static int move_to_node(const struct moving *m, unsigned node)
{
	unsigned long mask[NODES_MAX / 64] = {0};
	char path[64];
	long ret;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u", node);
	if (node >= NODES_MAX ||
	    (sys_call(SYS_access, SYS_PTR(path), F_OK, 0, 0, 0, 0) < 0 &&
	     node > 0))
		return -ENODEV;
	mask[node / 64] = 1ul << node % 64;
	ret = sys_call(SYS_mbind, (long)m->start, (long)(m->end - m->start),
		       MPOL_PREFERRED, SYS_PTR(mask), NODES_MAX, MPOL_MF_MOVE);
	if (ret == -ENOSYS && node == 0)
		return 0; /* a kernel that knows of one node only */
	return (int)ret;
}

int os_move(struct os *os, const struct os_move_req *req, uint64_t *copied)
{
	const uint64_t pages = pages_spanned(req->addr, req->len);
	struct moving m = {.file = -1};
	int err = os_mapped(os, req->addr, req->len);

	m.start = req->addr & ~(PAGE_BYTES - 1);
	m.end = m.start + (pages << PAGE_SHIFT);
	*copied = 0;
	if (err || !pages)
		return err;
	if (own_stack(&m, __builtin_frame_address(0)))
		return -EOPNOTSUPP;
	if (req->to == OS_MOVE_TO_FILE)
		err = move_to_file(&m, req->path);
	else if (req->to == OS_MOVE_TO_NODE)
		err = move_to_node(&m, req->node);
	else
		err = move_recreate(&m);
	*copied = m.copied;
	return err;
}
