/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.h: which thread runs the engine. */
#ifndef NOPIN_NIC_PROGRESS_H
#define NOPIN_NIC_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct step;

/**
 * progress_receive() - Take what came, if no other thread has the token.
 * @now_ns:	now, afterwards too
 * Return: true if a burst was taken; what there is to do then is left to the caller
 * (progress_due()).
 */
bool progress_receive(struct nic *nic, uint64_t *now_ns);

/** progress_due() - True if there is work, or time for a timer. */
bool progress_due(struct nic *nic);

/** progress_work() - Do the work there is, or leave it to the background thread, where
 * the caller is not to run the engine (progress_elsewhere()). */
void progress_work(struct nic *nic, bool flush_acks);

/** progress_run(), progress_run_step() - Do the work there is, with a step of its own
 * or with @s. */
void progress_run(struct nic *nic, bool flush_acks, uint64_t now_ns);
void progress_run_step(struct nic *nic, struct step *s, bool flush_acks,
		       uint64_t now_ns);

/** progress_elsewhere() - True if threads of the program do not run the engine now. */
bool progress_elsewhere(const struct nic *nic);

/** nic_unlock() - Give the engine lock back, and see that work left meanwhile is done. */
void nic_unlock(struct nic *nic);

/** nic_wait_idle() - Wait until a commit happened, or so: the caller looks again. Engine
 * lock held, but not while it waits. */
void nic_wait_idle(struct nic *nic);

/** nic_prepare() - Open what our threads may need, if anything was used. Context: a thread
 * of the program, no lock held. */
void nic_prepare(struct nic *nic);

/** progress_flush() - Send what is owed, now. */
void progress_flush(struct nic *nic);

/**
 * progress_owed() - Do what is owed for completions, before the program takes one.
 *
 * Another thread made them, and perhaps did not come to their ACKs, or is about to send
 * them. The program may tell the peer of what it received by other means, and the peer
 * may then end the connection: the ACK has left before.
 */
void progress_owed(struct nic *nic);

/** progress_hear() - Take what has come so far, or wait for the thread that has it, but
 * not for one that is long gone from its CPU. */
void progress_hear(struct nic *nic);

/** progress_polled() - Did a thread of the program poll just now? */
bool progress_polled(const struct nic *nic, uint64_t now_ns);

/**
 * progress_looked_after() - True if a thread of the program looks at the sockets; not
 * one that sleeps on them until a deadline that was later than the one that has passed:
 * then timers would wait for ever for a thread that looks; nor one that was found not to
 * come for a packet (turn.c).
 */
bool progress_looked_after(const struct nic *nic, uint64_t now_ns);

/** progress_attended() - Does another thread of the program poll, or block? */
bool progress_attended(const struct nic *nic);

/** progress_closed() - Find out, after os_wait(), if the program closed our descriptors,
 * and have the engine tell it. */
void progress_closed(struct nic *nic);

#endif
