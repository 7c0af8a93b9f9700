/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.h: READs and atomics, and their duplicates. */
#ifndef NOPIN_XPORT_REPLAY_H
#define NOPIN_XPORT_REPLAY_H

#include "xport/qp.h"

struct burst;
struct pkt;

/** replay_reserve(), replay_release() - Reserve places, and give them back, as
 * resp_reserve() does: those of READs and atomics that are or were answered. */
int replay_reserve(struct qp *qp, uint32_t rd_atomic);
void replay_release(struct qp *qp);

bool replay_tx(struct qp *qp, struct burst *b);
void replay_unsent(struct qp *qp, const struct burst *b, int error);

/** replay_pending() - Count the READs and atomics that are not answered whole, without
 * repeated answers. */
uint32_t replay_pending(const struct qp *qp);

/**
 * replay_make_room() - Make room for one READ or atomic more, in a QP whose requester has
 * less to be answered than was agreed. Give up answering the oldest ones again for that:
 * twice as many as were agreed were asked for since, so the requester has those answers.
 * Return: true, as what is answered for the first time has nothing else behind it.
 */
bool replay_make_room(struct qp *qp);

/**
 * replay_planned() - Keep room for one more READ or atomic, in the run that is planned.
 * replay_run_over(): the run was committed.
 */
void replay_planned(struct qp *qp);
void replay_run_over(struct qp *qp);
void replay_add(struct qp *qp, const struct pkt *pkt, uint64_t original);
void replay_duplicate(struct qp *qp, const struct pkt *pkt);

/** replay_check() - Assert what is always so of struct resp_replay. */
void replay_check(const struct qp *qp);

#endif
