/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr_api.h: memory regions. */
#ifndef NOPIN_VERBS_MR_API_H
#define NOPIN_VERBS_MR_API_H

#include "nic/memory.h"
#include "verbs/verbs.h"

#include <stddef.h>
#include <stdint.h>

/**
 * advise_mr() - Do what ibv_advise_mr(3) asks for.
 * @sge:	@num of them, each within a region of @pd
 * Return: 0; an errno.
 */
int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
	      uint32_t flags, struct ibv_sge *sge, uint32_t num);

/**
 * reg_mr() - Register [addr, addr + length) as a region of @pd, reachable at @iova.
 * @access:	enum ibv_access_flags
 * @more:	what else it is to have; PD, range and rights are filled in
 * Return: NULL, with errno.
 */
struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length,
		      uint64_t iova, unsigned int access, struct mr_attr more);
/** access_from_verbs() - Convert to our rights. Return: 0; -EINVAL: unknown ones, or remote
 * writing or atomics without local writing. */
int access_from_verbs(unsigned int access, uint32_t *out);

#endif
