/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wqe.h: what a program asks for: work requests in nopin's own types. */
#ifndef NOPIN_RING_WQE_H
#define NOPIN_RING_WQE_H

#include "base/account.h"
#include "base/addr.h"
#include "ring/wr_op.h"

#include <stdint.h>

enum wqe_flag {
	WQE_SIGNALED = 1 << 0,
	WQE_SOLICITED = 1 << 1,
	WQE_FENCE = 1 << 2,
	WQE_INLINE = 1 << 3, /* payload is in the WQE, not in SGEs */
};

struct sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

/**
 * struct wqe_to - Where a datagram goes.
 * @local:	our address that it comes from
 * @scope:	interface of @local if that is link-local, else 0
 * @qkey:	with its highest bit set: the QP's own (IBTA 10.2.5)
 */
struct wqe_to {
	struct ipaddr dgid, local;
	uint32_t scope;
	uint32_t qpn, qkey;
	struct ip_mark mark;
};

/**
 * struct wqe - A send or receive work request, followed by @num_sge SGEs or by
 * @length inline bytes.
 * @imm:	immediate data, opaque; or the R_Key to invalidate; or the counter to
 *		raise
 * @length:	sum of the SGEs or inline bytes (the poster computes it)
 * @to:		of a QP of datagrams, which knows no @raddr and what follows it
 * The block "engine" is the engine's alone after the WQE was published.
 */
struct wqe {
	/* poster */
	uint64_t wr_id;
	uint8_t op; /* enum wr_op */
	uint8_t flags; /* enum wqe_flag */
	uint16_t num_sge;
	uint32_t imm;
	uint64_t length;
	union {
		struct {
			uint64_t raddr;
			uint32_t rkey;
			/* atomics */
			uint64_t swap_add;
			uint64_t compare;
		};
		struct wqe_to to;
	};
	/* engine */
	uint32_t first_psn;
	uint32_t num_psn;
	struct met met; /* faults */
};

static inline struct sge *wqe_sge(const struct wqe *w)
{
	return (struct sge *)(w + 1);
}

static inline uint8_t *wqe_inline(const struct wqe *w)
{
	return (uint8_t *)(w + 1);
}

#endif
