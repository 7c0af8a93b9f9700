/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ending.c: I8: whatever is posted ends, and how long that takes is what it takes one
 * request to a stopped process, which is the control.
 *
 *   ending behind   the peer expects an earlier PSN, as one that began anew does
 *   ending stopped N  so many QPs to a stopped process end with the one, not in turn
 *   ending mtu      the interface takes no full packets any more, for a while or for
 *		     good, and the log says so
 */
#include "host.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* What nopin(7) says of vendor_err. */
enum { SILENCE = 0x200, STALLED };

enum { MANY = 3000, LEN = 8192, SMALL_MTU = 1000, WHOLE_MTU = 65536 };

static struct host h;
static struct ibv_mr *mr;
static uint8_t *mem;

/** struct peer - A child with @num links, of which ours are @l. */
struct peer {
	struct link l[MANY];
	unsigned num;
	pid_t pid;
	int fd;
};

static struct peer one, many;

static void open_all(void)
{
	host_open(&h);
	mem = host_map(NULL, LEN);
	mr = host_reg(&h, mem, LEN);
}

static void close_links(struct link *l, unsigned n)
{
	while (n--)
		link_close(&l[n]);
	host_dereg(mr);
	host_close(&h);
}

/* Its QPs may be waited for by who is stopped or gone. */
static void target(int fd)
{
	static struct link l[MANY];
	const unsigned n = (unsigned)host_hear(fd);

	open_all();
	host_say(fd, (uint64_t)getpid());
	for (unsigned i = 0; i < n; i++)
		link_open(&l[i], &h, fd, mr);
	host_hear(fd);
	close_links(l, n);
}

static void peer_open(struct peer *p, unsigned n)
{
	p->num = n;
	host_say(p->fd, n);
	p->pid = (pid_t)host_hear(p->fd);
	for (unsigned i = 0; i < n; i++)
		link_open(&p->l[i], &h, p->fd, NULL);
}

static void post_all(struct peer *p)
{
	for (unsigned i = 0; i < p->num; i++)
		link_post(&p->l[i], IBV_WR_RDMA_WRITE, mr, mem, LEN, 0);
}

static bool is_of(const struct peer *p, uint32_t qpn)
{
	for (unsigned i = 0; i < p->num; i++)
		if (p->l[i].qp->qp_num == qpn)
			return true;
	return false;
}

/* Until all of both ended, with @status. Of each the last is timed. */
static void wait_both(uint64_t *one_ns, uint64_t *many_ns, uint32_t many_cause)
{
	const uint64_t start = host_now();
	unsigned left = one.num + many.num, vain = 0;
	struct ibv_wc wc;

	while (left) {
		if (ibv_poll_cq(h.cq, 1, &wc) != 1) {
			host_rest(&vain);
			continue;
		}
		left--;
		REQUIRE_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
		REQUIRE_EQ(wc.vendor_err,
			   is_of(&one, wc.qp_num) ? SILENCE : many_cause);
		*(is_of(&one, wc.qp_num) ? one_ns : many_ns) = host_now() -
							       start;
	}
}

static void close_peer(struct peer *p)
{
	host_say(p->fd, 0);
	while (p->num)
		link_close(&p->l[--p->num]);
}

static void warm_up(struct peer *p)
{
	for (unsigned i = 0; i < p->num; i++) {
		link_post(&p->l[i], IBV_WR_RDMA_WRITE, mr, mem, LEN, 0);
		host_wait(&h, 1);
	}
}

/* Until none of its threads runs any more. */
static void stop_peer(const struct peer *p)
{
	int status;

	REQUIRE(kill(p->pid, SIGSTOP) == 0);
	REQUIRE(waitpid(p->pid, &status, WUNTRACED) == p->pid);
	REQUIRE(WIFSTOPPED(status));
}

/* Both at once, so that what else the host does is the same for both. */
static void against(unsigned n, bool stop)
{
	uint64_t one_ns = 0, many_ns = 0;

	one.fd = host_fork(target);
	many.fd = host_fork(target);
	open_all();
	REQUIRE(ibv_resize_cq(h.cq, (int)n + 1) == 0);
	peer_open(&one, 1);
	link_psn_ahead = stop ? 0 : 5;
	peer_open(&many, n);
	warm_up(&one);
	if (stop)
		warm_up(&many);
	stop_peer(&one);
	if (stop)
		stop_peer(&many);
	post_all(&one);
	post_all(&many);
	wait_both(&one_ns, &many_ns, stop ? SILENCE : STALLED);
	printf("one request to a stopped process: %llu ms, these: %llu ms\n",
	       (unsigned long long)(one_ns / MS),
	       (unsigned long long)(many_ns / MS));
	REQUIRE_LE(many_ns, one_ns + one_ns / 2);
	REQUIRE(kill(one.pid, SIGCONT) == 0);
	REQUIRE(kill(many.pid, SIGCONT) == 0);
	close_peer(&one);
	close_peer(&many);
	host_dereg(mr);
	host_close(&h);
	host_join();
}

/* --- a smaller MTU ---------------------------------------------------------------- */

static void set_lo(int mtu)
{
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP},
		     req = {.ifr_name = "lo", .ifr_mtu = mtu};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	REQUIRE(fd >= 0);
	REQUIRE(ioctl(fd, SIOCSIFFLAGS, &up) == 0);
	REQUIRE(ioctl(fd, SIOCSIFMTU, &req) == 0);
	close(fd);
}

/* What is written to standard error goes to a file, or as before. */
static int log_to_file(bool on)
{
	static int before = -1, to = -1;

	if (before < 0) {
		before = dup(STDERR_FILENO);
		to = memfd_create("log", 0);
		REQUIRE(before >= 0 && to >= 0);
	}
	REQUIRE(dup2(on ? to : before, STDERR_FILENO) >= 0);
	return to;
}

static bool log_says(int fd, const char *a, const char *b)
{
	static char text[1 << 16];
	const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	const char *line;

	REQUIRE(n >= 0);
	text[n] = 0;
	fputs(text, stderr);
	for (line = strstr(text, a); line; line = strstr(line + 1, a)) {
		const char *found = strstr(line, b);

		if (found && found < strchr(line, '\n'))
			return true;
	}
	return false;
}

static void smaller_mtu(void)
{
	enum ibv_wc_status status;
	int log;

	host_own_network();
	set_lo(WHOLE_MTU);
	one.fd = host_fork(target);
	open_all();
	peer_open(&one, 2);
	warm_up(&one);
	set_lo(SMALL_MTU);
	link_post(&one.l[0], IBV_WR_RDMA_WRITE, mr, mem, LEN, 0);
	host_sleep(SECOND / 2);
	set_lo(WHOLE_MTU);
	host_wait(&h, 1);
	log = log_to_file(true);
	set_lo(SMALL_MTU - 1);
	link_post(&one.l[1], IBV_WR_RDMA_WRITE, mr, mem, LEN, 0);
	status = host_status(&h);
	log_to_file(false);
	REQUIRE_EQ(status, IBV_WC_RETRY_EXC_ERR);
	REQUIRE(log_says(log, "by lo: ", "MTU is 999"));
	set_lo(WHOLE_MTU);
	close_peer(&one);
	host_dereg(mr);
	host_close(&h);
	host_join();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	const int n = argc == 3 ? atoi(argv[2]) : 1;

	REQUIRE(n > 0 && n <= MANY);
	host_start();
	link_timeout = 12; /* 17 ms: what is asked of any is more */
	link_retries = 3;
	if (!strcmp(how, "stopped"))
		against((unsigned)n, true);
	else if (!strcmp(how, "behind"))
		against(1, false);
	else if (!strcmp(how, "mtu"))
		smaller_mtu();
	else
		REQUIRE(!"behind, stopped or mtu");
	return 0;
}
