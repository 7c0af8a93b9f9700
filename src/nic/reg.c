/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reg.c: registration modes (design §4, NOPIN_REG): what is done to the pages of a
 * region as it is registered, or of a move as it is made. All but ondemand are
 * there to be compared with. Whatever they do, the shadow page table is asked
 * before each access: that a page is locked is never relied on.
 *
 * The whole address space, registered at once, is demand-paged in every mode, as
 * it is with cards.
 */
#include "nic/reg.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/moves.h"
#include "base/page.h"
#include "base/range.h"
#include "mem/mr.h"
#include "nic/device.h"
#include "nic/pins.h"
#include "os/pages.h"

#include <errno.h>

/**
 * struct reg_ops - A mode. What is NULL is not done.
 * @enter:	before a region exists. Return: 0; -errno: it is refused
 * @leave:	after it ceased to, or could not be made. No lock held
 * @moves:	moves lock their pages
 * @bounce:	payload is copied through NIC memory
 */
struct reg_ops {
	const char *name;
	int (*enter)(struct nic *nic, const struct mr_attr *attr);
	void (*leave)(struct nic *nic, const struct mr_attr *attr);
	bool moves, bounce;
};

static int pin_enter(struct nic *nic, const struct mr_attr *attr)
{
	return pins_get(&nic->pins, attr->addr, attr->length, true);
}

static void pin_leave(struct nic *nic, const struct mr_attr *attr)
{
	pins_put(&nic->pins, attr->addr, attr->length);
}

/* Moves unlock: what the program locked must be known by then. */
static int op_enter(struct nic *nic, const struct mr_attr *attr)
{
	return pins_look(&nic->pins, attr->addr, attr->length);
}

/* As a card's driver would: for writing if anything may be written. */
static int prefault_enter(struct nic *nic, const struct mr_attr *attr)
{
	if (!attr->length)
		return 0;
	count_atomic(&nic->cnt, CNT_prefault_pages,
		     pages_spanned(attr->addr, attr->length));
	return os_page_now(nic->os, attr->addr, attr->length,
			   attr->access & ACCESS_LOCAL_WRITE);
}

static const struct reg_ops modes[REG_NUM] = {
	[REG_ONDEMAND] = {.name = "ondemand"},
	[REG_PIN] = {.name = "pin", .enter = pin_enter, .leave = pin_leave},
	[REG_PIN_CACHE] = {.name = "pin-cache",
			   .enter = pin_enter,
			   .leave = pin_leave},
	[REG_PIN_OP] = {.name = "pin-op", .enter = op_enter, .moves = true},
	[REG_PREFAULT] = {.name = "prefault", .enter = prefault_enter},
	[REG_COPY] = {.name = "copy", .bounce = true},
};

enum reg_mode reg_by_name(const char *name)
{
	int i = 0;

	while (i < REG_NUM && strcmp(modes[i].name, name) != 0)
		i++;
	return (enum reg_mode)i;
}

void reg_open(struct nic *nic)
{
	nic->reg = &modes[nic->cfg.reg];
	pins_open(&nic->pins, nic->os, &nic->cnt);
	nic->pins.sticky = nic->reg->moves;
	if (nic->cfg.reg == REG_PIN_CACHE)
		nic->pins.limit = nic->cfg.pin_cache ? nic->cfg.pin_cache
						     : UINT64_MAX;
}

void reg_close(struct nic *nic)
{
	pins_close(&nic->pins);
}

bool reg_bounces(const struct nic *nic)
{
	return nic->reg->bounce;
}

int reg_enter(struct nic *nic, const struct mr_attr *attr)
{
	if (attr->length == UINT64_MAX)
		return 0;
	if (range_wraps(attr->addr, attr->length))
		return nic->reg->enter ? -EINVAL : 0;
	/* it may have been mapped since what was there before was registered */
	os_page_forget(nic->os, attr->addr, attr->length);
	return nic->reg->enter ? nic->reg->enter(nic, attr) : 0;
}

void reg_leave(struct nic *nic, const struct mr_attr *attr)
{
	if (nic->reg->leave && attr->length != UINT64_MAX)
		nic->reg->leave(nic, attr);
}

/* --- moves ----------------------------------------------------------------- */

/* Pieces of one buffer follow each other: they are locked as one. Return: the
 * first move behind them. */
static unsigned move_run(const struct moves *mv, unsigned i, uint64_t *len)
{
	const uint64_t addr = mv->m[i].addr;

	for (*len = 0; i < mv->num && mv->m[i].addr == addr + *len; i++)
		*len += mv->m[i].len;
	return i;
}

void reg_move_begin(struct nic *nic, const struct moves *mv,
		    struct reg_move *rm)
{
	uint64_t len;

	if (likely(!nic->reg->moves))
		return;
	*rm = (struct reg_move){{0}};
	for (unsigned i = 0, next; i < mv->num; i = next) {
		next = move_run(mv, i, &len);
		/* Where no more may be locked it moves nevertheless. */
		if (pins_get(&nic->pins, mv->m[i].addr, len, false))
			continue;
		rm->pinned[i / 64] |= UINT64_C(1) << i % 64;
		count_atomic(&nic->cnt, CNT_pin_moves, 1);
	}
}

void reg_move_end(struct nic *nic, const struct moves *mv,
		  const struct reg_move *rm)
{
	uint64_t len;

	if (likely(!nic->reg->moves))
		return;
	for (unsigned i = 0, next; i < mv->num; i = next) {
		next = move_run(mv, i, &len);
		if (rm->pinned[i / 64] >> i % 64 & 1)
			pins_put(&nic->pins, mv->m[i].addr, len);
	}
}
