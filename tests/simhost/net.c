/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net.c: the virtual network: ports, sends, receives, ICMP errors, what is between.
 *
 * Theory of operation
 *
 * A send is one unit, as a GSO send is on Linux: it is lost, doubled, delayed
 * and queued as a whole, and one receive gets it. Mishaps of single packets
 * (real cards send single packets) cut a unit: the segments before, the unlucky
 * one, and those behind travel as units of their own, which is also what GRO
 * makes of them at the other end. Without GSO or GRO every segment is a unit.
 *
 * A unit that arrives is charged to the receive buffer of its port as Linux
 * charges truesize (design D14): it is dropped, without a word to the sender,
 * if it does not fit.
 */
#include "base/check.h"
#include "base/range.h"
#include "simhost/impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
	SIM_SKB_BYTES = 256, /* sizeof(struct sk_buff), rounded */
	SIM_SKB_ROOM = 428, /* headers, headroom and skb_shared_info */
	SIM_SKB_HEAD_MIN = 576,
	UDP_HDR_BYTES = 8,
	IPV4_HDR_BYTES = 20,
	IPV6_HDR_BYTES = 40,
	PORT_MIN = 49152,
	/* What is known here of packets, to corrupt them as networks do: an
	 * opcode from 0xc0 on means that the CRC covers only the headers, of
	 * which there are at least these. */
	EXT_OPCODE = 0xc0,
	EXT_ACK = 0xc3, /* those before it are sent with a lock held, */
	EXT_OPEN = 0xc4, /* and those of this */
	EXT_HDR_BYTES = 12,
	SIM_HOPS = 64, /* where the sender says nothing */
};

/** struct sim_unit - A burst or a single packet between two sockets. */
struct sim_unit {
	struct list link;
	struct os *from;
	struct endpoint src, dst;
	struct ip_mark mark;
	uint32_t len, seg, charge;
	uint8_t bytes[];
};

/* --- ports ------------------------------------------------------------------- */

static struct os *port_owner(struct sim *sim, unsigned machine, uint16_t number,
			     unsigned *index)
{
	for (unsigned h = 0; h < sim->hosts; h++) {
		struct os *os = sim->host[h];

		if (os->dead || os->cfg.machine != machine)
			continue;
		for (unsigned i = 0; i < OS_PORTS_MAX; i++) {
			if (os->port[i].open && os->port[i].number == number) {
				*index = i;
				return os;
			}
		}
	}
	return NULL;
}

static uint16_t port_draw(struct os *os)
{
	unsigned index;
	uint16_t number;

	do {
		number = (uint16_t)sim_between(os->sim, PORT_MIN, UINT16_MAX);
	} while (port_owner(os->sim, os->cfg.machine, number, &index));
	return number;
}

int os_port_open(struct os *os, uint16_t want, uint16_t *port)
{
	unsigned index, taken;

	if (want != 0 &&
	    port_owner(os->sim, os->cfg.machine, want, &taken) != NULL)
		return -EADDRINUSE;
	for (index = 0; index < OS_PORTS_MAX; index++) {
		if (!os->port[index].open)
			break;
	}
	if (index == OS_PORTS_MAX)
		return -EMFILE;
	os->port[index].open = true;
	os->port[index].number = want ? want : port_draw(os);
	os->port[index].charged = 0;
	if (port)
		*port = os->port[index].number;
	return (int)index;
}

void os_port_close(struct os *os, int index)
{
	struct sim_port *p = &os->port[index];

	CHECK(p->open || os->dead);
	p->open = false;
	list_for_each_safe(l, tmp, &p->queue) {
		list_del(l);
		free(list_entry(l, struct sim_unit, link));
	}
}

void sim_net_close(struct os *os)
{
	for (int i = 0; i < OS_PORTS_MAX; i++) {
		if (os->port[i].open)
			os_port_close(os, i);
	}
}

size_t os_rcvbuf(struct os *os)
{
	return os->cfg.rcvbuf;
}

/* --- links --------------------------------------------------------------------- */

void sim_link_set(struct sim *sim, unsigned from, unsigned to,
		  const struct sim_link_config *cfg)
{
	sim->link[from][to].cfg = *cfg;
}

void sim_link_default(struct sim *sim, const struct sim_link_config *cfg)
{
	for (unsigned i = 0; i < SIM_HOSTS_MAX; i++) {
		for (unsigned j = 0; j < SIM_HOSTS_MAX; j++)
			sim_link_set(sim, i, j, cfg);
	}
}

void sim_filter(struct sim *sim,
		bool (*pass)(void *arg, const uint8_t *bytes, uint32_t len),
		void *arg)
{
	sim->filter = pass;
	sim->filter_arg = arg;
}

void sim_partition(struct sim *sim, unsigned a, unsigned b, bool on)
{
	sim->link[a][b].cut = sim->link[b][a].cut = on;
	sim_note(sim, 'C', on);
	sim_say(sim, "machines %u and %u: %s", a, b, on ? "cut off" : "joined");
}

/** ip_machine() - Return: the machine with that address, or SIM_HOSTS_MAX. */
static unsigned ip_machine(const struct sim *sim, const struct ipaddr *ip)
{
	for (unsigned i = 0; i < sim->hosts; i++) {
		const struct os *os = sim->host[i];
		const struct ipaddr v4 = sim_host_ip(os, false);
		const struct ipaddr v6 = sim_host_ip(os, true);

		if (ipaddr_eq(ip, &v4) || (os->cfg.v6 && ipaddr_eq(ip, &v6)))
			return os->cfg.machine;
	}
	return SIM_HOSTS_MAX;
}

/* Is @ip an address that its machine does not have at the moment? */
static bool ip_gone(const struct sim *sim, const struct ipaddr *ip)
{
	const bool v6 = !ipaddr_is_v4(ip);

	for (unsigned i = 0; i < sim->hosts; i++) {
		const struct ipaddr own = sim_host_ip(sim->host[i], v6);

		if (sim->host[i]->gone[v6] && ipaddr_eq(ip, &own))
			return true;
	}
	return false;
}

static uint32_t segments(uint32_t len, uint32_t seg)
{
	return len == 0 ? 1 : DIV_ROUND_UP(len, seg);
}

/* --- receiving side --------------------------------------------------------------- */

/* truesize, as lab measurements of the kernel gave it (design D14) */
static uint32_t unit_charge(uint32_t len, uint32_t seg)
{
	uint32_t head = SIM_SKB_HEAD_MIN;

	if (len > seg)
		return len + len / 10 + SIM_SKB_HEAD_MIN + SIM_SKB_BYTES;
	if (len + SIM_SKB_ROOM > head) {
		for (head = 1024; head < len + SIM_SKB_ROOM;)
			head *= 2;
	}
	return head + SIM_SKB_BYTES;
}

struct sim_icmp {
	struct os *to;
	struct sim_error error;
};

static void icmp_arrive(void *arg, uint64_t val)
{
	struct sim_icmp *icmp = arg;
	struct os *os = icmp->to;

	(void)val;
	if (os->open && !os->dead && os->errors < SIM_ERRORS_MAX) {
		os->error[os->errors++] = icmp->error;
		sim_note(os->sim, 'I', icmp->error.dst.port);
		sim_wake(os, true);
	}
	free(icmp);
}

/* ICMP packets get lost, too. */
static void unit_unreachable(struct sim *sim, const struct sim_unit *u,
			     const struct sim_link *back)
{
	struct sim_icmp *icmp;

	if (back->cut || sim_chance(sim, back->cfg.loss))
		return;
	icmp = calloc(1, sizeof(*icmp));
	CHECK(icmp);
	sim->stats.unreachable++;
	icmp->to = u->from;
	icmp->error.dst = u->dst;
	icmp->error.err = ECONNREFUSED;
	sim_say(sim, "host %u: port %u is unreachable", u->from->index,
		u->dst.port);
	sim_at(sim, sim->now_ns + back->cfg.latency_max_ns, icmp_arrive, icmp,
	       0);
}

static void unit_queue(struct os *os, struct sim_port *port, struct sim_unit *u)
{
	struct sim *sim = os->sim;

	u->charge = unit_charge(u->len, u->seg);
	if (!range_ok(port->charged, u->charge, os->cfg.rcvbuf)) {
		os->kernel_drops += segments(u->len, u->seg);
		sim->stats.kernel_drops += segments(u->len, u->seg);
		sim_note(sim, 'D', u->len);
		sim_say(sim, "host %u: receive buffer full, %u bytes dropped",
			os->index, u->len);
		free(u);
		return;
	}
	port->charged += u->charge;
	list_add_tail(&port->queue, &u->link);
	sim_note(sim, 'R', (uint64_t)os->index << 32 | u->len);
	sim_wake(os, true);
}

static struct sim_unit *unit_cut(const struct sim_unit *u, uint32_t off,
				 uint32_t len)
{
	struct sim_unit *cut = malloc(sizeof(*cut) + len);

	CHECK(cut);
	*cut = *u;
	cut->len = len;
	cut->seg = MIN(u->seg, len);
	memcpy(cut->bytes, u->bytes + off, len);
	return cut;
}

static void unit_arrive(void *arg, uint64_t machines)
{
	const unsigned from = (unsigned)(machines >> 8);
	const unsigned to = (unsigned)(machines & 0xff);
	struct sim_unit *u = arg;
	struct sim *sim = u->from->sim;
	struct os *os;
	unsigned index;

	os = port_owner(sim, to, u->dst.port, &index);
	if (!os) {
		unit_unreachable(sim, u, &sim->link[to][from]);
		free(u);
		return;
	}
	if (!os->os_cfg.no_gro || u->len <= u->seg) {
		unit_queue(os, &os->port[index], u);
		return;
	}
	for (uint32_t off = 0; off < u->len; off += u->seg)
		unit_queue(os, &os->port[index],
			   unit_cut(u, off, MIN(u->seg, u->len - off)));
	free(u);
}

/* --- on the way ------------------------------------------------------------------------ */

/* Which path is longer than which is not in the order of the ports. */
static uint64_t path_extra(const struct sim_link_config *cfg, unsigned path)
{
	return cfg->path_ns * (path * 7 % SIM_PATHS) / (SIM_PATHS - 1);
}

/* Consumes @u. */
static void unit_fly(struct sim_unit *u, unsigned from, unsigned to, bool late)
{
	struct sim *sim = u->from->sim;
	struct sim_link *link = &sim->link[from][to];
	const struct sim_link_config *cfg = &link->cfg;
	const unsigned path = cfg->path_ns ? u->src.port % SIM_PATHS : 0;
	uint64_t at = MAX(sim->now_ns, link->busy_until_ns);

	if (cfg->bytes_per_us != 0)
		at += (uint64_t)u->len * SIM_US / cfg->bytes_per_us;
	link->busy_until_ns = at;
	at += sim_between(sim, cfg->latency_min_ns, cfg->latency_max_ns) +
	      path_extra(cfg, path);
	if (late) {
		at += sim_between(sim, 0, cfg->reorder_ns);
		sim->stats.reordered++;
	} else {
		/* One path keeps the order. */
		at = link->last_ns[path] = MAX(at, link->last_ns[path]);
	}
	sim_at(sim, at, unit_arrive, u, (uint64_t)from << 8 | to);
}

/* Return: false: the UDP checksum would have shown it. */
static bool unit_corrupt(struct sim *sim, struct sim_unit *u)
{
	const bool ext = u->len != 0 && u->bytes[0] >= EXT_OPCODE;
	const uint32_t len = ext ? MIN(u->len, EXT_HDR_BYTES) : u->len;

	if (len == 0 || (ext && sim_chance(sim, SIM_PPM / 2))) {
		sim->stats.checksum_drops++;
		return false;
	}
	for (uint64_t n = sim_between(sim, 1, 3); n > 0; n--) {
		const uint64_t bit = sim_between(sim, 0, len * 8 - 1);

		u->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	sim->stats.corrupted++;
	sim_note(sim, 'X', u->len);
	sim_say(sim, "host %u: packet of %u bytes corrupted", u->from->index,
		u->len);
	return true;
}

/* What may happen to a single packet. */
enum mishap {
	MISHAP_NONE,
	MISHAP_LOST,
	MISHAP_CORRUPT,
	MISHAP_TWICE,
	MISHAP_LATE
};

static enum mishap mishap_draw(struct sim *sim,
			       const struct sim_link_config *cfg,
			       const struct sim_unit *u, uint32_t off)
{
	if (cfg->renumber && off > 0 && u->bytes[off] < EXT_OPCODE)
		return MISHAP_LOST;
	if (sim_chance(sim, cfg->loss))
		return MISHAP_LOST;
	if (sim_chance(sim, cfg->corrupt))
		return MISHAP_CORRUPT;
	if (sim_chance(sim, cfg->dup))
		return MISHAP_TWICE;
	return sim_chance(sim, cfg->reorder) ? MISHAP_LATE : MISHAP_NONE;
}

/* Consumes @u. */
static void unit_suffer(struct sim_unit *u, unsigned from, unsigned to,
			enum mishap mishap)
{
	struct sim *sim = u->from->sim;

	sim_note(sim, 'M', (uint64_t)mishap << 32 | u->len);
	if (mishap == MISHAP_LOST) {
		sim->stats.lost++;
		sim_say(sim, "host %u: packet of %u bytes lost", u->from->index,
			u->len);
		free(u);
		return;
	}
	if (mishap == MISHAP_CORRUPT && !unit_corrupt(sim, u)) {
		free(u);
		return;
	}
	if (mishap == MISHAP_TWICE) {
		sim->stats.duplicated++;
		unit_fly(unit_cut(u, 0, u->len), from, to, true);
	}
	unit_fly(u, from, to, mishap == MISHAP_LATE);
}

/* A whole burst, consumed: only what hits single packets too, and more. */
static void unit_send(struct sim_unit *u, unsigned from, unsigned to)
{
	struct sim *sim = u->from->sim;
	const struct sim_link_config *cfg = &sim->link[from][to].cfg;

	if (u->len > u->seg && sim_chance(sim, cfg->dup))
		unit_suffer(u, from, to, MISHAP_TWICE);
	else
		unit_fly(u, from, to,
			 u->len > u->seg && sim_chance(sim, cfg->reorder));
}

/* Cut out the packets that do not share the burst's fate; consumes @u. */
static void unit_split(struct sim_unit *u, unsigned from, unsigned to)
{
	struct sim *sim = u->from->sim;
	const struct sim_link_config *cfg = &sim->link[from][to].cfg;
	uint32_t begin = 0;

	for (uint32_t off = 0; off < u->len; off += u->seg) {
		const uint32_t len = MIN(u->seg, u->len - off);
		const enum mishap mishap = mishap_draw(sim, cfg, u, off);

		if (mishap == MISHAP_NONE)
			continue;
		sim->stats.bursts_split += len < u->len;
		if (off > begin)
			unit_send(unit_cut(u, begin, off - begin), from, to);
		unit_suffer(unit_cut(u, off, len), from, to, mishap);
		begin = off + len;
	}
	if (begin == 0) {
		unit_send(u, from, to);
		return;
	}
	if (begin < u->len)
		unit_send(unit_cut(u, begin, u->len - begin), from, to);
	free(u);
}

/* Consumes @u. */
static void unit_depart(struct sim_unit *u, unsigned from, unsigned to)
{
	struct sim *sim = u->from->sim;
	struct sim_link *link = &sim->link[from][to];

	const bool pass = !sim->filter ||
			  sim->filter(sim->filter_arg, u->bytes, u->len);

	if (pass && !link->cut && !sim_chance(sim, link->cfg.burst_loss)) {
		unit_split(u, from, to);
		return;
	}
	sim->stats.bursts_lost++;
	sim_note(sim, 'L', u->len);
	sim_say(sim, "host %u: send of %u bytes lost", u->from->index, u->len);
	free(u);
}

/* --- sending side ------------------------------------------------------------------------ */

/* A line is its source port; nobody receives there. */
int os_connect(struct os *os, const struct ipaddr *src,
	       const struct endpoint *dst, struct ip_mark mark)
{
	(void)dst;
	(void)mark; /* who uses it says it with each send */
	if (ip_machine(os->sim, src) != os->cfg.machine)
		return 0;
	os->lines++;
	return SIM_LINE_FIRST + (int)(os->line_next++ % SIM_LINES);
}

void os_port_marks(struct os *os, int index)
{
	CHECK(os->port[index].open);
}

void os_disconnect(struct os *os, int line)
{
	CHECK(line >= SIM_LINE_FIRST && os->lines);
	os->lines--;
}

bool os_gso(struct os *os)
{
	return !os->os_cfg.no_gso;
}

bool os_gro(struct os *os)
{
	return !os->os_cfg.no_gro;
}

static int tx_check(struct os *os, const struct os_tx *tx, size_t len)
{
	const size_t ip = ipaddr_is_v4(&tx->dst.ip) ? IPV4_HDR_BYTES
						    : IPV6_HDR_BYTES;
	const size_t seg = tx->seg ? MIN(tx->seg, len) : len;

	if (ip_machine(os->sim, &tx->src) != os->cfg.machine)
		return -EINVAL;
	if (seg + UDP_HDR_BYTES + ip > os->cfg.mtu || len > OS_SEND_MAX)
		return -EMSGSIZE;
	if (len > seg && DIV_ROUND_UP(len, seg) > OS_SEGS_MAX)
		return -EINVAL;
	return 0;
}

/* Only reading application memory takes time. */
static int tx_gather(struct os *os, const struct os_tx *tx, uint8_t *out)
{
	bool slept = false;

	for (unsigned i = 0; i < tx->niov; i++) {
		const struct iovec *v = &tx->iov[i];

		if (!sim_is_app(v->iov_base)) {
			memcpy(out, v->iov_base, v->iov_len);
			out += v->iov_len;
			continue;
		}
		if (!slept)
			sim_moment(os);
		slept = true;
		if (sim_copy(os, (uintptr_t)v->iov_base, out, v->iov_len,
			     false) != 0)
			return -EFAULT;
		out += v->iov_len;
	}
	if (slept)
		sim_moment(os);
	return 0;
}

static int tx_alloc(struct os *os, const struct os_tx *tx,
		    struct sim_unit **out)
{
	struct sim_unit *u;
	size_t len = 0;
	int err;

	if (tx->niov > OS_IOV_MAX)
		return -EMSGSIZE;
	for (unsigned i = 0; i < tx->niov; i++)
		len += tx->iov[i].iov_len;
	err = tx_check(os, tx, len);
	if (err)
		return err;
	u = malloc(sizeof(*u) + len);
	if (!u)
		return -ENOMEM;
	*u = (struct sim_unit){
		.from = os,
		.src = {.ip = tx->src,
			.port = tx->line ? (uint16_t)tx->line
					 : os->port[tx->port].number},
		.dst = tx->dst,
		.mark = tx->mark,
		.len = (uint32_t)len,
		.seg = tx->seg ? MIN(tx->seg, (uint32_t)len) : (uint32_t)len,
	};
	*out = u;
	return 0;
}

/* Does this send find the socket's buffer full? */
static bool tx_full(struct sim *sim)
{
	const bool full = sim->full && sim_chance(sim, sim->full);

	sim->stats.full += full;
	return full;
}

/* Consumes @u. */
static void tx_go(struct os *os, struct sim_unit *u, unsigned to)
{
	const unsigned from = os->cfg.machine;

	if (!os->os_cfg.no_gso || u->len <= u->seg) {
		unit_depart(u, from, to);
		return;
	}
	for (uint32_t off = 0; off < u->len; off += u->seg) {
		/* as by a socket: what follows is lost */
		if (off && tx_full(os->sim))
			break;
		unit_depart(unit_cut(u, off, MIN(u->seg, u->len - off)), from,
			    to);
	}
	free(u);
}

void sim_preempt(struct sim *sim, uint32_t chance, uint64_t max_ns)
{
	sim->preempt = chance;
	sim->preempt_max_ns = max_ns;
}

void sim_lose_cpu(struct sim *sim)
{
	if (sim->preempt == 0 || !sim_chance(sim, sim->preempt))
		return;
	sim->stats.preempts++;
	sim_sleep(sim, sim_between(sim, 0, sim->preempt_max_ns));
}

void sim_full(struct sim *sim, uint32_t chance)
{
	sim->full = chance;
}

/* The fields of the first packet's BTH that make a run readable. */
static void say_sent(struct os *os, const struct sim_unit *u, unsigned to)
{
	enum { BTH_BYTES = 12 };
	uint8_t bth[BTH_BYTES] = {0};

	memcpy(bth, u->bytes, MIN(u->len, sizeof(bth)));
	sim_say(os->sim,
		"host %u: %u bytes by %u to machine %u port %u, op 0x%02x, "
		"qp 0x%02x%02x%02x, psn 0x%02x%02x%02x",
		os->index, u->len, u->seg, to, u->dst.port, bth[0], bth[5],
		bth[6], bth[7], bth[9], bth[10], bth[11]);
}

static bool sent_locked(uint8_t opcode)
{
	return (opcode >= EXT_OPCODE && opcode < EXT_ACK) || opcode == EXT_OPEN;
}

int os_send(struct os *os, const struct os_tx *tx)
{
	struct sim *sim = os->sim;
	struct sim_unit *u;
	unsigned to;
	int err;

	CHECK(os->dead || os->port[tx->port].open);
	err = tx_alloc(os, tx, &u);
	if (err)
		return err;
	err = tx_gather(os, tx, u->bytes);
	if (u->len && !sent_locked(u->bytes[0]))
		sim_lose_cpu(sim);
	to = ip_machine(sim, &tx->dst.ip);
	if (!err && to == SIM_HOSTS_MAX)
		err = -ENETUNREACH;
	if (!err && ip_gone(sim, &tx->src))
		err = -EINVAL;
	if (!err && tx_full(sim))
		err = -EAGAIN;
	if (err || os->dead) {
		free(u);
		return err;
	}
	sim->stats.sent += segments(u->len, u->seg);
	sim_note(sim, 'S', (uint64_t)os->index << 32 | u->len);
	sim_mix_send(os, tx, u->src.port, u->bytes, u->len);
	say_sent(os, u, to);
	if (ip_gone(sim, &tx->dst.ip)) /* nobody is there to take it */
		free(u);
	else
		tx_go(os, u, to);
	return 0;
}

void sim_forge(struct os *as, uint16_t sport, const struct endpoint *dst,
	       const uint8_t *bytes, uint32_t len)
{
	struct sim_unit *u = malloc(sizeof(*u) + len);

	CHECK(u);
	*u = (struct sim_unit){
		.from = as,
		.src = {.ip = sim_host_ip(as, !ipaddr_is_v4(&dst->ip)),
			.port = sport},
		.dst = *dst,
		.len = len,
		.seg = len};
	list_init(&u->link);
	memcpy(u->bytes, bytes, len);
	unit_fly(u, as->cfg.machine, ip_machine(as->sim, &dst->ip), false);
}

void sim_forge_error(struct os *to, const struct endpoint *dst)
{
	struct sim_icmp *icmp = calloc(1, sizeof(*icmp));

	CHECK(icmp);
	icmp->to = to;
	icmp->error.dst = *dst;
	icmp->error.err = ECONNREFUSED;
	sim_at(to->sim, to->sim->now_ns, icmp_arrive, icmp, 0);
}

/* --- receiving ---------------------------------------------------------------------------- */

static int rx_find(struct os *os, int want)
{
	if (want >= 0)
		return list_empty(&os->port[want].queue) ? -1 : want;
	for (unsigned i = 0; i < OS_PORTS_MAX; i++) {
		const unsigned p = (os->next_port + i) % OS_PORTS_MAX;

		if (!list_empty(&os->port[p].queue)) {
			os->next_port = p + 1;
			return (int)p;
		}
	}
	return -1;
}

static int rx_scatter(struct os *os, struct sim_unit *u, struct iovec *iov,
		      unsigned n)
{
	uint32_t off = 0;

	for (unsigned i = 0; i < n && off < u->len; i++) {
		const uint32_t len = (uint32_t)MIN(iov[i].iov_len,
						   (size_t)(u->len - off));

		if (!sim_is_app(iov[i].iov_base)) {
			memcpy(iov[i].iov_base, u->bytes + off, len);
		} else if (sim_copy(os, (uintptr_t)iov[i].iov_base,
				    u->bytes + off, len, true) != 0) {
			return -EFAULT;
		}
		off += len;
	}
	return 1;
}

static int rx_take(struct os *os, struct iovec *iov, unsigned n,
		   struct os_rx *rx, enum os_recv_mode mode)
{
	const int index = rx_find(os, rx->port);
	struct sim_port *port;
	struct sim_unit *u;
	int ret;

	if (index < 0)
		return 0;
	port = &os->port[index];
	u = list_entry(port->queue.next, struct sim_unit, link);
	rx->src = u->src;
	rx->dst = u->dst.ip;
	rx->mark = u->mark;
	if (!rx->mark.hops)
		rx->mark.hops = SIM_HOPS;
	rx->dport = u->dst.port;
	rx->len = u->len;
	rx->seg = u->seg;
	rx->kernel_drops = os->kernel_drops;
	rx->port = index;
	if (mode == OS_PEEK)
		return rx_scatter(os, u, iov, n);
	list_del(&u->link);
	port->charged -= u->charge;
	ret = rx_scatter(os, u, iov, n);
	free(u);
	return ret;
}

/** os_recv() - rx->len is the whole length, also if @iov holds less. */
int os_recv(struct os *os, struct iovec *iov, unsigned n, struct os_rx *rx,
	    enum os_recv_mode mode)
{
	int ret;

	rx->all = true;
	if (rx_find(os, rx->port) >= 0)
		sim_lose_cpu(os->sim);
	ret = rx_take(os, iov, n, rx, mode);
	if (ret != 0)
		sim_lose_cpu(os->sim);
	return ret;
}

int os_recv_error(struct os *os, struct endpoint *dst, int *err, uint32_t *mtu)
{
	if (os->errors == 0)
		return 0;
	*dst = os->error[0].dst;
	*err = os->error[0].err;
	*mtu = os->error[0].mtu;
	os->errors--;
	memmove(os->error, os->error + 1, os->errors * sizeof(os->error[0]));
	return 1;
}
