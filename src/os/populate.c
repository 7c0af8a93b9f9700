/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* populate.c: make pages present without writing to them, and look whether
 * they are (design D7, D8). Everything here may block as long as a page takes.
 *
 * In order: MADV_POPULATE_READ/WRITE (Linux 5.14), on its absence a one-byte
 * process_vm_readv(2) or a FUTEX_WAKE_OP that ors in 0; where those say no but
 * the mapping says yes, touch.c. Only that makes a page a protection error.
 */
#include "os/populate.h"
#include "base/check.h"
#include "base/page.h"
#include "base/range.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/mapping.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_memory.h"
#include "os/touch.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
	POPULATE_CHUNK = 2 << 20,
	PROBE_ENTRIES = 128,
};

#define PAGEMAP_PRESENT (UINT64_C(1) << 63)

static uint8_t populate_own[2 * PAGE_BYTES]
	__attribute__((aligned(PAGE_BYTES)));
static pthread_once_t populate_once = PTHREAD_ONCE_INIT;
static bool populate_madvise;
static uint64_t host_page;

static void populate_init(void)
{
	host_page = (uint64_t)sysconf(_SC_PAGESIZE);
	populate_madvise = sys_madvise((uintptr_t)populate_own & -host_page,
				       host_page, MADV_POPULATE_READ) == 0;
}

/* Does a mapping allow this access? true also if we cannot find out. */
static bool populate_allowed(uint64_t addr, bool write)
{
	struct mapping_scan scan;
	struct mapping map;
	bool allowed = false;

	if (mapping_first(&scan, "/proc/self/maps", &map) < 0)
		return true;
	do {
		if (addr >= map.range.start && addr < map.range.end)
			allowed = write ? map.write : map.read;
		if (addr < map.range.end)
			break;
	} while (mapping_next(&scan, &map));
	mapping_end(&scan);
	return allowed;
}

/* One page by the kernel. Return: 0 or -errno. */
static int populate_kernel(uint64_t addr, bool write)
{
	uint32_t *word = (uint32_t *)populate_own;
	struct iovec local, remote;
	long ret;

	if (populate_madvise)
		return sys_madvise(addr, host_page,
				   write ? MADV_POPULATE_WRITE
					 : MADV_POPULATE_READ);
	if (write) {
		ret = sys_call(SYS_futex, SYS_PTR(word),
			       FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
			       (long)addr,
			       FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0));
	} else {
		local = (struct iovec){&populate_own[PAGE_BYTES], 1};
		remote = (struct iovec){(void *)(uintptr_t)addr, 1};
		ret = sys_vm_readv((int)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
				   &local, 1, &remote, 1);
	}
	return ret < 0 ? (int)ret : 0;
}

static int populate_page(uint64_t addr, bool write, bool *by_hand)
{
	int ret;

	do
		ret = populate_kernel(addr, write);
	while (ret == -EINTR || ret == -EAGAIN);
	if (ret < 0 && populate_allowed(addr, write)) {
		ret = touch_page(addr, write);
		*by_hand |= ret >= 0;
	}
	return ret < 0 ? -EFAULT : 0;
}

/* @addr, @bytes: whole pages of the host. Return: bytes from the start. */
static uint64_t populate_chunk(uint64_t addr, uint64_t bytes, bool write,
			       bool *by_hand)
{
	uint64_t at = 0;

	if (populate_madvise && bytes > host_page &&
	    sys_madvise(addr, bytes,
			write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
		return bytes;
	/* Which page is it? Those before it are present by now. */
	while (at < bytes && populate_page(addr + at, write, by_hand) == 0)
		at += host_page;
	return at;
}

void populate_in_child(void)
{
	populate_once = (pthread_once_t)PTHREAD_ONCE_INIT;
}

struct populate populate_range(uint64_t addr, uint64_t bytes, bool write,
			       uint64_t end_ns)
{
	struct populate out = {.bytes = 0};
	uint64_t lead, want, at = 0;

	pthread_once(&populate_once, populate_init);
	lead = addr & (host_page - 1);
	if (range_wraps(addr, sat_add(bytes, host_page))) {
		out.error = -EFAULT;
		return out;
	}
	want = (lead + bytes + host_page - 1) & -host_page;
	/* As much again as is there, so the end is missed by little. */
	while (at < want && (at == 0 || clock_ns() < end_ns)) {
		uint64_t len = at == 0 ? host_page : at, got;

		len = MIN(MIN(len, (uint64_t)POPULATE_CHUNK), want - at);
		got = populate_chunk(addr - lead + at, len, write,
				     &out.by_hand);
		at += got;
		if (got < len) {
			out.error = -EFAULT;
			break;
		}
	}
	out.bytes = at > lead ? MIN(at - lead, bytes) : 0;
	out.writable = write && out.bytes > 0;
	return out;
}

struct populate populate_probe(uint64_t addr, uint64_t bytes)
{
	struct populate out = {.bytes = 0};
	uint64_t entry[PROBE_ENTRIES];
	int fd = file_share("/proc/self/pagemap");
	uint64_t left, vpn;

	pthread_once(&populate_once, populate_init);
	left = bytes / host_page;
	vpn = addr / host_page;
	while (fd >= 0 && left > 0) {
		uint64_t n = MIN(left, (uint64_t)PROBE_ENTRIES), i;
		ssize_t got = sys_pread(fd, entry, n * 8, vpn * 8);

		n = got > 0 ? (uint64_t)got / 8 : 0;
		for (i = 0; i < n && (entry[i] & PAGEMAP_PRESENT); i++)
			out.bytes += host_page;
		if (i < n || n == 0)
			break;
		vpn += n;
		left -= n;
	}
	file_return(fd);
	return out;
}
