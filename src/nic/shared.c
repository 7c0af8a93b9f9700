/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared.c: shared receive queues for the API edge. What is posted there is seen by the
 * next message of any of its QPs: no thread is woken for it.
 */
#include "nic/shared.h"
#include "base/heap.h"
#include "base/list.h"
#include "mem/mr.h"
#include "nic/device.h"
#include "nic/events.h"
#include "nic/nic.h"
#include "nic/post.h"
#include "nic/progress.h"
#include "nic/srq.h"
#include "ring/srq.h"

#include <errno.h>
#include <pthread.h>

static bool attr_ok(const struct nic_srq_attr *a)
{
	return a->max_wr && a->max_wr <= NIC_MAX_SRQ_WR &&
	       a->max_sge <= NIC_MAX_SGE;
}

int nic_srq_create(struct nic *nic, struct nic_async *async, uint32_t pd,
		   const struct nic_srq_attr *attr, void *cookie,
		   struct nic_srq **out)
{
	struct nic_srq *srq;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	if (!attr_ok(attr))
		return -EINVAL;
	srq = heap_alloc(sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	err = srq_init(&srq->srq, attr->max_wr, attr->max_sge, pd);
	if (err) {
		heap_free(srq);
		return err;
	}
	srq->nic = nic;
	srq->async = async;
	srq->attr = (struct nic_srq_attr){attr->max_wr, attr->max_sge, 0};
	srq->cookie = cookie;
	pthread_mutex_init(&srq->lock, NULL);
	list_init(&srq->armed);
	list_init(&srq->async_link);
	nic_lock(nic);
	pd_get(nic->mem, pd);
	nic_unlock(nic);
	*out = srq;
	return 0;
}

int nic_srq_destroy(struct nic_srq *srq)
{
	struct nic *nic = srq->nic;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	if (srq->refs) {
		nic_unlock(nic);
		return -EBUSY;
	}
	list_del(&srq->armed);
	pd_put(nic->mem, srq->srq.source.pd);
	nic_unlock(nic);
	if (srq->async) {
		pthread_mutex_lock(&srq->async->lock);
		list_del(&srq->async_link);
		pthread_mutex_unlock(&srq->async->lock);
	}
	pthread_mutex_destroy(&srq->lock);
	srq_fini(&srq->srq);
	heap_free(srq);
	return 0;
}

int nic_srq_arm(struct nic_srq *srq, uint32_t limit)
{
	struct nic *nic = srq->nic;

	if (nic_child(nic))
		return -ENODEV;
	if (limit > srq->attr.max_wr)
		return -EINVAL;
	nic_lock(nic);
	srq->attr.limit = limit;
	list_del(&srq->armed);
	if (limit)
		list_add_tail(&nic->armed, &srq->armed);
	nic_unlock(nic); /* looks at it */
	return 0;
}

int nic_srq_query(struct nic_srq *srq, struct nic_srq_attr *out)
{
	struct nic *nic = srq->nic;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	*out = srq->attr;
	nic_unlock(nic);
	return 0;
}

int nic_srq_recv_begin(struct nic_srq *srq)
{
	if (nic_child(srq->nic))
		return -ENODEV;
	pthread_mutex_lock(&srq->lock);
	return 0;
}

struct wqe *nic_srq_recv_slot(struct nic_srq *srq)
{
	return srq_reserve(&srq->srq);
}

uint32_t nic_srq_max_sge(const struct nic_srq *srq)
{
	return srq->attr.max_sge;
}

void nic_srq_recv_publish(struct nic_srq *srq)
{
	srq_publish(&srq->srq);
}

void nic_srq_recv_end(struct nic_srq *srq)
{
	pthread_mutex_unlock(&srq->lock);
}
