/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy.c: executes lists of moves between NIC memory and application memory
 * (design D7, D8). Application addresses are given to the kernel only, which
 * answers EFAULT where a load or store of ours would raise a signal.
 *
 * Theory of operation
 *
 * Scatter: NIC memory is a memfd, so preadv(2) copies from it to the
 * application. A call costs 200 ns (pread(2) 40 less, and O_NOATIME another
 * 20), a further piece 30..60, and the NIC sides of a burst lie in the file one
 * behind the other with headers between them: successive scatters become one
 * call that reads those gaps into a bin. The kernel fills the pieces in order,
 * so what a program sees appears in order.
 *
 * Overwrite: a scatter in front of which madvise(2) drops pages. If it cannot, the
 * scatter fetches what it need not.
 *
 * Gather: pwritev(2) into a lane (lane.c), then from there into NIC memory.
 * process_vm_readv(2) would do without the second copy but takes the
 * address-space lock, and so waits while another thread forks; it is used only
 * when no lane is left.
 *
 * Atomics: read, compute, write, under a lock chosen by the address. They are
 * atomic among themselves (ATOMIC_HCA), not against the CPU.
 */
#include "os/copy.h"
#include "base/check.h"
#include "base/moves.h"
#include "base/range.h"
#include "os/lane.h"
#include "os/os.h"
#include "os/sys_file.h"
#include "os/sys_memory.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum {
	COPY_PIECES = 64, /* iovecs of one call; 1 KiB of stack */
	/* a gap up to this is cheaper than another call */
	COPY_GAP = sizeof(((struct os *)0)->lanes.bin),
};

static const struct os_region *region_of(const struct os *os, const void *p,
					 uint64_t len)
{
	unsigned n = __atomic_load_n(&os->memory.nregions, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < n; i++) {
		const struct os_region *r = &os->memory.region[i];
		uintptr_t off = (uintptr_t)p - (uintptr_t)r->base;

		if (r->file && range_ok(off, len, r->bytes))
			return r;
	}
	return NULL;
}

static uint64_t region_offset(const struct os_region *r, const void *p)
{
	return r->off + ((uintptr_t)p - (uintptr_t)r->base);
}

static struct iovec app_iov(uint64_t addr, uint64_t len)
{
	return (struct iovec){(void *)(uintptr_t)addr, len};
}

/* Read all of @v from @fd. Return: bytes that arrived; @err why not more. */
static uint64_t copy_copy_out(int fd, struct iovec *v, unsigned n, uint64_t off,
			      uint64_t want, int *err)
{
	uint64_t done = 0;
	ssize_t got;

	*err = 0;
	while (done < want) {
		got = n == 1 ? sys_pread(fd, v->iov_base, v->iov_len,
					 off + done)
			     : sys_preadv(fd, v, n, off + done);
		if (got == -EINTR)
			continue;
		if (got <= 0) {
			*err = got < 0 ? (int)got : -EIO;
			break;
		}
		done += (uint64_t)got;
		if (done == want)
			break;
		/* Short: the page behind it fails. Ask again for its errno. */
		while (n > 0 && (uint64_t)got >= v->iov_len) {
			got -= (ssize_t)v->iov_len;
			v++;
			n--;
		}
		CHECK(n > 0);
		v->iov_base = (char *)v->iov_base + got;
		v->iov_len -= (size_t)got;
	}
	return done;
}

/* --- overwrite ----------------------------------------------------------- */

/* Return: how many of @m.. dropped one range together. */
static unsigned drop_run(const struct move *m, unsigned n)
{
	uint64_t end = m->drop;
	unsigned i = 0;

	for (; i < n && m[i].kind == MOVE_OVERWRITE && m[i].drop == end; i++)
		end += m[i].drop_len;
	if (i > 0)
		(void)sys_madvise(m->drop, end - m->drop, MADV_DONTNEED);
	return MAX(i, 1);
}

static void drop(const struct move *m, unsigned n)
{
	for (unsigned i = 0; i < n;)
		i += m[i].kind == MOVE_OVERWRITE ? drop_run(&m[i], n - i) : 1;
}

void os_drop(struct os *os, const struct moves *mv)
{
	(void)os;
	drop(mv->m, mv->num);
}

/* --- scatter ------------------------------------------------------------- */

static bool scatters(const struct move *m)
{
	return m->kind == MOVE_SCATTER || m->kind == MOVE_OVERWRITE;
}

/* struct run - Successive scatters that become one call. */
struct run {
	struct iovec v[COPY_PIECES];
	unsigned pieces, moves;
	uint64_t start, end; /* file offsets */
};

static bool copy_run_add(struct os *os, struct run *run,
			 const struct os_region *r, const struct move *m)
{
	uint64_t off = region_offset(r, m->nic), gap = off - run->end;

	if (run->moves == 0) {
		run->start = off;
		gap = 0;
	}
	if (gap > COPY_GAP || run->pieces + 2 > COPY_PIECES)
		return false;
	if (gap > 0)
		run->v[run->pieces++] = (struct iovec){os->lanes.bin, gap};
	run->v[run->pieces++] = app_iov(m->addr, m->len);
	run->moves++;
	run->end = off + m->len;
	return true;
}

/* How many moves of the run are whole after @bytes of it? */
static unsigned run_whole(const struct os *os, const struct move *m,
			  const struct run *run, uint64_t bytes)
{
	unsigned i = 0;

	for (; i < run->moves; i++) {
		const struct os_region *r = region_of(os, m[i].nic, m[i].len);

		if (region_offset(r, m[i].nic) + m[i].len - run->start > bytes)
			break;
	}
	return i;
}

typedef ssize_t (*copy_call)(int pid, const struct iovec *nic, unsigned nics,
			     const struct iovec *app, unsigned apps);

/* Without a file or a lane: one piece, straight. */
static int copy_direct(const struct os *os, const struct move *m,
		       copy_call call)
{
	for (uint64_t done = 0; done < m->len;) {
		struct iovec nic = {(uint8_t *)m->nic + done, m->len - done};
		struct iovec app = app_iov(m->addr + done, m->len - done);
		ssize_t n = call(os->pid, &nic, 1, &app, 1);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? (int)n : -EFAULT;
		done += (uint64_t)n;
	}
	return 0;
}

/* NIC memory that the kernel cannot copy from: through a lane. */
static int scatter_bounced(struct os *os, const struct move *m)
{
	int lane = lane_wait(os), err = 0;
	uint64_t len;

	if (lane < 0)
		return copy_direct(os, m, sys_vm_writev);
	for (uint64_t at = 0; at < m->len && err == 0; at += len) {
		struct iovec v;

		len = MIN(m->len - at, (uint64_t)OS_LANE_BYTES);
		v = app_iov(m->addr + at, len);
		memcpy(os->lanes.lane[lane].buf, (uint8_t *)m->nic + at, len);
		copy_copy_out(os->lanes.lane[lane].fd, &v, 1, 0, len, &err);
	}
	lane_put(os, lane);
	return err;
}

/* Return: moves done of the @n from @m on (0 with @err on failure). */
static unsigned scatter(struct os *os, struct move *m, unsigned n, int *err)
{
	const struct os_region *r = region_of(os, m->nic, m->len);
	struct run run;
	uint64_t got;

	run.pieces = run.moves = 0;
	run.start = run.end = 0;

	if (!r) {
		drop(m, 1);
		*err = scatter_bounced(os, m);
		return *err == 0;
	}
	for (unsigned i = 0; i < n && scatters(&m[i]); i++) {
		r = region_of(os, m[i].nic, m[i].len);
		if (!r || !copy_run_add(os, &run, r, &m[i]))
			break;
	}
	drop(m, run.moves);
	got = copy_copy_out(os->memory.fd, run.v, run.pieces, run.start,
			    run.end - run.start, err);
	return *err == 0 ? run.moves : run_whole(os, m, &run, got);
}

/* --- gather -------------------------------------------------------------- */

/* Bring [addr, addr + len) into the lane, from its start. */
static int lane_fill(const struct os_lane *l, struct iovec *v, unsigned n,
		     uint64_t want, uint64_t *got)
{
	ssize_t ret = 0;

	*got = 0;
	while (*got < want) {
		ret = sys_pwritev(l->fd, v, n, *got);
		if (ret == -EINTR)
			continue;
		if (ret <= 0)
			return ret < 0 ? (int)ret : -EIO;
		*got += (uint64_t)ret;
		while (n > 0 && (uint64_t)ret >= v->iov_len) {
			ret -= (ssize_t)v->iov_len;
			v++;
			n--;
		}
		if (n > 0) {
			v->iov_base = (char *)v->iov_base + ret;
			v->iov_len -= (size_t)ret;
		}
	}
	return 0;
}

/* One move that is larger than a lane. */
static int gather_large(const struct os_lane *l, const struct move *m)
{
	uint64_t len, got;
	int err = 0;

	for (uint64_t at = 0; at < m->len && err == 0; at += len) {
		struct iovec v;

		len = MIN(m->len - at, (uint64_t)OS_LANE_BYTES);
		v = app_iov(m->addr + at, len);
		err = lane_fill(l, &v, 1, len, &got);
		memcpy((uint8_t *)m->nic + at, l->buf, got);
	}
	return err;
}

/* As many moves as fit into a lane. Return: how many are whole. */
static unsigned gather_run(const struct os_lane *l, struct move *m, unsigned n,
			   int *err)
{
	struct iovec v[COPY_PIECES];
	uint64_t want = 0, got, at = 0;
	unsigned k = 0;

	for (; k < n && k < COPY_PIECES && m[k].kind == MOVE_GATHER; k++) {
		if (!range_ok(want, m[k].len, OS_LANE_BYTES))
			break;
		v[k] = app_iov(m[k].addr, m[k].len);
		want += m[k].len;
	}
	*err = lane_fill(l, v, k, want, &got);
	for (unsigned i = 0; i < k; i++) {
		if (!range_ok(at, m[i].len, got))
			return i;
		memcpy(m[i].nic, l->buf + at, m[i].len);
		at += m[i].len;
	}
	return k;
}

static unsigned copy_gather(struct os *os, struct move *m, unsigned n, int *err)
{
	int lane = lane_get(os);
	unsigned done;

	if (lane < 0) {
		*err = copy_direct(os, m, sys_vm_readv);
		return *err == 0;
	}
	if (m->len > OS_LANE_BYTES) {
		*err = gather_large(&os->lanes.lane[lane], m);
		done = *err == 0;
	} else {
		done = gather_run(&os->lanes.lane[lane], m, n, err);
	}
	lane_put(os, lane);
	return done;
}

/* --- atomics ------------------------------------------------------------- */

/* @l: NULL: there is none */
static int word_read(const struct os *os, const struct os_lane *l,
		     uint64_t addr, uint64_t *word)
{
	struct move m = {.addr = addr, .nic = word, .len = sizeof(*word)};
	struct iovec v = app_iov(addr, sizeof(*word));
	uint64_t got;
	int err;

	if (!l)
		return copy_direct(os, &m, sys_vm_readv);
	err = lane_fill(l, &v, 1, sizeof(*word), &got);
	if (!err)
		memcpy(word, l->buf, sizeof(*word));
	return err;
}

static int word_write(const struct os *os, const struct os_lane *l,
		      uint64_t addr, uint64_t word)
{
	struct move m = {.addr = addr, .nic = &word, .len = sizeof(word)};
	struct iovec v = app_iov(addr, sizeof(word));
	int err;

	if (!l)
		return copy_direct(os, &m, sys_vm_writev);
	memcpy(l->buf, &word, sizeof(word));
	copy_copy_out(l->fd, &v, 1, 0, sizeof(word), &err);
	return err;
}

static int atomic_locked(const struct os *os, const struct os_lane *l,
			 struct move *m)
{
	int err = word_read(os, l, m->addr, &m->result);

	if (err < 0)
		return err;
	if (m->kind == MOVE_FETCH_ADD)
		return word_write(os, l, m->addr, m->result + m->operand);
	if (m->result == m->compare)
		return word_write(os, l, m->addr, m->operand);
	return 0;
}

static int atomic(struct os *os, struct move *m)
{
	pthread_mutex_t *lock = &os->lanes.stripe[m->addr / 8 % OS_STRIPES];
	const int lane = lane_wait(os);
	int err;

	pthread_mutex_lock(lock);
	err = atomic_locked(os, lane < 0 ? NULL : &os->lanes.lane[lane], m);
	pthread_mutex_unlock(lock);
	if (lane >= 0)
		lane_put(os, lane);
	return err;
}

/**
 * os_moves() - See copy.h.
 * @mv: borrowed; done, error and the atomics' results are set; done is where to
 *	begin
 */
void os_moves(struct os *os, struct moves *mv)
{
	int err = 0;

	while (mv->done < mv->num && err == 0) {
		struct move *m = &mv->m[mv->done];
		unsigned left = mv->num - mv->done;

		switch (m->kind) {
		case MOVE_SCATTER:
		case MOVE_OVERWRITE:
			mv->done += scatter(os, m, left, &err);
			break;
		case MOVE_GATHER:
			mv->done += copy_gather(os, m, left, &err);
			break;
		case MOVE_FETCH_ADD:
		case MOVE_CMP_SWP:
			err = atomic(os, m);
			mv->done += err == 0;
			break;
		default:
			CHECK(false);
		}
	}
	mv->error = err;
}
