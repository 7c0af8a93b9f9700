/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* k_memops.c: what an owner of memory may do to it while a peer works on it.
 *
 *   k_memops OPERATION MS
 *
 * The peer WRITEs page after page of a region, and READs pages that it wrote and
 * looks: each word must be what it wrote last, or 0 where the operation throws
 * content away. All pages were written before. Meanwhile the owner does OPERATION (see operations[]) again and
 * again for MS. Then all pages are written and read once more and must be right.
 * Prints how long the WRITEs took, what was seen, and the first error of the peer.
 */
#include "lib.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum {
	HUGE_BYTES = 2 << 20,
	REGION_BYTES = 2 * HUGE_BYTES,
	PAGES = REGION_BYTES / PAGE -
		1, /* of the traffic; the last is left out */
	SAME = 64, /* so many pages in a row have the same content */
	SAMPLES_MAX = 1 << 18,
	LOW_LIMIT = 8 << 20,
};

/** struct shared - Between the processes. @forks: the peer is to fork, too. */
static struct shared {
	bool stop, forks;
	uint64_t snapshots_changed;
} * shared;

/* --- what the owner does -------------------------------------------------------------- */

static uint8_t *region;
static int file = -1;

/* @advice may be what this kernel does not know. */
static void advise(void *p, size_t n, int advice, const char *what)
{
	if (madvise(p, n, advice) && errno != EAGAIN && errno != EBUSY) {
		__atomic_store_n(&shared->stop, true, __ATOMIC_RELAXED);
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
		host_skip(what);
	}
}

static void nothing(void)
{
}

static void swap_out(void)
{
	advise(region, REGION_BYTES, MADV_PAGEOUT, "no MADV_PAGEOUT");
}

static void set_free(void)
{
	advise(region, REGION_BYTES, MADV_FREE, "no MADV_FREE");
}

static void throw_away(void)
{
	advise(region, REGION_BYTES, MADV_DONTNEED, "no MADV_DONTNEED");
}

/* The child has memory of its own: it must not see what the peer WRITEs. */
static void snapshot(void)
{
	const volatile uint64_t *word =
		(uint64_t *)(region + host_random() % PAGES * PAGE);
	int status;
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (!pid) {
		const uint64_t was = *word;

		host_sleep(5 * MS);
		_exit(*word != was);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (status)
		shared->snapshots_changed++;
}

static void peer_forks(void)
{
	shared->forks = true;
}

static void merge(void)
{
	advise(region, REGION_BYTES, MADV_MERGEABLE, "no KSM");
}

/* Apart from the last page, which nobody works on, what is split is one. */
static void collapse_and_split(void)
{
	uint8_t *last = region + REGION_BYTES - PAGE;

	advise(region, REGION_BYTES, MADV_COLLAPSE, "no MADV_COLLAPSE");
	REQUIRE(mprotect(last, PAGE, PROT_READ) == 0);
	REQUIRE(mprotect(last, PAGE, PROT_READ | PROT_WRITE) == 0);
}

static void write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		shared->stop = true;
		host_skip("this needs root");
	}
	close(fd);
}

static void compact(void)
{
	write_file("/proc/sys/vm/compact_memory", "1");
}

static void protect(void)
{
	REQUIRE(mprotect(region, REGION_BYTES, PROT_READ) == 0);
}

static void move_away(void)
{
	static bool moved;

	if (!moved)
		REQUIRE(mremap(region, REGION_BYTES, REGION_BYTES,
			       MREMAP_MAYMOVE | MREMAP_FIXED,
			       host_map(NULL, REGION_BYTES)) != MAP_FAILED);
	moved = true;
}

static void cut_file(void)
{
	REQUIRE(ftruncate(file, 0) == 0);
}

static void punch(void)
{
	if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      REGION_BYTES)) {
		shared->stop = true;
		host_skip("no holes in files of this file system");
	}
}

/* --- a limit of memory ----------------------------------------------------------------- */

static char group[256], limit_file[300];

/* A control group of our own, of version 1 or 2; removed by group_leave(). */
static void group_enter(void)
{
	char line[256], path[300], pid[16];
	FILE *f = fopen("/proc/self/cgroup", "re");
	const char *limit = NULL;

	while (f && !limit && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, ":memory:");

		line[strcspn(line, "\n")] = 0;
		if (at) {
			snprintf(group, sizeof(group),
				 "/sys/fs/cgroup/memory%.150s/nopin-k-%d",
				 at + 8, (int)getpid());
			limit = "memory.limit_in_bytes";
		} else if (!strncmp(line, "0::", 3)) {
			snprintf(group, sizeof(group),
				 "/sys/fs/cgroup%.150s/nopin-k-%d", line + 3,
				 (int)getpid());
			limit = "memory.high";
		}
	}
	if (f)
		fclose(f);
	if (!limit || mkdir(group, 0755))
		host_skip("no control group for memory that we may use");
	snprintf(limit_file, sizeof(limit_file), "%s/%s", group, limit);
	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	write_file(path, pid);
	if (access(limit_file, W_OK))
		host_skip("no control group for memory that we may use");
}

static void group_leave(void)
{
	char pid[16], path[300], *slash;

	if (!group[0])
		return;
	snprintf(path, sizeof(path), "%s", group);
	slash = strrchr(path, '/');
	strcpy(slash, "/cgroup.procs");
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	write_file(path, pid);
	rmdir(group);
}

static void lower_limit(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu",
		 (unsigned long long)LOW_LIMIT -
			 (unsigned long long)(host_random() % 64) * PAGE);
	if (!group[0])
		group_enter();
	write_file(limit_file, text);
	host_sleep(5 * MS);
	snprintf(text, sizeof(text), "%llu", 1ULL << 40);
	write_file(limit_file, text);
}

/* @file: the region is one, shared. @once: do it once. */
static const struct operation {
	const char *name;
	void (*act)(void);
	bool file, once;
} operations[] = {
	{"nothing", nothing, false, false},
	{"swap-out", swap_out, false, false},
	{"free", set_free, false, false},
	{"dontneed", throw_away, false, false},
	{"fork-target", snapshot, false, false},
	{"fork-source", peer_forks, false, true},
	{"ksm", merge, false, true},
	{"huge", collapse_and_split, false, false},
	{"migration", compact, false, false},
	{"mprotect", protect, false, true},
	{"mremap", move_away, false, true},
	{"truncate", cut_file, true, true},
	{"hole", punch, true, false},
	{"limit", lower_limit, false, false},
};

static const struct operation *op;

/* --- the owner --------------------------------------------------------------------------- */

static void region_open(void)
{
	uint8_t *p = host_map(NULL, REGION_BYTES + HUGE_BYTES);

	region = (uint8_t *)(((uintptr_t)p + HUGE_BYTES - 1) &
			     -(uintptr_t)HUGE_BYTES);
	if (!strcmp(op->name, "huge")) {
		for (size_t at = 0; at < REGION_BYTES; at += PAGE)
			region[at] = 0; /* small pages, to be collapsed */
		REQUIRE(madvise(region, REGION_BYTES, MADV_HUGEPAGE) == 0);
	}
	if (!op->file)
		return;
	file = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (file < 0)
		host_skip("no file without a name in this directory");
	REQUIRE(ftruncate(file, REGION_BYTES) == 0);
	REQUIRE(mmap(region, REGION_BYTES, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED);
}

static void work(uint64_t ms)
{
	const uint64_t until = host_now() + ms * MS;

	host_sleep(20 * MS); /* some traffic before */
	do {
		op->act();
		host_sleep((op->once ? ms : 5) * MS);
	} while (!op->once && host_now() < until);
	__atomic_store_n(&shared->stop, true, __ATOMIC_RELAXED);
}

/* Page faults that the kernel counted for all threads of ours but this: those of
 * the NIC, on whatever memory. */
static uint64_t nic_faults(void)
{
	unsigned long long n, sum = 0;
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	char path[300];

	REQUIRE(d);
	while ((e = readdir(d))) {
		FILE *f;

		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat",
			 e->d_name);
		f = fopen(path, "re");
		/* pid, comm, state, 6 more, minflt, cminflt, majflt */
		if (f && fscanf(f,
				"%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u "
				"%llu",
				&n) == 1)
			sum += n;
		if (f)
			fclose(f);
	}
	closedir(d);
	return sum;
}

static void owner(int fd, uint64_t ms)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint64_t before;

	region_open();
	host_open(&h);
	mr = host_reg(&h, region, REGION_BYTES);
	link_open(&l, &h, fd, mr);
	/* every page was there once: what faults now was taken away */
	REQUIRE(host_hear(fd) == 1);
	before = nic_faults();
	host_say(fd, 1);
	work(ms);
	REQUIRE(host_hear(fd) == 0);
	out_row("nic_faults", "%llu",
		(unsigned long long)(nic_faults() - before));
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	group_leave();
	out_row("snapshots", "%llu",
		(unsigned long long)shared->snapshots_changed);
	out_counters("owner");
}

/* --- the peer ---------------------------------------------------------------------------- */

static uint64_t shadow[PAGES]; /* what each page holds; 0: never written */
static double write_us[SAMPLES_MAX];
static uint64_t right, zero, wrong;
static enum ibv_wc_status status;

static bool transfer(struct link *l, enum ibv_wr_opcode code, struct ibv_mr *mr,
		     void *p, size_t page)
{
	link_post(l, code, mr, p, PAGE, page * PAGE);
	status = host_status(l->h);
	return status == IBV_WC_SUCCESS;
}

static bool write_page(struct link *l, struct ibv_mr *mr, size_t page,
		       uint64_t stamp)
{
	uint64_t *p = mr->addr;

	for (size_t k = 0; k < PAGE / 8; k++)
		p[k] = stamp + k;
	shadow[page] = stamp;
	return transfer(l, IBV_WR_RDMA_WRITE, mr, p, page);
}

static bool read_page(struct link *l, struct ibv_mr *mr, size_t page)
{
	uint64_t *p = (uint64_t *)mr->addr + PAGE / 8;
	bool zeros = false;

	if (!transfer(l, IBV_WR_RDMA_READ, mr, p, page))
		return false;
	for (size_t k = 0; k < PAGE / 8; k++) {
		if (p[k] == shadow[page] + k)
			continue;
		if (p[k]) {
			wrong++;
			return true;
		}
		zeros = true;
	}
	if (zeros)
		zero++;
	else
		right++;
	return true;
}

static void fork_now_and_then(size_t n)
{
	pid_t pid;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	if (!shared->forks || n % 128)
		return;
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		host_sleep(3 * MS);
		_exit(0);
	}
}

static size_t traffic(struct link *l, struct ibv_mr *mr)
{
	size_t n = 0;

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED) &&
	       n < SAMPLES_MAX) {
		const size_t page = n % PAGES, old = host_random() % PAGES;
		const uint64_t from = host_now();
		const uint64_t stamp = (n / SAME + 1) << 16;

		if (!write_page(l, mr, page, stamp))
			break;
		write_us[n++] = (double)(host_now() - from) / US;
		if (shadow[old] && !read_page(l, mr, old))
			break;
		fork_now_and_then(n);
	}
	return n;
}

static void afterwards(struct link *l, struct ibv_mr *mr)
{
	right = zero = wrong = 0;
	for (size_t i = 0; i < PAGES && !status; i++)
		write_page(l, mr, i, (i + 1) << 32);
	for (size_t i = 0; i < PAGES && !status; i++)
		read_page(l, mr, i);
	out_row("after", "%llu\t%llu\t%llu", (unsigned long long)right,
		(unsigned long long)zero, (unsigned long long)wrong);
}

static void peer(int fd)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	size_t n;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, 2 * PAGE), 2 * PAGE);
	link_open(&l, &h, fd, NULL);
	for (size_t i = 0; i < PAGES && !status; i++)
		write_page(&l, mr, i, (i + 1) << 16);
	host_say(fd, 1);
	REQUIRE(host_hear(fd) == 1);
	n = traffic(&l, mr);
	out_row("during", "%llu\t%llu\t%llu", (unsigned long long)right,
		(unsigned long long)zero, (unsigned long long)wrong);
	if (n)
		out_dist("write", write_us, n);
	if (!status) {
		while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED))
			host_sleep(MS);
		afterwards(&l, mr);
	}
	out_row("status", "%d", (int)status);
	host_say(fd, 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	out_counters("peer");
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 3);
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (!strcmp(operations[i].name, argv[1]))
			op = &operations[i];
	REQUIRE(op);
	host_start();
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED);
	owner(host_fork(peer), number(argv[2]));
	host_join();
	return 0;
}
