/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lane.c: small memfds through which copy.c reads application memory.
 *
 * The kernel holds a file's lock while a write to it waits for a page of its
 * source, so copies that run at once must not share a file (design D8): each
 * takes a lane of its own. Lanes are kept. When as many are in use at once as never
 * before, a thread of the program makes one more, for the next time (os_prepare()).
 */
#include "os/lane.h"
#include "os/fd.h"
#include "os/os.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_memory.h"

#include <assert.h>
#include <sys/mman.h>

enum { LANE_WAIT_NS = 50000 };

static int lane_open(struct os_lane *l)
{
	int fd = fd_memory("nopin-lane", OS_LANE_BYTES);
	int keep = errno;
	void *p;

	if (fd < 0)
		return fd;
	p = mmap(NULL, OS_LANE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 0);
	if (p == MAP_FAILED) {
		sys_close(fd);
		errno = keep;
		return -ENOMEM;
	}
	(void)sys_madvise((uintptr_t)p, OS_LANE_BYTES, MADV_DONTFORK);
	l->fd = fd;
	l->buf = p;
	return 0;
}

/* Each that is made is in use when the next is, so they are made in order. */
static void lane_used(struct os *os, unsigned lane)
{
	if (lane < __atomic_load_n(&os->lanes.most, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&os->lanes.most, lane + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&os->spares.used, true, __ATOMIC_RELAXED);
}

int lane_get(struct os *os)
{
	uint32_t busy = __atomic_load_n(&os->lanes.busy, __ATOMIC_RELAXED);
	int lane, err = 0;

	static_assert(OS_LANES_MAX <= 31, "bits of lanes_busy");
	/* Writing to it would raise SIGXFSZ. The limit may have come since. */
	if (!fd_may_have(OS_LANE_BYTES))
		return -EFBIG;
	do {
		lane = __builtin_ctz(~busy);
		if (lane >= OS_LANES_MAX)
			return -EAGAIN;
		/* Pairs with the release in lane_put(): @buf and @fd. */
	} while (!__atomic_compare_exchange_n(
		&os->lanes.busy, &busy, busy | UINT32_C(1) << lane, false,
		__ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	if (!os->lanes.lane[lane].buf)
		err = lane_open(&os->lanes.lane[lane]);
	if (err < 0) {
		lane_put(os, lane);
		return err;
	}
	lane_used(os, (unsigned)lane);
	return lane;
}

void lane_prepare(struct os *os)
{
	const unsigned next = __atomic_load_n(&os->lanes.most,
					      __ATOMIC_RELAXED);
	const uint32_t bit = UINT32_C(1) << next;

	if (next == OS_LANES_MAX || !fd_may_have(OS_LANE_BYTES) ||
	    __atomic_fetch_or(&os->lanes.busy, bit, __ATOMIC_ACQUIRE) & bit)
		return;
	if (!os->lanes.lane[next].buf)
		(void)lane_open(&os->lanes.lane[next]);
	lane_put(os, (int)next);
}

int lane_wait(struct os *os)
{
	struct timespec ts = {.tv_nsec = LANE_WAIT_NS};
	int lane;

	while ((lane = lane_get(os)) == -EAGAIN)
		(void)sys_ppoll(NULL, 0, &ts);
	return lane;
}

void lane_put(struct os *os, int lane)
{
	__atomic_fetch_and(&os->lanes.busy, ~(UINT32_C(1) << lane),
			   __ATOMIC_RELEASE);
}

void lanes_close(struct os *os)
{
	for (unsigned i = 0; i < OS_LANES_MAX; i++) {
		if (!os->lanes.lane[i].buf)
			continue;
		munmap(os->lanes.lane[i].buf, OS_LANE_BYTES);
		sys_close(os->lanes.lane[i].fd);
	}
}
