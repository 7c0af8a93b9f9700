/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.c: UDP port 4791 (design D4). Standard peers send there whatever the
 * QPN; one NIC of a network namespace holds it and passes on what is for
 * others, to the port that the QPN names, wrapped with where it came from.
 *
 * A process that can say where a packet came from can be anybody. So such a wrapped packet
 * counts only from port 4791 of this host, with a secret that the holder told us over
 * its unix socket (os/name.c), when the kernel had said that it is a process of our
 * user or root's, and while that connection lasts: then the port is that process's.
 * A NIC that has no such holder is not reached by standard peers, and says so.
 */
#include "nic/roce.h"
#include "base/addr.h"
#include "base/check.h"
#include "base/log.h"
#include "nic/device.h"
#include "nic/gids.h"
#include "os/names.h"
#include "os/net.h"
#include "os/run.h"
#include "os/wait.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/roce.h"

#include <errno.h>
#include <inttypes.h>

#define ROCE_NAME "nopin-roce-4791"

enum {
	DOUBT_MAX_NS = 1000 * 1000 * 1000,
	RETRY_NS = 1000 * 1000 * 1000, /* where nothing is about to change */
};

static const struct ipaddr loopback4 = {
	{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

bool roce_local(const struct ipaddr *ip)
{
	static const struct ipaddr loopback6 = {{[15] = 1}};

	return ipaddr_eq(ip, &loopback6) ||
	       (ipaddr_is_v4(ip) && ip->b[12] == 127);
}

bool roce_here(const struct nic *nic, const struct ipaddr *ip)
{
	return roce_local(ip) || gids_has(&nic->gids, ip);
}

/* --- its holder ---------------------------------------------------------------- */

/* Is the holder's favour, or the port, to be asked for once more? */
static bool roce_seeks(const struct nic *nic)
{
	if (nic->roce.short_of)
		return true;
	if (nic->roce.guest >= 0) /* the connection tells the rest */
		return !nic->roce.told && nic->roce.state != ROCE_SILENT;
	switch (nic->roce.state) {
	case ROCE_SERVED:
	case ROCE_REFUSED:
	case ROCE_SILENT:
		return true;
	case ROCE_STRANGER:
	case ROCE_TAKEN: /* that it ends is not told */
	case ROCE_UNASKED:
		return nic->roce.wanted;
	default:
		return false;
	}
}

/* The background thread seeks, and says what is new: it is woken for that. */
static void roce_changed(struct nic *nic)
{
	const bool seeks = roce_seeks(nic);
	const bool news = nic->roce.wanted && nic->roce.state != nic->roce.said;

	if ((seeks && !nic->roce.orphan) || (news && !nic->roce.news))
		os_kick(nic->os);
	__atomic_store_n(&nic->roce.orphan, seeks, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->roce.news, news, __ATOMIC_RELAXED);
}

/* The port is anybody's now, at once. */
static void guest_end(struct nic *nic)
{
	os_holder_leave(nic->os, nic->roce.guest);
	nic->roce.guest = -1;
	nic->roce.told = false;
	nic->roce.try_ns = 0;
}

/* Name or port is a process's that begins or ends just now, or it is as @state says.
 * What is known already is not doubted. Return: it is so, from now on. */
static bool roce_doubt(struct nic *nic, enum roce_state state)
{
	if (nic->roce.state == state)
		return false;
	if (!nic->roce.doubt_ns)
		nic->roce.doubt_ns = nic->x.now;
	if (nic->x.now - nic->roce.doubt_ns < DOUBT_MAX_NS)
		return false;
	nic->roce.state = state;
	nic->roce.doubt_ns = 0;
	return true;
}

/* Take what the holder has said by now. One that let us in and ends the connection before
 * it said anything does not pass on to us.
 * Return: 1: it lives; 0: there is none, or it has ended; -EPIPE: it does not want us. */
static int guest_hear(struct nic *nic)
{
	bool refused;
	int ret;

	if (nic->roce.guest < 0)
		return 0;
	while ((ret = os_holder_says(nic->os, nic->roce.guest,
				     &nic->roce.secret)) > 0) {
		nic->roce.told = true;
		nic->roce.state = ROCE_SERVED;
		nic->roce.doubt_ns = 0;
	}
	if (ret == 0) {
		if (!nic->roce.told)
			roce_doubt(nic, ROCE_SILENT);
		return 1;
	}
	refused = ret == -EPIPE && !nic->roce.told;
	if (refused)
		nic->roce.state = ROCE_REFUSED;
	guest_end(nic);
	roce_changed(nic);
	return refused ? -EPIPE : 0;
}

/* Does the process, or the system, lack what it may have again in a moment? */
static bool roce_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM ||
	       err == -ENOBUFS;
}

/* It has the name and does not let us in: it is stopped, or was asked too often. That says
 * nothing new of a process that is known. */
static void guest_unheard(struct nic *nic)
{
	if (nic->roce.state != ROCE_STRANGER && roce_doubt(nic, ROCE_SILENT))
		nic->roce.who = OS_HOLDER_UNKNOWN;
}

static void guest_begin(struct nic *nic)
{
	struct os_holder who;
	const int fd = os_holder_ask(nic->os, ROCE_NAME, &who);

	nic->roce.short_of = roce_is_short(fd);
	if (nic->roce.short_of)
		return;
	if (fd >= 0 || fd == -EPERM) {
		nic->roce.who = who;
		nic->roce.doubt_ns = 0;
	}
	if (fd >= 0) {
		nic->roce.guest = fd;
		nic->roce.late = false;
		/* it is another's no more, and what it is will be heard */
		if (nic->roce.state == ROCE_STRANGER ||
		    nic->roce.state == ROCE_TAKEN)
			nic->roce.state = ROCE_UNASKED;
	} else if (fd == -EPERM) {
		nic->roce.state = ROCE_STRANGER;
	} else if (fd == -EAGAIN) {
		guest_unheard(nic);
	} else {
		roce_doubt(nic, ROCE_TAKEN);
		nic->roce.begins = nic->roce.state != ROCE_TAKEN;
	}
}

/* --- holding it ------------------------------------------------------------------ */

/* The kernel frees name and port when we die, and the port last. @claim: negative: there
 * is no name to be had, so nobody is served but us. */
static void hold(struct nic *nic, int claim)
{
	uint64_t secret;
	uint16_t number;

	nic->roce.port = os_port_open(nic->os, ROCE_PORT, &number);
	if (nic->roce.port < 0) {
		nic->roce.short_of = roce_is_short(nic->roce.port);
		/* a holder that has ended frees the port last */
		if (nic->roce.port == -EADDRINUSE)
			roce_doubt(nic, ROCE_TAKEN);
		nic->roce.port = -1;
		if (claim >= 0)
			os_unclaim(nic->os, claim);
		return;
	}
	os_random(nic->os, &secret, sizeof(secret));
	nic->roce.secret = secret;
	nic->roce.claim = claim;
	nic->roce.state = ROCE_OURS;
	nic->roce.doubt_ns = 0;
	if (nic->qps.ud)
		os_port_marks(nic->os, nic->roce.port);
	if (claim < 0 || os_claim_share(nic->os, claim, nic->roce.port, secret))
		log_warn("other processes get nothing from UDP port 4791");
	os_kick(nic->os); /* a thread that sleeps does not know this port yet */
}

static void claim_or_ask(struct nic *nic)
{
	const int claim = os_claim(nic->os, ROCE_NAME);

	nic->roce.short_of = roce_is_short(claim);
	nic->roce.begins = false;
	if (claim == -EADDRINUSE)
		guest_begin(nic);
	else if (!nic->roce.short_of)
		hold(nic, claim);
	if (nic->roce.guest < 0 && !nic->roce.doubt_ns)
		nic->roce.try_ns = nic->x.now + RETRY_NS;
}

void roce_claim(struct nic *nic)
{
	int heard;

	if (nic->roce.port >= 0 || nic->x.now < nic->roce.try_ns)
		return;
	heard = guest_hear(nic);
	nic->roce.try_ns = nic->x.now +
			   (heard == -EPIPE ? RETRY_NS : CLAIM_AGAIN_NS);
	if (heard == 0)
		claim_or_ask(nic);
	roce_changed(nic);
}

void roce_leave(struct nic *nic)
{
	if (nic->roce.guest >= 0)
		guest_end(nic);
}

/* Those that were served hear of it first, and the name is free last: it is for a process
 * that can have the port. */
void roce_release(struct nic *nic)
{
	roce_leave(nic);
	if (nic->roce.port < 0)
		return;
	os_claim_unshare(nic->os);
	os_port_close(nic->os, nic->roce.port);
	if (nic->roce.claim >= 0)
		os_unclaim(nic->os, nic->roce.claim);
	nic->roce.port = -1;
}

void roce_pass_on(struct nic *nic, const struct pkt *p,
		  const struct os_rx *from, uint8_t *bytes, uint32_t len)
{
	struct pkt fwd = {.opcode = OP_X_FORWARD,
			  .ext = true,
			  .pkey = PKEY_DEFAULT,
			  .qpn = p->qpn,
			  .fwd_src = from->src,
			  .fwd_dst = from->dst,
			  .fwd_secret = nic->roce.secret,
			  .payload_len = len};
	uint8_t hdr[PKT_HDR_MAX], trailer[ICRC_BYTES];
	unsigned n = pkt_build(&fwd, hdr);
	struct iovec iov[] = {{hdr, n}, {bytes, len}, {trailer, ICRC_BYTES}};
	struct os_tx tx = {
		.dst = {.ip = loopback4,
			.port = (uint16_t)(QPN_PORT_BASE + (p->qpn >> 10))},
		.src = loopback4,
		.port = nic->roce.port,
		.iov = iov,
		.niov = ARRAY_SIZE(iov)};

	icrc_store(xcrc(hdr, n), trailer);
	os_send(nic->os, &tx);
}

/* It comes from where roce_pass_on() sends from: at another address of loopback, or of
 * the other family, the port may be another process's. That the holder lives is asked
 * after the packet came: until then nobody else could have the port. */
bool roce_trusts(struct nic *nic, const struct pkt *p, const struct os_rx *from)
{
	return ipaddr_eq(&from->src.ip, &loopback4) &&
	       from->src.port == ROCE_PORT && guest_hear(nic) > 0 &&
	       nic->roce.told && p->fwd_secret == nic->roce.secret;
}

void roce_needed(struct nic *nic)
{
	/* what was found when it did not matter is old */
	if (!nic->roce.wanted && nic->roce.port < 0 && nic->roce.guest < 0) {
		nic->roce.state = ROCE_UNASKED;
		nic->roce.doubt_ns = nic->roce.try_ns = 0;
	}
	nic->roce.wanted = true;
	roce_claim(nic);
	roce_changed(nic);
}
