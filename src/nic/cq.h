/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.h: a completion queue of a program. */
#ifndef NOPIN_NIC_CQ_H
#define NOPIN_NIC_CQ_H

#include "base/account.h"
#include "base/list.h"
#include "nic/completion.h"
#include "ring/cq.h"

#include <pthread.h>

struct nic;
struct nic_async;
struct nic_channel;

/**
 * struct nic_cq
 * @poll:	serialises pollers, resize and cq_forget()
 * @pending:	events queued on the channel and not yet taken (channel lock)
 * @taken:	completions ever taken; @met: the last of them that met faults, and
 *		which they were; @mets: how many there were (@poll)
 */
struct nic_cq {
	struct cq cq;
	struct nic *nic;
	struct nic_async *async;
	struct nic_channel *channel;
	void *cookie;
	unsigned refs;
	pthread_mutex_t poll;
	struct list ready;
	unsigned pending;
	struct list async_link;
	uint64_t taken, mets;
	struct {
		uint64_t at;
		struct met met;
	} met[NIC_METS];
};

#endif
