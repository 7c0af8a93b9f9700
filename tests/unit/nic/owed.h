/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owed.h: what side 1 owes to side 0, step by step. */
#ifndef NOPIN_TESTS_UNIT_NIC_OWED_H
#define NOPIN_TESTS_UNIT_NIC_OWED_H

#include "nic/step.h"
#include "steps.h"
#include "wire/ext.h"
#include "xport/attr.h"
#include "xport/responder.h"

#define TEST(f, setup_) cmocka_unit_test_setup_teardown(f, setup_, sides_close)

static inline struct resp *resp(void)
{
	return &side[1].qp->qp.resp;
}

/* A WRITE has come to side 1, which owes the ACK. */
static inline void write_comes(void)
{
	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	RECEIVE_UNTIL(resp()->ack.owed);
}

/* What side 1 owes is planned by another thread, which is slow. */
static inline struct step *owed_is_planned(unsigned step)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps.v[step];

	know_pages(&side[1]);
	/* On a slow machine the peer asks, and an answer would go alone. */
	resp()->ack.xack &= ~(uint32_t)XACK_PROBED;
	assert_true(engine_plan(nic, tx, true, os_now(nic->os)));
	assert_true(tx->burst.acks.num);
	return tx;
}

/* The program resets or breaks the connection. */
static inline void leave(enum qp_state to)
{
	struct qp_attr attr = {.state = to};
	struct nic *nic = side[1].nic;

	nic->cfg.manual = false; /* as it is in a program */
	assert_int_equal(nic_qp_modify(side[1].qp, &attr, QPA_STATE), 0);
	nic->cfg.manual = true;
}

/* What side 1 owes is planned, alone or behind its answers, and meets a full
 * socket. */
static inline void owed_meets_full(bool behind)
{
	struct step *tx = owed_is_planned(2);

	assert_true((tx->burst.qp != NULL) == behind);
	assert_false(resp()->ack.nak.owed);
	full(side[1].nic, tx);
}

/* Side 1 has planned, in @rx, what side 0 has posted. */
static inline void request_is_planned(struct step *rx)
{
	struct nic *nic = side[1].nic;
	bool out = false;

	send_all(&side[0]);
	know_pages(&side[1]);
	nic->rx.peek = 0;
	for (int i = 0; i < TRIES && !out; i++) {
		pump(&side[0]);
		if (inlet_receive(nic, rx))
			out = engine_rx_plan(nic, rx, os_now(nic->os)) &&
			      rx->run.qp;
		else
			idle(nic);
	}
	assert_true(out);
}

#endif
