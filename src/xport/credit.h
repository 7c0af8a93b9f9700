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

/** credit_left() - Slots that @p was lent and has not filled. */
uint32_t credit_left(const struct peer *p);

/** credit_rest() - Slots that are free and not left so for anybody. */
uint32_t credit_rest(const struct xport *x);

/** credit_first() - The first packet with payload of @w takes a slot of those that
 * are left for such (false: there is none for it), or @on is false: gives it back. */
bool credit_first(struct xport *x, struct window *w, bool on);

/** credit_fill() - @p fills one slot @more, or one less. */
void credit_fill(struct xport *x, struct peer *p, bool more);

/** credit_allows() - May @more new packets leave that are not counted yet? */
bool credit_allows(const struct qp *qp, uint32_t more);

/** credit_allows_again() - May what is next leave once more? */
bool credit_allows_again(struct qp *qp);
void credit_sent(struct qp *qp, uint32_t packets);

/** credit_placed() - So many are, or never will be. */
void credit_placed(struct qp *qp, uint32_t packets);

/** credit_leave() - The QP ends, whatever of its requests is not placed. */
void credit_leave(struct qp *qp);

/** credit_shares() - Into how many parts what all peers share is cut. */
uint32_t credit_shares(const struct xport *x);

/** credit_check() - Assert that no more is out than was sent and is not placed. */
void credit_check(const struct qp *qp);

#endif
