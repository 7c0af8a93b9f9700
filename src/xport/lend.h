/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lend.h: what peers may have on the way, and slots that they are lent. */
#ifndef NOPIN_XPORT_LEND_H
#define NOPIN_XPORT_LEND_H

#include <stdbool.h>
#include <stdint.h>

struct peer;
struct xport;

/** flow_read_chunk() - Return how many packets one READ request of a QP with path MTU @mtu
 * asks for at most. The smallest MTU has the most. */
uint32_t flow_read_chunk(const struct xport *x, uint32_t mtu);

/** flow_share() - Return the part of push_budget that each of our peers is to have. */
uint32_t flow_share(const struct xport *x);

/** flow_grant() - Return the bytes that @p may have on the way from now on: it is told. */
uint32_t flow_grant(struct xport *x, struct peer *p);

/**
 * credit_lend() - Decide how many slots @p may fill.
 * Return: whether that is news for it: peer.lend.told, with a new peer.serial.
 */
bool credit_lend(struct xport *x, struct peer *p);

/** credit_echoed() - Note that @p keeps to the quota @serial. If that is the newest, all
 * that @p was lent beyond it is taken back. */
void credit_echoed(struct xport *x, struct peer *p, uint32_t serial);

/** credit_silent() - Take back all that @p was lent beyond its newest quota: it does not
 * answer. */
void credit_silent(struct xport *x, struct peer *p);

/**
 * credit_bound() - Bound the pool to @slots slots. Slots beyond that which peers were lent
 * come back when they say so: to be called again then.
 * Return: is that news? Then all peers are to be lent to anew.
 */
bool credit_bound(struct xport *x, uint32_t slots);

/** credit_settled() - True if @p keeps to the quota that it was told, and has its share. */
bool credit_settled(const struct peer *p);

/** credit_end() - Take back all that @p was lent: it goes. It fills no slot any more, and
 * nothing of ours is out on its quota. */
void credit_end(struct xport *x, struct peer *p);

/** credit_take() - Take the quota of @slots that @p lends us, if @serial is newer than that
 * of the last. */
void credit_take(struct peer *p, uint32_t slots, uint32_t serial);

/**
 * credit_of() - Forget quotas of the NIC that @p was before, if it is another one now. To
 * be called before its quotas are taken.
 * @nonce:	that it gave out: with another one it is another NIC than before
 */
void credit_of(struct peer *p, uint32_t nonce);

/** credit_echo() - Return: the number of the newest quota that we keep to. */
uint32_t credit_echo(struct peer *p);

/** peer_answered() - Let QPs and ACKs go on that wait for @peer: it answered the hello, or
 * was silent and is taken for a standard one (peers.c). */
void peer_answered(struct xport *x, struct peer *peer);

#endif
