/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* swap.c: swap that a test makes and removes again, and what the kernel counts of
 * it. In RAM (zram), so it takes no disk and little time.
 */
#include "host.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/wait.h>

#define ZRAM	 "/dev/zram0"
#define ZRAM_SYS "/sys/block/zram0/"

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		host_skip("zram cannot be configured");
	close(fd);
}

/* Held while the host has swap that a test made. Another suite may run on this host, in
 * a root directory of its own, and what the kernel counts of swap is of all. The device
 * itself must not be open when it is reset. */
static int taken = -1;

static void swap_take(void)
{
	taken = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(taken >= 0 && flock(taken, LOCK_EX) == 0);
}

static void swap_remove(void)
{
	swapoff(ZRAM);
	put(ZRAM_SYS "reset", "1");
	close(taken);
}

static void swap_make(size_t bytes)
{
	char size[32];
	int fd;

	if (geteuid() != 0)
		host_skip("making swap needs root");
	if (access(ZRAM, W_OK))
		host_skip("no " ZRAM);
	swap_take();
	snprintf(size, sizeof(size), "%zu", bytes);
	put(ZRAM_SYS "disksize", size);
	fd = open(ZRAM, O_RDWR | O_CLOEXEC | O_EXCL);
	REQUIRE(fd >= 0);
	close(fd);
	if (system("mkswap " ZRAM " >/dev/null") ||
	    swapon(ZRAM, SWAP_FLAG_PREFER | 100)) {
		put(ZRAM_SYS "reset", "1");
		host_skip("mkswap or swapon failed");
	}
}

void swap_run(size_t bytes, void (*test)(void))
{
	int status;
	pid_t pid;

	swap_make(bytes);
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		test();
		exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	swap_remove();
	REQUIRE(status == 0);
}

/* The last pages that a CPU has faulted wait in a list of its own, and a call from
 * another CPU leaves them where they are. */
bool swap_push(void *base, size_t bytes)
{
	cpu_set_t all, one;
	bool known = true;

	REQUIRE(sched_getaffinity(0, sizeof(all), &all) == 0);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
		known = known && madvise(base, bytes, MADV_PAGEOUT) == 0;
	}
	REQUIRE(sched_setaffinity(0, sizeof(all), &all) == 0);
	return known;
}

void swap_pageout(void *base, size_t bytes)
{
	REQUIRE(swap_push(base, bytes));
	REQUIRE_EQ(host_resident(base, bytes), 0);
}

uint64_t swap_reads(void)
{
	FILE *f = fopen("/proc/vmstat", "re");
	unsigned long n = 0;
	bool found = false;
	char line[128];

	REQUIRE(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "pswpin %lu", &n) == 1;
	fclose(f);
	REQUIRE(found);
	return n;
}
