/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace.h: what is told of a QP. */
#ifndef NOPIN_NIC_TRACE_H
#define NOPIN_NIC_TRACE_H

#include "base/flight.h"
#include "wire/psn.h"
#include "xport/attr.h"
#include "xport/waits.h"

struct ctl_answer;
struct nic;
struct nic_qp;

/** struct trace_qp - What is told of a QP; made under the engine lock. */
struct trace_qp {
	uint32_t qpn, dest_qpn;
	enum qp_state state;
	psn_t una, acc, snd, max;
	psn_t head, next;
	uint32_t sq, rq;
	bool shared; /* rq: several QPs take from it */
	enum live_wait wait;
	uint64_t spent_at;
	uint8_t retries, retry_cnt;
	struct flight log;
};

/** trace_state() - Return the name of @state. */
const char *trace_state(enum qp_state state);
void trace_copy(struct trace_qp *t, const struct nic_qp *nq);

/** trace_format() - Write @t as text; what does not fit is cut. Return: its length. */
size_t trace_format(char *buf, size_t size, const struct trace_qp *t,
		    uint64_t now_ns);

/** trace_text() - Write the counters, and what is told of each QP; only of the newest, if
 * there are too many. */
void trace_text(struct nic *nic, struct ctl_answer *a);

#endif
