/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* majflt.c: pages that need I/O are brought in by pagers, never by the engine:
 * its moves meet no major fault (I1). Works at random over a large region of
 * which half is not there.
 *
 *   majflt swap MIB WRITES	anonymous memory, half of it swapped to zram
 *				(root: makes the swap, and removes it)
 *   majflt file MIB READS	a file of another owner if we are root, else of
 *				ours, mapped read-only, half of it not cached
 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { AHEAD = 16, ROUNDS = 3, CHUNK = 64 * PAGE };

static struct {
	size_t bytes;
	uint64_t ops;
} arg;

static size_t pages(void)
{
	return arg.bytes / PAGE;
}

/* What page @page holds after it was written in round @round (0: at first). */
static uint64_t word_of(uint64_t page, uint64_t round)
{
	return (page << 8 | round) * 0x9e3779b97f4a7c15;
}

/* --- the peer: WRITEs, or READs and looks ----------------------------------------- */

static uint8_t *round_of; /* per page: its last WRITE */

static void write_page(struct link *l, struct ibv_mr *mr, size_t slot,
		       uint64_t page, uint8_t round)
{
	uint64_t *buf = (uint64_t *)mr->addr + slot * PAGE / 8;

	round_of[page] = round;
	for (size_t i = 0; i < PAGE / sizeof(*buf); i += 64)
		buf[i] = word_of(page, round);
	link_post(l, IBV_WR_RDMA_WRITE, mr, buf, PAGE, page * PAGE);
}

static void read_page(struct link *l, struct ibv_mr *mr, uint64_t page)
{
	uint64_t *buf = mr->addr;

	link_post(l, IBV_WR_RDMA_READ, mr, buf, PAGE, page * PAGE);
	host_wait(l->h, 1);
	for (size_t i = 0; i < PAGE / sizeof(*buf); i += 64)
		REQUIRE_EQ(buf[i], word_of(page, round_of[page]));
}

static void peer_open(struct host *h, struct link *l, int fd,
		      struct ibv_mr **mr)
{
	round_of = host_map(NULL, pages());
	host_open(h);
	*mr = host_reg(h, host_map(NULL, AHEAD * PAGE), AHEAD * PAGE);
	link_open(l, h, fd, NULL);
}

static void peer_close(struct host *h, struct link *l, struct ibv_mr *mr,
		       int fd)
{
	host_say(fd, 0);
	link_close(l);
	host_dereg(mr);
	host_close(h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
}

static void swap_peer(int fd)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	peer_open(&h, &l, fd, &mr);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		REQUIRE(host_hear(fd) == round);
		for (uint64_t n = 0, done = 0; done < arg.ops;) {
			for (; n < arg.ops && n < done + AHEAD; n++)
				write_page(&l, mr, n % AHEAD,
					   host_random() % pages(),
					   (uint8_t)round);
			host_wait(&h, 1);
			done++;
		}
		host_say(fd, round);
	}
	for (uint64_t n = 0; n < arg.ops / 10; n++)
		read_page(&l, mr, host_random() % pages());
	peer_close(&h, &l, mr, fd);
}

static void file_peer(int fd)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	peer_open(&h, &l, fd, &mr);
	for (uint64_t n = 0; n < arg.ops; n++)
		read_page(&l, mr, host_random() % pages());
	peer_close(&h, &l, mr, fd);
}

/* --- swap -------------------------------------------------------------------------- */

/* Every other chunk goes out. */
static void swap_half(char *base)
{
	for (size_t at = 0; at < arg.bytes; at += 2 * CHUNK)
		REQUIRE(madvise(base + at, CHUNK, MADV_PAGEOUT) == 0);
	printf("%zu of %zu pages resident\n", host_resident(base, arg.bytes),
	       pages());
	REQUIRE_LE(host_resident(base, arg.bytes), pages() * 3 / 4);
	/* What the NIC saw last is not news any more. */
	host_sleep(20 * MS);
}

static void swap_target(int fd)
{
	uint64_t *base = host_map(NULL, arg.bytes);
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	for (size_t i = 0; i < pages(); i++)
		for (size_t k = 0; k < PAGE / 8; k += 64)
			base[i * PAGE / 8 + k] = word_of(i, 0);
	host_open(&h);
	mr = host_reg(&h, base, arg.bytes);
	link_open(&l, &h, fd, mr);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		swap_half((char *)base);
		host_say(fd, round);
		REQUIRE(host_hear(fd) == round);
	}
	REQUIRE(host_hear(fd) == 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	REQUIRE_LE(1, host_counter("tickets"));
	REQUIRE_EQ(host_counter("engine_majflt"), 0);
}

static void swap(void)
{
	int fd = host_fork(swap_peer);

	swap_target(fd);
	host_join();
}

/* --- file --------------------------------------------------------------------------- */

static int file_make(void)
{
	uint64_t page[PAGE / 8];
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);

	REQUIRE(fd >= 0);
	for (size_t i = 0; i < pages(); i++) {
		memset(page, 0, sizeof(page));
		for (size_t k = 0; k < PAGE / 8; k += 64)
			page[k] = word_of(i, 0);
		REQUIRE(write(fd, page, PAGE) == PAGE);
	}
	REQUIRE(fsync(fd) == 0);
	return fd;
}

/* The other half stays in the page cache, but for what readahead adds. */
static void file_drop(int fd)
{
	static char buf[CHUNK];

	REQUIRE(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	REQUIRE(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) == 0);
	for (size_t at = 0; at < arg.bytes; at += 2 * CHUNK)
		REQUIRE(pread(fd, buf, CHUNK, (off_t)at) == CHUNK);
}

static void file_target(int fd)
{
	const int file = file_make();
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	void *base;

	base = mmap(NULL, arg.bytes, PROT_READ, MAP_SHARED, file, 0);
	REQUIRE(base != MAP_FAILED);
	REQUIRE(madvise(base, arg.bytes, MADV_RANDOM) == 0);
	file_drop(file);
	printf("%zu of %zu pages cached\n", host_resident(base, arg.bytes),
	       pages());
	REQUIRE_LE(host_resident(base, arg.bytes), pages() * 3 / 4);
	host_user();
	host_open(&h);
	mr = ibv_reg_mr(h.pd, base, arg.bytes, IBV_ACCESS_REMOTE_READ);
	REQUIRE(mr);
	link_open(&l, &h, fd, mr);
	REQUIRE(host_hear(fd) == 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	REQUIRE_LE(1, host_counter("tickets"));
	REQUIRE_EQ(host_counter("engine_majflt"), 0);
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 4);
	arg.bytes = strtoul(argv[2], NULL, 0) << 20;
	arg.ops = strtoull(argv[3], NULL, 0);
	host_start();
	if (!strcmp(argv[1], "swap")) {
		swap_run(arg.bytes, swap);
	} else {
		file_target(host_fork(file_peer));
		host_join();
	}
	return 0;
}
