/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lend.h: what peers may have on the way, and slots that they are lent. */
#ifndef NOPIN_XPORT_LEND_H
#define NOPIN_XPORT_LEND_H

#include <stdbool.h>
#include <stdint.h>

struct peer;
struct xport;

/** flow_read_chunk() - Packets of one READ request of a QP with path MTU @mtu at most:
 * the most is that of the smallest. */
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

/** credit_echoed() - @p keeps to the quota @serial. */
void credit_echoed(struct xport *x, struct peer *p, uint32_t serial);

/** credit_silent() - It does not answer: what it was lent beyond that is taken. */
void credit_silent(struct xport *x, struct peer *p);

/**
 * credit_bound() - There are @slots slots. What peers were lent of more comes back
 * when they say so: to be called again then.
 * Return: is that news? Then all peers are to be lent to anew.
 */
bool credit_bound(struct xport *x, uint32_t slots);

/** credit_settled() - It keeps to what it was told, and has its share. */
bool credit_settled(const struct peer *p);

/** credit_end() - @p goes. */
void credit_end(struct xport *x, struct peer *p);

/** credit_take() - @p lends us @slots. */
void credit_take(struct peer *p, uint32_t slots, uint32_t serial);

/**
 * credit_of() - Before what it says of quotas is taken: who says it.
 * @nonce:	that it gave out: with another one it is another NIC than before
 */
void credit_of(struct peer *p, uint32_t nonce);

/** credit_echo() - Return: the number of the newest quota that we keep to. */
uint32_t credit_echo(struct peer *p);

/** peer_answered() - The hello was answered, or silence was (peers.c). */
void peer_answered(struct xport *x, struct peer *peer);

#endif
