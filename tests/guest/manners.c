/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* manners.c: what nopin may not do in somebody else's process (design D13).
 * Run under `nopin run`, with stdout a file or a pipe that stays empty.
 * BIG: a sanitizer takes part, with memory and threads of its own.
 */
#include "link.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MESSAGES = 200, IDLE_MS = 300, THREADS_MAX = 3 };

/* --- what must be as it was -------------------------------------------------- */

struct manners {
	struct {
		uintptr_t handler;
		uint64_t mask; /* the rest of a sigset_t is not the kernel's */
		int flags;
	} sig[_NSIG];
	struct rlimit limit[RLIM_NLIMITS];
	sigset_t mask;
	mode_t mask_of_files;
	char cwd[4096], locale[256];
};

static void look(struct manners *m)
{
	struct sigaction sa;

	memset(m, 0, sizeof(*m));
	for (int i = 1; i < _NSIG; i++)
		if (sigaction(i, NULL, &sa) == 0) {
			m->sig[i].handler = (uintptr_t)sa.sa_handler;
			m->sig[i].flags = sa.sa_flags;
			memcpy(&m->sig[i].mask, &sa.sa_mask,
			       sizeof(m->sig[i].mask));
		}
	for (int i = 0; i < RLIM_NLIMITS; i++)
		REQUIRE(getrlimit(i, &m->limit[i]) == 0);
	REQUIRE(sigprocmask(SIG_SETMASK, NULL, &m->mask) == 0);
	m->mask_of_files = umask(0);
	umask(m->mask_of_files);
	REQUIRE(getcwd(m->cwd, sizeof(m->cwd)));
	snprintf(m->locale, sizeof(m->locale), "%s", setlocale(LC_ALL, NULL));
}

/* SIGSEGV and SIGBUS are ours (D8), until the program sets its own. */
static void compare(const struct manners *was)
{
	static struct manners is;

	look(&is);
	for (int i = 1; i < _NSIG; i++)
		if (i != SIGSEGV && i != SIGBUS)
			REQUIRE(memcmp(&is.sig[i], &was->sig[i],
				       sizeof(is.sig[i])) == 0);
	REQUIRE(memcmp(is.limit, was->limit, sizeof(is.limit)) == 0);
	REQUIRE(memcmp(&is.mask, &was->mask, sizeof(is.mask)) == 0);
	REQUIRE(is.mask_of_files == was->mask_of_files);
	REQUIRE(strcmp(is.cwd, was->cwd) == 0);
	REQUIRE(strcmp(is.locale, was->locale) == 0);
}

static void keeps_errno(struct link *l)
{
	struct ibv_wc wc;

	errno = 12321;
	REQUIRE(ibv_poll_cq(l->cq[0], 1, &wc) == 0);
	REQUIRE(ibv_req_notify_cq(l->cq[0], 0) == 0);
	REQUIRE(link_post(l, 0, 5000) == 0);
	for (int i = 0; i < LINK_ENDS; i++)
		while (ibv_poll_cq(l->cq[i], 1, &wc) != 1)
			;
	REQUIRE(errno == 12321);
}

/* --- threads, descriptors, memory -------------------------------------------- */

static unsigned long long status_of(const char *path, const char *field,
				    int base)
{
	char line[256];
	FILE *f = fopen(path, "re");
	unsigned long long v = 0;
	int found = 0;

	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0) {
			v = strtoull(line + strlen(field), NULL, base);
			found = 1;
		}
	fclose(f);
	REQUIRE(found);
	return v;
}

static void name_of(const char *task, char *name, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", task);
	f = fopen(path, "re");
	REQUIRE(f && fgets(name, (int)size, f));
	fclose(f);
}

static void threads_are_named_and_deaf(void)
{
	const unsigned long long faults = 1ull << (SIGSEGV - 1) |
					  1ull << (SIGBUS - 1);
	/* SIGKILL, SIGSTOP, and two that the C library keeps, are never blocked
	 */
	const unsigned long long all = ~(1ull << (SIGKILL - 1) |
					 1ull << (SIGSTOP - 1) | 3ull << 31);
	DIR *d = opendir("/proc/self/task");
	unsigned ours = 0, pagers = 0;
	struct dirent *e;

	REQUIRE(d);
	while ((e = readdir(d))) {
		char path[64], name[32];
		unsigned long long blocked;

		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		name_of(e->d_name, name, sizeof(name));
		if (BIG && strncmp(name, "nopin", 5) != 0)
			continue; /* the sanitizer's own */
		REQUIRE(strncmp(name, "nopin", 5) == 0);
		if (strstr(name, "-pg"))
			pagers++;
		else
			ours++;
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/status",
			 e->d_name);
		blocked = status_of(path, "SigBlk:", 16);
		REQUIRE((blocked & all) == (all & ~faults));
	}
	closedir(d);
	REQUIRE(ours >= 1 && ours <= THREADS_MAX);
	fprintf(stderr, "%u threads and %u pagers\n", ours, pagers);
}

/* Returns how many there are that @before does not have. */
static int descriptors_are_high(const int *before)
{
	struct rlimit rl;
	int new = 0;

	REQUIRE(getrlimit(RLIMIT_NOFILE, &rl) == 0);
	for (int fd = 3; fd < 4096; fd++) {
		const int flags = fcntl(fd, F_GETFD);

		if (flags < 0 || before[fd])
			continue;
		new ++;
		REQUIRE(flags & FD_CLOEXEC);
		REQUIRE(fd >=
			(int)(rl.rlim_cur < 1024 ? rl.rlim_cur : 1024) - 512);
	}
	return new;
}

/* How often threads of nopin went to sleep. */
static unsigned long long sleeps(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned long long n = 0;
	struct dirent *e;

	REQUIRE(d);
	while ((e = readdir(d))) {
		char path[64], name[32];

		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		name_of(e->d_name, name, sizeof(name));
		if (strncmp(name, "nopin", 5) != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/status",
			 e->d_name);
		n += status_of(path, "voluntary_ctxt_switches:", 10);
	}
	closedir(d);
	return n;
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Connected, and nothing to do. A second after it last worked the background
 * thread looks, and who would stand in for it may be up for LOOK wake-ups then:
 * that comes later than what is counted here, unless it took as long to get
 * here from @opened_ms, before the NIC was there.
 */
static void idle_costs_nothing(long long opened_ms, const char *how)
{
	enum { LOOK = 60 };
	unsigned long long n, looks;

	usleep(IDLE_MS * 1000);
	n = sleeps();
	usleep(IDLE_MS * 1000);
	n = sleeps() - n;
	looks = (unsigned long long)(now_ms() - opened_ms) / 1000;
	fprintf(stderr, "%llu wake-ups in %d ms when %s, %llu looks\n", n,
		IDLE_MS, how, looks);
	REQUIRE(n <= (BIG ? 10 : 4) + looks * LOOK);
}

static void *blocks(void *channel)
{
	struct ibv_cq *cq;
	void *context;

	REQUIRE(pthread_setname_np(pthread_self(), "nopin-like") == 0);
	REQUIRE(ibv_get_cq_event(channel, &cq, &context) < 0); /* cancelled */
	return NULL;
}

/* A thread of the program waits for an event all the while. Its own sleeps count,
 * too. */
static void blocked_costs_nothing(struct link *l, long long opened_ms)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(l->ctx);
	pthread_t thread;

	REQUIRE(channel);
	REQUIRE(pthread_create(&thread, NULL, blocks, channel) == 0);
	idle_costs_nothing(opened_ms, "a thread is blocked");
	REQUIRE(pthread_cancel(thread) == 0);
	REQUIRE(pthread_join(thread, NULL) == 0);
	REQUIRE(ibv_destroy_comp_channel(channel) == 0);
}

/* --- fork ------------------------------------------------------------------------ */

static int child_main(struct link *l)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_device_attr_ex device_ex;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	struct ibv_wc wc;
	uint8_t *own = malloc(LINK_BYTES);

	errno = 0;
	REQUIRE(ibv_poll_cq(l->cq[0], 1, &wc) < 0);
	REQUIRE(link_post(l, 0, 8) == ENODEV);
	REQUIRE(ibv_modify_qp(l->qp[0], &attr, IBV_QP_STATE) == ENODEV);
	REQUIRE(!ibv_reg_mr(l->pd, own, LINK_BYTES, 0) && errno == ENODEV);
	REQUIRE(!ibv_alloc_pd(l->ctx) && errno == ENODEV);
	REQUIRE(ibv_dereg_mr(l->mr) == ENODEV);
	REQUIRE(ibv_query_port(l->ctx, 1, &port) == ENODEV);
	REQUIRE(ibv_query_device(l->ctx, &device) == ENODEV);
	REQUIRE(ibv_query_device_ex(l->ctx, NULL, &device_ex) == ENODEV);
	REQUIRE(ibv_destroy_qp(l->qp[0]) == ENODEV);
	REQUIRE(ibv_close_device(l->ctx) == ENODEV);
	return 0;
}

static void forks_in_the_middle(struct link *l)
{
	for (int i = 0; i < 10; i++) {
		int status;
		pid_t pid;

		REQUIRE(link_post(l, i & 1, LINK_BYTES) == 0);
		pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0)
			_exit(child_main(l));
		for (int k = 0; k < LINK_ENDS; k++)
			REQUIRE(link_wait(l->cq[k]).status == IBV_WC_SUCCESS);
		REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
	}
}

int main(void)
{
	static struct manners before;
	static int fds[4096];
	unsigned long long rss, rss_then;
	long long opened_ms;
	struct link l;

	REQUIRE(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	setlocale(LC_ALL, "C.UTF-8");
	umask(0137);
	look(&before);
	for (int fd = 0; fd < 4096; fd++)
		fds[fd] = fcntl(fd, F_GETFD) >= 0;
	rss = status_of("/proc/self/status", "VmRSS:", 10);
	opened_ms = now_ms();
	link_open(&l);
	link_send(&l, 0, LINK_BYTES, 1);
	rss_then = status_of("/proc/self/status", "VmRSS:", 10);
	fprintf(stderr, "%llu KiB resident more than before\n", rss_then - rss);
	/* payload that waits for pages comes on top: the redirect pool */
	REQUIRE(BIG || rss_then - rss < 10 * 1024);
	for (uint32_t i = 0; i < MESSAGES; i++)
		link_send(&l, i & 1, 1 + i * 311 % LINK_BYTES, (uint8_t)i);
	keeps_errno(&l);
	compare(&before);
	threads_are_named_and_deaf();
	REQUIRE(descriptors_are_high(fds) > 0);
	REQUIRE(status_of("/proc/self/status", "VmLck:", 10) == 0);
	idle_costs_nothing(opened_ms, "idle");
	blocked_costs_nothing(&l, opened_ms);
	forks_in_the_middle(&l);
	link_send(&l, 0, LINK_BYTES, 0x77);
	link_close(&l);
	REQUIRE(descriptors_are_high(fds) == 0);
	compare(&before);
	return 0;
}
