/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* i_move.c: what a peer sees of a region whose memory is moved. One process has
 * the region; another WRITEs 8 bytes to it without pause.
 *
 *   i_move KIND BYTES ROUNDS
 *
 * KIND: control (left alone), nothing (suspended and resumed), update (copied by the program to other
 * memory, nopin_mr_update()), recreate, file, node (what `nopin move` does, from
 * below). Prints of each round: "round", us that the move alone took, us that the
 * longest WRITE took that was on its way while the region was suspended, us that a
 * WRITE takes else (p50), us that work waited as the NIC says.
 */
#include "lib.h"

#include "../tools/nopin/nopin.h"
#include "i_move.h"

#include <nopin.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { SAMPLES = 1 << 16, LINE = 512, PATIENCE_MS = 60 * 1000 };

static const char *kind;
static size_t bytes;
static unsigned rounds;

/** struct moved - @from, @to: something was suspended in between. @us: the move
 * alone. @pause: as the NIC says, of what is moved from below. @refused: nothing was
 * moved, and nothing can be on this host. */
struct moved {
	uint64_t from, to;
	double us, pause;
	bool refused;
};

static struct {
	struct host h;
	struct link link;
	struct ibv_mr *mr;
} me;

/* --- moving --------------------------------------------------------------------- */

static uint8_t *left; /* memory that was moved from */

static double by_update(void)
{
	uint8_t *from = me.mr->addr, *to = host_map(NULL, bytes);
	uint64_t began;
	double took;

	REQUIRE(nopin_mr_suspend(me.mr, 10 * MS) == 0);
	began = host_now();
	memcpy(to, from, bytes);
	REQUIRE(nopin_mr_update(me.mr, to, bytes) == 0);
	took = (double)(host_now() - began) / US;
	REQUIRE(nopin_mr_resume(me.mr) == 0);
	left = from;
	return took;
}

/* What `nopin move` asks; without the start of a process, which would take the CPU
 * from the peer. */
static void from_below(struct moved *m)
{
	char request[LINE], here[LINE / 2], why[ASK_WHY_MAX], *text;
	size_t len;

	REQUIRE(getcwd(here, sizeof(here)));
	snprintf(request, sizeof(request), "move 0x%x %s", me.mr->rkey,
		 strcmp(kind, "recreate") == 0 ? "recreate"
		 : strcmp(kind, "node") == 0   ? "node 0"
					       : "file ");
	if (strcmp(kind, "file") == 0)
		snprintf(request + strlen(request),
			 sizeof(request) - strlen(request), "%s/i_move.tmp",
			 here);
	text = ask_nic(getpid(), request, PATIENCE_MS, &len, why);
	/* We may not end here: a WRITE of the peer is on its way. */
	m->refused = !text && no_userfaultfd(why);
	if (m->refused)
		return;
	if (!text)
		fprintf(stderr, "%s\n", why);
	REQUIRE(text);
	REQUIRE(sscanf(strstr(text, "move_us: "), "move_us: %lf pause_us: %lf",
		       &m->us, &m->pause) == 2);
	free(text);
	unlink("i_move.tmp");
}

static struct moved move(void)
{
	struct moved m = {.from = host_now()};

	if (strcmp(kind, "control") == 0) {
		host_sleep(MS);
	} else if (strcmp(kind, "update") == 0) {
		m.us = by_update();
	} else if (strcmp(kind, "nothing") != 0) {
		from_below(&m);
	} else {
		REQUIRE(nopin_mr_suspend(me.mr, 10 * MS) == 0);
		REQUIRE(nopin_mr_resume(me.mr) == 0);
	}
	m.to = host_now();
	return m;
}

/* What is in a file cannot be moved to one again. */
static void restore(void)
{
	if (left)
		munmap(left, bytes);
	left = NULL;
	if (strcmp(kind, "file") != 0)
		return;
	REQUIRE(nopin_mr_suspend(me.mr, 10 * MS) == 0);
	REQUIRE(mmap(me.mr->addr, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		     0) == me.mr->addr);
	memset(me.mr->addr, 1, bytes);
	REQUIRE(nopin_mr_resume(me.mr) == 0);
}

static void target(int fd)
{
	uint8_t *buf = host_map(NULL, bytes);
	bool refused = false;

	memset(buf, 1, bytes);
	host_open(&me.h);
	me.mr = host_reg(&me.h, buf, bytes);
	link_open(&me.link, &me.h, fd, me.mr);
	for (unsigned i = 0; i < rounds && !refused; i++) {
		struct moved m;

		host_hear(fd);
		host_sleep(20 * MS);
		m = move();
		host_sleep(20 * MS);
		REQUIRE(send(fd, &m, sizeof(m), 0) == sizeof(m));
		refused = m.refused;
		restore();
		host_say(fd, 0);
	}
	host_hear(fd);
	link_close(&me.link);
	host_dereg(me.mr);
	host_close(&me.h);
}

/* --- looking on ------------------------------------------------------------------ */

static bool said(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Return: false if the move was refused. */
static bool one_round(int fd)
{
	static uint64_t began[SAMPLES], ended[SAMPLES];
	static double took[SAMPLES];
	double longest = 0;
	struct moved m;
	size_t n = 0;

	host_say(fd, 0);
	for (; !said(fd); n++) {
		REQUIRE(n < SAMPLES);
		began[n] = host_now();
		link_post(&me.link, IBV_WR_RDMA_WRITE, NULL, &n, 8, 0);
		host_wait(&me.h, 1);
		ended[n] = host_now();
		took[n] = (double)(ended[n] - began[n]) / US;
	}
	REQUIRE(recv(fd, &m, sizeof(m), MSG_WAITALL) == sizeof(m));
	host_hear(fd); /* it is ready for the next */
	if (m.refused)
		return false;
	for (size_t i = 0; i < n; i++)
		if (ended[i] > m.from && began[i] < m.to && took[i] > longest)
			longest = took[i];
	out_row("round", "%.1f\t%.1f\t%.1f\t%.1f", m.us, longest,
		median(took, n), m.pause);
	return true;
}

int main(int argc, char **argv)
{
	bool refused = false;
	int fd;

	if (argc != 4) {
		fprintf(stderr, "%s KIND BYTES ROUNDS\n", argv[0]);
		return 2;
	}
	kind = argv[1];
	bytes = number(argv[2]);
	rounds = (unsigned)number(argv[3]);
	host_start();
	fd = host_fork(target);
	host_open(&me.h);
	link_open(&me.link, &me.h, fd, NULL);
	for (unsigned i = 0; i < rounds && !refused; i++)
		refused = !one_round(fd);
	host_say(fd, 1);
	link_close(&me.link);
	host_close(&me.h);
	out_counters("writer");
	host_join();
	if (refused)
		host_skip(NO_USERFAULTFD);
	return 0;
}
