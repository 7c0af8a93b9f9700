/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.h: which thread runs the engine. */
#ifndef NOPIN_NIC_PROGRESS_H
#define NOPIN_NIC_PROGRESS_H

#include "base/base.h"
#include "os/wait.h"

struct nic;
struct step;

bool progress_receive(struct nic *nic, uint64_t *now_ns);
void progress_work(struct nic *nic, bool flush_acks);

/** progress_flush() - Send what is owed, now. */
void progress_flush(struct nic *nic);
void progress_poll(struct nic *nic);

/**
 * progress_owed() - Do what is owed for completions, before the program takes one.
 *
 * Another thread made them, and perhaps did not come to their ACKs, or is about to send
 * them. The program may tell the peer of what it received by other means, and the peer
 * may then end the connection: the ACK has left before.
 */
void progress_owed(struct nic *nic);

/** progress_hear() - Take what has come so far, into whoever's hands, but from a thread
 * that is long gone from its CPU. */
void progress_hear(struct nic *nic);

/**
 * progress_block() - Run the engine, sleep until @fd, @until_ns or something else.
 * @woken:	not 0 when @fd is readable (atomic)
 * @sig:	of the caller, which restores them in the end
 * Return: 0; -EINTR: a handler without SA_RESTART ran. Context: a thread that is
 * in a call of the program's, without a lock; a cancellation point.
 */
int progress_block(struct nic *nic, int fd, const uint32_t *woken,
		   uint64_t until_ns, struct os_signals *sig);

/** progress_doze() - The same, but others run the engine. */
int progress_doze(struct nic *nic, int fd, uint64_t until_ns,
		  struct os_signals *sig);

/** progress_attended() - Does another thread of the program poll, or block? */
bool progress_attended(const struct nic *nic);

/** progress_closed() - After os_wait(): did the program close our descriptors? */
void progress_closed(struct nic *nic);
int progress_start(struct nic *nic);
void progress_stop(struct nic *nic);

/** progress_turn() - One turn of the background thread, or (@step NULL) of who
 * stands in for it. Return: when to wake at the latest, and for what.
 */
uint64_t progress_turn(struct nic *nic, struct step *step,
		       enum os_wait_for *what);

/** progress_sleep() - Between two turns. */
void progress_sleep(struct nic *nic, uint64_t until, enum os_wait_for what);

#endif
