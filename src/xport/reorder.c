/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reorder.c: how long to wait for a packet that others overtook, before it counts
 * as lost. As RACK (RFC 8985) this counts time and not packets, and begins with
 * none: where nothing is overtaken, the first gap is a loss. What is measured
 * differs: the peer tells what came, so we see how late a packet was that filled
 * its gap by itself, and at most how late one was that we sent again and that came
 * twice. Twice the longest of the last 16 gaps is waited for; with no late packet
 * among these half as long as before, until that is nothing.
 */
#include "xport/reorder.h"
#include "base/check.h"
#include "xport/peer.h"

enum {
	WAIT_MIN_NS = 10 * 1000,
	WAIT_MAX_NS = 10 * 1000 * 1000,
	GAPS = 16,
};

static void widen(struct lateness *l, uint64_t ns)
{
	ns = MIN(MAX(ns, (uint64_t)WAIT_MIN_NS), (uint64_t)WAIT_MAX_NS);
	l->wait_ns = MAX(l->wait_ns, ns);
}

void late_came(struct lateness *l, uint64_t ns)
{
	l->most_ns = MAX(l->most_ns, ns);
	widen(l, 2 * ns);
}

void late_doubted(struct lateness *l, uint64_t ns)
{
	l->most_ns = MAX(l->most_ns, MIN(ns, 2 * l->wait_ns));
	widen(l, MAX(ns, 2 * l->wait_ns));
}

void late_gap(struct lateness *l)
{
	if (++l->gaps < GAPS)
		return;
	if (2 * l->most_ns < l->wait_ns)
		l->wait_ns = MAX(2 * l->most_ns, l->wait_ns / 2);
	if (l->wait_ns < WAIT_MIN_NS)
		l->wait_ns = 0;
	l->gaps = 0;
	l->most_ns = 0;
}
