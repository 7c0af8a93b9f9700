/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* victim.c: owns much more memory than the host has, registers all of it, and
 * while peers WRITE and READ it takes the pages away. An ordinary verbs server.
 *
 *   victim DISK-FILE SLOW-BYTES SLOW-US ANON-BYTES
 *
 * DISK-FILE is mapped whole. Prints lines "NAME VALUE" and, when it can be
 * connected to, "port N". It serves one peer, whose commands come over TCP, and
 * one probe, and ends when both have.
 */
#include "demo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CLIENTS = 2, PAUSE_MS = 25 };

/**
 * struct area - Memory with one backing; @fd: -1 if anonymous
 * @rounds: how often all of it was evicted
 */
struct area {
	uint8_t *mem;
	uint64_t bytes, rounds;
	struct ibv_mr *mr;
	pthread_t evictor;
	int fd;
};

static struct area areas[AREAS];
static struct dev dev;
static atomic_bool evicting, ending;

/* --- memory ------------------------------------------------------------------ */

static void map_disk(struct area *a, const char *path)
{
	struct stat st;

	a->fd = open(path, O_RDWR | O_CLOEXEC);
	if (a->fd < 0 || fstat(a->fd, &st))
		die(errno, "%s", path);
	a->bytes = (uint64_t)st.st_size;
	a->mem = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd,
		      0);
	if (a->mem == MAP_FAILED)
		die(errno, "mmap of %s", path);
	/* One fault, one page: no readahead hides what a fault costs. */
	madvise(a->mem, a->bytes, MADV_RANDOM);
}

/* Not every kernel, and not every container, lets us have this. */
static void map_slow(struct area *a, uint64_t bytes, uint64_t delay_us)
{
	const char *refused = NULL;

	a->fd = -1;
	a->mem = slow_map(bytes, delay_us, &refused);
	if (a->mem)
		a->bytes = bytes;
	else
		printf("no_slow %s: %s\n", refused, strerror(errno));
}

/* Hosts that count every byte that could be touched give less. */
static void map_anon(struct area *a, uint64_t bytes)
{
	a->fd = -1;
	for (a->bytes = bytes; a->bytes >= PAGE; a->bytes /= 2) {
		a->mem = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			      0);
		if (a->mem != MAP_FAILED)
			return;
	}
	die(errno, "mmap of %" PRIu64 " bytes", bytes);
}

static struct ibv_mr *reg(void *mem, size_t bytes)
{
	return ibv_reg_mr(dev.pd, mem, bytes,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ);
}

/* Return: a line of /proc/self/status in KiB. */
static unsigned long status_kib(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	const size_t len = strlen(name);
	unsigned long kib = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':')
			kib = strtoul(line + len + 1, NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

__attribute__((noreturn)) static void refused(int err, uint64_t took_ns)
{
	printf("refused %s\nreg_ns %" PRIu64 "\nlocked_kib %lu\n",
	       strerrorname_np(err), took_ns, status_kib("VmLck"));
	exit(1);
}

static void register_all(void)
{
	uint64_t began = now_ns(), bytes = 0;

	for (int i = 0; i < AREAS; i++) {
		struct area *a = &areas[i];

		if (!a->bytes)
			continue;
		bytes += a->bytes;
		a->mr = reg(a->mem, a->bytes);
		if (!a->mr)
			refused(errno, now_ns() - began);
	}
	printf("reg_ns %" PRIu64 "\nregistered_bytes %" PRIu64 "\n",
	       now_ns() - began, bytes);
}

/* --- eviction ---------------------------------------------------------------- */

/* Takes all pages of shared memory from this process and, if it is a file on
 * disk, from the page cache. What is dirty is written first; what is touched
 * meanwhile stays until next time.
 */
static void evict(const struct area *a)
{
	madvise(a->mem, a->bytes, MADV_DONTNEED);
	if (a->fd < 0)
		return;
	if (fdatasync(a->fd) < 0)
		die(errno, "fdatasync");
	posix_fadvise(a->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void *evictor(void *arg)
{
	struct area *a = arg;

	while (!ending) {
		if (evicting) {
			evict(a);
			a->rounds++;
		}
		sleep_until(now_ns() + (uint64_t)PAUSE_MS * MS);
	}
	return NULL;
}

static void evictors_start(void)
{
	for (int i = 0; i < AREAS; i++) {
		struct area *a = &areas[i];

		if (!a->bytes || i == AREA_ANON)
			continue;
		if (pthread_create(&a->evictor, NULL, evictor, a))
			die(EAGAIN, "pthread_create");
	}
}

static void evictors_stop(void)
{
	ending = true;
	for (int i = 0; i < AREAS; i++)
		if (areas[i].evictor)
			pthread_join(areas[i].evictor, NULL);
}

/* --- serving ----------------------------------------------------------------- */

/* The program's own loads see what the peer wrote. */
static struct verdict check(const struct slot *slots, uint32_t n)
{
	struct verdict v = {0};

	for (uint32_t i = 0; i < n; i++) {
		const struct slot *s = &slots[i];

		if (s->area >= AREAS || s->bytes > areas[s->area].bytes ||
		    s->offset > areas[s->area].bytes - s->bytes)
			die(0, "a slot outside of its area");
		v.bytes += s->bytes;
		v.wrong += wrong_bytes(s, areas[s->area].mem + s->offset);
	}
	return v;
}

static void serve_check(int peer)
{
	struct slot *slots;
	struct verdict v;
	uint32_t n;

	must_recv(peer, &n, sizeof(n));
	slots = calloc(n + 1u, sizeof(*slots));
	if (!slots)
		die(ENOMEM, "%u slots", n);
	must_recv(peer, slots, n * sizeof(*slots));
	v = check(slots, n);
	free(slots);
	must_send(peer, &v, sizeof(v));
}

static void serve(int peer)
{
	uint8_t cmd;

	while (recv(peer, &cmd, 1, 0) == 1)
		switch ((enum command)cmd) {
		case CMD_EVICT:
		case CMD_STOP:
			evicting = cmd == CMD_EVICT;
			break;
		case CMD_CHECK:
			serve_check(peer);
			break;
		case CMD_NONE:
		default:
			die(0, "no such command: %u", cmd);
		}
}

static struct window window(const struct ibv_mr *mr)
{
	if (!mr)
		return (struct window){0};
	return (struct window){.va = (uintptr_t)mr->addr,
			       .bytes = mr->length,
			       .rkey = mr->rkey};
}

/* A client closes its socket when it needs nothing more of the NIC. */
static void wait_for_end(int client)
{
	char byte;

	while (recv(client, &byte, 1, 0) > 0)
		;
}

/* Return: whether this client gives commands. */
static bool welcome(int client, const struct ibv_mr *page, struct ibv_qp **qp)
{
	struct hello mine = {.page = window(page)}, theirs;

	*qp = dev_qp(&dev, &mine);
	for (int i = 0; i < AREAS; i++)
		mine.area[i] = window(areas[i].mr);
	must_recv(client, &theirs, sizeof(theirs));
	dev_connect(&dev, *qp, &mine, &theirs);
	must_send(client, &mine, sizeof(mine));
	return theirs.commands;
}

static void report(void)
{
	static const char *const names[AREAS] = {"disk", "slow", "anon"};
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	printf("locked_kib %lu\nresident_kib %lu\nmajor_faults %ld\n",
	       status_kib("VmLck"), status_kib("VmHWM"), use.ru_majflt);
	for (int i = 0; i < AREAS; i++)
		printf("rounds_%s %" PRIu64 "\n", names[i], areas[i].rounds);
}

int main(int argc, char **argv)
{
	int client[CLIENTS], listener, peer = -1;
	struct ibv_qp *qp[CLIENTS];
	struct ibv_mr *page;
	uint16_t port;

	if (argc != 5)
		die(0, "usage: victim DISK-FILE SLOW-BYTES SLOW-US ANON-BYTES");
	alarm(LIFE_S);
	map_disk(&areas[AREA_DISK], argv[1]);
	map_slow(&areas[AREA_SLOW], number(argv[2]), number(argv[3]));
	map_anon(&areas[AREA_ANON], number(argv[4]));
	dev_open(&dev, 16);
	register_all();
	page = reg(aligned_alloc(PAGE, PAGE), PAGE);
	if (!page)
		die(errno, "ibv_reg_mr of a page");
	memset(page->addr, 0, PAGE);
	listener = tcp_listen(&port);
	printf("port %u\n", port);
	fflush(stdout);
	for (int i = 0; i < CLIENTS; i++) {
		client[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (client[i] < 0)
			die(errno, "accept");
		if (welcome(client[i], page, &qp[i]))
			peer = client[i];
	}
	evictors_start();
	serve(peer);
	evictors_stop();
	for (int i = 0; i < CLIENTS; i++)
		wait_for_end(client[i]);
	report();
	for (int i = 0; i < CLIENTS; i++)
		ibv_destroy_qp(qp[i]);
	for (int i = 0; i < AREAS; i++)
		if (areas[i].mr)
			ibv_dereg_mr(areas[i].mr);
	ibv_dereg_mr(page);
	dev_close(&dev);
	return 0;
}
