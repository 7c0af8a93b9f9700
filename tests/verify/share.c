// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* share.c: files through which the two copies know of each other. Each file is
 * made by the copy whose role begins its name:
 *
 *   ROLE          struct process
 *   ROLE-mr-KEY   struct image of a region that the peer may reach, and what
 *                 must be in it: as it was when the first QP became ready,
 *                 with all WRITEs and atomics of the peer, applied as posted
 *   ROLE-qp-QPN   the last SENDs of that QP
 */
#include "pool.h"
#include "verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_REGIONS = 256, LOG_ENTRIES = 65536, MEET_SECONDS = 60 };
#define MAX_IMAGE (UINT64_C(1) << 30)

struct process {
	uint64_t arena;
	uint32_t arena_key, is_done;
};

/** struct image - @low to @high: all that the peer wrote lies in there. */
struct image {
	uint64_t addr, length, low, high;
	_Alignas(POOL_PAGE) uint8_t bytes[];
};

struct region {
	uint32_t key;
	uint64_t addr, length;
	struct image *image;
};

static struct region mine[MAX_REGIONS], peers[MAX_REGIONS];
static size_t num_mine, num_peers;
static struct process *self, *other;
static struct pool arena_pool;
static struct ibv_mr *arena;
static bool is_published;

bool share_on(void)
{
	return getenv("VERIFY_DIR") && getenv("VERIFY_ROLE");
}

const char *share_role(void)
{
	return getenv("VERIFY_ROLE");
}

const char *share_peer(void)
{
	return strcmp(share_role(), "server") == 0 ? "client" : "server";
}

/* Maps a file: one of ours of so many bytes, or, with 0, one of the peer's. */
static void *map_file(const char *role, const char *rest, uint64_t bytes)
{
	struct stat st = {.st_size = (off_t)bytes};
	void *memory = MAP_FAILED;
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s%s", getenv("VERIFY_DIR"), role,
		 rest);
	fd = open(path, O_RDWR | O_CLOEXEC | (bytes ? O_CREAT | O_EXCL : 0),
		  0666);
	if (fd >= 0 &&
	    (bytes ? ftruncate(fd, st.st_size) : fstat(fd, &st)) == 0)
		memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (memory != MAP_FAILED)
		return memory;
	if (bytes)
		report_problem("cannot make a shared file");
	return NULL;
}

/* --- regions ---------------------------------------------------------------- */

static void publish(struct region *r)
{
	char name[32];

	snprintf(name, sizeof(name), "-mr-%x", r->key);
	r->image = map_file(share_role(), name, sizeof(*r->image) + r->length);
	if (!r->image)
		return;
	r->image->addr = r->addr;
	r->image->length = r->length;
	r->image->low = r->length;
	memcpy(r->image->bytes, (void *)(uintptr_t)r->addr, r->length);
}

/** share_region() - A region of this program, that the peer may reach. */
void share_region(struct ibv_mr *mr, int access)
{
	const int remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			   IBV_ACCESS_REMOTE_ATOMIC;

	if (!(access & remote) || mr->length > MAX_IMAGE)
		return;
	if (num_mine == MAX_REGIONS) {
		report_problem("more regions than the verifier can follow");
		return;
	}
	mine[num_mine] = (struct region){.key = mr->rkey,
					 .addr = (uintptr_t)mr->addr,
					 .length = mr->length};
	if (is_published)
		publish(&mine[num_mine]);
	num_mine++;
}

static void make_arena(struct ibv_pd *pd)
{
	void *memory = evict_memory(POOL_BYTES);
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	if (memory == MAP_FAILED)
		return;
	arena = real_reg_mr(pd, memory, POOL_BYTES, access);
	if (!arena) {
		report_problem("no memory for the arena");
		return;
	}
	share_region(arena, access);
	self->arena = (uintptr_t)memory;
	self->arena_key = arena->rkey;
}

/** share_publish() - What the program has put in its regions is what the peer
 * will find in them. Before the program can tell the peer that it is ready.
 */
void share_publish(struct ibv_pd *pd)
{
	if (is_published)
		return;
	is_published = true;
	self = map_file(share_role(), "", sizeof(*self));
	for (size_t i = 0; i < num_mine; i++)
		publish(&mine[i]);
	if (self && num_mine > 0)
		make_arena(pd);
}

static struct region *peers_region(uint32_t key)
{
	char name[32];

	for (size_t i = 0; i < num_peers; i++)
		if (peers[i].key == key)
			return &peers[i];
	if (num_peers == MAX_REGIONS)
		return NULL;
	snprintf(name, sizeof(name), "-mr-%x", key);
	peers[num_peers] = (struct region){
		.key = key, .image = map_file(share_peer(), name, 0)};
	return peers[num_peers].image ? &peers[num_peers++] : NULL;
}

/** share_image() - What is at such a place of the peer.
 * Return: NULL where the peer has no such place, or none that we know of.
 */
uint8_t *share_image(uint32_t rkey, uint64_t remote, uint32_t length)
{
	const struct region *r = peers_region(rkey);

	if (!r || remote < r->image->addr || length > r->image->length ||
	    remote - r->image->addr > r->image->length - length) {
		report_problem("to a place where the peer has no region");
		return NULL;
	}
	return r->image->bytes + (remote - r->image->addr);
}

/** share_written() - share_image() was written to. */
void share_written(uint32_t rkey, uint64_t remote, uint32_t length)
{
	struct image *image = peers_region(rkey)->image;
	const uint64_t first = remote - image->addr;

	if (first < image->low)
		image->low = first;
	if (first + length > image->high)
		image->high = first + length;
}

/** share_arrived() - Has what the peer wrote last come? Its last byte comes last. */
bool share_arrived(void)
{
	for (size_t i = 0; i < num_mine; i++) {
		const struct region *r = &mine[i];
		const struct image *image = r->image;
		const uint8_t *memory = (void *)(uintptr_t)r->addr;

		if (image && image->low < image->high &&
		    __atomic_load_n(&memory[image->high - 1],
				    __ATOMIC_ACQUIRE) !=
			    image->bytes[image->high - 1])
			return false;
	}
	return true;
}

/** share_compare() - Is in our memory what the peer wrote there? */
void share_compare(void)
{
	for (size_t i = 0; i < num_mine; i++) {
		const struct region *r = &mine[i];
		const struct image *image = r->image;

		if (!image || image->low >= image->high)
			continue;
		report_wrong("what the peer wrote",
			     (void *)(uintptr_t)(r->addr + image->low),
			     image->bytes + image->low,
			     image->high - image->low, r->addr + image->low);
		report_checked(KIND_WRITE, image->high - image->low);
	}
}

/* --- the arena: where WRITEs do not cover each other --------------------------- */

static bool has_arena(void)
{
	if (!other) {
		other = map_file(share_peer(), "", 0);
		arena_pool.free = POOL_PAGES;
	}
	return other && other->arena;
}

/** share_close() - @pd is about to go, and our region with it. */
void share_close(struct ibv_pd *pd)
{
	if (arena && arena->pd == pd) {
		real_dereg_mr(arena);
		arena = NULL;
	}
}

/** share_arena() - Sends a WRITE there, if there is room. */
void share_arena(struct request *req)
{
	int64_t offset;

	if (!has_arena())
		return;
	offset = pool_take(&arena_pool, req->length, req->remote);
	if (offset == POOL_NONE)
		return;
	req->arena_box = true;
	req->remote = other->arena + (uint64_t)offset;
	req->rkey = other->arena_key;
}

void share_arena_done(const struct request *req)
{
	if (req->arena_box)
		pool_give(&arena_pool, req->remote - other->arena, req->length);
}

/* --- SENDs ------------------------------------------------------------------ */

static void qp_file(char *name, size_t size, uint32_t qpn)
{
	snprintf(name, size, "-qp-%x", qpn);
}

/** share_sent() - The next SEND of @t will be this. */
void share_sent(struct track *t, const void *data, uint32_t length,
		bool pattern)
{
	char name[32];
	struct sent *s;

	if (!t->mine) {
		qp_file(name, sizeof(name), t->qpn);
		t->mine = map_file(share_role(), name,
				   sizeof(*t->mine) * LOG_ENTRIES);
	}
	if (!t->mine)
		return;
	s = &t->mine[t->sent % LOG_ENTRIES];
	s->sum = pattern_sum(data, length);
	s->length = length;
	s->pattern = pattern;
	__atomic_store_n(&s->number, t->sent + 1, __ATOMIC_RELEASE);
}

/** share_next_sent() - What the peer says of the next SEND to @t.
 * Return: NULL if it did not send so many.
 */
const struct sent *share_next_sent(struct track *t)
{
	const struct sent *s;
	char name[32];

	if (!t->peers) {
		qp_file(name, sizeof(name), t->peer_qpn);
		t->peers = map_file(share_peer(), name, 0);
	}
	if (!t->peers)
		return NULL;
	s = &t->peers[t->received++ % LOG_ENTRIES];
	return __atomic_load_n(&s->number, __ATOMIC_ACQUIRE) == t->received
		       ? s
		       : NULL;
}

/* --- the end ---------------------------------------------------------------- */

/** share_done() - Nothing of ours is under way any more. */
void share_done(void)
{
	if (self)
		__atomic_store_n(&self->is_done, 1, __ATOMIC_RELEASE);
}

/** share_meet() - Waits until the peer says so too. */
void share_meet(void)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	const time_t deadline = time(NULL) + MEET_SECONDS;

	if (!self)
		return;
	share_done();
	has_arena();
	while (!other || !__atomic_load_n(&other->is_done, __ATOMIC_ACQUIRE)) {
		if (time(NULL) > deadline) {
			report_problem("the peer did not come to its end");
			return;
		}
		nanosleep(&nap, NULL);
		has_arena();
	}
}
