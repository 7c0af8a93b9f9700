/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reg.h: what registering does to pages. */
#ifndef NOPIN_NIC_REG_H
#define NOPIN_NIC_REG_H

#include "base/check.h"
#include "base/moves.h"

struct mr_attr;
struct nic;

/** enum reg_mode - What registering does to pages (reg.c). */
enum reg_mode {
	REG_ONDEMAND,
	REG_PIN,
	REG_PIN_CACHE,
	REG_PIN_OP,
	REG_PREFAULT,
	REG_COPY,
	REG_NUM
};

#define REG_NAMES "ondemand pin pin-cache pin-op prefault copy"

/** struct reg_move - Which moves locked their pages: bit per move. */
struct reg_move {
	uint64_t pinned[DIV_ROUND_UP(MOVES_MAX, 64)];
};

/** reg_by_name() - Find the mode called @name. Return: REG_NUM: there is none. */
enum reg_mode reg_by_name(const char *name);
void reg_open(struct nic *nic);
void reg_close(struct nic *nic);

/** reg_bounces() - Is payload to be copied through NIC memory? */
bool reg_bounces(const struct nic *nic);

/**
 * reg_enter() - Treat the pages of a region as the mode has it, before the region is made.
 * No lock held; may take as long as pages do.
 * Return: 0, or why the region is refused.
 */
int reg_enter(struct nic *nic, const struct mr_attr *attr);

/** reg_leave() - Undo reg_enter(): the region is gone, or was not made. No lock held. */
void reg_leave(struct nic *nic, const struct mr_attr *attr);

/** reg_move_begin(), reg_move_end() - Lock the pages of moves, if the mode has it, and
 * unlock them after. Around moves, whose addresses and lengths stay as they are. */
void reg_move_begin(struct nic *nic, const struct moves *mv,
		    struct reg_move *rm);
void reg_move_end(struct nic *nic, const struct moves *mv,
		  const struct reg_move *rm);

#endif
