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

/** struct nic_qp - @all: on nic.qps.all */
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
	uint32_t events;
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
