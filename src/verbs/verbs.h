/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs.h: what the files of verbs/ share: the objects behind the pointers that
 * programs hold, and conversions. The contract of each ibv_ function is its
 * manual page; comments here say only where we choose.
 *
 * The installed headers are the ABI. They know no visibility, so what they
 * declare is made visible here; libibverbs.map then decides what is exported.
 */
#ifndef NOPIN_VERBS_VERBS_H
#define NOPIN_VERBS_VERBS_H

#include "base/check.h"
#include "base/list.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "ring/cqe.h"
#include "ring/wqe.h"

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#include <pthread.h>

/* Exported by every libibverbs.so.1, declared by no installed header. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
enum verbs_gid_type { VERBS_GID_IB_OR_V1, VERBS_GID_ROCE_V2 };
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
		       unsigned int index, enum verbs_gid_type *type);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);
#pragma GCC visibility pop

/* Macros of verbs.h that hide the functions we define. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Newer headers append to structs that we allocate; they get zeroes there. */
enum { GROWTH_BYTES = 128 };

/* In the order in which the close of a device takes them down. */
enum vobj_kind {
	VOBJ_QP,
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
 * struct tracked - Who can have events: events carry @cookie, not a pointer,
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

static inline struct vctx *vctx_of(struct ibv_context *context)
{
	return container_of(context, struct vctx, v.context);
}

/**
 * in_child() - Of the process that opened the device? Asked before a lock of
 * verbs/ is waited for: a thread that the child does not have may hold it.
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

/** fail() - Set errno. Return: NULL, for functions that return a pointer. */
static inline void *fail(int err)
{
	errno = err;
	return NULL;
}

/* --- object.c -------------------------------------------------------------- */

void vobj_add(struct vctx *ctx, struct vobj *obj, enum vobj_kind kind);
void vobj_del(struct vobj *obj);
/** objects_close() - Take down what the program left behind. */
void objects_close(struct vctx *ctx);

/* --- event.c ---------------------------------------------------------------- */

/** tracked_add() - Return: 0, or -ENOMEM. */
int tracked_add(struct tracked *t);
/** tracked_del() - No event is handed out for @t any more. */
void tracked_del(struct tracked *t);
/** tracked_wait() - Until *@acked reaches @handed_out. */
void tracked_wait(pthread_mutex_t *mutex, pthread_cond_t *cond,
		  const uint32_t *acked, uint32_t handed_out);

/* --- query.c ----------------------------------------------------------------- */

enum { PORT_NUM = 1, DEFAULT_PKEY = 0xffff };

#define DEVICE_NAME "nopin0"
#define UVERBS_NAME "uverbs0"
#define FW_VERSION  "0.1.0"

enum ibv_mtu mtu_to_verbs(uint32_t bytes);
int query_port_ext(struct ibv_context *context, uint8_t port,
		   struct ibv_port_attr *attr, size_t size);
int query_device_ext(struct ibv_context *context,
		     const struct ibv_query_device_ex_input *input,
		     struct ibv_device_attr_ex *attr, size_t size);

/* --- mr_api.c, cq_api.c, qp_api.c, attr.c, ah.c -------------------------------- */

int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
	      uint32_t flags, struct ibv_sge *sge, uint32_t num);
struct ibv_cq_ex *create_cq_ext(struct ibv_context *context,
				struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *create_qp_ext(struct ibv_context *context,
			     struct ibv_qp_init_attr_ex *attr);
/**
 * reg_mr() - A region of [addr, addr + length) of @pd, reachable at @iova.
 * @access:	enum ibv_access_flags
 * @more:	what else it is to have; PD, range and rights are filled in
 * Return: NULL, with errno.
 */
struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length,
		      uint64_t iova, unsigned int access, struct mr_attr more);
/** access_from_verbs() - Return: our rights, or -EINVAL for unknown ones. */
int access_from_verbs(unsigned int access, uint32_t *out);
/** qp_attr_from_verbs() - Only what @mask names. Return: 0, -EINVAL. */
int qp_attr_from_verbs(const struct ibv_qp_attr *in, int mask,
		       struct qp_attr *out);
void qp_attr_to_verbs(const struct qp_attr *in, struct ibv_qp_attr *out);

/**
 * ah_to_wqe() - Address a request to @qpn at @ah.
 * Return: 0; EINVAL: @ah is NULL or not of the PD of the QP, @pd; no such @qpn.
 */
int ah_to_wqe(const struct ibv_ah *ah, const struct ibv_pd *pd, uint32_t qpn,
	      uint32_t qkey, struct wqe_to *to);

/* --- post.c, wr.c, poll.c -------------------------------------------------------- */

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
	      struct ibv_send_wr **bad);
/** post_write_notify() - Return: also EOPNOTSUPP: datagrams. */
int post_write_notify(struct ibv_qp *qp, struct ibv_send_wr *wr,
		      uint32_t counter, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
	      struct ibv_recv_wr **bad);
/**
 * wqe_set_sges() - Fill in a scatter/gather list, without its empty entries.
 * Return: 0, or EINVAL: too many, over 2 GiB, or not of that operation.
 */
int wqe_set_sges(struct wqe *wqe, const struct ibv_sge *sge, size_t num,
		 uint32_t max);
/**
 * wqe_add_inline() - Append to a request's inline data, which takes the place of
 * its list. The program may reuse its buffer then.
 * @max:	bytes of inline data that the QP takes
 * Return: 0, or EINVAL: too many, or not of that operation.
 */
int wqe_add_inline(struct wqe *wqe, const void *from, size_t bytes,
		   uint32_t max);
/** wqe_flags() - Ours for enum ibv_send_flags. Return: -EINVAL for unknown ones. */
int wqe_flags(unsigned int send_flags);
/**
 * wr_api_init() - Install the wr_ functions; @ud: of a QP of datagrams.
 * Return: 0, or EOPNOTSUPP.
 */
int wr_api_init(struct vqp *q, uint64_t ops, bool ud);
int poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
int req_notify_cq(struct ibv_cq *cq, int solicited_only);
void poll_api_init(struct vcq *q);

#endif
