/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whatever takes private anonymous pages away behind a program's back moves
 * pgscan_*, pgsteal_* or pswpout in /proc/vmstat: MADV_PAGEOUT of one page, by
 * oneself or by another process, and a memory cgroup at its limit. Ordinary
 * work (faults, mmap, DONTNEED, file I/O) moves none of them; fadvise DONTNEED
 * takes no mapped page away. MADV_PAGEOUT of a clean file page moves none,
 * which is why src/os/fresh.c does not trust them for files.
 */
#include "fact.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ZRAM   "/sys/block/zram0/"
#define CGROUP "/sys/fs/cgroup/memory/nopin-fact"

static bool our_swap;

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

	close(fd);
	return ok;
}

static void swap_off(void)
{
	if (!our_swap)
		return;
	swapoff("/dev/zram0");
	put(ZRAM "reset", "1");
	rmdir(CGROUP);
}

/* Swap in memory, for this program alone. */
static void swap_on(void)
{
	/* until we end: others that make swap wait (tests/host/swap.c) */
	const int dev = open("/dev", O_RDONLY | O_DIRECTORY);
	char text[64] = "";
	int fd = open(ZRAM "disksize", O_RDONLY);

	SKIP_UNLESS(geteuid() == 0, "needs root: swap");
	FACT(dev >= 0 && flock(dev, LOCK_EX) == 0);
	SKIP_UNLESS(fd >= 0 && read(fd, text, 63) > 0, "no zram device");
	close(fd);
	SKIP_UNLESS(atoll(text) == 0, "zram0 is in use");
	SKIP_UNLESS(put(ZRAM "disksize", "128M"), "zram0 cannot be set up");
	our_swap = true;
	atexit(swap_off);
	SKIP_UNLESS(system("mkswap /dev/zram0 >/dev/null") == 0, "no mkswap");
	SKIP_UNLESS(swapon("/dev/zram0", 0) == 0, "swapon is refused");
}

/* A new page waits in a list of the CPU that faulted it, and MADV_PAGEOUT
 * empties only its own CPU's: on any other it leaves the page where it is.
 */
static void one_cpu(void)
{
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET((size_t)sched_getcpu(), &cpu);
	FACT(sched_setaffinity(0, sizeof(cpu), &cpu) == 0);
}

static unsigned long long reclaimed(void)
{
	unsigned long long sum = 0, v;
	FILE *f = fopen("/proc/vmstat", "r");
	char name[64];

	while (fscanf(f, "%63s %llu", name, &v) == 2)
		if (strncmp(name, "pgscan_", 7) == 0 ||
		    strncmp(name, "pgsteal_", 8) == 0 ||
		    strcmp(name, "pswpout") == 0)
			sum += v;
	fclose(f);
	return sum;
}

static char *anon(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, bytes, MADV_NOHUGEPAGE);
	memset(p, 1, bytes);
	return p;
}

/* pagemap bit 63 */
static bool present(const char *p)
{
	unsigned long long e = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	FACT(pread(fd, &e, 8, (off_t)((unsigned long)p / PAGE * 8)) == 8);
	close(fd);
	return e >> 63;
}

static void own_pageout(void)
{
	char *p = anon(16 * PAGE);

	for (int i = 0; i < 16; i++) {
		unsigned long long before = reclaimed();

		FACT(madvise(p + i * PAGE, PAGE, MADV_PAGEOUT) == 0);
		FACT(!present(p + i * PAGE));
		FACT(reclaimed() > before);
		/* again, after a read has brought it back */
		FACT(p[i * PAGE] == 1);
		before = reclaimed();
		FACT(madvise(p + i * PAGE, PAGE, MADV_PAGEOUT) == 0);
		FACT(present(p + i * PAGE) || reclaimed() > before);
	}
	munmap(p, 16 * PAGE);
}

/* As a manager of memory does to others. */
static void pageout_by_another(void)
{
	char *p = anon(PAGE);
	unsigned long long before = reclaimed();
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0), status;
	struct {
		void *p;
		size_t n;
	} v = {p, PAGE};
	pid_t pid = fork();

	if (pid == 0)
		_exit(syscall(SYS_process_madvise, self, &v, 1, MADV_PAGEOUT,
			      0) == PAGE
			      ? 0
			      : errno);
	waitpid(pid, &status, 0);
	/* the child shares the page until it ends: then once more */
	if (present(p))
		syscall(SYS_process_madvise, self, &v, 1, MADV_PAGEOUT, 0);
	FACT(!present(p) && reclaimed() > before);
}

static void cgroup_limit(void)
{
	unsigned long long before;
	int status;
	pid_t pid;

	if (mkdir(CGROUP, 0755) < 0 ||
	    !put(CGROUP "/memory.limit_in_bytes", "16777216"))
		return; /* no cgroup v1 here */
	before = reclaimed();
	pid = fork();
	if (pid == 0) {
		put(CGROUP "/cgroup.procs", "0");
		anon(32 << 20);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	FACT(status == 0 && reclaimed() > before);
}

static void ordinary_work(void)
{
	char name[] = "/tmp/test-of-fact-XXXXXX", *p, *f;
	unsigned long long before;
	int fd = mkstemp(name);

	unlink(name);
	for (int i = 0; i < 1000; i++)
		FACT(write(fd, name, sizeof(name)) > 0 &&
		     ftruncate(fd, 64 * PAGE) == 0);
	f = mmap(NULL, 64 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	before = reclaimed();
	p = anon(8 << 20);
	madvise(p, 4 << 20, MADV_DONTNEED);
	munmap(p, 8 << 20);
	FACT(fsync(fd) == 0 && f[0] == '/' && f[63 * PAGE] == 0);
	FACT(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	FACT(present(f) && present(f + 63 * PAGE));
	FACT(reclaimed() == before);
}

int main(void)
{
	for (int tries = 0;; tries++) {
		unsigned long long before = reclaimed();

		usleep(50000);
		if (reclaimed() == before)
			break;
		SKIP_UNLESS(tries < 20, "this host is reclaiming memory");
	}
	ordinary_work();
	swap_on();
	one_cpu();
	own_pageout();
	pageout_by_another();
	cgroup_limit();
	return 0;
}
