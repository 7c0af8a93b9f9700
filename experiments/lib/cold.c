/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cold.c: memory whose pages are not there, of each kind that a NIC may meet. */
#include "lib.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum {
	/* What the NIC believes to be present it does for 10 ms without proof. */
	FORGET_MS = 20,
	PAGES_MAX = 1 << 18,
	FILLER = 0x5a,
};

static unsigned char resident[PAGES_MAX];

static double resident_share(const struct cold *c)
{
	const size_t pages = c->bytes / PAGE;
	size_t n = 0;

	REQUIRE(pages <= PAGES_MAX);
	REQUIRE(mincore(c->base, c->bytes, resident) == 0);
	for (size_t i = 0; i < pages; i++)
		n += resident[i] & 1;
	return (double)n / (double)pages;
}

static void file_open(struct cold *c)
{
	static uint8_t block[64 * PAGE];

	memset(block, FILLER, sizeof(block));
	c->fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (c->fd < 0)
		host_skip("no file without a name in this directory");
	for (size_t at = 0; at < c->bytes; at += sizeof(block))
		if (write(c->fd, block, sizeof(block)) != sizeof(block))
			host_skip("no space on this disk");
	posix_fadvise(c->fd, 0, 0, POSIX_FADV_RANDOM);
	c->base = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		       c->fd, 0);
	REQUIRE(c->base != MAP_FAILED);
}

static void file_drop(struct cold *c)
{
	REQUIRE(fdatasync(c->fd) == 0);
	REQUIRE(madvise(c->base, c->bytes, MADV_DONTNEED) == 0);
	REQUIRE(fdatasync(c->fd) == 0);
	REQUIRE(posix_fadvise(c->fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	if (resident_share(c) > 0.05)
		host_skip("the page cache of this file does not go");
}

static void swap_out(struct cold *c)
{
	/* Pages that were read in and not written are dropped at once; fill
	 * them, so that all are written out. */
	memset(c->base, FILLER, c->bytes);
	for (int tries = 0; tries < 5 && resident_share(c) > 0.05; tries++)
		if (!swap_push(c->base, c->bytes))
			host_skip("no MADV_PAGEOUT (Linux 5.4)");
	if (resident_share(c) > 0.05)
		host_skip("no swap, or none left");
}

size_t cold_size(const struct cold *c)
{
	return c->bytes * c->windows;
}

void cold_open(struct cold *c, const char *kind, size_t bytes, unsigned rounds)
{
	uint64_t delay_ms = 0;

	*c = (struct cold){.bytes = bytes, .windows = 1};
	if (!strcmp(kind, "minor")) {
		c->kind = COLD_MINOR;
		c->windows = rounds;
	} else if (!strcmp(kind, "swap")) {
		c->kind = COLD_SWAP;
	} else if (!strcmp(kind, "file")) {
		c->kind = COLD_FILE;
	} else {
		REQUIRE(!strncmp(kind, "slow", 4));
		c->kind = COLD_SLOW;
		delay_ms = number(kind + 4);
	}
	if (c->kind == COLD_FILE)
		file_open(c);
	else
		c->base = host_map(NULL, cold_size(c));
	/* no read-ahead: each fault is one page's */
	REQUIRE(madvise(c->base, cold_size(c), MADV_RANDOM) == 0);
	if (c->kind == COLD_SLOW)
		slow_open(&c->slow, geteuid() ? SLOW_USER : SLOW_KERNEL,
			  c->base, bytes, delay_ms * MS);
}

uint8_t *cold_round(struct cold *c)
{
	REQUIRE(c->next < c->windows || c->kind != COLD_MINOR);
	if (c->kind == COLD_MINOR)
		return c->base + c->next++ * c->bytes;
	if (c->kind == COLD_SWAP)
		swap_out(c);
	else if (c->kind == COLD_FILE)
		file_drop(c);
	else
		REQUIRE(madvise(c->base, c->bytes, MADV_DONTNEED) == 0);
	host_sleep(FORGET_MS * MS);
	return c->base;
}
