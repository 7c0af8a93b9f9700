/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* completion.c: completion queues for the API edge. Polling one makes progress for the
 * whole NIC, but only when it is empty.
 */
#include "nic/completion.h"
#include "base/account.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "nic/attend.h"
#include "nic/cq.h"
#include "nic/device.h"
#include "nic/events.h"
#include "nic/lock.h"
#include "nic/nic.h"
#include "nic/progress.h"
#include "ring/cq.h"
#include "ring/cqe.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

int nic_cq_create(struct nic *nic, struct nic_async *async,
		  struct nic_channel *ch, uint32_t entries, void *cookie,
		  struct nic_cq **out)
{
	struct nic_cq *cq;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	if (!entries || entries > NIC_MAX_CQE)
		return -EINVAL;
	cq = heap_alloc(sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	err = cq_init(&cq->cq, entries);
	if (err) {
		heap_free(cq);
		return err;
	}
	cq->nic = nic;
	cq->async = async;
	cq->channel = ch;
	cq->cookie = cookie;
	pthread_mutex_init(&cq->poll, NULL);
	list_init(&cq->ready);
	list_init(&cq->async_link);
	*out = cq;
	return 0;
}

static void completion_unqueue(struct nic_cq *cq)
{
	list_del(&cq->cq.link);
	if (cq->channel) {
		pthread_mutex_lock(&cq->channel->lock);
		list_del(&cq->ready);
		channel_quiet(cq->channel);
		pthread_mutex_unlock(&cq->channel->lock);
	}
	if (cq->async) {
		pthread_mutex_lock(&cq->async->lock);
		list_del(&cq->async_link);
		pthread_mutex_unlock(&cq->async->lock);
	}
}

int nic_cq_destroy(struct nic_cq *cq)
{
	struct nic *nic = cq->nic;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	if (cq->refs) {
		nic_unlock(nic);
		return -EBUSY;
	}
	completion_unqueue(cq);
	nic_unlock(nic);
	pthread_mutex_destroy(&cq->poll);
	cq_fini(&cq->cq);
	heap_free(cq);
	return 0;
}

int nic_cq_resize(struct nic_cq *cq, uint32_t entries, uint32_t asked)
{
	struct nic *nic = cq->nic;
	struct cq bigger;
	struct cqe e;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	if (!entries || entries > NIC_MAX_CQE)
		return -EINVAL;
	err = cq_init(&bigger, entries);
	if (err)
		return err;
	pthread_mutex_lock(&cq->poll);
	nic_lock(nic);
	if (cq->cq.prod - cq->cq.cons > MIN(entries, asked)) {
		err = -EINVAL;
	} else {
		while (cq_take(&cq->cq, 1, &e))
			cq_push(&bigger, &e);
		cq_swap(&cq->cq, &bigger);
	}
	nic_unlock(nic);
	pthread_mutex_unlock(&cq->poll);
	cq_fini(&bigger);
	return err;
}

static void note_met(struct nic_cq *cq, uint64_t at, struct met met)
{
	const uint64_t i = cq->mets++ % NIC_METS;

	cq->met[i].at = at;
	cq->met[i].met = met;
}

/* @at: of a completion that was taken. */
static int find_met(const struct nic_cq *cq, uint64_t at, struct met *out)
{
	const uint64_t kept = MIN(cq->mets, NIC_METS);

	for (uint64_t i = 1; i <= kept; i++) {
		const uint64_t k = (cq->mets - i) % NIC_METS;

		if (cq->met[k].at > at)
			continue;
		*out = cq->met[k].at == at ? cq->met[k].met
					   : (struct met){.ns = 0};
		return 0;
	}
	*out = (struct met){.ns = 0};
	return cq->mets <= NIC_METS ? 0 : -ENOENT;
}

int nic_cq_met(struct nic_cq *cq, uint64_t back, struct met *out)
{
	int err = -ENOENT;

	if (nic_child(cq->nic))
		return -ENODEV;
	pthread_mutex_lock(&cq->poll);
	if (back < cq->taken)
		err = find_met(cq, cq->taken - 1 - back, out);
	pthread_mutex_unlock(&cq->poll);
	return err;
}

int nic_cq_poll(struct nic_cq *cq, unsigned n, struct cqe *out)
{
	unsigned got;

	if (nic_child(cq->nic))
		return -ENODEV;
	if (cq_empty(&cq->cq)) {
		attend_poll(cq->nic);
		if (cq_empty(&cq->cq))
			return 0;
	}
	progress_owed(cq->nic);
	pthread_mutex_lock(&cq->poll);
	got = cq_take(&cq->cq, n, out);
	for (unsigned i = 0; i < got; i++)
		if (unlikely(out[i].met.faults))
			note_met(cq, cq->taken + i, out[i].met);
	cq->taken += got;
	pthread_mutex_unlock(&cq->poll);
	return (int)got;
}

int nic_cq_arm(struct nic_cq *cq, bool solicited_only)
{
	if (nic_child(cq->nic))
		return -ENODEV;
	cq_arm(&cq->cq, solicited_only);
	return 0;
}
