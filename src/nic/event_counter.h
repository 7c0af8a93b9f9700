/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event_counter.h: event counters, for the API edge.
 * Threads, errors and children of fork(): nic.h.
 */
#ifndef NOPIN_NIC_EVENT_COUNTER_H
#define NOPIN_NIC_EVENT_COUNTER_H

#include <stdint.h>

struct nic;
struct nic_counter;

/**
 * nic_counter_fn - @value: of the counter now, higher than at the last call.
 * Return: not 0: not to be called again.
 */
typedef int (*nic_counter_fn)(void *arg, uint64_t value);

/**
 * nic_counter_create() - Create a counter that peers of QPs in @pd may raise, by its
 * identifier.
 * @handler:	NULL, or called with @arg by a thread of ours whenever it has risen
 */
int nic_counter_create(struct nic *nic, uint32_t pd, nic_counter_fn handler,
		       void *arg, struct nic_counter **out);
/**
 * nic_counter_close() - Close the counter: it cannot be raised any more, and threads that
 * wait end with -ECANCELED. Waits for them, but for no handler.
 */
void nic_counter_close(struct nic_counter *c);
/**
 * nic_counter_free() - Free the counter. Closes it if need be; waits for handlers.
 * Return: 0; -EDEADLK: we are one.
 */
int nic_counter_free(struct nic_counter *c);

uint32_t nic_counter_id(const struct nic_counter *c);
/** nic_counter_word() - Return the address of the value, until nic_counter_free(). */
const uint64_t *nic_counter_word(const struct nic_counter *c);
/**
 * nic_counter_reserve() - Reserve a descriptor, so that from now on one thread at a time
 * can wait, however scarce they become. No thread waits yet.
 * Return: 0; -EMFILE; -ENODEV.
 */
int nic_counter_reserve(struct nic_counter *c);

/**
 * nic_counter_fd() - Get a descriptor, which stays the counter's, that is readable when
 * the value has risen since nic_counter_poll().
 */
int nic_counter_fd(struct nic_counter *c, int *fd);
/** nic_counter_poll() - Make progress, then look. */
int nic_counter_poll(struct nic_counter *c, uint64_t *value);
/** nic_counter_raise() - Raise the counter by one, as a peer does. */
void nic_counter_raise(struct nic_counter *c);

/*
 * SPIN: make progress and look, again and again. BLOCK: sleep on the sockets, and
 * run the engine. FUTEX: sleep until the thread that runs it wakes us, if one does.
 */
enum nic_wait { NIC_WAIT_SPIN, NIC_WAIT_BLOCK, NIC_WAIT_FUTEX, NIC_WAIT_NUM };

/**
 * nic_counter_wait() - Wait until the value is @target at least.
 * @timeout_ns:	TIME_NEVER: none
 * Return: 0; -ETIMEDOUT; -EINTR; -ECANCELED: it was closed; -EINVAL: @how; -EMFILE.
 */
int nic_counter_wait(struct nic_counter *c, uint64_t target,
		     uint64_t timeout_ns, enum nic_wait how);
/**
 * nic_counter_run() - Call @handler whenever it has risen, until it does not return
 * 0 (then 0) or the counter is closed (-ECANCELED).
 */
int nic_counter_run(struct nic_counter *c, nic_counter_fn handler, void *arg);

#endif
