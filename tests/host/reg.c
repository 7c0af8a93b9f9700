/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reg.c: what a registration mode locks, as an ordinary user who may lock little:
 * VmLck says so after every call, and ibv_reg_mr() answers ENOMEM where a card's
 * would. A WRITE arrives in each mode, a child changes nothing, and nothing is
 * left locked.
 *
 *   reg MODE		a value of NOPIN_REG
 */
#include "host.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { BYTES = 64 * PAGE, LIMIT = 256 * PAGE, TOO_MUCH = 200 * PAGE };

/**
 * struct mode
 * @locks:	a region's pages while it is registered; @keeps: and then, too
 * @touches:	brings its pages in
 * @counter:	that is not 0 at the target after a WRITE; or NULL
 */
static const struct mode {
	const char *name;
	bool locks, keeps, touches;
	const char *counter;
} modes[] =
	{
		{"ondemand", false, false, false, NULL},
		{"pin", true, false, true, "pin_bytes_max"},
		{"pin-cache", true, true, true, "pin_misses"},
		{"pin-op", false, false, false, "pin_moves"},
		{"prefault", false, false, true, "prefault_pages"},
		{"copy", false, false, false, NULL},
},
  *mode;

static uint64_t locked_bytes(void)
{
	unsigned long kib = 0;
	bool found = false;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	REQUIRE(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "VmLck: %lu", &kib) == 1;
	fclose(f);
	REQUIRE(found);
	return kib * 1024;
}

static size_t present(void *base)
{
	unsigned char in[BYTES / PAGE];
	size_t n = 0;

	REQUIRE(mincore(base, BYTES, in) == 0);
	for (size_t i = 0; i < sizeof(in); i++)
		n += in[i] & 1;
	return n;
}

/* Root raises it, if need be, and becomes an ordinary user. */
static void limit_memory(void)
{
	struct rlimit lim;

	REQUIRE(getrlimit(RLIMIT_MEMLOCK, &lim) == 0);
	if (geteuid() != 0 && lim.rlim_max < LIMIT)
		host_skip("hardly any memory may be locked");
	lim.rlim_cur = lim.rlim_max = LIMIT;
	REQUIRE(setrlimit(RLIMIT_MEMLOCK, &lim) == 0);
	host_user();
}

/* --- the peer ----------------------------------------------------------------- */

static void writer(int fd)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint8_t *buf;

	limit_memory();
	buf = host_map(NULL, BYTES);
	host_fill(buf, BYTES, 1);
	host_open(&h);
	mr = host_reg(&h, buf, BYTES);
	link_open(&l, &h, fd, NULL);
	link_post(&l, IBV_WR_RDMA_WRITE, mr, buf, BYTES, 0);
	host_wait(&h, 1);
	host_say(fd, 1);
	REQUIRE(host_hear(fd) == 2);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
	REQUIRE_EQ(host_counter("bounced_bytes") >= BYTES,
		   !strcmp(mode->name, "copy"));
}

/* --- the target --------------------------------------------------------------- */

/* More than the limit leaves: refused, and all else is as it was. */
static void register_too_much(struct host *h, uint64_t locked)
{
	void *much = host_map(NULL, TOO_MUCH);
	struct ibv_mr *mr;

	for (int i = 0; i < 3; i++) {
		errno = 0;
		mr = ibv_reg_mr(h->pd, much, TOO_MUCH, IBV_ACCESS_LOCAL_WRITE);
		REQUIRE_EQ(!mr, mode->locks);
		REQUIRE(mr || errno == ENOMEM);
		REQUIRE_EQ(locked_bytes(), locked);
		if (mr)
			host_dereg(mr);
	}
	munmap(much, TOO_MUCH);
}

static void register_nothing(struct host *h, uint64_t locked)
{
	/* where the kernel maps nothing by itself, for whatever thread */
	uint8_t *hole = host_map((void *)0x60000000, 4 * PAGE);

	munmap(hole + 2 * PAGE, PAGE);
	errno = 0;
	if (mode->locks || mode->touches) {
		REQUIRE(!ibv_reg_mr(h->pd, hole, 4 * PAGE,
				    IBV_ACCESS_LOCAL_WRITE));
		REQUIRE(errno == EFAULT);
	}
	REQUIRE_EQ(locked_bytes(), locked);
	munmap(hole, 4 * PAGE);
}

static void fork_and_dereg(struct ibv_mr *mr, uint64_t locked)
{
	int status;
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (!pid) {
		REQUIRE_EQ(locked_bytes(), 0);
		REQUIRE(ibv_dereg_mr(mr) == ENODEV);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	REQUIRE(status == 0);
	REQUIRE_EQ(locked_bytes(), locked);
}

static void target(int fd)
{
	uint8_t *buf = host_map(NULL, BYTES);
	uint64_t locked = mode->locks ? BYTES : 0;
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	REQUIRE(h.nopin);
	REQUIRE_EQ(locked_bytes(), 0);
	mr = host_reg(&h, buf, BYTES);
	REQUIRE_EQ(locked_bytes(), locked);
	REQUIRE_EQ(present(buf), mode->touches ? BYTES / PAGE : 0);
	register_too_much(&h, locked);
	register_nothing(&h, locked);
	link_open(&l, &h, fd, mr);
	REQUIRE(host_hear(fd) == 1);
	host_check(buf, BYTES, 1);
	host_say(fd, 2);
	link_close(&l);
	REQUIRE_EQ(locked_bytes(), locked);
	fork_and_dereg(mr, locked);
	host_dereg(mr);
	REQUIRE_EQ(locked_bytes(), mode->keeps ? BYTES : 0);
	host_close(&h);
	REQUIRE_EQ(locked_bytes(), 0);
	if (mode->counter)
		REQUIRE_LE(1, host_counter(mode->counter));
}

int main(int argc, char **argv)
{
	int fd;

	REQUIRE(argc == 2);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (!strcmp(modes[i].name, argv[1]))
			mode = &modes[i];
	REQUIRE(mode);
	host_start();
	setenv("NOPIN_REG", mode->name, 1);
	fd = host_fork(writer);
	limit_memory();
	target(fd);
	host_join();
	return 0;
}
