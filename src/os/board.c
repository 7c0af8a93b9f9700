/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* board.c: a file in shared memory where each process of a user pins up a note for
 * the others to read (design D1: no daemon; D12: one NIC memory for all).
 *
 * Theory of operation
 *
 * /dev/shm/nopin-UID is a header and OS_NOTES_MAX slots. A process has one slot, and
 * writes there only. It holds a POSIX lock on the bytes of its slot for as long as it
 * lives: the kernel drops it when the process dies, however it does; a forked child
 * does not have it; and F_GETLK tells whose it is. So the kernel is asked
 * which processes are there, and no process id is guessed at. Nothing in the file says
 * how many there are, or where, and no lock is ever waited for.
 *
 * Any process of the user can write anything there, at any time, and cut the file
 * short. So a note carries a number and a hash of all of it; a reader of one that does
 * not fit (torn, damaged, half written by a process that was killed) goes by what
 * was there before. A process counts once, however many slots it has locked. The
 * file is read with pread(), and written by having the kernel copy a note into the
 * mapping of our slot: write() would wait for a lock that others may hold, and a
 * store to a file that was cut short is a SIGBUS.
 *
 * The file stays when the last one goes: one that comes at that moment would be alone
 * on a file that is unlinked. It is made of constants only, so that any number of
 * processes may make it at once.
 */
#include "os/board.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/page.h"
#include "base/rand.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/lane.h"
#include "os/names.h"
#include "os/os.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { SLOT_SIZE = 256, HEADER_SIZE = 4096, TORN_MAX = 3 };

#define BOARD_SIZE (HEADER_SIZE + (uint64_t)OS_NOTES_MAX * SLOT_SIZE)

static const char board_magic[16] = "nopin board 1\n";

/** struct slot - @check: hash of all else; @seq: differs each time. */
struct slot {
	uint64_t seq, check;
	struct os_note note;
};

static_assert(sizeof(struct slot) <= SLOT_SIZE, "a slot");
static_assert(sizeof(struct os_note) % 8 == 0, "whole words are hashed");

/** struct locked - A slot that another process has; @pid: 0: the kernel cannot say */
struct locked {
	unsigned slot;
	int pid;
};

/** struct span - Slots [first, end). */
struct span {
	uint16_t first, end;
};

/**
 * struct board
 * @map:	page with our slot
 * @own:	our note
 * @locked, @num: the others that are there; @spans: where to look for more
 * @seen:	by slot: what was there last, and made sense
 */
struct board {
	int fd;
	unsigned mine;
	dev_t dev;
	ino_t ino;
	uint8_t *map;
	struct slot own;
	struct locked locked[OS_NOTES_MAX];
	struct span spans[OS_NOTES_MAX + 1];
	unsigned num;
	struct {
		int pid;
		uint64_t seq;
		struct os_note note;
	} seen[OS_NOTES_MAX];
};

/* Locks are the process's: a second NIC in it would find all its slots free. So this
 * says that one has a slot. */
static bool board_taken;

static uint64_t slot_offset(unsigned slot)
{
	return HEADER_SIZE + (uint64_t)slot * SLOT_SIZE;
}

static uint64_t slot_check(const struct slot *s)
{
	const char *p = (const char *)&s->note;
	uint64_t h = siphash_u64(1, 2, s->seq), word;

	for (size_t i = 0; i < sizeof(s->note); i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		h = siphash_u64(h, 3, word);
	}
	return h;
}

/* --- locks -------------------------------------------------------------------- */

static struct flock lock_of(unsigned first, unsigned end)
{
	return (struct flock){.l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = (off_t)slot_offset(first),
			      .l_len = (off_t)(end - first) * SLOT_SIZE};
}

/* Find a slot in [first, end) that another process has. Return: its number; @end: none. */
static unsigned find_locked(const struct board *b, unsigned first, unsigned end,
			    int *pid)
{
	struct flock l = lock_of(first, end);
	uint64_t at;

	if (sys_fcntl(b->fd, F_GETLK, SYS_PTR(&l)) < 0 || l.l_type == F_UNLCK)
		return end;
	*pid = l.l_pid; /* 0: of another namespace; -1: no process's */
	/* it may be longer than a slot, and begin before ours */
	at = MAX((uint64_t)l.l_start, slot_offset(first));
	at = (at - HEADER_SIZE) / SLOT_SIZE;
	return at < end ? (unsigned)at : first;
}

static bool board_is_known(const struct board *b, int pid)
{
	for (unsigned i = 0; pid && i < b->num; i++)
		if (b->locked[i].pid == pid)
			return true;
	return false;
}

/* The kernel tells of any one of them in a range: the ranges before and behind it
 * are looked at next. Each look shortens what is left by a slot. */
static void find_all(struct board *b)
{
	unsigned spans = 1;

	b->spans[0] = (struct span){0, OS_NOTES_MAX};
	b->num = 0;
	while (spans > 0) {
		const struct span r = b->spans[--spans];
		int pid = 0;
		const unsigned at = find_locked(b, r.first, r.end, &pid);

		if (at == r.end)
			continue;
		if (pid >= 0 && !board_is_known(b, pid))
			b->locked[b->num++] = (struct locked){at, pid};
		if (at > r.first)
			b->spans[spans++] = (struct span){r.first,
							  (uint16_t)at};
		if (at + 1u < r.end)
			b->spans[spans++] = (struct span){(uint16_t)(at + 1),
							  r.end};
	}
}

static int take_slot(struct board *b)
{
	for (unsigned i = 0; i < OS_NOTES_MAX; i++) {
		struct flock l = lock_of(i, i + 1);

		if (sys_fcntl(b->fd, F_SETLK, SYS_PTR(&l)) < 0)
			continue;
		b->mine = i;
		return 0;
	}
	return -EUSERS;
}

/* --- the file ------------------------------------------------------------------- */

/* Return: 0; -EPERM: it is not ours alone; -EBADMSG: it is something else. */
static int board_check(const struct board *b, const struct stat *st)
{
	char magic[sizeof(board_magic)];

	if (!S_ISREG(st->st_mode) || st->st_nlink != 1)
		return -EBADMSG;
	if (st->st_uid != (uid_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) ||
	    (st->st_mode & 077))
		return -EPERM;
	/* Users that our namespace has no number for all look like one (cred.c).
	 * Whose file it is the kernel knows: others may not do this, which is also
	 * what makes it ours whatever the umask is. */
	if (sys_call(SYS_fchmod, b->fd, 0600, 0, 0, 0, 0) < 0)
		return -EPERM;
	if (st->st_size == 0)
		return 0;
	if (st->st_size != (off_t)BOARD_SIZE ||
	    sys_pread(b->fd, magic, sizeof(magic), 0) != sizeof(magic))
		return -EBADMSG;
	/* another process may not have come so far yet */
	for (size_t i = 0; i < sizeof(magic); i++)
		if (magic[i] && magic[i] != board_magic[i])
			return -EBADMSG;
	return 0;
}

/* Any process makes the same, and any number of them may at once. */
static int board_make(const struct board *b)
{
	const struct iovec iov = {(void *)(uintptr_t)board_magic,
				  sizeof(board_magic)};
	ssize_t n = fd_resize(b->fd, BOARD_SIZE);

	if (n == 0)
		n = sys_pwritev(b->fd, &iov, 1, 0);
	return n < 0 ? (int)n : 0;
}

static int board_map(struct board *b)
{
	const uint64_t at = slot_offset(b->mine), page = at & ~(PAGE_BYTES - 1);
	int keep = errno;
	void *p = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		       b->fd, (off_t)page);
	int ret = p == MAP_FAILED ? -errno : 0;

	errno = keep;
	if (ret < 0)
		return ret;
	(void)sys_madvise((uintptr_t)p, PAGE_BYTES, MADV_DONTFORK);
	b->map = p;
	return 0;
}

static int board_file(struct board *b, const char *dir)
{
	struct stat st = {.st_size = 0};
	char path[256];
	int ret;

	snprintf(path, sizeof(path), "%s/nopin-%ld", dir,
		 sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0));
	b->fd = fd_high(
		sys_open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK));
	if (b->fd < 0)
		return b->fd;
	ret = sys_fstat(b->fd, &st);
	if (ret == 0)
		ret = board_check(b, &st);
	if (ret == 0 && st.st_size == 0)
		ret = board_make(b);
	b->dev = st.st_dev;
	b->ino = st.st_ino;
	return ret;
}

static void who_we_are(struct os_note *n, int pid)
{
	int fd = file_borrow("/proc/self/comm");
	ssize_t len = fd < 0 ? 0 : sys_pread(fd, n->name, sizeof(n->name), 0);

	file_return(fd);
	/* a newline is at its end */
	n->name[len > 0 ? len - 1 : 0] = '\0';
	n->pid = pid;
}

static bool board_take(void)
{
	return !__atomic_exchange_n(&board_taken, true, __ATOMIC_ACQUIRE);
}

static void give(void)
{
	__atomic_store_n(&board_taken, false, __ATOMIC_RELEASE);
}

void board_in_child(void)
{
	give();
}

static void board_free(struct board *b)
{
	if (b->map)
		munmap(b->map, PAGE_BYTES);
	fd_close(b->fd);
	heap_free(b);
	give();
}

int os_board_open(struct os *os, const char *dir)
{
	struct board *b;
	int ret;

	if (!board_take())
		return -EBUSY;
	b = heap_alloc(sizeof(*b));
	if (!b) {
		give();
		return -ENOMEM;
	}
	b->fd = -1;
	ret = board_file(b, dir ? dir : "/dev/shm");
	if (ret == 0)
		ret = take_slot(b);
	if (ret == 0)
		ret = board_map(b);
	if (ret < 0) {
		board_free(b);
		return ret;
	}
	who_we_are(&b->own.note, os->pid);
	os->board = b;
	/* not what the process said that had the slot before */
	ret = os_board_post(os, b->own.note.bytes);
	if (ret < 0)
		os_board_close(os);
	return ret;
}

void os_board_close(struct os *os)
{
	if (os->board)
		board_free(os->board);
	os->board = NULL;
}

/* --- notes ------------------------------------------------------------------------ */

/* The program may have closed our descriptor, and the lock is gone then. */
static bool is_there(const struct board *b)
{
	struct stat st;

	return sys_fstat(b->fd, &st) == 0 && st.st_dev == b->dev &&
	       st.st_ino == b->ino && st.st_size == (off_t)BOARD_SIZE;
}

int os_board_post(struct os *os, const void *note)
{
	struct board *b = os->board;
	const uint64_t off = slot_offset(b->mine) % PAGE_BYTES;
	ssize_t n;
	int lane;

	if (!is_there(b))
		return -EBADF;
	memmove(b->own.note.bytes, note, OS_NOTE_BYTES);
	b->own.seq++;
	b->own.check = slot_check(&b->own);
	lane = lane_get(os);
	if (lane < 0)
		return lane == -EAGAIN ? 0 : lane; /* the next one, then */
	memcpy(os->lanes.lane[lane].buf, &b->own, sizeof(b->own));
	n = sys_pread(os->lanes.lane[lane].fd, b->map + off, sizeof(b->own), 0);
	lane_put(os, lane);
	return n < 0 ? (int)n : 0;
}

const struct os_note *os_board_mine(struct os *os)
{
	return &os->board->own.note;
}

/* Return: is there something to go by? */
static bool board_look_at(struct board *b, unsigned slot, int pid)
{
	struct slot s = {.seq = 0};

	if (b->seen[slot].pid != pid)
		b->seen[slot].seq = 0;
	b->seen[slot].pid = pid;
	for (int i = 0; i < TORN_MAX; i++) {
		if (sys_pread(b->fd, &s, sizeof(s), slot_offset(slot)) !=
		    sizeof(s))
			break;
		if (s.seq == 0 || s.check != slot_check(&s))
			continue;
		b->seen[slot].seq = s.seq;
		b->seen[slot].note = s.note;
		b->seen[slot].note.name[sizeof(s.note.name) - 1] = '\0';
		if (pid) /* as we would call it */
			b->seen[slot].note.pid = pid;
		break;
	}
	return b->seen[slot].seq != 0;
}

int os_board_read(struct os *os, const struct os_note **out)
{
	struct board *b = os->board;
	int n = 0;

	if (!is_there(b))
		return -EBADF;
	find_all(b);
	for (unsigned i = 0; i < b->num; i++) {
		const struct locked *l = &b->locked[i];

		if (board_look_at(b, l->slot, l->pid))
			out[n++] = &b->seen[l->slot].note;
	}
	return n;
}
