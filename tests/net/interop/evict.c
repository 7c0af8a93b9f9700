/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evict.c: pages out all private memory of a process, again and again, until
 * it is gone: evict PID. Needs swap, root, and Linux 5.10.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum { PAUSE_NS = 500 * 1000 };

/* Return: 0, -1 when the process has no memory any more. */
static int evict_all(const char *maps, int pidfd)
{
	unsigned long start, end;
	char line[512], perms[5];
	struct iovec range;
	FILE *f = fopen(maps, "r");
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s", &start, &end, perms) != 3)
			continue;
		n++;
		if (strcmp(perms, "rw-p") != 0)
			continue;
		range.iov_base = (void *)start;
		range.iov_len = end - start;
		/* What cannot be evicted (I/O memory) is none of our business. */
		(void)syscall(SYS_process_madvise, pidfd, &range, 1UL,
			      MADV_PAGEOUT, 0U);
	}
	fclose(f);
	return n ? 0 : -1;
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	char maps[64];
	int pidfd;

	if (argc != 2)
		return 2;
	snprintf(maps, sizeof(maps), "/proc/%s/maps", argv[1]);
	pidfd = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
	if (pidfd < 0) {
		perror("pidfd_open");
		return 1;
	}
	while (evict_all(maps, pidfd) == 0)
		nanosleep(&pause, NULL);
	return 0;
}
