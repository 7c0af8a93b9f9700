/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* credit.h: slots that peers lend each other. */
#ifndef NOPIN_XPORT_CREDIT_H
#define NOPIN_XPORT_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

struct peer;
struct qp;
struct window;
struct xport;

/** credit_left() - Count the slots that @p was lent and has not filled. */
uint32_t credit_left(const struct peer *p);

/** credit_rest() - Count the slots that are free, but for those that are left so for
 * quotas and for first packets. */
uint32_t credit_rest(const struct xport *x);

/** credit_first() - Let the first packet with payload of @w take a slot of those that are
 * left for such; not @on: let it give that back.
 * Return: false: there is none for it. */
bool credit_first(struct xport *x, struct window *w, bool on);

/** credit_fill() - Count one slot more that @p fills, or (not @more) one less. */
void credit_fill(struct xport *x, struct peer *p, bool more);

/** credit_allows() - May @more new packets leave that are not counted yet? */
bool credit_allows(const struct qp *qp, uint32_t more);

/** credit_allows_again() - May what is next leave once more? */
bool credit_allows_again(struct qp *qp);
void credit_sent(struct qp *qp, uint32_t packets);

/** credit_placed() - Give back the quota of @packets that are placed, never will be, or did
 * not leave. */
void credit_placed(struct qp *qp, uint32_t packets);

/** credit_leave() - Give back all quota that @qp has taken: it ends, even if requests of it
 * are not placed. */
void credit_leave(struct qp *qp);

/** credit_shares() - Return the number of parts that the pool and the receive buffer, which
 * all peers share, are cut into. */
uint32_t credit_shares(const struct xport *x);

/** credit_check() - Assert that no more is out than was sent and is not placed. */
void credit_check(const struct qp *qp);

#endif
