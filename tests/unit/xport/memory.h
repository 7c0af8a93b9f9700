/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.h: a transport with its memory, and no NIC. */
#ifndef NOPIN_TESTS_UNIT_XPORT_MEMORY_H
#define NOPIN_TESTS_UNIT_XPORT_MEMORY_H

#include "base/list.h"
#include "mem/mem.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "mem/waiter.h"
#include "wire/pkt.h"
#include "wire/roce.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/rx.h"
#include "xport/transport.h"
#include "xport/tx.h"
#include "xport/xport.h"

#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Open @mem and @x, with so many slots and tickets. Return: their memory, for free(). */
static inline void *open_memory_as(struct mem **mem, struct xport *x,
				   struct counters *cnt, unsigned slots,
				   unsigned tickets, bool exact)
{
	const uint64_t seed[2] = {1, 2};
	struct mem_config cfg = {.entries = 1 << 10,
				 .slots = slots,
				 .tickets = tickets,
				 .pagers = 4,
				 .exact = exact,
				 .slot_base = calloc(slots, MTU_MAX),
				 .counters = cnt};

	assert_int_equal(mem_open(mem, &cfg), 0);
	assert_int_equal(xport_open(x, *mem, cnt, slots, seed), 0);
	return cfg.slot_base;
}

static inline void *open_memory(struct mem **mem, struct xport *x,
				struct counters *cnt, unsigned slots)
{
	return open_memory_as(mem, x, cnt, slots, 8, false);
}

/* The packet @i of a burst, as the peer reads it. */
static inline struct pkt sent_packet(const struct burst *b, unsigned i)
{
	const struct seg *g = &b->seg[i];
	struct pkt p;

	assert_true(i < b->nsegs);
	assert_int_equal(pkt_parse(b->bytes + g->hdr, g->hdr_len,
				   g->hdr_len + g->payload_len + g->trailer_len,
				   &p),
			 CNT_NUM);
	return p;
}

/* Make @qp and bring it to RTR, where it takes what @peer sends; a datagram, with @qkey. */
static inline void connect_receiver(struct qp *qp, struct xport *x,
				    const struct qp_config *cfg,
				    struct peer *peer, uint32_t qkey)
{
	const bool ud = cfg->transport == &transport_ud;
	struct qp_attr a = {.port = 1,
			    .qkey = qkey,
			    .path_mtu = cfg->mtu,
			    .has_grh = true,
			    .dgid = {{0xfd, [15] = 2}},
			    .max_dest_rd_atomic = RD_ATOMIC_MAX};
	const uint32_t init = QPA_PKEY_INDEX | QPA_PORT |
			      (ud ? QPA_QKEY : QPA_ACCESS_FLAGS);
	const uint32_t rtr = ud ? 0
				: QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN |
					     QPA_RQ_PSN |
					     QPA_MAX_DEST_RD_ATOMIC |
					     QPA_MIN_RNR_TIMER;

	assert_int_equal(qp_init(qp, x, cfg), 0);
	a.state = QPS_INIT;
	assert_int_equal(qp_modify(qp, &a, QPA_STATE | init, NULL), 0);
	a.state = QPS_RTR;
	assert_int_equal(qp_modify(qp, &a, QPA_STATE | rtr, peer), 0);
}

/* What waited goes on. */
static inline void wake_all(struct list *woken)
{
	list_for_each_safe(l, tmp, woken) {
		list_del(l);
		qp_wake(list_entry(l, struct waiter, link));
	}
}

/* A pager has brought all that was asked for. */
static inline void pages_brought(struct mem *m)
{
	struct ticket_req req;
	struct list woken;

	list_init(&woken);
	while (ticket_next(m, &req)) {
		spt_map(m, req.vpn, req.pages, true, 0);
		ticket_done(m, req.id, req.pages, false, true, 0, 0, 1, 1,
			    &woken);
	}
	wake_all(&woken);
}

/* The moves of @run were made, or met a page that had gone. */
static inline void commit_run(struct rx_run *run, bool ok)
{
	struct moves *m = &run->moves;

	m->done = ok ? m->num : 0;
	m->error = ok ? 0 : -EFAULT;
	qp_rx_commit(run);
}

#endif
