/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* b_evict.c: swaps out the buffers of another program, which is not asked.
 *
 *   b_evict PID BYTES MS
 *
 * Until it ends, every MS: all of its anonymous mappings that are as large as
 * two messages of BYTES and a little more, which is what the buffers of perftest
 * are.
 */
#include "lib.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { RANGES_MAX = 16, MORE = 64 * PAGE };

static size_t find(int pid, size_t bytes, struct iovec *found)
{
	char path[64], line[512], perms[8];
	unsigned long from, to, inode;
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && n < RANGES_MAX) {
		if (sscanf(line, "%lx-%lx %7s %*x %*s %lu", &from, &to, perms,
			   &inode) != 4)
			continue;
		if (inode || strncmp(perms, "rw-p", 4) != 0 ||
		    to - from < 2 * bytes || to - from > 2 * bytes + MORE)
			continue;
		found[n++] = (struct iovec){(void *)from, to - from};
	}
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	struct iovec ranges[RANGES_MAX];
	int pid, pidfd;

	REQUIRE(argc == 4);
	host_start();
	pid = (int)number(argv[1]);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	while (pidfd >= 0 && kill(pid, 0) == 0) {
		size_t n = find(pid, number(argv[2]), ranges);
		ssize_t bytes = syscall(SYS_process_madvise, pidfd, ranges, n,
					MADV_PAGEOUT, 0);

		if (n && bytes < 0 && errno != ESRCH)
			host_skip(strerror(errno));
		host_sleep(number(argv[3]) * MS);
	}
	return 0;
}
