/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fake_srq.c: shared receive queues of the NIC that is not there. */
#include "fake_nic.h"
#include "nic/post.h"
#include "nic/shared.h"
#include "ring/srq.h"

#include <errno.h>
#include <stdlib.h>

struct nic_srq {
	struct srq srq;
	struct nic_srq_attr attr;
	unsigned users;
};

int nic_srq_create(struct nic *nic, struct nic_async *async, uint32_t pd,
		   const struct nic_srq_attr *attr, void *cookie,
		   struct nic_srq **out)
{
	const int rc = fake_step();
	struct nic_srq *srq;

	(void)nic;
	(void)async;
	(void)cookie;
	if (rc)
		return rc;
	srq = aligned_alloc(_Alignof(struct nic_srq), sizeof(*srq));
	assert_non_null(srq);
	memset(srq, 0, sizeof(*srq));
	srq->attr = *attr;
	assert_int_equal(srq_init(&srq->srq, attr->max_wr, attr->max_sge, pd),
			 0);
	fake.live++;
	*out = srq;
	return 0;
}

int nic_srq_destroy(struct nic_srq *srq)
{
	const int rc = fake_step();

	if (rc || srq->users)
		return rc ? rc : -EBUSY;
	srq_fini(&srq->srq);
	free(srq);
	fake.live--;
	return 0;
}

void fake_srq_user(struct nic_srq *srq, int more)
{
	srq->users = (unsigned)((int)srq->users + more);
}

int nic_srq_arm(struct nic_srq *srq, uint32_t limit)
{
	const int rc = fake_step();

	if (!rc)
		srq->attr.limit = limit;
	return rc;
}

int nic_srq_query(struct nic_srq *srq, struct nic_srq_attr *out)
{
	*out = srq->attr;
	return fake_step();
}

int nic_srq_recv_begin(struct nic_srq *srq)
{
	(void)srq;
	fake.locks++;
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
	(void)srq;
	fake.locks--;
}

const struct wqe *fake_srq_wqe(struct ibv_srq *srq, unsigned i)
{
	return receive_peek(&vsrq_of(srq)->nic->srq.source, i);
}
