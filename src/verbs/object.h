/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.h: the objects behind the pointers that programs hold. The contract of each ibv_
 * function is its manual page; comments in verbs/ say only where we choose.
 */
#ifndef NOPIN_VERBS_OBJECT_H
#define NOPIN_VERBS_OBJECT_H

#include "base/check.h"
#include "base/list.h"
#include "nic/nic.h"
#include "ring/cqe.h"
#include "ring/wqe.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* In the order in which the close of a device takes them down. */
enum vobj_kind {
	VOBJ_QP,
	VOBJ_SRQ,
	VOBJ_MR,
	VOBJ_UPCALLS, /* of MRs */
	VOBJ_COUNTER, /* that upcalls raise */
	VOBJ_CQ,
	VOBJ_CHANNEL,
	VOBJ_AH,
	VOBJ_PD,
	VOBJ_NUM
};

/**
 * struct vctx - An opened device.
 * @lock:	leaf; protects @objs and channels' reference counts
 * @objs:	everything that was created and not destroyed
 */
struct vctx {
	struct nic *nic;
	struct nic_async *async;
	pthread_mutex_t lock;
	struct list objs[VOBJ_NUM];
	struct verbs_context v; /* the program's pointer is into its end */
};

/**
 * struct vobj - Membership of an object in its context.
 * @ctx:	NULL after the device was closed: then nothing is left of the
 *		object but its memory
 */
struct vobj {
	struct list link;
	struct vctx *ctx;
};

/**
 * struct tracked - An object that can have events: these carry @cookie, not a pointer,
 * so that one fetched while its object is destroyed is recognised.
 * @comp,@async: events handed to the program; destroying waits until as many
 *		were acknowledged. Protected by the table's lock.
 */
struct tracked {
	void *cookie;
	uint32_t comp, async;
};

struct vpd {
	struct ibv_pd base; /* handle: nic's PD number */
	struct vobj obj;
};

/** struct vah - @to: but for QPN and Q_Key. */
struct vah {
	struct ibv_ah base;
	struct vobj obj;
	struct wqe_to to;
};

struct vmr {
	struct ibv_mr base; /* handle, lkey, rkey: nic's key */
	struct vobj obj;
};

/* ext/'s */
struct nopin_counter {
	struct vobj obj;
	struct nic_counter *nic;
};

/** struct vupcalls - What nopin_upcalls_open() makes. */
struct vupcalls {
	struct vobj obj;
	struct nic_upcalls *nic;
	int fd;
};

struct vchannel {
	struct ibv_comp_channel base;
	struct vobj obj;
	struct nic_channel *nic;
};

/**
 * struct vcq - @ex_lock is held from start_poll to end_poll, which work on
 * @cqe; @single_threaded: the program promised to need no lock.
 */
struct vcq {
	union {
		struct ibv_cq base;
		struct ibv_cq_ex ex;
		uint8_t room[sizeof(struct ibv_cq_ex) + GROWTH_BYTES];
	};
	struct vobj obj;
	struct tracked events;
	struct nic_cq *nic;
	pthread_mutex_t ex_lock;
	bool single_threaded;
	struct cqe cqe;
};

/**
 * struct vqp - Between wr_start and wr_complete (the send queue is locked then)
 * @wr_num requests are built, the last of them in @wr; @wr_error is the first
 * thing that went wrong.
 */
struct vqp {
	union {
		struct ibv_qp base;
		struct ibv_qp_ex ex;
		uint8_t room[sizeof(struct ibv_qp_ex) + GROWTH_BYTES];
	};
	struct vobj obj;
	struct tracked events;
	struct nic_qp *nic;
	bool has_wr_api, wr_started;
	uint64_t wr_ops;
	int wr_error;
	uint32_t wr_num;
	struct wqe *wr;
};

struct vsrq {
	union {
		struct ibv_srq base;
		uint8_t room[sizeof(struct ibv_srq) + GROWTH_BYTES];
	};
	struct vobj obj;
	struct tracked events;
	struct nic_srq *nic;
};

static inline struct vctx *vctx_of(struct ibv_context *context)
{
	return container_of(context, struct vctx, v.context);
}

/**
 * in_child() - Is this a child of the process that opened the device? Asked before a
 * lock of verbs/ is waited for: a thread that the child does not have may hold it.
 */
static inline bool in_child(struct ibv_context *context)
{
	return nic_of_parent(vctx_of(context)->nic);
}

static inline struct vcq *vcq_of(struct ibv_cq *cq)
{
	return container_of(cq, struct vcq, base);
}

static inline struct vqp *vqp_of(struct ibv_qp *qp)
{
	return container_of(qp, struct vqp, base);
}

static inline struct vsrq *vsrq_of(struct ibv_srq *srq)
{
	return container_of(srq, struct vsrq, base);
}

/** fail() - Set errno. Return: NULL, for functions that return a pointer. */
static inline void *fail(int err)
{
	errno = err;
	return NULL;
}

void vobj_add(struct vctx *ctx, struct vobj *obj, enum vobj_kind kind);
void vobj_del(struct vobj *obj);
/** objects_close() - Take down what the program left behind. */
void objects_close(struct vctx *ctx);

#endif
