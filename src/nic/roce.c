/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.c: UDP port 4791 (design D4). Standard peers send there whatever the
 * QPN; one NIC of a network namespace holds it and passes on what is for
 * others, to the port that the QPN names, wrapped with where it came from.
 * Such wrapped packets are only taken from the loopback address, which no
 * other host can send from; a standard packet has no better proof of origin.
 */
#include "nic/impl.h"

#include <errno.h>
#include <stdlib.h>

enum { CLAIM_AGAIN_NS = 50 * 1000 * 1000 };

static const struct ipaddr loopback4 = {
	{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

bool roce_local(const struct ipaddr *ip)
{
	static const struct ipaddr loopback6 = {{[15] = 1}};

	return ipaddr_eq(ip, &loopback6) ||
	       (ipaddr_is_v4(ip) && ip->b[12] == 127);
}

/* Whoever has the name binds the port; the kernel frees both when it dies. */
void roce_claim(struct nic *nic, uint64_t now_ns)
{
	uint16_t number;
	int fd;

	if (nic->roce_port >= 0 || now_ns < nic->roce_try_ns)
		return;
	nic->roce_try_ns = now_ns + CLAIM_AGAIN_NS;
	fd = os_claim(nic->os, "nopin-roce-4791");
	if (fd < 0)
		return;
	nic->roce_port = os_port_open(nic->os, ROCE_PORT, &number);
	if (nic->roce_port < 0) {
		os_unclaim(fd);
		return;
	}
	nic->roce_claim = fd;
	os_kick(nic->os); /* whoever sleeps does not know this port yet */
}

void roce_release(struct nic *nic)
{
	if (nic->roce_port < 0)
		return;
	os_port_close(nic->os, nic->roce_port);
	os_unclaim(nic->roce_claim);
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
