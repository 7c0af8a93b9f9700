/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* completion.h: completion channels and queues, for the API edge.
 * Threads, errors and children of fork(): nic.h.
 */
#ifndef NOPIN_NIC_COMPLETION_H
#define NOPIN_NIC_COMPLETION_H

#include "base/account.h"
#include "mem/ticket.h"
#include "ring/cqe.h"

struct nic;
struct nic_async;
struct nic_channel;
struct nic_cq;

int nic_channel_open(struct nic *nic, struct nic_channel **out, int *fd);
/** nic_channel_close() - Close a channel that no CQ uses any more (the caller checks). */
void nic_channel_close(struct nic_channel *ch);
/**
 * nic_channel_get() - Take the next CQ (its cookie) with an event. Blocks, and then
 * runs the engine itself, unless the fd is O_NONBLOCK (-EAGAIN).
 * The fd stays readable while events are queued.
 */
int nic_channel_get(struct nic_channel *ch, void **cq_cookie);

/**
 * nic_cq_create() - Create a completion queue.
 * @async:	gets NIC_EVENT_CQ_ERR on overflow
 * @ch:		may be NULL
 * @entries:	1..NIC_MAX_CQE
 */
int nic_cq_create(struct nic *nic, struct nic_async *async,
		  struct nic_channel *ch, uint32_t entries, void *cookie,
		  struct nic_cq **out);
/** nic_cq_destroy() - Destroy the queue, and forget events that are queued for it.
 * Return: 0; -EBUSY while QPs use it. */
int nic_cq_destroy(struct nic_cq *cq);
/** nic_cq_resize() - Resize the queue to @entries.
 * Return: 0; -EINVAL: no such size, or more than @asked are queued; -ENOMEM. */
int nic_cq_resize(struct nic_cq *cq, uint32_t entries, uint32_t asked);
/** nic_cq_poll() - Make progress and take up to @n. Return: count or -errno. */
int nic_cq_poll(struct nic_cq *cq, unsigned n, struct cqe *out);
int nic_cq_arm(struct nic_cq *cq, bool solicited_only);

enum { NIC_METS = 32 };

/**
 * nic_cq_met() - Tell what the work request of a completion that was taken met.
 * @back:	how many were taken after it: 0: the last one. After a poll that
 *		returned n, its i-th is n - 1 - i. Completions that several
 *		threads take are counted together
 * Of a request of ours: its source pages, and where READ responses go. Of a
 * receive: where its message went. What the peer's NIC met is not in it.
 * Return: 0; -ENOENT: not so many were taken, or it is so long ago that
 * NIC_METS later ones met faults.
 */
int nic_cq_met(struct nic_cq *cq, uint64_t back, struct met *out);

#endif
