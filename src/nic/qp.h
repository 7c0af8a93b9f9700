/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.h: a queue pair of a program. */
#ifndef NOPIN_NIC_QP_H
#define NOPIN_NIC_QP_H

#include "base/list.h"
#include "nic/pair.h"
#include "ring/rq.h"
#include "ring/wq.h"
#include "xport/qp.h"

#include <pthread.h>

struct nic;
struct nic_async;
struct nic_port;

/**
 * struct nic_qp
 * @all:	on nic.qps.all
 * @events:	a bit for each kind that is to be fetched (async.lock)
 * @lasts:	how often NIC_EVENT_QP_LAST_WQE_REACHED is: once for each time in ERR
 */
struct nic_qp {
	struct qp qp;
	struct nic *nic;
	struct nic_async *async;
	struct nic_qp_init init;
	struct wq sq;
	struct rq rq;
	pthread_mutex_t sq_lock, rq_lock;
	struct list all;
	struct list async_link;
	uint32_t events, lasts;
	struct nic_port *port;
	/* posted.c */
	struct nic_qp *posted_next;
	uint32_t posted;
};

/**
 * nic_flush() - Give peers an ACK of all that the program can have seen. In a second at
 * most: it may be in part, and the rest wait for a page.
 */
void nic_flush(struct nic *nic);

#endif
