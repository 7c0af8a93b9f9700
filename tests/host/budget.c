/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* budget.c: one NIC memory for all processes of a host, and kill -9.
 *
 *   budget NOPIN
 *
 * Eight processes, each with more pages than the budget has entries, WRITE from them
 * to this one, as an ordinary user. Each has an equal share. One after the other is
 * killed, wherever it is just then; 100 ms later the others have what it had, as
 * "nopin stat --host" (NOPIN) tells. No request ends in an error.
 */
#include "host.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	PROCESSES = 8,
	BUDGET = 16384,
	PAGES = 20000,
	BURST = 16,
	LEN = 64,
	/* they compete for the table, not for the CPUs */
	PAUSE_NS = 4 * 1000 * 1000,
	TEXT = 1 << 16,
};

static const char *nopin;

/* --- who uses pages ---------------------------------------------------------------- */

static void worker(int fd)
{
	uint8_t *base;
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	base = host_map(NULL, (size_t)PAGES * PAGE);
	mr = host_reg(&h, base, (size_t)PAGES * PAGE);
	link_open(&l, &h, fd, NULL);
	host_say(fd, (uint64_t)getpid());
	for (;;) {
		for (int i = 0; i < BURST; i++)
			link_post(&l, IBV_WR_RDMA_WRITE, mr,
				  base + host_random() % PAGES * PAGE, LEN, 0);
		host_wait(&h, BURST);
		host_sleep(PAUSE_NS);
	}
}

/* --- who has what ------------------------------------------------------------------ */

static void ask(char *text)
{
	char command[512];
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "'%s' stat --host --json", nopin);
	f = popen(command, "re");
	REQUIRE(f);
	n = fread(text, 1, TEXT - 1, f);
	text[n] = '\0';
	REQUIRE(pclose(f) == 0);
}

/* The share of entries of @pid, or -1: it is not there. */
static int64_t share_of(const char *text, uint64_t pid)
{
	const char *at, *share;
	char want[64];

	snprintf(want, sizeof(want), "{\"pid\":%llu,", (unsigned long long)pid);
	at = strstr(text, want);
	if (!at)
		return -1;
	share = strstr(strstr(at, "\"entries\""), "\"share\":");
	REQUIRE(share);
	return strtoll(share + strlen("\"share\":"), NULL, 10);
}

/* Have all that are there, with us, the whole budget? And is @gone not there? Who was given more than it uses yet may have more than
 * who was not; but nobody has less than half of an equal part. */
static bool is_shared(const char *text, const uint64_t *pid, unsigned from,
		      uint64_t gone)
{
	const int64_t part = BUDGET / (PROCESSES - from);
	int64_t sum = share_of(text, (uint64_t)getpid());

	for (unsigned i = from; i < PROCESSES; i++) {
		const int64_t share = share_of(text, pid[i]);

		if (share < part / 2)
			return false;
		sum += share;
	}
	return sum > BUDGET * 9 / 10 && sum <= BUDGET * 11 / 10 &&
	       (!gone || share_of(text, gone) < 0);
}

/* Until it is so. How soon is sim/budget's, where time is virtual. */
static void until_shared(const uint64_t *pid, unsigned from, uint64_t gone)
{
	static char text[TEXT];

	do {
		ask(text);
	} while (!is_shared(text, pid, from, gone));
}

static void kill_in_turn(const uint64_t *pid)
{
	for (unsigned i = 0; i + 1 < PROCESSES; i++) {
		int status;

		host_sleep(host_random() % (20 * MS));
		REQUIRE(kill((pid_t)pid[i], SIGKILL) == 0);
		REQUIRE(waitpid((pid_t)pid[i], &status, 0) > 0);
		REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		until_shared(pid, i + 1, pid[i]);
		/* nobody noticed but the arbiter */
		for (unsigned k = i + 1; k < PROCESSES; k++)
			REQUIRE(waitpid((pid_t)pid[k], &status, WNOHANG) == 0);
	}
	REQUIRE(kill((pid_t)pid[PROCESSES - 1], SIGKILL) == 0);
	REQUIRE(waitpid((pid_t)pid[PROCESSES - 1], NULL, 0) > 0);
}

int main(int argc, char **argv)
{
	uint64_t pid[PROCESSES];
	struct link l[PROCESSES];
	int fd[PROCESSES];
	struct ibv_mr *mr;
	struct host h;

	REQUIRE(argc == 2);
	nopin = host_tool(argv[1]);
	setenv("NOPIN_BUDGET", "16K", 1);
	/* faults are not taken inline, however cheap they are */
	setenv("NOPIN_FAULT", "redirect", 1);
	setenv("NOPIN_AHEAD", "page", 1);
	host_start();
	host_user();
	for (unsigned i = 0; i < PROCESSES; i++)
		fd[i] = host_fork(worker);
	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	for (unsigned i = 0; i < PROCESSES; i++) {
		link_open(&l[i], &h, fd[i], mr);
		pid[i] = host_hear(fd[i]);
	}
	until_shared(pid, 0, 0);
	kill_in_turn(pid);
	for (unsigned i = 0; i < PROCESSES; i++)
		link_close(&l[i]);
	host_dereg(mr);
	host_close(&h);
	return 0;
}
