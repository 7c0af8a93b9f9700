/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* relay.c: a network without order between two namespaces.
 *
 *   relay REORDER DELAY_US PATHS_US NAMESPACE-A NAMESPACE-B REPORT
 *
 * Makes a tun device n0 in each namespace and passes packets from one to the
 * other, single datagrams: a tun device takes no segmentation from its kernel. Of
 * 1000 UDP packets REORDER are kept for up to DELAY_US, while those behind them
 * pass. Each UDP flow takes one of 8 paths by its ports, of which the longest is
 * PATHS_US longer than the shortest. Nothing is lost here.
 *
 * When the devices are there it goes on in the background and prints its process
 * number. SIGTERM ends it; then REPORT says what it did. 77: no tun devices here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
	PACKET_MAX = 2048,
	KEPT_MAX = 16384,
	BATCH = 64, /* from one side before the other is looked at */
	PATHS = 8,
	IPPROTO_UDP_ = 17,
};

struct packet {
	uint64_t due_ns, serial;
	int to;
	uint16_t len;
	uint8_t bytes[PACKET_MAX];
};

static struct {
	uint32_t permille;
	uint64_t delay_ns, paths_ns;
	int tun[2];
	struct packet *heap[KEPT_MAX], *free[KEPT_MAX];
	unsigned kept, frees, kept_most;
	uint64_t serial, last_serial[2], random;
	uint64_t passed, delayed, overtaken;
} relay;

static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	(void)sig;
	ended = 1;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* xorshift64 */
static uint64_t dice(uint64_t n)
{
	relay.random ^= relay.random << 13;
	relay.random ^= relay.random >> 7;
	relay.random ^= relay.random << 17;
	return n ? relay.random % n : 0;
}

/* --- devices -------------------------------------------------------------------- */

static int tun_in(const char *namespace)
{
	struct ifreq ifr = {.ifr_name = "n0", .ifr_flags = IFF_TUN | IFF_NO_PI};
	char path[256];
	int ns, fd;

	snprintf(path, sizeof(path), "/var/run/netns/%s", namespace);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET))
		die(path);
	close(ns);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr)) {
		perror("/dev/net/tun");
		exit(77);
	}
	return fd;
}

/* --- the heap of what is kept, by time, then as it came ------------------------------ */

static bool before(const struct packet *a, const struct packet *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns
				      : a->serial < b->serial;
}

static void keep(struct packet *p)
{
	unsigned i = relay.kept++;

	for (; i && before(p, relay.heap[(i - 1) / 2]); i = (i - 1) / 2)
		relay.heap[i] = relay.heap[(i - 1) / 2];
	relay.heap[i] = p;
	if (relay.kept > relay.kept_most)
		relay.kept_most = relay.kept;
}

static struct packet *take(void)
{
	struct packet *first = relay.heap[0], *p = relay.heap[--relay.kept];
	unsigned i = 0, k;

	while ((k = 2 * i + 1) < relay.kept) {
		if (k + 1 < relay.kept &&
		    before(relay.heap[k + 1], relay.heap[k]))
			k++;
		if (!before(relay.heap[k], p))
			break;
		relay.heap[i] = relay.heap[k];
		i = k;
	}
	relay.heap[i] = p;
	return first;
}

/* --- packets ---------------------------------------------------------------------- */

/* Where the UDP header of the packet is, or 0. */
static unsigned udp_at(const struct packet *p)
{
	const unsigned head = (p->bytes[0] & 15) * 4u;

	if (p->len < 48)
		return 0;
	if (p->bytes[0] >> 4 == 4)
		return p->bytes[9] == IPPROTO_UDP_ ? head : 0;
	return p->bytes[6] == IPPROTO_UDP_ ? 40 : 0;
}

static uint64_t delay_of(const struct packet *p)
{
	const unsigned at = udp_at(p);
	uint64_t ns = 0;

	if (!at)
		return 0;
	if (relay.paths_ns)
		ns = relay.paths_ns * (p->bytes[at + 1] * 5u % PATHS) /
		     (PATHS - 1);
	if (dice(1000) < relay.permille) {
		relay.delayed++;
		ns += dice(relay.delay_ns);
	}
	return ns;
}

/* The device's queue may be full for a moment. */
static void pass(struct packet *p)
{
	while (write(relay.tun[p->to], p->bytes, p->len) < 0 &&
	       (errno == EAGAIN || errno == EINTR))
		;
	relay.passed++;
	if (p->serial < relay.last_serial[p->to])
		relay.overtaken++;
	else
		relay.last_serial[p->to] = p->serial;
	relay.free[relay.frees++] = p;
}

/* Return: whether there may be more. */
static bool take_from(int side)
{
	struct packet *p;
	ssize_t n;

	for (int i = 0; i < BATCH; i++) {
		if (!relay.frees)
			return false; /* the device's queue is next */
		p = relay.free[relay.frees - 1];
		n = read(relay.tun[side], p->bytes, sizeof(p->bytes));
		if (n <= 0)
			return false;
		relay.frees--;
		p->len = (uint16_t)n;
		p->to = !side;
		p->serial = ++relay.serial;
		p->due_ns = now_ns() + delay_of(p);
		keep(p);
	}
	return true;
}

static void wait_for(uint64_t until_ns)
{
	struct pollfd fds[2] = {{.fd = relay.tun[0], .events = POLLIN},
				{.fd = relay.tun[1], .events = POLLIN}};
	const uint64_t now = now_ns();
	const uint64_t ns = until_ns > now ? until_ns - now : 0;
	const struct timespec t = {(time_t)(ns / 1000000000),
				   (long)(ns % 1000000000)};

	(void)ppoll(fds, relay.frees ? 2 : 0,
		    until_ns == UINT64_MAX ? NULL : &t, NULL);
}

static void run(void)
{
	while (!ended) {
		bool more = take_from(0);

		more |= take_from(1);
		while (relay.kept && relay.heap[0]->due_ns <= now_ns())
			pass(take());
		if (!more)
			wait_for(relay.kept ? relay.heap[0]->due_ns
					    : UINT64_MAX);
	}
}

static void report(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		die(path);
	fprintf(f, "passed %llu delayed %llu overtaken %llu kept %u\n",
		(unsigned long long)relay.passed,
		(unsigned long long)relay.delayed,
		(unsigned long long)relay.overtaken, relay.kept_most);
	fclose(f);
}

static void background(void)
{
	const pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid) {
		printf("%d\n", pid);
		exit(0);
	}
	setsid();
	(void)!freopen("/dev/null", "w", stdout);
	(void)!freopen("/dev/null", "w", stderr);
}

int main(int argc, char **argv)
{
	const struct sched_param first = {.sched_priority = 1};
	const struct sigaction end = {.sa_handler = on_end};
	struct packet *all;

	if (argc != 7) {
		fprintf(stderr, "relay REORDER DELAY_US PATHS_US NAMESPACE-A "
				"NAMESPACE-B REPORT\n");
		return 2;
	}
	relay.permille = (uint32_t)strtoul(argv[1], NULL, 10);
	relay.delay_ns = strtoull(argv[2], NULL, 10) * 1000;
	relay.paths_ns = strtoull(argv[3], NULL, 10) * 1000;
	relay.random = now_ns() | 1;
	all = calloc(KEPT_MAX, sizeof(*all));
	if (!all)
		die("calloc");
	while (relay.frees < KEPT_MAX) {
		relay.free[relay.frees] = &all[relay.frees];
		relay.frees++;
	}
	relay.tun[0] = tun_in(argv[4]);
	relay.tun[1] = tun_in(argv[5]);
	background();
	sigaction(SIGTERM, &end, NULL);
	(void)prctl(PR_SET_TIMERSLACK, 1000);
	/* A network takes no turns with programs that spin. Nor is it starved by
	 * them: seen for minutes on Linux 6.18, with the highest of ordinary
	 * priorities. */
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		(void)setpriority(PRIO_PROCESS, 0, -20);
	run();
	report(argv[6]);
	return 0;
}
