/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* f_overcommit.c: servers of keys and values under one memory limit. Each registers
 * BYTES and does nothing else; its client GETs (READ) and SETs (WRITE) items of a
 * part of it, HOT bytes, RATE times a second, and knows what every item holds. That
 * part moves on every MOVE_MS.
 *
 *   f_overcommit PROCS SERVERS BYTES HOT RATE MOVE_MS MS
 *
 * PROCS: the file of the limited group into which the servers go (cgroup.procs).
 * Who cannot register, or is killed for want of memory, is not started, and has no
 * client. Prints how many were started, a line for each client and slot of time
 * with what it was served, and how long that took.
 */
#include "lib.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
	SERVERS_MAX = 16,
	ITEM = 4 * PAGE,
	WORDS = ITEM / 8,
	AT_ONCE = 8,
	SLOT_MS = 250,
	SLOTS_MAX = 400,
	SET_EVERY = 10, /* operations */
	LOOK_NS = 50 * 1000,
};

/** struct served - What a client has to tell. */
struct served {
	uint64_t slot[SLOTS_MAX];
	uint64_t ops, wrong;
	double p50, p99, longest;
};

static struct {
	const char *procs;
	unsigned servers;
	size_t bytes, hot;
	uint64_t rate, move_ns, ns;
} arg;

static unsigned me; /* which server this is, or whose client */

static uint64_t word_of(uint64_t item, uint32_t version, size_t i)
{
	return ((item << 24 | version) + i) * UINT64_C(0x9e3779b97f4a7c15);
}

static void item_fill(uint64_t *p, uint64_t item, uint32_t version)
{
	for (size_t i = 0; i < WORDS; i++)
		p[i] = word_of(item, version, i);
}

static bool item_is(const uint64_t *p, uint64_t item, uint32_t version)
{
	for (size_t i = 0; i < WORDS; i++)
		if (p[i] != word_of(item, version, i))
			return false;
	return true;
}

static void write_text(const char *file, const char *text)
{
	const int fd = open(file, O_WRONLY | O_CLOEXEC);

	REQUIRE(fd >= 0);
	REQUIRE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* --- a server -------------------------------------------------------------------- */

static void server(int fd)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint8_t *base;

	/* who is not started yet goes first */
	write_text("/proc/self/oom_score_adj", "1000");
	write_text(arg.procs, "0");
	host_open(&h);
	base = host_map(NULL, arg.bytes);
	mr = host_reg(&h, base, arg.bytes);
	for (size_t at = 0; at < arg.bytes; at += ITEM)
		item_fill((uint64_t *)(base + at), at / ITEM, 0);
	write_text("/proc/self/oom_score_adj", "0");
	host_say(fd, status_kib("VmLck"));
	link_open(&l, &h, fd, mr);
	REQUIRE(host_hear(fd) == 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
}

/* --- a client -------------------------------------------------------------------- */

/** struct op - @due_ns: when it should have been posted. */
struct op {
	bool set;
	uint64_t item, due_ns;
	uint32_t version;
};

static struct {
	struct link l;
	struct ibv_mr *mr;
	uint32_t *version; /* of each item */
	struct op op[AT_ONCE];
	uint64_t posted, done, from_ns;
	double us[1 << 20];
	struct served told;
} client;

static uint64_t *buffer_of(uint64_t n)
{
	return (uint64_t *)((uint8_t *)client.mr->addr + n % AT_ONCE * ITEM);
}

/* Clients move one after the other. */
static uint64_t item_at(uint64_t now)
{
	const uint64_t items = arg.bytes / ITEM, hot = arg.hot / ITEM;
	const uint64_t late = arg.move_ns * me / arg.servers;
	const uint64_t moves = (now - client.from_ns + late) / arg.move_ns;

	return (moves * hot + host_random() % hot) % items;
}

static bool item_in_use(uint64_t item)
{
	for (uint64_t n = client.done; n < client.posted; n++)
		if (client.op[n % AT_ONCE].item == item)
			return true;
	return false;
}

static void op_post(uint64_t now, uint64_t due)
{
	const uint64_t n = client.posted;
	struct op *op = &client.op[n % AT_ONCE];
	uint64_t item;

	do
		item = item_at(now);
	while (item_in_use(item));
	*op = (struct op){
		.set = n % SET_EVERY == 0, .item = item, .due_ns = due};
	if (op->set)
		item_fill(buffer_of(n), item, ++client.version[item]);
	op->version = client.version[item];
	link_post(&client.l, op->set ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
		  client.mr, buffer_of(n), ITEM, item * ITEM);
	client.posted++;
}

static void op_done(uint64_t now)
{
	const struct op *op = &client.op[client.done % AT_ONCE];
	const uint64_t slot = (now - client.from_ns) / (SLOT_MS * MS);

	client.told.wrong += !item_is(buffer_of(client.done), op->item,
				      op->version);
	if (slot < SLOTS_MAX)
		client.told.slot[slot]++;
	if (client.told.ops < ARRAY_SIZE(client.us))
		client.us[client.told.ops++] = (double)(now - op->due_ns) / US;
	client.done++;
}

static void client_run(struct host *h)
{
	const uint64_t every = SECOND / arg.rate;
	uint64_t due = client.from_ns, now;

	while ((now = host_now()) < client.from_ns + arg.ns ||
	       client.done < client.posted) {
		unsigned got = host_poll(h, AT_ONCE);

		for (unsigned i = 0; i < got; i++)
			op_done(host_now());
		if (now < client.from_ns + arg.ns && now >= due &&
		    client.posted < client.done + AT_ONCE) {
			op_post(now, due);
			/* what could not be asked for in time is not */
			due = due + every < now ? now : due + every;
		} else if (!got) {
			host_sleep(LOOK_NS);
		}
	}
}

static void client_role(int fd, int server_fd)
{
	struct host h;

	client.version = calloc(arg.bytes / ITEM, sizeof(*client.version));
	REQUIRE(client.version);
	host_open(&h);
	client.mr = host_reg(&h, host_map(NULL, AT_ONCE * ITEM),
			     AT_ONCE * ITEM);
	link_open(&client.l, &h, server_fd, NULL);
	client.from_ns = host_hear(fd);
	client_run(&h);
	REQUIRE(client.told.ops > 0);
	client.told.p50 = median(client.us, client.told.ops);
	client.told.p99 = client.us[(client.told.ops - 1) * 99 / 100];
	client.told.longest = client.us[client.told.ops - 1];
	REQUIRE(send(fd, &client.told, sizeof(client.told), MSG_NOSIGNAL) ==
		sizeof(client.told));
	host_say(server_fd, 0);
	link_close(&client.l);
	host_dereg(client.mr);
	host_close(&h);
}

/* --- all of them ------------------------------------------------------------------ */

/* A child with a socket to us; -1 for @server_fd: a server. */
static int start(int server_fd)
{
	int fd[2];
	pid_t pid;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	fflush(stdout);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid) {
		close(fd[1]);
		return fd[0];
	}
	REQUIRE(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	close(fd[0]);
	if (server_fd < 0)
		server(fd[1]);
	else
		client_role(fd[1], server_fd);
	_exit(0);
}

static void report(const int *fd, unsigned started, uint64_t locked_kib)
{
	static struct served s;

	out_row("started", "%u\t%llu", started, (unsigned long long)locked_kib);
	for (unsigned i = 0; i < started; i++) {
		REQUIRE(recv(fd[i], &s, sizeof(s), MSG_WAITALL) == sizeof(s));
		out_row("client", "%llu\t%llu\t%.1f\t%.1f\t%.1f",
			(unsigned long long)s.ops, (unsigned long long)s.wrong,
			s.p50, s.p99, s.longest);
		for (unsigned k = 0; k < arg.ns / (SLOT_MS * MS); k++)
			out_row("slot", "%u\t%u\t%llu", i, k * SLOT_MS,
				(unsigned long long)s.slot[k]);
	}
}

int main(int argc, char **argv)
{
	int fd[SERVERS_MAX], server_fd, status;
	uint64_t locked_kib = 0, kib;
	unsigned started = 0;

	REQUIRE(argc == 8);
	arg.procs = argv[1];
	arg.servers = (unsigned)number(argv[2]);
	arg.bytes = number(argv[3]) / ITEM * ITEM;
	arg.hot = number(argv[4]);
	arg.rate = number(argv[5]);
	arg.move_ns = number(argv[6]) * MS;
	arg.ns = number(argv[7]) * MS;
	REQUIRE(arg.servers <= SERVERS_MAX && arg.hot >= 2 * AT_ONCE * ITEM);
	REQUIRE(arg.hot <= arg.bytes && arg.ns / MS / SLOT_MS <= SLOTS_MAX);
	host_start();
	for (me = 0; me < arg.servers; me++) {
		server_fd = start(-1);
		if (recv(server_fd, &kib, sizeof(kib), MSG_WAITALL) !=
		    sizeof(kib))
			continue;
		locked_kib += kib;
		fd[started++] = start(server_fd);
	}
	for (unsigned i = 0; i < started; i++)
		host_say(fd[i], host_now());
	report(fd, started, locked_kib);
	while (wait(&status) > 0)
		;
	return 0;
}
