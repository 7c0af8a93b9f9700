/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* side.h: a NIC with one QP, of which a test connects two in one process, over
 * the host's loopback.
 */
#ifndef NOPIN_TESTS_UNIT_NIC_SIDE_H
#define NOPIN_TESTS_UNIT_NIC_SIDE_H

#include "mem/mr.h"
#include "nic/completion.h"
#include "nic/config.h"
#include "nic/cq.h"
#include "nic/device.h"
#include "nic/events.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "nic/progress.h"
#include "nic/qp.h"
#include "os/run.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SIDES = 2, BUF = 1 << 20, DEPTH = 64, SIDE_SGES = 4 };

struct side {
	struct nic *nic;
	struct nic_cq *cq;
	struct nic_qp *qp;
	uint32_t pd, qpn, key;
	uint8_t *buf;
};

static struct side side[SIDES];
static uint16_t side_mtu = 4096; /* path MTU of what is connected next */

/* A CQ of @entries and a QP; @async and @ch may be NULL. */
/* It is now, for what is called without nic_lock(). */
static inline void nic_tick(struct nic *nic)
{
	nic->x.now = os_now(nic->os);
}

static void side_qp(struct side *s, uint32_t entries, struct nic_async *async,
		    struct nic_channel *ch)
{
	struct nic_qp_init init = {.max_send_wr = DEPTH,
				   .max_recv_wr = DEPTH,
				   .max_send_sge = SIDE_SGES,
				   .max_recv_sge = SIDE_SGES,
				   .max_inline = 64,
				   .pd = s->pd,
				   .cookie = s};

	assert_int_equal(nic_cq_create(s->nic, async, ch, entries, s, &s->cq),
			 0);
	init.send_cq = init.recv_cq = s->cq;
	assert_int_equal(nic_qp_create(s->nic, async, &init, &s->qp, &s->qpn),
			 0);
}

static inline void side_qp_close(struct side *s)
{
	if (s->qp) /* else the test destroyed it */
		assert_int_equal(nic_qp_destroy(s->qp), 0);
	assert_int_equal(nic_cq_destroy(s->cq), 0);
}

static void side_open(struct side *s, const struct nic_config *cfg)
{
	struct mr_attr mr = {
		.length = BUF,
		.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			  ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC};

	assert_int_equal(nic_open(&s->nic, cfg), 0);
	s->nic->x.checked = true;
	assert_int_equal(nic_pd_alloc(s->nic, &s->pd), 0);
	side_qp(s, 256, NULL, NULL);
	s->buf = aligned_alloc(4096, BUF);
	memset(s->buf, 0, BUF);
	mr.pd = s->pd;
	mr.addr = mr.iova = (uintptr_t)s->buf;
	assert_int_equal(nic_mr_reg(s->nic, &mr, &s->key), 0);
}

/* What makes a QP ready to send to @peer; PSNs wrap soon. */
static struct qp_attr side_attr(const struct side *s, const struct side *peer)
{
	struct qp_attr a = {.state = QPS_INIT,
			    .port = 1,
			    .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
				      ACCESS_REMOTE_ATOMIC,
			    .path_mtu = side_mtu,
			    .dest_qpn = peer->qpn,
			    .rq_psn = 0xfffffe,
			    .sq_psn = 0xfffffe,
			    .has_grh = true,
			    .max_rd_atomic = 4,
			    .max_dest_rd_atomic = 4,
			    .timeout = s->nic->cfg.manual ? 0 : 17,
			    .retry_cnt = 7,
			    .rnr_retry = 7,
			    .min_rnr_timer = 1};
	struct nic_gid gid;

	assert_int_equal(nic_gid(peer->nic, 0, &gid), 0);
	a.dgid = gid.ip;
	return a;
}

/* The attributes that a state must be entered with. */
static const uint32_t side_mask[] = {
	[QPS_INIT] = QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
	[QPS_RTR] = QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
		    QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
	[QPS_RTS] = QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN |
		    QPA_MAX_RD_ATOMIC};

/* One state further. Return: as nic_qp_modify(). */
static int side_next(struct side *s, struct qp_attr *a, enum qp_state to)
{
	a->state = to;
	return nic_qp_modify(s->qp, a, QPA_STATE | side_mask[to]);
}

static inline struct qp_attr side_query(const struct side *s)
{
	struct nic_qp_init init;
	struct qp_attr a;

	assert_int_equal(nic_qp_query(s->qp, &a, &init), 0);
	return a;
}

static inline bool side_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

static inline void side_connect(struct side *s, const struct side *peer)
{
	struct qp_attr a = side_attr(s, peer);

	for (enum qp_state to = QPS_INIT; to <= QPS_RTS; to++)
		assert_int_equal(side_next(s, &a, to), 0);
}

static inline void sides_open(const struct nic_config *cfg)
{
	for (int i = 0; i < SIDES; i++)
		side_open(&side[i], cfg);
	for (int i = 0; i < SIDES; i++)
		side_connect(&side[i], &side[!i]);
}

/* With threads of their own, as in programs. */
static inline void sides_open_usual(void)
{
	const struct nic_config cfg = {.os = {.addr = "lo", .pagers = 2},
				       .entries = 1 << 16,
				       .pool_bytes = 1 << 20,
				       .strategies = 1u << STRATEGY_REDIRECT};

	sides_open(&cfg);
}

/* A signaled @wqe of @sge; at address 0: of nothing. */
static inline void side_post_sge(struct side *s, struct wqe wqe, struct sge sge)
{
	struct wqe *slot;

	assert_int_equal(nic_send_begin(s->qp), 0);
	slot = nic_send_slot(s->qp);
	assert_non_null(slot);
	wqe.flags |= WQE_SIGNALED;
	wqe.length = sge.len;
	wqe.num_sge = sge.addr != 0;
	*slot = wqe;
	if (wqe.num_sge)
		wqe_sge(slot)[0] = sge;
	nic_send_publish(s->qp);
	nic_send_end(s->qp);
}

/* @len bytes at @addr of its region; NULL: of nothing. */
static inline void side_post(struct side *s, struct wqe wqe, void *addr,
			     uint32_t len)
{
	side_post_sge(s, wqe, (struct sge){(uintptr_t)addr, len, s->key});
}

/* A receive of @len bytes at @addr, in @num_sge pieces. */
static inline void side_recv(struct side *s, uint8_t *addr, uint32_t len,
			     unsigned num_sge)
{
	struct wqe *slot;

	assert_int_equal(nic_recv_begin(s->qp), 0);
	slot = nic_recv_slot(s->qp);
	assert_non_null(slot);
	*slot = (struct wqe){.length = len, .num_sge = num_sge};
	for (unsigned i = 0; i < num_sge; i++) {
		uint32_t from = len * i / num_sge;

		wqe_sge(slot)[i] = (struct sge){(uintptr_t)addr + from,
						len * (i + 1) / num_sge - from,
						s->key};
	}
	nic_recv_publish(s->qp);
	nic_recv_end(s->qp);
}

/* The next completion of @s, whose NIC has threads of its own. */
static inline struct cqe side_cqe(struct side *s)
{
	struct cqe e;
	int n;

	while (!(n = nic_cq_poll(s->cq, 1, &e)))
		;
	assert_int_equal(n, 1);
	return e;
}

/* The next completion of @s has @status and says @cause. */
static inline void side_ended(struct side *s, enum wc_status status,
			      unsigned cause)
{
	const struct cqe e = side_cqe(s);

	assert_int_equal(e.status, status);
	assert_int_equal(e.vendor_err, cause);
}

/* Does what comes to UDP port 4791 reach it? */
static inline bool side_served(const struct side *s)
{
	bool served;

	nic_lock(s->nic);
	served = s->nic->roce.port >= 0 || s->nic->roce.told;
	nic_unlock(s->nic);
	return served;
}

static inline int sides_close(void **state)
{
	(void)state;
	for (int i = 0; i < SIDES; i++) {
		struct side *s = &side[i];

		side_qp_close(s);
		assert_int_equal(nic_mr_dereg(s->nic, s->key), 0);
		assert_int_equal(nic_pd_dealloc(s->nic, s->pd), 0);
		nic_close(s->nic);
		free(s->buf);
	}
	return 0;
}

#endif
