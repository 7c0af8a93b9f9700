/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* holds.c: pages of an exact host that are kept from being unmapped. The theory is at the
 * head of spt.c.
 */
#include "mem/holds.h"
#include "base/check.h"
#include "mem/change.h"
#include "mem/entry.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/upcall.h"

/**
 * spt_hold() - Keep a page from being unmapped, on exact hosts; on others do nothing.
 * @m:		the NIC's memory
 * @vpn:	page, ready or not
 *
 * Return: false if it cannot be held: too many holds in its set, or on it.
 */
bool spt_hold(struct mem *m, uint64_t vpn)
{
	uint64_t *e, old;

	if (!m->spt.exact)
		return true;
	spt_drop_ahead(m, vpn);
	e = spt_find(&m->spt, vpn);
	old = e ? *e : 0;
	e = spt_place(m, vpn, e);
	if (!e || e_aux(*e) == AUX_MASK)
		return false;
	entry_set(m, vpn, e, old, *e + AUX_ONE);
	return true;
}

/**
 * spt_unhold() - Undo one spt_hold().
 * @m:		the NIC's memory
 * @vpn:	page
 */
void spt_unhold(struct mem *m, uint64_t vpn)
{
	uint64_t *e;

	if (!m->spt.exact)
		return;
	e = spt_find(&m->spt, vpn);
	CHECK(e && e_aux(*e) > 0);
	if ((*e - AUX_ONE) >> AUX_SHIFT == 0)
		entry_end(&m->spt, e, UPCALL_NUM);
	else
		*e -= AUX_ONE;
}
