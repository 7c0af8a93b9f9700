/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h: façade of ring/: work queues and completion queues between the
 * application's threads and the engine, in nopin's own types. One producer and
 * one consumer at a time: the poster side is serialised by the caller (a lock
 * per queue), the engine side by the engine lock; for a CQ it is the other way
 * round. Publication order is in acquire/release pairs inside this directory
 * only (ring/order.h). struct wq and struct cq are aligned to 64 bytes: embed
 * them only in objects from aligned_alloc() or static ones.
 */
#ifndef NOPIN_RING_RING_H
#define NOPIN_RING_RING_H

#include "base/account.h"
#include "base/addr.h"
#include "base/list.h"

enum wr_op {
	WR_NONE,
	WR_SEND,
	WR_SEND_IMM,
	WR_SEND_INV,
	WR_WRITE,
	WR_WRITE_IMM,
	WR_WRITE_NOTIFY,
	WR_READ,
	WR_CMP_SWP,
	WR_FETCH_ADD,
	WR_LOCAL_INV,
	WR_BIND_MW,
	WR_RECV, /* completions only */
	WR_RECV_IMM, /* completions only: a WRITE_WITH_IMM consumed a receive */
	WR_NUM
};

enum wqe_flag {
	WQE_SIGNALED = 1 << 0,
	WQE_SOLICITED = 1 << 1,
	WQE_FENCE = 1 << 2,
	WQE_INLINE = 1 << 3, /* payload is in the WQE, not in SGEs */
};

/* The numbers are those of enum ibv_wc_status (checked in tests/abi). */
enum wc_status {
	WC_SUCCESS,
	WC_LOC_LEN_ERR,
	WC_LOC_QP_OP_ERR,
	WC_LOC_EEC_OP_ERR,
	WC_LOC_PROT_ERR,
	WC_WR_FLUSH_ERR,
	WC_MW_BIND_ERR,
	WC_BAD_RESP_ERR,
	WC_LOC_ACCESS_ERR,
	WC_REM_INV_REQ_ERR,
	WC_REM_ACCESS_ERR,
	WC_REM_OP_ERR,
	WC_RETRY_EXC_ERR,
	WC_RNR_RETRY_EXC_ERR,
	WC_FATAL_ERR = 19,
	WC_GENERAL_ERR = 21,
	WC_NUM
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

/**
 * struct wq - A ring of WQEs of equal stride. Indices count for ever and wrap
 * at 2^32, so the ring in memory is a power of two (@mask + 1).
 */
struct wq {
	uint8_t *mem;
	uint32_t slots; /* as many as the program asked for, exactly */
	uint32_t mask;
	uint32_t stride; /* bytes a WQE with its SGEs or inline data */
	size_t bytes;
	/* poster */
	uint32_t prod __attribute__((aligned(64)));
	/* engine */
	uint32_t cons __attribute__((aligned(64)));
};

/**
 * wq_init() - @slots >= 0, memory is mapped but not touched.
 * Return: 0 or -ENOMEM.
 */
int wq_init(struct wq *q, uint32_t slots, uint32_t max_sge,
	    uint32_t max_inline);
void wq_fini(struct wq *q);

/** wq_reserve() - Next free slot for the poster, or NULL when full. */
struct wqe *wq_reserve(struct wq *q);

/** wq_publish() - The reserved slot is complete; the engine may see it. */
void wq_publish(struct wq *q);

/** wq_reserve_ahead() - The slot @ahead behind that of wq_reserve(), or NULL. */
struct wqe *wq_reserve_ahead(struct wq *q, uint32_t ahead);

/** wq_publish_many() - The next @n slots, all reserved, are complete. */
void wq_publish_many(struct wq *q, uint32_t n);

/** wq_end() - Engine: index after the newest published WQE. */
uint32_t wq_end(const struct wq *q);

/** wq_at() - Engine: the WQE at @index in [cons, wq_end()). */
struct wqe *wq_at(const struct wq *q, uint32_t index);

/** wq_release() - Engine: all WQEs before @index are done with. */
void wq_release(struct wq *q, uint32_t index);

/** wq_reset() - Forget everything; nobody else may be using the queue. */
void wq_reset(struct wq *q);

enum cqe_flag {
	CQE_GRH = 1 << 0,
	CQE_IMM = 1 << 1,
	CQE_INV = 1 << 2,
	CQE_IP4 = 1 << 3, /* with CQE_GRH: it came by IPv4 */
};

/**
 * enum wc_cause - Why a request failed: vendor_err of its completion, and of those
 * that were flushed because of it. nopin(7) says it to programs. What is added to:
 * CAUSE_NAK: the syndrome of the NAK (AETH) that the peer sent; CAUSE_NAKED: that we
 * sent, of a request of its own.
 */
enum wc_cause {
	CAUSE_NONE, /* none failed: the program asked for it */
	CAUSE_NAK = 0,
	CAUSE_ACCESS =
		0x100, /* key, PD, right, bounds, or there is no memory */
	CAUSE_LENGTH, /* too long, or no room */
	CAUSE_OPERATION, /* the peer does not know it, or cannot be reached */
	CAUSE_INVALIDATE, /* the key may not be invalidated */
	CAUSE_RESPONSE, /* is not what was asked for */
	CAUSE_CQ_FULL,
	CAUSE_SILENCE = 0x200, /* nothing was heard */
	CAUSE_STALLED, /* answers, but no progress and no reason */
	CAUSE_SEQUENCE, /* the peer missed the same packet again and again */
	CAUSE_TOO_LARGE, /* for an MTU on the way */
	CAUSE_NAKED = 0x300,
};

/** struct cqe - One completion; @met: page faults of this NIC on its behalf. */
struct cqe {
	uint64_t wr_id;
	uint32_t byte_len;
	uint32_t imm; /* or, CQE_INV: the invalidated R_Key */
	uint32_t qpn;
	uint32_t src_qpn;
	uint16_t vendor_err; /* enum wc_cause */
	uint8_t status; /* enum wc_status */
	uint8_t op; /* enum wr_op */
	uint8_t flags; /* enum cqe_flag */
	bool solicited;
	struct met met;
};

/* Bits: a CQ that was armed in both ways is armed for any. */
enum cq_arm { CQ_UNARMED, CQ_ARMED_SOLICITED = 1 << 0, CQ_ARMED_ANY = 1 << 1 };

/**
 * struct cq - A ring of completions.
 * @armed:	enum cq_arm bits, set by the application, cleared by the push
 *		that fires; only by atomic read-modify-writes (cq.c says why)
 * @fired:	engine: a push found the CQ armed; nic/ sends the event after
 *		the step and clears it
 * @link:	engine: on nic/'s list of fired CQs
 */
struct cq {
	struct cqe *ring;
	uint32_t slots; /* power of two, > what was asked for */
	uint32_t limit; /* what the program may have outstanding */
	size_t bytes;
	/* poller */
	uint32_t cons __attribute__((aligned(64)));
	/* engine */
	uint32_t prod __attribute__((aligned(64)));
	bool overflow, fired;
	struct list link;
	/* both */
	uint32_t armed __attribute__((aligned(64)));
};

int cq_init(struct cq *cq, uint32_t entries);
void cq_fini(struct cq *cq);

/** cq_empty() - Poller: nothing to take right now. */
bool cq_empty(const struct cq *cq);

/** cq_take() - Poller: up to @n completions. Return: how many. */
unsigned cq_take(struct cq *cq, unsigned n, struct cqe *out);

/**
 * cq_push() - Engine: append.
 * Return: 0; or -ENOSPC, the CQ then marked overflowed for good: nothing is
 * overwritten, and every later push fails too (IBTA 11.6.3.2: a CQ error).
 */
int cq_push(struct cq *cq, const struct cqe *e);

/** cq_arm() - Poller: want an event for the next (solicited) completion. */
void cq_arm(struct cq *cq, bool solicited_only);

/**
 * cq_swap() - Take over the ring and entries of @other (for a resize); @other
 * gets the old ring, to be freed. Engine and poller kept out.
 */
void cq_swap(struct cq *cq, struct cq *other);

/** cq_forget() - Engine, poller kept out: drop the completions of @qpn. */
void cq_forget(struct cq *cq, uint32_t qpn);

#endif
