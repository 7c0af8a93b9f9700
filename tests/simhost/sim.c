/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim.c: the simulated world: its clock, its events, its dice, its hosts, and
 * the small calls of os/ (clock, randomness, memory, addresses, names,
 * event descriptors). Threads, network, memory, moves and pagers have files of
 * their own.
 *
 * Theory of operation
 *
 * A heap of events ordered by (time, number). sim_step() takes the first, sets
 * the clock to it and calls it; an event may be a packet that arrives, a virtual
 * thread that goes on, a pager that is done, or whatever a test scheduled. There
 * is no other source of time and, but for sim.rnd, none of randomness, so that
 * two runs of a seed are the same (hash.c).
 */
#include "base/check.h"
#include "base/list.h"
#include "base/rand.h"
#include "simhost/impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIM_BUSY_MAX = 100000 };
enum { SIM_FD_BASE = 1 << 20, SIM_RCVBUF = 212992, SIM_EPOCH_NS = SIM_MS };

struct sim *sim_world;

/* --- dice and trace -------------------------------------------------------- */

uint64_t sim_rand(struct sim *sim)
{
	return rnd_next(&sim->rnd);
}

uint64_t sim_between(struct sim *sim, uint64_t lo, uint64_t hi)
{
	CHECK(lo <= hi);
	if (lo == 0 && hi == UINT64_MAX)
		return sim_rand(sim);
	return lo + sim_rand(sim) % (hi - lo + 1);
}

bool sim_chance(struct sim *sim, uint32_t ppm)
{
	return ppm != 0 && sim_rand(sim) % SIM_PPM < ppm;
}

void sim_verbose(struct sim *sim, FILE *out)
{
	sim->out = out;
}

void sim_say(const struct sim *sim, const char *fmt, ...)
{
	va_list ap;

	if (!sim->out)
		return;
	fprintf(sim->out, "%12.3f us  ", (double)sim->now_ns / 1000);
	va_start(ap, fmt);
	vfprintf(sim->out, fmt, ap);
	va_end(ap);
	fputc('\n', sim->out);
}

struct sim_stats *sim_stats(struct sim *sim)
{
	return &sim->stats;
}

/* --- events ------------------------------------------------------------------ */

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

void sim_at(struct sim *sim, uint64_t at_ns,
	    void (*fn)(void *arg, uint64_t val), void *arg, uint64_t val)
{
	struct sim_event ev = {MAX(at_ns, sim->now_ns), sim->seq++, fn, arg,
			       val};
	size_t i = sim->num++;

	if (sim->num > sim->cap) {
		sim->cap = MAX(sim->cap * 2, 256);
		sim->heap = realloc(sim->heap, sim->cap * sizeof(ev));
		CHECK(sim->heap);
	}
	for (; i > 0 && event_before(&ev, &sim->heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		sim->heap[i] = sim->heap[(i - 1) / 2];
	sim->heap[i] = ev;
}

static struct sim_event event_pop(struct sim *sim)
{
	struct sim_event first = sim->heap[0], last = sim->heap[--sim->num];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < sim->num) {
		if (child + 1 < sim->num &&
		    event_before(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (!event_before(&sim->heap[child], &last))
			break;
		sim->heap[i] = sim->heap[child];
		i = child;
	}
	sim->heap[i] = last;
	return first;
}

bool sim_step(struct sim *sim)
{
	struct sim_event ev;

	if (sim->num == 0)
		return false;
	ev = event_pop(sim);
	sim->now_ns = ev.at_ns;
	sim_world = sim;
	ev.fn(ev.arg, ev.val);
	return true;
}

void sim_run(struct sim *sim, uint64_t until_ns)
{
	while (sim->num != 0 && sim->heap[0].at_ns <= until_ns)
		sim_step(sim);
	sim->now_ns = MAX(sim->now_ns, until_ns);
}

void sim_busy(struct sim *sim)
{
	if (sim->busy_ns != sim->now_ns)
		sim->busy = 0;
	sim->busy_ns = sim->now_ns;
	CHECK(++sim->busy < SIM_BUSY_MAX);
}

uint64_t sim_now(const struct sim *sim)
{
	return sim->now_ns;
}

/* --- the world and its hosts ---------------------------------------------------- */

static const struct sim_link_config link_default = {
	.latency_min_ns = UINT64_C(2) * SIM_US,
	.latency_max_ns = UINT64_C(4) * SIM_US,
	.reorder_ns = UINT64_C(50) * SIM_US,
};

struct sim *sim_open(uint64_t seed)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	CHECK(sim);
	sim->seed = sim->rnd.k0 = sim->hash[SIM_HASH_EVENTS] = seed;
	sim->now_ns = SIM_EPOCH_NS;
	list_init(&sim->threads);
	list_init(&sim->claims);
	sim_link_default(sim, &link_default);
	sim_world = sim;
	return sim;
}

static void blocks_free(struct os *os)
{
	list_for_each_safe(l, tmp, &os->blocks) {
		struct sim_block *b = list_entry(l, struct sim_block, link);

		list_del(l);
		free(b->p);
		free(b);
	}
}

static void claims_free(struct os *os)
{
	list_for_each_safe(l, tmp, &os->sim->claims) {
		struct sim_claim *c = list_entry(l, struct sim_claim, link);

		if (c->os == os) {
			list_del(l);
			free(c);
		}
	}
}

/* Packets on the wire are events: they have to arrive to be freed. */
void sim_close(struct sim *sim)
{
	for (unsigned i = 0; i < sim->hosts; i++) {
		sim_kill(sim->host[i]);
		sim_pager_close(sim->host[i]);
		sim_threads_end(sim->host[i]);
	}
	while (sim_step(sim))
		;
	for (unsigned i = 0; i < sim->hosts; i++) {
		blocks_free(sim->host[i]);
		sim_mem_free(sim->host[i]);
		free(sim->host[i]);
	}
	sim_threads_free(sim);
	free(sim->heap);
	if (sim_world == sim)
		sim_world = NULL;
	free(sim);
}

static const struct sim_mem_config mem_default = {
	.minor_min_ns = 500,
	.minor_max_ns = UINT64_C(3) * SIM_US,
	.major_min_ns = UINT64_C(60) * SIM_US,
	.major_max_ns = UINT64_C(2) * SIM_MS,
	.delay_max_ns = UINT64_C(2) * SIM_US,
};

struct os *sim_host_add(struct sim *sim, const struct sim_host_config *cfg)
{
	struct os *os = calloc(1, sizeof(*os));

	CHECK(os && sim->hosts < SIM_HOSTS_MAX);
	CHECK(cfg->machine < SIM_HOSTS_MAX);
	os->sim = sim;
	os->cfg = *cfg;
	os->index = sim->hosts++;
	if (os->cfg.rcvbuf == 0)
		os->cfg.rcvbuf = SIM_RCVBUF;
	if (os->cfg.mtu == 0)
		os->cfg.mtu = 9000;
	os->mem = mem_default;
	os->next_addr = (uint64_t)(os->index + 1) << 40;
	os->lock_limit = UINT64_MAX;
	list_init(&os->blocks);
	list_init(&os->maps);
	list_init(&os->asks);
	list_init(&os->answers);
	for (unsigned i = 0; i < OS_PORTS_MAX; i++)
		list_init(&os->port[i].queue);
	return sim->host[os->index] = os;
}

static struct os *next_to_open;

void sim_host_use(struct os *os)
{
	next_to_open = os;
}

struct sim *sim_of(const struct os *os)
{
	return os->sim;
}

void sim_kill(struct os *os)
{
	os->dead = true;
	sim_net_close(os);
	claims_free(os);
	sim_note(os->sim, 'K', os->index);
	sim_say(os->sim, "host %u: killed", os->index);
}

void sim_pause(struct os *os, uint64_t ns)
{
	os->paused_until_ns = MAX(os->paused_until_ns, os->sim->now_ns + ns);
	os->sim->stats.pauses++;
	sim_note(os->sim, 'Z', ns);
	sim_say(os->sim, "host %u: paused for %" PRIu64 " ns", os->index, ns);
}

/* --- os/run.h: life, clock, dice, memory ------------------------------------------- */

/** os_open() - Opens the host that sim_host_use() named; @cfg->addr is not
 * looked at. Return: -ENODEV if there is none.
 */
int os_open(struct os **out, const struct os_config *cfg)
{
	struct os *os = next_to_open;

	if (!os || os->open || os->dead)
		return -ENODEV;
	next_to_open = NULL;
	os->open = true;
	os->os_cfg = *cfg;
	*out = os;
	return 0;
}

void os_close(struct os *os)
{
	CHECK(os->open && !os->lines);
	os->open = false;
	sim_net_close(os);
	sim_pager_close(os);
	os_board_close(os);
	claims_free(os);
	blocks_free(os);
}

uint64_t os_now(struct os *os)
{
	sim_busy(os->sim);
	return os->sim->now_ns;
}

void os_random(struct os *os, void *buf, size_t len)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(sim_rand(os->sim) >> 24);
}

void *os_memory(struct os *os, size_t bytes)
{
	size_t whole = DIV_ROUND_UP(bytes, PAGE_BYTES) * PAGE_BYTES;
	struct sim_block *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->p = aligned_alloc(PAGE_BYTES, whole);
	if (!b->p) {
		free(b);
		return NULL;
	}
	memset(b->p, 0, whole);
	list_add_tail(&os->blocks, &b->link);
	/* cppcheck-suppress memleak ; the list has it */
	return b->p;
}

struct os_usage os_usage(void)
{
	if (!sim_world)
		return (struct os_usage){.majflt = 0};
	return (struct os_usage){.minflt = sim_world->minflt,
				 .majflt = sim_world->majflt};
}

bool os_step_begin(void)
{
	return false;
}

void os_step_end(bool begun)
{
	(void)begun;
}

bool os_forking(const struct os *os)
{
	(void)os;
	return false;
}

uint64_t os_forks(const struct os *os)
{
	return os->forks;
}

bool os_child(const struct os *os)
{
	(void)os;
	return false;
}

/* --- os/net.h: addresses -------------------------------------------------------------- */

void sim_host_mtu(struct os *os, uint32_t mtu)
{
	os->cfg.mtu = mtu;
}

struct ipaddr sim_host_ip(const struct os *os, bool v6)
{
	const uint8_t m = (uint8_t)os->cfg.machine;

	if (v6)
		return (struct ipaddr){{0xfd, 0, [13] = 1, [14] = m, [15] = 1}};
	return (struct ipaddr){{[10] = 0xff, [11] = 0xff, 10, 0, m, 1}};
}

void sim_addr_set(struct os *os, bool v6, bool there)
{
	os->gone[v6] = !there;
	os->net_changed = true;
}

void sim_link_up(struct os *os, bool running, uint32_t mtu)
{
	os->unplugged = !running;
	os->cfg.mtu = mtu;
	os->net_changed = true;
}

int os_net_read(struct os *os, struct os_net *net)
{
	const struct os_link link = {
		.ifindex = 2,
		.mtu = os->cfg.mtu,
		.mac = {2, 0, 0, 0, 0, (uint8_t)os->cfg.machine},
		.up = true,
		.running = !os->unplugged,
		.ifname = "sim0"};

	*net = (struct os_net){.link = calloc(1, sizeof(*net->link)),
			       .addr = calloc(2, sizeof(*net->addr))};
	CHECK(net->link && net->addr);
	net->link[net->nlinks++] = link;
	for (int v6 = 0; v6 < (os->cfg.v6 ? 2 : 1); v6++) {
		struct os_addr *a = &net->addr[net->naddrs];

		if (os->gone[v6])
			continue;
		*a = (struct os_addr){.ip = sim_host_ip(os, v6),
				      .ifindex = link.ifindex,
				      .mtu = link.mtu,
				      .up = true,
				      .default_route = true};
		memcpy(a->mac, link.mac, sizeof(a->mac));
		memcpy(a->ifname, link.ifname, sizeof(a->ifname));
		net->naddrs++;
	}
	return 0;
}

void os_net_free(struct os_net *net)
{
	free(net->addr);
	free(net->link);
}

int os_net_watch(struct os *os)
{
	(void)os;
	return 0;
}

bool os_net_changed(struct os *os)
{
	const bool changed = os->net_changed;

	os->net_changed = false;
	return changed;
}

int os_addr_check(struct os *os, char *valid, size_t size)
{
	(void)os;
	(void)valid;
	(void)size;
	return 0; /* there is no filter */
}

/* --- os/names.h --------------------------------------------------------------------- */

/* Nobody asks a simulated NIC; its test can call what the answer is made of. */
int os_ctl_open(struct os *os)
{
	(void)os;
	return 0;
}

int os_ctl_take(struct os *os, char *buf, size_t size)
{
	(void)os;
	(void)buf;
	(void)size;
	return -EAGAIN;
}

int os_ctl_answer(struct os *os, const char *error, const char *text,
		  size_t len)
{
	(void)os;
	(void)error;
	(void)text;
	(void)len;
	return -EPIPE;
}

/* All processes of a machine are of one user. */
int os_board_open(struct os *os, const char *dir)
{
	(void)dir;
	os->note = (struct os_note){.pid = (int32_t)os->index + 1};
	return 0;
}

void os_board_close(struct os *os)
{
	os->posted = false;
}

int os_board_post(struct os *os, const void *note)
{
	memcpy(os->note.bytes, note, OS_NOTE_BYTES);
	os->posted = true;
	return 0;
}

const struct os_note *os_board_mine(struct os *os)
{
	return &os->note;
}

int os_board_read(struct os *os, const struct os_note **out)
{
	const struct sim *sim = os->sim;
	int n = 0;

	for (unsigned i = 0; i < sim->hosts; i++) {
		const struct os *other = sim->host[i];

		if (other != os && other->posted && !other->dead &&
		    other->cfg.machine == os->cfg.machine)
			out[n++] = &other->note;
	}
	return n;
}

static struct sim_claim *claim_named(const struct os *os, const char *name)
{
	list_for_each(l, &os->sim->claims) {
		struct sim_claim *c = list_entry(l, struct sim_claim, link);

		if (c->machine == os->cfg.machine && !strcmp(c->name, name))
			return c;
	}
	return NULL;
}

static struct sim_claim *claim_of(const struct sim *sim, int fd)
{
	list_for_each(l, &sim->claims) {
		struct sim_claim *c = list_entry(l, struct sim_claim, link);

		if (c->fd == fd)
			return c;
	}
	return NULL;
}

int os_claim(struct os *os, const char *name)
{
	static int next_fd = SIM_FD_BASE + (1 << 20);
	struct sim_claim *c;

	if (claim_named(os, name))
		return -EADDRINUSE;
	if (strlen(name) >= sizeof(c->name))
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->machine = os->cfg.machine;
	c->os = os;
	c->fd = next_fd++;
	snprintf(c->name, sizeof(c->name), "%s", name);
	list_add_tail(&os->sim->claims, &c->link);
	/* cppcheck-suppress memleak ; the list has it */
	return c->fd;
}

void os_unclaim(struct os *os, int claim)
{
	struct sim_claim *c = claim_of(os->sim, claim);

	if (!c)
		return;
	list_del(&c->link);
	free(c);
}

int os_claim_share(struct os *os, int claim, int port, uint64_t secret)
{
	struct sim_claim *c = claim_of(os->sim, claim);

	CHECK(port >= 0);
	CHECK(c && c->os == os);
	c->shared = true;
	c->secret = secret;
	return 0;
}

/* No program closes anything. */
void os_claim_closed(struct os *os, int claim)
{
	os_unclaim(os, claim);
}

void os_claim_unshare(struct os *os)
{
	list_for_each(l, &os->sim->claims) {
		struct sim_claim *c = list_entry(l, struct sim_claim, link);

		c->shared &= c->os != os;
	}
}

void os_prepare(struct os *os)
{
	(void)os;
}

bool os_memory_left(size_t bytes)
{
	(void)bytes;
	return true;
}

bool os_prepare_due(struct os *os)
{
	(void)os;
	return false;
}

int os_holder_ask(struct os *os, const char *name, struct os_holder *who)
{
	const struct sim_claim *c = claim_named(os, name);

	if (!c || !c->shared)
		return -ECONNREFUSED;
	*who = (struct os_holder){(int32_t)c->os->index + 1, c->os->cfg.user};
	if (c->os->cfg.user && c->os->cfg.user != os->cfg.user)
		return -EPERM;
	return c->fd + SIM_GUEST;
}

int os_holder_says(struct os *os, int fd, uint64_t *secret)
{
	const struct sim_claim *c = claim_of(os->sim, fd - SIM_GUEST);

	if (!c || !c->shared)
		return -EPIPE;
	if (os->told == fd)
		return 0;
	os->told = fd;
	*secret = c->secret;
	return 1;
}

/* It speaks at once. */
void os_holder_wait(struct os *os, int fd, uint64_t until_ns)
{
	(void)os;
	(void)fd;
	(void)until_ns;
}

/* Nobody is woken by it. */
bool os_holder_spoke(struct os *os)
{
	(void)os;
	return false;
}

void os_holder_leave(struct os *os, int fd)
{
	(void)os;
	(void)fd;
}

uint64_t os_descriptor_limit(void)
{
	return UINT64_MAX;
}

void os_memory_limit(char *text, size_t size)
{
	snprintf(text, size, "there is no limit");
}

/* --- os/wait.h: event descriptors ------------------------------------------------------------ */

/* Not real descriptors: nobody can poll(2) in virtual time. */
static bool *event_set;
static int events, events_cap;

int os_event_open(void)
{
	if (events == events_cap) {
		const int cap = MAX(events_cap * 2, 64);
		bool *set = realloc(event_set, (size_t)cap * sizeof(*set));

		if (!set)
			return -ENOMEM;
		event_set = set;
		events_cap = cap;
	}
	event_set[events] = false;
	return SIM_FD_BASE + events++;
}

int os_event_own(void)
{
	return os_event_open();
}

bool sim_event_is_set(int fd)
{
	return fd >= SIM_FD_BASE && fd < SIM_FD_BASE + events &&
	       event_set[fd - SIM_FD_BASE];
}

void os_event_set(int fd)
{
	CHECK(fd >= SIM_FD_BASE && fd < SIM_FD_BASE + events);
	event_set[fd - SIM_FD_BASE] = true;
	if (sim_world)
		sim_wake_fd(sim_world, fd);
}

bool os_event_clear(int fd)
{
	const bool was = sim_event_is_set(fd);

	if (was)
		event_set[fd - SIM_FD_BASE] = false;
	return was;
}

void os_event_close(int fd)
{
	os_event_clear(fd);
}

bool os_event_nonblock(int fd)
{
	CHECK(fd >= SIM_FD_BASE && fd < SIM_FD_BASE + events);
	return true; /* nothing blocks in virtual time */
}

void os_log(const char *line, size_t len)
{
	fwrite(line, 1, len, stderr);
}
