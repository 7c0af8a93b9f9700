/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* strategy.c: what answers of strategies have in common. */
#include "xport/strategy.h"
#include "base/flight.h"
#include "base/strategy.h"
#include "mem/account.h"
#include "xport/qp.h"
#include "xport/xport.h"

void fault_note(const struct fault *f, enum strategy s)
{
	flight_note(&f->qp->log, f->qp->x->now, FLIGHT_FAULT, f->psn,
		    (uint16_t)s, 0);
	mem_account_answer(f->qp->x->mem, f->wait, s);
}
