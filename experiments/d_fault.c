/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* d_fault.c: makes another NIC meet page faults all the time, or burns as much CPU
 * as that takes.
 *
 *   d_fault NAME fault|idle PARENT
 *				WRITE to the tenant (d_tenant.c) that connects to
 *				the abstract socket NAME, page after page, or do
 *				nothing, until the tenant's program ends. Prints
 *				how many pages, for how many seconds, and CPU
 *				time: of this process, and of the tenant's
 *				program but its first thread
 *   d_fault burn SHARE PARENT	spin for that share of the time, in slices of 1 ms,
 *				until killed
 *   d_fault have KIND PARENT	can a tenant have such memory? Skips if not: the
 *				tenant itself could tell only the program it is in
 *
 * Ends with PARENT, the process that started it, however that ends: nobody else
 * would stop a burner.
 */
#include "d_tenant.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

enum { AT_ONCE = 8, LOOK_MS = 50 };

/* --- CPU time ------------------------------------------------------------------------ */

static double own_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of all threads of @pid but the first; 0 when it has ended. */
static double others_cpu_s(int pid)
{
	char path[300];
	unsigned long long ns, sum = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		FILE *f;

		if (atoi(e->d_name) == pid || e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid,
			 e->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%llu", &ns) == 1)
			sum += ns;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return (double)sum / 1e9;
}

/* --- faults -------------------------------------------------------------------------- */

static struct {
	int fd, pid;
	uint64_t began, looked;
	double first_cpu, cpu;
	uint64_t pages;
	bool over;
} run;

/* Look at the other program now and then, as long as it is there. */
static void look(void)
{
	const uint64_t now = host_now();
	double cpu;
	char c;

	if (now - run.looked < LOOK_MS * MS)
		return;
	run.looked = now;
	cpu = others_cpu_s(run.pid);
	run.cpu = cpu > run.cpu ? cpu : run.cpu;
	if (recv(run.fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
		run.over = true;
}

static bool new_round(uint64_t *window)
{
	*window = 0;
	if (send(run.fd, window, sizeof(*window), MSG_NOSIGNAL) < 0 ||
	    recv(run.fd, window, sizeof(*window), MSG_WAITALL) !=
		    sizeof(*window))
		run.over = true;
	return !run.over;
}

/* All pages of a window, AT_ONCE at a time; sleeps between looks, so that it takes
 * the other programs no CPU that faults do not need. */
static void fault_window(struct link *l, struct ibv_mr *mr, uint64_t window)
{
	size_t n = 0, done = 0;
	struct ibv_wc wc;
	int got;

	l->va = window;
	while (!run.over && done < TENANT_PAGES) {
		while (n < TENANT_PAGES && n < done + AT_ONCE) {
			link_post(l, IBV_WR_RDMA_WRITE, mr, mr->addr, PAGE,
				  n * PAGE);
			n++;
		}
		while ((got = ibv_poll_cq(l->h->cq, 1, &wc)) > 0) {
			/* the other program has ended */
			run.over = run.over || wc.status != IBV_WC_SUCCESS;
			done++;
			run.pages++;
		}
		look();
		host_sleep(MS / 10);
	}
}

static void with_tenant(const char *name, bool faults)
{
	struct ucred peer = {.pid = 0};
	socklen_t size = sizeof(peer);
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint64_t window;
	double wall;

	run.fd = tenant_socket(name, true);
	REQUIRE(getsockopt(run.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0);
	run.pid = peer.pid;
	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	memset(mr->addr, 1, PAGE);
	link_open(&l, &h, run.fd, NULL);
	run.began = host_now();
	run.first_cpu = own_cpu_s();
	while (!run.over)
		if (!faults) {
			look();
			host_sleep(10 * MS);
		} else if (new_round(&window)) {
			fault_window(&l, mr, window);
		}
	wall = (double)(host_now() - run.began) / SECOND;
	out_row("pages", "%llu", (unsigned long long)run.pages);
	out_row("wall", "%.3f", wall);
	out_row("cpu", "%.3f", own_cpu_s() - run.first_cpu + run.cpu);
}

static void burn(double share)
{
	for (;;) {
		const uint64_t from = host_now();

		while ((double)(host_now() - from) < share * MS)
			;
		if (share < 1)
			host_sleep((uint64_t)((1 - share) * MS));
	}
}

int main(int argc, char **argv)
{
	struct cold c;

	REQUIRE(argc == 4);
	REQUIRE(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	REQUIRE(getppid() == (pid_t)number(argv[3])); /* not gone before that */
	host_start();
	if (!strcmp(argv[1], "burn"))
		burn(atof(argv[2]));
	else if (!strcmp(argv[1], "have"))
		cold_open(&c, argv[2], PAGE, 1);
	else
		with_tenant(argv[1], !strcmp(argv[2], "fault"));
	fflush(stdout);
	_exit(0); /* the other NIC is gone: nothing to close nicely */
}
