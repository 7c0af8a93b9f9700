/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.c: WRITEs patterns to the victim's memory and READs them back, a
 * thousand requests a second at random places, first undisturbed, then while
 * the victim evicts the pages; and checks every byte. An ordinary verbs client.
 *
 *   peer PORT BEFORE-MS DURING-MS SERIES-FILE
 *
 * What it READs before its first WRITE there must be zeros.
 *
 * The series has a line "ns-when-posted ns-until-completed" for each request.
 * Prints lines "NAME VALUE".
 */
#include "demo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DEPTH = 16, /* requests in flight */
	TICK_US = 1000, /* one more request */
	DISK_SLOTS = 512,
	SLOW_SLOTS = 64,
	ANON_SLOTS = 8192,
	SLOTS = DISK_SLOTS + SLOW_SLOTS + ANON_SLOTS,
	BYTES_MAX = 16 << 10,
	STRAY = 104, /* from the start of a page */
};

/** struct state - @busy: a request for it is in flight; @slot.bytes 0: none */
struct state {
	struct slot slot;
	bool busy;
};

/** struct request - In flight; @of: NULL when free. */
struct request {
	struct state *of;
	uint64_t posted;
	bool read;
};

static struct state states[SLOTS];
static struct request requests[DEPTH];
static uint64_t fresh, written, read_back, wrong, done, rnd = 88172645463325252;
static struct hello victim;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static struct dev dev;
static FILE *series;

static uint64_t chance(uint64_t n)
{
	rnd ^= rnd << 13;
	rnd ^= rnd >> 7;
	rnd ^= rnd << 17;
	return rnd % n;
}

/* Slots lie at random in their area, in stretches of their own. Those of the
 * disk begin and end inside a page and have up to five pages.
 */
static void place(uint32_t first, uint32_t n, enum area_id area, uint32_t bytes,
		  uint32_t stray)
{
	const uint64_t pages = victim.area[area].bytes / PAGE / n;
	const uint64_t need = (bytes + stray + PAGE - 1) / PAGE;

	if (pages < need)
		return;
	for (uint32_t i = 0; i < n; i++)
		states[first + i].slot = (struct slot){
			.offset = (i * pages + chance(pages - need + 1)) *
					  PAGE +
				  stray,
			.area = area,
			.bytes = bytes,
			.id = first + i,
		};
}

static void place_all(void)
{
	place(0, DISK_SLOTS, AREA_DISK, 16 << 10, STRAY);
	place(DISK_SLOTS, SLOW_SLOTS, AREA_SLOW, PAGE, 0);
	place(DISK_SLOTS + SLOW_SLOTS, ANON_SLOTS, AREA_ANON, 8 << 10, 0);
}

/* --- requests ---------------------------------------------------------------- */

static uint8_t *buffer(const struct request *r)
{
	return (uint8_t *)mr->addr + (r - requests) * BYTES_MAX;
}

static bool submit(struct state *st, bool read)
{
	struct request *r = requests;
	struct ibv_sge sge;

	while (r < requests + DEPTH && r->of)
		r++;
	if (r == requests + DEPTH || st->busy || !st->slot.bytes)
		return false;
	st->busy = true;
	*r = (struct request){.of = st, .read = read};
	if (read) {
		memset(buffer(r), 0xa5, st->slot.bytes);
	} else {
		st->slot.seq++;
		fill(&st->slot, buffer(r));
	}
	sge = (struct ibv_sge){(uintptr_t)buffer(r), st->slot.bytes, mr->lkey};
	r->posted = now_ns();
	post(qp, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
	     (uint64_t)(r - requests), &sge,
	     victim.area[st->slot.area].va + st->slot.offset,
	     victim.area[st->slot.area].rkey);
	return true;
}

static void finish(struct request *r)
{
	const struct slot *s = &r->of->slot;
	uint32_t bad;

	fprintf(series, "%" PRIu64 " %" PRIu64 "\n", r->posted,
		now_ns() - r->posted);
	if (r->read) {
		read_back += s->bytes;
		bad = wrong_bytes(s, buffer(r));
		if (bad)
			fprintf(stderr,
				"peer: %u wrong bytes at offset "
				"%" PRIu64 " of area %u\n",
				bad, s->offset, s->area);
		wrong += bad;
	} else {
		written += s->bytes;
	}
	done++;
	r->of->busy = false;
	r->of = NULL;
}

static void reap(void)
{
	struct ibv_wc wc[DEPTH];
	int n = dev_poll(&dev, DEPTH, wc);

	for (int i = 0; i < n; i++)
		finish(&requests[wc[i].wr_id]);
}

static void wait_until(uint64_t when)
{
	reap();
	while (now_ns() < when) {
		dev_wait(&dev, when);
		reap();
	}
}

static void drain(void)
{
	for (int i = 0; i < DEPTH; i++)
		while (requests[i].of)
			wait_until(now_ns() + MS);
}

/* --- phases ------------------------------------------------------------------ */

/* Something to do: a slot of the disk or of the slow memory, or one of the
 * anonymous memory, which nobody touched before as long as there is such.
 */
static struct state *pick(bool *read)
{
	const uint32_t first = DISK_SLOTS + SLOW_SLOTS;
	struct state *st;

	*read = chance(2);
	switch (chance(3)) {
	case 0:
		return &states[chance(DISK_SLOTS)];
	case 1:
		st = &states[DISK_SLOTS + chance(SLOW_SLOTS)];
		return st->slot.bytes ? st : &states[chance(DISK_SLOTS)];
	default:
		if (fresh < ANON_SLOTS)
			return &states[first + fresh++];
		return &states[first + chance(ANON_SLOTS)];
	}
}

static void run(uint64_t ms)
{
	uint64_t next = now_ns(), end = next + ms * MS;
	bool read;

	while (next < end) {
		struct state *st = pick(&read);

		submit(st, read);
		next += (uint64_t)TICK_US * 1000;
		if (next < now_ns()) /* no bursts to catch up */
			next = now_ns();
		wait_until(next);
	}
}

/* Of all slots; of anonymous memory only those that there is something in. */
static bool of_interest(const struct slot *s)
{
	return s->bytes && (s->area != AREA_ANON || s->seq);
}

static void each(bool read)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		while (of_interest(&states[i].slot) &&
		       !submit(&states[i], read))
			wait_until(now_ns() + MS / 10);
	drain();
}

static void command(int fd, enum command cmd)
{
	const uint8_t byte = (uint8_t)cmd;

	must_send(fd, &byte, 1);
}

static struct verdict ask_victim(int fd)
{
	struct verdict v;
	uint32_t n = 0;

	command(fd, CMD_CHECK);
	for (int i = 0; i < SLOTS; i++)
		n += of_interest(&states[i].slot);
	must_send(fd, &n, sizeof(n));
	for (int i = 0; i < SLOTS; i++)
		if (of_interest(&states[i].slot))
			must_send(fd, &states[i].slot, sizeof(struct slot));
	must_recv(fd, &v, sizeof(v));
	return v;
}

static void phases(int fd, uint64_t before_ms, uint64_t during_ms)
{
	struct verdict v;

	each(false);
	printf("before_ns %" PRIu64 "\n", now_ns());
	run(before_ms);
	drain();
	done = 0;
	printf("during_ns %" PRIu64 "\n", now_ns());
	command(fd, CMD_EVICT);
	run(during_ms);
	command(fd, CMD_STOP);
	printf("end_ns %" PRIu64 "\nrequests %" PRIu64 "\n", now_ns(), done);
	fflush(stdout);
	drain();
	each(true);
	v = ask_victim(fd);
	printf("written_bytes %" PRIu64 "\nread_bytes %" PRIu64 "\n"
	       "seen_bytes %" PRIu64 "\nwrong_bytes %" PRIu64 "\n",
	       written, read_back, v.bytes, wrong + v.wrong);
}

static void finish_with(const char *path)
{
	if (fclose(series))
		die(errno, "%s", path);
	ibv_destroy_qp(qp);
	ibv_dereg_mr(mr);
	dev_close(&dev);
}

int main(int argc, char **argv)
{
	struct hello mine = {.commands = 1};
	int fd;

	if (argc != 5)
		die(0, "usage: peer PORT BEFORE-MS DURING-MS SERIES-FILE");
	alarm(LIFE_S);
	series = fopen(argv[4], "we");
	if (!series)
		die(errno, "%s", argv[4]);
	dev_open(&dev, 2 * DEPTH);
	mr = ibv_reg_mr(dev.pd, aligned_alloc(PAGE, DEPTH * BYTES_MAX),
			DEPTH * BYTES_MAX, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		die(errno, "ibv_reg_mr");
	memset(mr->addr, 0, mr->length);
	fd = tcp_connect((uint16_t)number(argv[1]));
	qp = dev_qp(&dev, &mine);
	must_send(fd, &mine, sizeof(mine));
	must_recv(fd, &victim, sizeof(victim));
	dev_connect(&dev, qp, &mine, &victim);
	place_all();
	phases(fd, number(argv[2]), number(argv[3]));
	finish_with(argv[4]);
	close(fd);
	return 0;
}
