/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared.h: receives that the QPs of a node share (srq.c); with world_config.shared. */
#ifndef NOPIN_TESTS_SIM_SHARED_H
#define NOPIN_TESTS_SIM_SHARED_H

#include "oracle.h"

/** shared_open(), shared_close() - The queue of a node: at the end none of its receives
 * was lost. Nothing where nothing is shared. */
void shared_open(struct node *node);
void shared_close(struct node *node);

/** shared_queue() - Return the queue that the QPs of @node share; NULL: each has its own. */
struct nic_srq *shared_queue(const struct node *node);

/** shared_recv() - Keep receives posted. */
void shared_recv(struct node *node);

/** shared_done() - The receive that @e completes, which is posted no longer. */
const struct recv *shared_done(struct node *node, const struct cqe *e);

/** shared_wrote(), shared_drops() - A write is within a posted receive; may a page be
 * dropped for one? */
void shared_wrote(struct node *node, uint64_t addr, uint64_t len);
bool shared_drops(const struct node *node, uint64_t addr);

#endif
