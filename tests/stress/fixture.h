/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fixture.h: two NICs in one process, and what the stress tests do with them.
 */
#ifndef NOPIN_TESTS_STRESS_FIXTURE_H
#define NOPIN_TESTS_STRESS_FIXTURE_H

#include "common.h"
#include "nic/completion.h"
#include "nic/config.h"
#include "nic/cq.h"
#include "nic/device.h"
#include "nic/events.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "nic/qp.h"
#include "os/run.h"

#include <errno.h>

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

enum { DEPTH = 32, SIDES = 2 };

/** struct end - One end of a connection. */
struct end {
	struct nic *nic;
	struct nic_cq *cq;
	struct nic_qp *qp;
	uint32_t pd, qpn;
};

static inline void fixture_log(const char *line, int len)
{
	os_log(line, (size_t)len);
}

static inline struct nic *fixture_nic(void)
{
	struct nic_config cfg = {.os = {.addr = "lo", .pagers = 4},
				 .entries = 1 << 16,
				 .scatter = true,
				 .pool_bytes = 1 << 20,
				 .strategies = strategy_set(STRATEGY_ADAPTIVE)};
	struct nic *nic;

	log_set(LOG_ERROR, fixture_log);
	REQUIRE(nic_open(&nic, &cfg) == 0);
	return nic;
}

static inline uint32_t fixture_reg(struct nic *nic, uint32_t pd, void *addr,
				   size_t bytes)
{
	struct mr_attr mr = {
		.addr = (uintptr_t)addr,
		.iova = (uintptr_t)addr,
		.length = bytes,
		.pd = pd,
		.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			  ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC};
	uint32_t key;

	REQUIRE(nic_mr_reg(nic, &mr, &key) == 0);
	return key;
}

static inline void fixture_qp(struct end *e)
{
	struct nic_qp_init init = {.pd = e->pd,
				   .send_cq = e->cq,
				   .recv_cq = e->cq,
				   .max_send_wr = DEPTH,
				   .max_recv_wr = DEPTH,
				   .max_send_sge = 2,
				   .max_recv_sge = 2,
				   .cookie = e};

	REQUIRE(nic_qp_create(e->nic, NULL, &init, &e->qp, &e->qpn) == 0);
}

/* The three steps from RESET to RTS. @timeout: 0 for a QP that has no timer.
 * Return: 0 or what the first step that failed said.
 */
static inline int fixture_connect(struct nic_qp *qp, struct nic *to,
				  uint32_t qpn, uint8_t timeout)
{
	static const struct {
		enum qp_state state;
		uint32_t mask;
	} steps[] = {
		{QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
		{QPS_RTR, QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
				  QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER},
		{QPS_RTS, QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
				  QPA_SQ_PSN | QPA_MAX_RD_ATOMIC},
	};
	struct qp_attr a = {.port = 1,
			    .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
				      ACCESS_REMOTE_ATOMIC,
			    .path_mtu = 4096,
			    .dest_qpn = qpn,
			    .rq_psn = 0xfffff0,
			    .sq_psn = 0xfffff0,
			    .has_grh = true,
			    .max_rd_atomic = 4,
			    .max_dest_rd_atomic = 4,
			    .timeout = timeout,
			    .retry_cnt = 7,
			    .rnr_retry = 7,
			    .min_rnr_timer = 1};
	struct nic_gid gid;
	int err = nic_gid(to, 0, &gid);

	a.dgid = gid.ip;
	for (size_t i = 0; i < ARRAY_SIZE(steps) && !err; i++) {
		a.state = steps[i].state;
		err = nic_qp_modify(qp, &a, QPA_STATE | steps[i].mask);
	}
	return err;
}

static inline int fixture_state(struct nic_qp *qp, enum qp_state state)
{
	struct qp_attr a = {.state = state};

	return nic_qp_modify(qp, &a, QPA_STATE);
}

/* Return: 1, 0: the queue is full, or -errno. */
static inline int fixture_post(struct nic_qp *qp, struct wqe w, void *addr,
			       uint32_t len, uint32_t lkey)
{
	const bool recv = w.op == WR_RECV;
	int err = recv ? nic_recv_begin(qp) : nic_send_begin(qp);
	struct wqe *slot;

	if (err)
		return err;
	slot = recv ? nic_recv_slot(qp) : nic_send_slot(qp);
	if (slot) {
		w.flags |= WQE_SIGNALED;
		w.length = len;
		w.num_sge = 1;
		*slot = w;
		wqe_sge(slot)[0] = (struct sge){(uintptr_t)addr, len, lkey};
		if (recv)
			nic_recv_publish(qp);
		else
			nic_send_publish(qp);
	}
	if (recv)
		nic_recv_end(qp);
	else
		nic_send_end(qp);
	return slot != NULL;
}

/* A pair of connected ends, each with a CQ of its own. */
static inline void fixture_pair(struct end e[SIDES], struct nic *nic[SIDES],
				struct nic_channel *ch, uint8_t timeout)
{
	for (int i = 0; i < SIDES; i++) {
		e[i].nic = nic[i];
		REQUIRE(nic_pd_alloc(nic[i], &e[i].pd) == 0);
		REQUIRE(nic_cq_create(nic[i], NULL, i ? NULL : ch, 4 * DEPTH,
				      &e[i], &e[i].cq) == 0);
		fixture_qp(&e[i]);
	}
	for (int i = 0; i < SIDES; i++)
		REQUIRE(fixture_connect(e[i].qp, nic[!i], e[!i].qpn, timeout) ==
			0);
}

static inline void fixture_unpair(struct end e[SIDES])
{
	for (int i = 0; i < SIDES; i++) {
		REQUIRE(nic_qp_destroy(e[i].qp) == 0);
		REQUIRE(nic_cq_destroy(e[i].cq) == 0);
		REQUIRE(nic_pd_dealloc(e[i].nic, e[i].pd) == 0);
	}
}

#endif
