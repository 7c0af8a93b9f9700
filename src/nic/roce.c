/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.c: UDP port 4791 (design D4). Standard peers send there whatever the
 * QPN; one NIC of a network namespace holds it and passes on what is for
 * others, to the port that the QPN names, wrapped with where it came from.
 *
 * Whoever can say where a packet came from can be anybody. So such a wrapped packet
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

/* --- whoever holds it ---------------------------------------------------------- */

/* Is the holder's favour, or the port, to be asked for once more? */
static bool roce_seeks(const struct nic *nic)
{
	if (nic->roce_short)
		return true;
	switch (nic->roce_state) {
	case ROCE_SERVED:
	case ROCE_REFUSED:
		return nic->roce_guest < 0;
	case ROCE_STRANGER:
	case ROCE_TAKEN:
		return nic->roce_wanted; /* that it ends is not told */
	default:
		return false;
	}
}

static void roce_changed(struct nic *nic)
{
	__atomic_store_n(&nic->roce_orphan, roce_seeks(nic), __ATOMIC_RELAXED);
	if (nic->roce_wanted)
		__atomic_store_n(&nic->roce_news,
				 nic->roce_state != nic->roce_said,
				 __ATOMIC_RELAXED);
}

/* The port is anybody's now, at once. */
static void guest_end(struct nic *nic)
{
	os_holder_leave(nic->os, nic->roce_guest);
	nic->roce_guest = -1;
	nic->roce_told = false;
	nic->roce_try_ns = 0;
}

/* Take what the holder has said by now. One that ends before it said anything does not
 * pass on to us. Return: does it live? */
static bool guest_served(struct nic *nic)
{
	int ret;

	if (nic->roce_guest < 0)
		return false;
	while ((ret = os_holder_says(nic->os, nic->roce_guest,
				     &nic->roce_secret)) > 0) {
		nic->roce_told = true;
		nic->roce_state = ROCE_SERVED;
	}
	if (ret == 0)
		return true;
	if (!nic->roce_told)
		nic->roce_state = ROCE_REFUSED;
	guest_end(nic);
	roce_changed(nic);
	return false;
}

/* Does the process, or the system, lack what it may have again in a moment? */
static bool roce_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM ||
	       err == -ENOBUFS;
}

/* Name or port is a process's that begins or ends just now, or always has been. */
static void roce_doubt(struct nic *nic, uint64_t now_ns)
{
	if (!nic->roce_refused_ns)
		nic->roce_refused_ns = now_ns;
	else if (now_ns - nic->roce_refused_ns >= DOUBT_MAX_NS)
		nic->roce_state = ROCE_TAKEN;
}

static void guest_begin(struct nic *nic, uint64_t now_ns)
{
	const int fd = os_holder_ask(nic->os, ROCE_NAME, &nic->roce_who);

	nic->roce_short = roce_is_short(fd);
	if (nic->roce_short)
		return;
	if (fd >= 0) {
		nic->roce_guest = fd;
		nic->roce_late = false;
		nic->roce_refused_ns = 0;
	} else if (fd == -EPERM) {
		nic->roce_state = ROCE_STRANGER;
		nic->roce_refused_ns = 0;
	} else {
		roce_doubt(nic, now_ns);
	}
}

/* --- holding it ------------------------------------------------------------------ */

/* The kernel frees name and port when we die, and the port last. @claim: negative: there
 * is no name to be had, so nobody is served but us. */
static void hold(struct nic *nic, int claim, uint64_t now_ns)
{
	uint64_t secret;
	uint16_t number;

	nic->roce_port = os_port_open(nic->os, ROCE_PORT, &number);
	if (nic->roce_port < 0) {
		nic->roce_short = roce_is_short(nic->roce_port);
		if (nic->roce_port == -EADDRINUSE &&
		    nic->roce_state == ROCE_SERVED)
			roce_doubt(nic, now_ns); /* our holder has ended */
		else if (nic->roce_port == -EADDRINUSE)
			nic->roce_state = ROCE_TAKEN;
		nic->roce_port = -1;
		if (claim >= 0)
			os_unclaim(nic->os, claim);
		return;
	}
	os_random(nic->os, &secret, sizeof(secret));
	nic->roce_secret = secret;
	nic->roce_claim = claim;
	nic->roce_state = ROCE_OURS;
	nic->roce_refused_ns = 0;
	if (nic->ud_qps)
		os_port_marks(nic->os, nic->roce_port);
	if (claim < 0 || os_claim_share(nic->os, claim, nic->roce_port, secret))
		log_warn("other processes get nothing from UDP port 4791");
	os_kick(nic->os); /* whoever sleeps does not know this port yet */
}

static void claim_or_ask(struct nic *nic, uint64_t now_ns)
{
	const int claim = os_claim(nic->os, ROCE_NAME);

	nic->roce_short = roce_is_short(claim);
	if (claim == -EADDRINUSE)
		guest_begin(nic, now_ns);
	else if (!nic->roce_short)
		hold(nic, claim, now_ns);
	if (nic->roce_short || nic->roce_state == ROCE_TAKEN ||
	    nic->roce_state == ROCE_STRANGER)
		nic->roce_try_ns = now_ns + RETRY_NS;
}

void roce_claim(struct nic *nic, uint64_t now_ns)
{
	const bool asked = nic->roce_guest >= 0;
	bool served;

	if (nic->roce_port >= 0 || now_ns < nic->roce_try_ns)
		return;
	served = guest_served(nic);
	nic->roce_try_ns = now_ns + CLAIM_AGAIN_NS;
	if (!served) {
		if (asked && nic->roce_state == ROCE_REFUSED)
			nic->roce_try_ns = now_ns + RETRY_NS;
		else
			claim_or_ask(nic, now_ns);
	}
	roce_changed(nic);
}

/* Those that were served hear of it first, and the name is free last: it is for who
 * can have the port. */
void roce_release(struct nic *nic)
{
	if (nic->roce_guest >= 0)
		guest_end(nic);
	if (nic->roce_port < 0)
		return;
	os_claim_unshare(nic->os);
	os_port_close(nic->os, nic->roce_port);
	if (nic->roce_claim >= 0)
		os_unclaim(nic->os, nic->roce_claim);
	nic->roce_port = -1;
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
			  .fwd_secret = nic->roce_secret,
			  .payload_len = len};
	uint8_t hdr[PKT_HDR_MAX], trailer[ICRC_BYTES];
	unsigned n = pkt_build(&fwd, hdr);
	struct iovec iov[] = {{hdr, n}, {bytes, len}, {trailer, ICRC_BYTES}};
	struct os_tx tx = {
		.dst = {.ip = loopback4,
			.port = (uint16_t)(QPN_PORT_BASE + (p->qpn >> 10))},
		.src = loopback4,
		.port = nic->roce_port,
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
	       from->src.port == ROCE_PORT && guest_served(nic) &&
	       nic->roce_told && p->fwd_secret == nic->roce_secret;
}

void roce_needed(struct nic *nic, uint64_t now_ns)
{
	nic->roce_wanted = true;
	roce_claim(nic, now_ns);
	roce_changed(nic);
}
