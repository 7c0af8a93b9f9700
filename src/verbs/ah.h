/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ah.h: address handles. */
#ifndef NOPIN_VERBS_AH_H
#define NOPIN_VERBS_AH_H

#include "ring/wqe.h"
#include "verbs/verbs.h"

#include <stdint.h>

/**
 * ah_to_wqe() - Aim a request at @qpn of @ah.
 * Return: 0; EINVAL: @ah is NULL or not of the PD of the QP, @pd; no such @qpn.
 */
int ah_to_wqe(const struct ibv_ah *ah, const struct ibv_pd *pd, uint32_t qpn,
	      uint32_t qkey, struct wqe_to *to);

#endif
