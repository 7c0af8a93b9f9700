/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arbiter.h: how the NIC memory of a host and user is shared. */
#ifndef NOPIN_NIC_ARBITER_H
#define NOPIN_NIC_ARBITER_H

#include "base/fair.h"
#include "os/names.h"

struct ctl_answer;
struct nic;

/* What is shared: entries of the table, slots of the pool, ms of pagers a second. */
enum arb { ARB_ENTRIES, ARB_SLOTS, ARB_PAGERS, ARB_NUM };

/**
 * struct arbiter - The background thread's (arbiter.c).
 * @on:		the board is open
 * @wants:	we said so
 * @resizing:	what share says is not so yet
 * @budget:	of all NICs; @cap: what we may have alone; @share: of the budget
 * @short_ns:	until then we count as short of it
 * @measured_ns, @service_ns: when, and CNT_service_ns then
 * @pagers:	as last applied
 * @other, @all, @shares: of the computation
 */
struct arbiter {
	bool on, wants, resizing;
	struct fair mine[ARB_NUM];
	uint64_t budget[ARB_NUM], cap[ARB_NUM], share[ARB_NUM];
	uint64_t short_ns[ARB_NUM];
	uint64_t next_ns, measured_ns, service_ns;
	uint32_t pagers;
	const struct os_note *other[OS_NOTES_MAX];
	struct fair all[FAIR_MAX];
	uint64_t shares[FAIR_MAX];
};

/**
 * arbiter_open() - Share the NIC's memory from now on, unless that is configured to be off
 * or the board cannot be opened. Context: nothing is in the table yet; steps can be made.
 */
void arbiter_open(struct nic *nic);

/**
 * arbiter_turn() - See what our shares are, if it is time, and keep to them. No lock
 * held. Context: the background thread.
 * Return: when to call it again at the latest; @until: when there is no reason to.
 */
uint64_t arbiter_turn(struct nic *nic, uint64_t until);

/** arbiter_text() - Write as JSON what each process has of the budget, and the state of
 * UDP port 4791; or an error, if memory is not shared. Context: as arbiter_turn(). */
void arbiter_text(struct nic *nic, struct ctl_answer *a);

#endif
