/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* strategies.c: one test of all data for every strategy. A peer WRITEs, READs,
 * SENDs and adds to memory of each kind, of a target and of its own, while all of
 * it is evicted:
 *
 *   kind	what it is			how it goes
 *   ANON	anonymous memory		swapped out, where there is swap
 *   SHARED	a file				from the page table
 *   COLD	anonymous, never touched	each page is met once
 *
 * It knows what all of it holds. Every byte is looked at, every atomic and SEND
 * happens once (I5), no legal access is refused (I7), and what the NICs counted
 * adds up (I6).
 *
 *   strategies STRATEGY ROUNDS [swap]
 */
#include "host.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum kind { ANON, SHARED, COLD, KINDS };
enum {
	LANES = 8,
	LANE = 8 * PAGE, /* of each window, for one operation at a time */
	WINDOW = LANES * LANE,
	MOST = 3 * PAGE, /* of a message */
	CELL = WINDOW, /* where in ANON the atomics are */
	RECVS = 16,
	EVICT_MS = 2,
	/* What was touched is believed to be there so long. */
	FORGET_MS = 12,
	SWAP_BYTES = 64 << 20,
};

/**
 * struct strategy - @counter: what it counts, at one end at least; @swapped: where
 * there is swap. With swap any fault may wait, so none is taken inline; that it
 * slept block knows only where a page needs I/O.
 */
static const struct strategy {
	const char *name, *counter, *swapped;
} strategies[] = {
	{"adaptive", "faults", "faults"},
	{"park", "fault_park", "fault_park"},
	{"inline", "fault_inline", "fault_redirect"},
	{"redirect", "fault_redirect", "fault_redirect"},
	{"resume", "fault_resume", "fault_resume"},
	{"rnr", "fault_rnr", "fault_rnr"},
	{"overwrite", "fault_overwrite", "fault_overwrite"},
	{"replay", "fault_replay", "fault_replay"},
	{"backup", "fault_redirect", "fault_redirect"},
	{"drop", "fault_drop", "fault_drop"},
	{"block", "rx_packets", "fault_block"},
};

static struct {
	const struct strategy *strategy;
	uint64_t rounds;
	bool swap;
} arg;

static bool has_swap(void)
{
	FILE *f = fopen("/proc/swaps", "re");
	char line[256];
	int lines = 0;

	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		lines++;
	fclose(f);
	return lines > 1;
}

static const char *counter(void)
{
	return has_swap() ? arg.strategy->swapped : arg.strategy->counter;
}

/* --- memory ------------------------------------------------------------------------ */

/** struct area - A window of LANES lanes; COLD has one for each round. */
struct area {
	enum kind kind;
	uint8_t *base;
	size_t bytes;
	struct ibv_mr *mr;
};

static struct area areas[KINDS];
static bool stop;
static pthread_t evictor;

static void area_open(struct area *a, enum kind kind)
{
	int fd = -1;

	a->kind = kind;
	a->bytes = kind == COLD ? arg.rounds * WINDOW : WINDOW + PAGE;
	if (kind != SHARED) {
		a->base = host_map(NULL, a->bytes);
		return;
	}
	fd = memfd_create("area", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && ftruncate(fd, (off_t)a->bytes) == 0);
	a->base = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       0);
	REQUIRE(a->base != MAP_FAILED);
	close(fd);
}

static void *evict_all(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		const struct area *s = &areas[SHARED], *a = &areas[ANON];

		REQUIRE(madvise(s->base, s->bytes, MADV_DONTNEED) == 0);
		/* not where there is no swap, nor on an old kernel */
		(void)madvise(a->base, a->bytes, MADV_PAGEOUT);
		(void)madvise(s->base, s->bytes, MADV_PAGEOUT);
		host_sleep(EVICT_MS * MS);
	}
	return unused;
}

static void areas_open(struct host *h)
{
	host_open(h);
	for (int k = 0; k < KINDS; k++) {
		area_open(&areas[k], (enum kind)k);
		areas[k].mr = host_reg(h, areas[k].base, areas[k].bytes);
	}
	REQUIRE(pthread_create(&evictor, NULL, evict_all, NULL) == 0);
}

/* Slots of the redirect pool, as the environment says. */
static uint64_t pool_slots(void)
{
	const char *pool = getenv("NOPIN_POOL");

	return pool && !strcmp(pool, "64K") ? 16 : 4096;
}

/* What the NIC counted adds up, its bounds held (I4), and nobody lost patience for
 * a page (I2) but where it is dropped.
 */
static void areas_close(struct host *h)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(evictor, NULL);
	for (int k = 0; k < KINDS; k++)
		host_dereg(areas[k].mr);
	host_close(h);
	REQUIRE_EQ(host_counter("tickets"),
		   host_counter("tickets_answered") +
			   host_counter("tickets_unasked"));
	REQUIRE(!host_counter("tickets_answered") ||
		host_counter("service_ns"));
	REQUIRE_LE(host_counter("slots_used_max"), pool_slots());
	if (strcmp(arg.strategy->name, "drop"))
		REQUIRE_EQ(host_counter("timeouts"), 0);
}

/* Where the window of a round begins. */
static size_t window_of(enum kind kind, uint64_t round)
{
	return kind == COLD ? round * WINDOW : 0;
}

/* --- the peer ------------------------------------------------------------------------ */

/** struct lane - A READ that is under way: into COLD memory of ours, for all to be
 * compared with @want.
 */
struct lane {
	uint32_t len;
	uint8_t *to;
	uint8_t want[MOST];
};

static struct {
	struct host h;
	struct link l;
	uint64_t va[KINDS];
	uint32_t rkey[KINDS];
	uint8_t *image[KINDS]; /* what the target's areas hold */
	struct lane lane[LANES];
	uint64_t added;
} peer;

static void post(enum ibv_wr_opcode op, enum kind to, size_t at, enum kind from,
		 const uint8_t *mine, uint32_t len)
{
	peer.l.va = peer.va[to];
	peer.l.rkey = peer.rkey[to];
	link_post(&peer.l, op, areas[from].mr, mine, len, at);
}

static uint32_t some(uint32_t most)
{
	return 1 + (uint32_t)(host_random() % most);
}

/* A WRITE into the lane, sometimes of whole pages. */
static void lane_write(unsigned i, enum kind to, uint64_t round)
{
	const enum kind from = (enum kind)(host_random() % KINDS);
	uint32_t len = some(MOST), skip = some(LANE - MOST);
	const size_t at = window_of(to, round) + i * LANE;
	uint8_t *mine = areas[from].base + window_of(from, round) + i * LANE;

	if (host_random() % 2) {
		skip &= ~(PAGE - 1u);
		len = 2 * PAGE;
	}
	host_fill(mine, len, host_random());
	memcpy(peer.image[to] + at + skip, mine, len);
	post(IBV_WR_RDMA_WRITE, to, at + skip, from, mine, len);
}

/* A READ from it, into the other half of a lane of ours. */
static void lane_read(unsigned i, enum kind from, uint64_t round)
{
	const enum kind to = (enum kind)(host_random() % KINDS);
	struct lane *lane = &peer.lane[i];
	const size_t at = window_of(from, round) + i * LANE + some(LANE - MOST);

	lane->len = host_random() % 2 ? 2 * PAGE : some(MOST);
	lane->to = areas[to].base + window_of(to, round) + i * LANE + 4 * PAGE;
	memcpy(lane->want, peer.image[from] + at, lane->len);
	post(IBV_WR_RDMA_READ, from, at, to, lane->to, lane->len);
}

static void lanes_check(void)
{
	for (unsigned i = 0; i < LANES; i++)
		REQUIRE(!memcmp(peer.lane[i].to, peer.lane[i].want,
				peer.lane[i].len));
}

static void add_one(void)
{
	uint64_t *was = (uint64_t *)(areas[SHARED].base + WINDOW);
	struct ibv_sge sge = {(uintptr_t)was, sizeof(*was),
			      areas[SHARED].mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		      .wr.atomic = {.remote_addr = peer.va[ANON] + CELL,
				    .compare_add = 1,
				    .rkey = peer.rkey[ANON]}};

	REQUIRE(ibv_post_send(peer.l.qp, &wr, &bad) == 0);
	host_wait(&peer.h, 1);
	REQUIRE_EQ(*was, peer.added);
	peer.added++;
}

static void send_one(uint64_t round)
{
	const enum kind from = (enum kind)(round % KINDS);
	uint8_t *mine = areas[from].base + window_of(from, round) + 2 * PAGE;

	host_fill(mine, MOST, round);
	post(IBV_WR_SEND, ANON, 0, from, mine, MOST);
	host_wait(&peer.h, 1);
}

static void run_round(uint64_t round)
{
	const enum kind kind = (enum kind)(round % KINDS);

	for (unsigned i = 0; i < LANES; i++) {
		lane_write(i, kind, round);
		lane_read(i, kind, round);
	}
	host_wait(&peer.h, 2 * LANES);
	lanes_check();
	add_one();
	send_one(round);
	if (round % 4 == 0)
		host_sleep(FORGET_MS * MS);
}

static void requester(int fd)
{
	areas_open(&peer.h);
	link_open(&peer.l, &peer.h, fd, NULL);
	for (int k = 0; k < KINDS; k++) {
		peer.va[k] = host_hear(fd);
		peer.rkey[k] = (uint32_t)host_hear(fd);
		peer.image[k] = host_map(NULL, areas[k].bytes);
	}
	for (uint64_t round = 0; round < arg.rounds; round++)
		run_round(round);
	host_say(fd, peer.added);
	for (int k = 0; k < KINDS; k++)
		for (size_t at = 0; at < areas[k].bytes; at += PAGE)
			REQUIRE(send(fd, peer.image[k] + at, PAGE, 0) == PAGE);
	link_close(&peer.l);
	areas_close(&peer.h);
	host_say(fd, host_counter(counter()));
}

/* --- the target ------------------------------------------------------------------------ */

/* Each receive has a place of its own, never touched. */
static uint8_t *recv_place(uint8_t *recvs, uint64_t n)
{
	return recvs + n * (MOST + PAGE);
}

static void receive_all(struct host *h, struct link *l)
{
	const size_t bytes = (arg.rounds + RECVS) * (MOST + PAGE);
	uint8_t *recvs = host_map(NULL, bytes);
	struct ibv_mr *mr = host_reg(h, recvs, bytes);
	uint64_t n;

	for (n = 0; n < RECVS; n++)
		link_recv(l, mr, recv_place(recvs, n), MOST);
	for (uint64_t got = 0; got < arg.rounds; got++, n++) {
		host_wait(h, 1);
		host_check(recv_place(recvs, got), MOST, got);
		if (n < arg.rounds)
			link_recv(l, mr, recv_place(recvs, n), MOST);
	}
	host_dereg(mr);
}

/* Is all memory what the peer says that it is? */
static void compare(int fd)
{
	const uint64_t *cell = (uint64_t *)(areas[ANON].base + CELL);
	uint8_t want[PAGE];

	REQUIRE_EQ(*cell, host_hear(fd));
	REQUIRE_EQ(*cell, arg.rounds);
	for (int k = 0; k < KINDS; k++)
		for (size_t at = 0; at < areas[k].bytes; at += PAGE) {
			REQUIRE(recv(fd, want, PAGE, MSG_WAITALL) == PAGE);
			if (k == ANON && at == CELL)
				continue; /* the atomics' */
			REQUIRE(!memcmp(areas[k].base + at, want, PAGE));
		}
}

static void test(void)
{
	const int fd = host_fork(requester);
	uint64_t counted;
	struct host h;
	struct link l;

	areas_open(&h);
	link_open(&l, &h, fd, NULL);
	for (int k = 0; k < KINDS; k++) {
		host_say(fd, (uintptr_t)areas[k].base);
		host_say(fd, areas[k].mr->rkey);
	}
	receive_all(&h, &l);
	compare(fd);
	link_close(&l);
	areas_close(&h);
	counted = host_counter(counter()) + host_hear(fd);
	printf("%s: %llu\n", counter(), (unsigned long long)counted);
	REQUIRE_LE(1, counted);
	host_join();
}

int main(int argc, char **argv)
{
	REQUIRE(argc >= 3);
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++)
		if (!strcmp(strategies[i].name, argv[1]))
			arg.strategy = &strategies[i];
	REQUIRE(arg.strategy);
	arg.rounds = strtoull(argv[2], NULL, 0);
	arg.swap = argc > 3;
	host_start();
	setenv("NOPIN_FAULT", arg.strategy->name, 1);
	if (arg.swap)
		swap_run(SWAP_BYTES, test);
	else
		test();
	return 0;
}
