/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scatter_test.c: a burst is received in place because of its first header; what
 * its other headers say is the peer's to choose. Whatever it is, nothing breaks.
 */
#include "mem/dma.h"
#include "nic/step.h"
#include "steps.h"
#include "wire/icrc.h"

enum { SEGS = 4, SEG = 4096 };

/* A burst of SEGS packets from side 0, not yet on its way. */
static struct step *plan_burst(enum wr_op op)
{
	struct side *from = &side[op == WR_READ];
	struct nic *nic = from->nic;
	struct step *tx = &nic->steps.v[2];
	const struct resp *r = &from->qp->qp.resp;

	side_recv(&side[1], side[1].buf, BUF / 2, 1);
	post(&side[0], op, SEGS * SEG);
	know_pages(&side[0]);
	know_pages(&side[1]);
	if (op == WR_READ) {
		send_all(&side[0]);
		for (int k = 0; k < TRIES && r->replay.at == r->replay.next;
		     k++)
			if (inlet_receive(nic, tx))
				finish_receive(nic, tx);
			else
				idle(nic);
	}
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	assert_true(tx->burst.nsegs >= SEGS);
	return tx;
}

/* Packet @i says it is a @opcode, and its trailer that it is right. */
static void forge(struct burst *b, unsigned i, uint8_t opcode)
{
	const struct seg *s = &b->seg[i];
	uint8_t *hdr = b->bytes + s->hdr;

	hdr[0] = opcode;
	icrc_store(xcrc(hdr, s->hdr_len), hdr + s->hdr_len);
}

/* What was said before it comes before it. */
static void receive_burst(struct nic *nic, struct step *rx)
{
	for (int k = 0; k < TRIES; k++) {
		nic->rx.peek = 1;
		if (!inlet_receive(nic, rx))
			idle(nic);
		else if (rx->rx.len > SEG)
			return;
		else
			finish_receive(nic, rx);
	}
	fail_msg("no burst");
}

static void receive_forged(enum wr_op op, unsigned i, uint8_t opcode)
{
	const unsigned to = op != WR_READ;
	struct nic *far;
	struct step *tx, *rx;

	open_sides(false);
	tx = plan_burst(op);
	forge(&tx->burst, i, opcode);
	plan_move_commit(side[!to].nic, tx);
	far = side[to].nic;
	rx = &far->steps.v[2];
	know_pages(&side[to]);
	receive_burst(far, rx);
	assert_ptr_equal(rx->scatter.qp, &side[to].qp->qp);
	finish_receive(far, rx);
	/* and the NIC goes on */
	for (int k = 0; k < 3; k++)
		for (int n = 0; n < SIDES; n++)
			pump(&side[n]);
	sides_close(NULL);
}

static void scatter__any_opcode(enum wr_op op)
{
	for (unsigned opcode = 0xc0; opcode <= 0xff; opcode++) {
		receive_forged(op, 1, (uint8_t)opcode);
		receive_forged(op, SEGS - 1, (uint8_t)opcode);
	}
}

static void scatter__send(void **state)
{
	(void)state;
	scatter__any_opcode(WR_SEND);
}

static void scatter__write(void **state)
{
	(void)state;
	scatter__any_opcode(WR_WRITE);
}

static void scatter__read_response(void **state)
{
	(void)state;
	scatter__any_opcode(WR_READ);
}

/* Not to memory that the kernel may refuse to write: what it refuses is lost. */
static void scatter__not_where_only_user_mode_may(void **state)
{
	struct step *tx, *rx;

	(void)state;
	open_sides(false);
	tx = plan_burst(WR_WRITE);
	plan_move_commit(side[0].nic, tx);
	rx = &side[1].nic->steps.v[2];
	user_only_learn(side[1].nic->mem,
			(uintptr_t)side[1].buf + BUF / 2 + SEG - 1, 1);
	receive_burst(side[1].nic, rx);
	assert_null(rx->scatter.qp);
	finish_receive(side[1].nic, rx);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	sides_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scatter__send),
		cmocka_unit_test(scatter__write),
		cmocka_unit_test(scatter__read_response),
		cmocka_unit_test(scatter__not_where_only_user_mode_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
