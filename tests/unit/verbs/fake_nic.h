/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fake_nic.h: a nic.h without a NIC, for tests of verbs/: objects are real
 * enough to be created, used and destroyed, queues can be looked into, events
 * and completions are put in by the test, and the n-th call can be made to fail.
 */
#ifndef NOPIN_TEST_FAKE_NIC_H
#define NOPIN_TEST_FAKE_NIC_H

#include "base/counters.h"
#include "mem/mr.h"
#include "nic/async.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "ring/cqe.h"
#include "verbs/object.h"
#include "verbs/verbs.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/**
 * struct fake - The only fake NIC.
 * @child:	we are a child, as nic_of_parent() says
 * @fail_in:	the call that fails: 1: the next; 0: none
 * @error:	how: -errno
 * @live:	objects that were created and not destroyed, NIC references
 *		and queues among them
 * @locks:	send queues locked
 * @attr, @mask: what nic_qp_modify() was given; what nic_qp_query() answers
 * @mr:		the last region that was registered or is queried
 * @advised:	what nic_mr_advise() was given, all calls together
 * @counters:	what nic_counters() says
 * @solicited:	what nic_cq_arm() was given
 */
struct fake {
	bool present, child;
	int present_error;
	bool down; /* the port */
	unsigned gids; /* slots of the table that are not empty */
	uint32_t mtu;
	unsigned fail_in;
	int error;
	int live, locks;
	struct qp_attr attr;
	uint32_t mask;
	struct mr_attr mr;
	uint32_t keys;
	struct sge advised[64];
	unsigned num_advised;
	enum nic_advice advice;
	bool flush, solicited;
	struct counters counters;
};
extern struct fake fake;

/** fake_reset() - As at the start of a test; nothing may be left over. */
int fake_reset(void **state);
/** fake_check() - At its end: everything was destroyed. */
int fake_check(void **state);

/** fake_step() - Return: 0, or the error if this is the call that was to fail. */
int fake_step(void);

/** fake_open() - The device, opened. */
struct ibv_context *fake_open(void);

/** fake_wqe() - The i-th published request since the QP was created, or NULL. */
struct wqe *fake_wqe(struct ibv_qp *qp, bool send, unsigned i);
/** fake_srq_user() - A QP more, or less, takes receives from it. */
void fake_srq_user(struct nic_srq *srq, int more);
/** fake_srq_wqe() - The i-th that is posted there, or NULL. */
const struct wqe *fake_srq_wqe(struct ibv_srq *srq, unsigned i);
/** fake_slots() - Count the published slots of a queue. */
unsigned fake_published(struct ibv_qp *qp);
/** fake_complete() - A completion appears in @cq. */
void fake_complete(struct ibv_cq *cq, const struct cqe *cqe);
/** fake_cq_event() - An event of @cq appears in its channel. */
void fake_cq_event(struct ibv_cq *cq);
/** fake_async() - An asynchronous event appears; @cookie as in nic.h. */
void fake_async(struct ibv_context *context, enum nic_event_type type,
		void *cookie);

/** fake_next_slot() - Of the table of event cookies, to see that none leaks. */
uint32_t fake_next_slot(void);

/** struct rc - A PD, a CQ and a QP on them. */
struct rc {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};
/** rc_open() - @ops: of the wr_ functions, 0: without them. */
void rc_open(struct rc *rc, uint64_t ops, int sig_all);
void rc_close(struct rc *rc);

#define fake_test(name)                                                        \
	cmocka_unit_test_setup_teardown(name, fake_reset, fake_check)

#endif
