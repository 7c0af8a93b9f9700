/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.h: where receives come from. A message takes the next one of its source and
 * has it until it completes. A source is the receive queue of a QP (rq.h), or one that
 * several QPs share. Context: the engine lock.
 */
#ifndef NOPIN_RING_RECEIVE_H
#define NOPIN_RING_RECEIVE_H

#include "ring/wqe.h"

#include <stdbool.h>
#include <stddef.h>

struct receive_source;

/**
 * struct receive - A receive that was taken.
 * @wqe:	NULL: none
 */
struct receive {
	struct receive_source *source;
	struct wqe *wqe;
};

/**
 * struct receive_ops - What a source does. Those that one QP has are done oldest first,
 * and given back newest first; those of several QPs in any order.
 * @peek:	the receive that would be taken as the (@k + 1)th from now on, or NULL
 * @take:	the next one, or NULL
 * @untake:	nothing of it was used: it is the next one again
 * @done:	it is the poster's
 */
struct receive_ops {
	const struct wqe *(*peek)(const struct receive_source *s, uint32_t k);
	struct wqe *(*take)(struct receive_source *s);
	void (*untake)(struct receive_source *s, struct wqe *w);
	void (*done)(struct receive_source *s, struct wqe *w);
};

/**
 * struct receive_source - Part of the queue that it is.
 * @pd:		of the memory of its receives (IBTA 10.2.9: that of the queue, not of the QP)
 */
struct receive_source {
	const struct receive_ops *ops;
	uint32_t pd;
};

static inline const struct wqe *receive_peek(const struct receive_source *s,
					     uint32_t k)
{
	return s->ops->peek(s, k);
}

/** receive_take() - Take the next one, in @r, which has none. Return: false: none is
 * posted. */
static inline bool receive_take(struct receive_source *s, struct receive *r)
{
	*r = (struct receive){s, s->ops->take(s)};
	return r->wqe != NULL;
}

/** receive_untake() - Give back what @r has, if anything. */
static inline void receive_untake(struct receive *r)
{
	if (r->wqe)
		r->source->ops->untake(r->source, r->wqe);
	r->wqe = NULL;
}

/** receive_done() - Leave what @r has to the poster. */
static inline void receive_done(struct receive *r)
{
	r->source->ops->done(r->source, r->wqe);
	r->wqe = NULL;
}

#endif
