/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nic.h: façade of nic/ for the API edge: the device of this process, its
 * objects and the calls on them. Types are nopin's; nothing here knows verbs.h,
 * but numbers of states, masks, access rights and statuses are verbs' numbers.
 *
 * Every function may be called from any thread and returns 0 or -errno unless it
 * says otherwise. None is a cancellation point, but nic_channel_get(),
 * nic_async_get() and nic_upcalls_get() while they sleep: nothing is held then, and
 * no event is lost (programs cancel their CQ thread there). In a fork()ed child of
 * the process that opened the NIC every function answers -ENODEV and touches
 * nothing.
 */
#ifndef NOPIN_NIC_NIC_H
#define NOPIN_NIC_NIC_H

#include "base/base.h"
#include "mem/mr.h"
#include "mem/upcall.h"
#include "ring/ring.h"
#include "xport/attr.h"

struct nic;
struct nic_async;
struct nic_channel;
struct nic_counter;
struct nic_cq;
struct nic_qp;
struct nic_upcalls;

/* --- the device ----------------------------------------------------------- */

/**
 * nic_get() - The NIC of this process, opened at the first call (one reference
 * each). Reads the NOPIN_* environment then; a bad value is logged with the
 * list of valid ones and answers -EINVAL.
 */
int nic_get(struct nic **out);
/** nic_put() - Drop a reference; the last one closes the NIC. */
void nic_put(struct nic *nic);

/** nic_of_parent() - Are we a fork()ed child of the process that opened it? */
bool nic_of_parent(const struct nic *nic);

/**
 * nic_present() - Would nic_get() find an address to offer? Opens nothing.
 * Return: 0; -ENODEV: no; -ENOMEM, -EMFILE, ...: that cannot be found out, as was
 * logged.
 */
int nic_present(void);

enum {
	NIC_MAX_QP = 48384, /* 3/4 of the QPNs of all ports but 4791 */
	NIC_MAX_QP_WR = 32768,
	NIC_MAX_SGE = 32,
	NIC_MAX_INLINE = 512,
	NIC_MAX_CQ = 65536,
	NIC_MAX_CQE = 4194303,
	NIC_MAX_MR = 262144,
	NIC_MAX_PD = 65536,
	NIC_MAX_RD_ATOMIC = 16,
	NIC_GIDS_MAX = 64,
	NIC_MAX_MESSAGE = 1U << 31,
};

/**
 * struct nic_attr - What the device and its only port say.
 * @active_mtu:	payload bytes: 256..4096
 * @guid:	EUI-64 of the first interface
 * @gids:	slots of the table, which never changes
 * @netdev:	of GID 0 when the device was opened
 * @active:	packets can go out
 */
struct nic_attr {
	uint64_t guid;
	uint32_t active_mtu;
	unsigned gids;
	char netdev[16];
	bool active;
};
/** nic_query() - Return: 0; -ENODEV in a child of fork(): *@out is zero then. */
int nic_query(struct nic *nic, struct nic_attr *out);

/** nic_fault() - What answers missing pages where nothing else was chosen. */
int nic_fault(struct nic *nic, enum strategy *out);

struct nic_gid {
	struct ipaddr ip;
	uint32_t ifindex;
	uint8_t mac[6];
	char ifname[16];
};
/** nic_gid() - Return: 0; -ENODATA: an empty slot; -EINVAL: beyond the table. */
int nic_gid(struct nic *nic, unsigned index, struct nic_gid *out);
/**
 * nic_path() - What an address vector says of where datagrams go.
 * @to:	set but for QPN and Q_Key
 * Return: 0; as nic_gid(); -EINVAL: @dgid is none, or of the other family.
 */
int nic_path(struct nic *nic, unsigned sgid_index, const struct ipaddr *dgid,
	     struct wqe_to *to);

/** nic_now() - Nanoseconds of the clock that all timeouts go by. */
uint64_t nic_now(const struct nic *nic);

/** nic_counters() - A snapshot; nothing in a child. */
void nic_counters(struct nic *nic, struct counters *out);

/* --- asynchronous events ---------------------------------------------------- */

/* The numbers are those of enum ibv_event_type. */
enum nic_event_type {
	NIC_EVENT_CQ_ERR = 0,
	NIC_EVENT_QP_FATAL = 1,
	NIC_EVENT_QP_REQ_ERR = 2,
	NIC_EVENT_QP_ACCESS_ERR = 3,
	NIC_EVENT_COMM_EST = 4,
	NIC_EVENT_SQ_DRAINED = 5,
	NIC_EVENT_DEVICE_FATAL = 8,
	NIC_EVENT_PORT_ACTIVE = 9,
	NIC_EVENT_PORT_ERR = 10,
	NIC_EVENT_GID_CHANGE = 18,
};

/** struct nic_event - @cookie: of the CQ or QP (NULL: the device's or port's). */
struct nic_event {
	enum nic_event_type type;
	void *cookie;
};

/** nic_async_open() - One queue of events, with a pollable descriptor. */
int nic_async_open(struct nic *nic, struct nic_async **out, int *fd);
void nic_async_close(struct nic_async *a);
/** nic_async_get() - Next event: blocks unless the fd is O_NONBLOCK (-EAGAIN). */
int nic_async_get(struct nic_async *a, struct nic_event *ev);

/* --- completion channels and queues ----------------------------------------- */

int nic_channel_open(struct nic *nic, struct nic_channel **out, int *fd);
/** nic_channel_close() - No CQ uses it any more (the caller checks). */
void nic_channel_close(struct nic_channel *ch);
/**
 * nic_channel_get() - The next CQ (its cookie) with an event. Blocks, and then
 * runs the engine itself, unless the fd is O_NONBLOCK (-EAGAIN).
 * The fd stays readable while events are queued.
 */
int nic_channel_get(struct nic_channel *ch, void **cq_cookie);

/**
 * nic_cq_create() - @entries: 1..NIC_MAX_CQE; @ch may be NULL; @async gets
 * NIC_EVENT_CQ_ERR on overflow.
 */
int nic_cq_create(struct nic *nic, struct nic_async *async,
		  struct nic_channel *ch, uint32_t entries, void *cookie,
		  struct nic_cq **out);
/** nic_cq_destroy() - Return: -EBUSY while QPs use it. Queued events go too. */
int nic_cq_destroy(struct nic_cq *cq);
/** nic_cq_resize() - To @entries. Return: -EINVAL: more than @asked are queued. */
int nic_cq_resize(struct nic_cq *cq, uint32_t entries, uint32_t asked);
/** nic_cq_poll() - Make progress and take up to @n. Return: count or -errno. */
int nic_cq_poll(struct nic_cq *cq, unsigned n, struct cqe *out);
int nic_cq_arm(struct nic_cq *cq, bool solicited_only);

enum { NIC_METS = 32 };

/**
 * nic_cq_met() - What the work request of a completion that was taken met.
 * @back:	how many were taken after it: 0: the last one. After a poll that
 *		returned n, its i-th is n - 1 - i. Completions that several
 *		threads take are counted together
 * Of a request of ours: its source pages, and where READ responses go. Of a
 * receive: where its message went. What the peer's NIC met is not in it.
 * Return: 0; -ENOENT: not so many were taken, or it is so long ago that
 * NIC_METS later ones met faults.
 */
int nic_cq_met(struct nic_cq *cq, uint64_t back, struct met *out);

/* --- protection domains and regions ------------------------------------------ */

int nic_pd_alloc(struct nic *nic, uint32_t *pd);
int nic_pd_dealloc(struct nic *nic, uint32_t pd);
int nic_mr_reg(struct nic *nic, const struct mr_attr *attr, uint32_t *key);
/** nic_mr_replace() - The same, in place of @old, which the caller deregisters then
 * (mr_replace()). */
int nic_mr_replace(struct nic *nic, uint32_t old, const struct mr_attr *attr,
		   uint32_t *key);
/**
 * nic_mr_change() - Other rights and another PD for the region of @key, which stays.
 * Return: as mr_change(), but -EBUSY: what the old rights let in has ended then.
 */
int nic_mr_change(struct nic *nic, uint32_t key, uint32_t pd, uint32_t access);
/** nic_mr_dereg() - Revoke, wait for moves that hold it (never for a pager). */
int nic_mr_dereg(struct nic *nic, uint32_t key);
int nic_mr_query(struct nic *nic, uint32_t key, struct mr_attr *attr);
/** nic_mr_set_fault() - As nic_qp_set_fault(). Return also -ENOENT. */
int nic_mr_set_fault(struct nic *nic, uint32_t key, enum strategy s);

/* --- upcalls ------------------------------------------------------------------ */

/**
 * nic_upcalls_open() - A queue for what becomes of regions that are registered with
 * nic_upcalls_queue() as their mr_attr.upcalls.
 * @events:	it holds, 1..UPCALLS_MAX
 * @fd:		readable while events are queued; those of regions that are gone may
 *		be among them
 */
int nic_upcalls_open(struct nic *nic, uint32_t events, struct nic_upcalls **out,
		     int *fd);
/** nic_upcalls_close() - Nobody is in nic_upcalls_get(). -EBUSY: a region uses it. */
int nic_upcalls_close(struct nic_upcalls *u);
struct upcalls *nic_upcalls_queue(struct nic_upcalls *u);
/**
 * nic_upcalls_get() - The next event. Blocks, and then runs the engine itself,
 * unless the fd is O_NONBLOCK (-EAGAIN); who then asks in vain twice runs it, too.
 */
int nic_upcalls_get(struct nic_upcalls *u, struct upcall *out);
/** nic_upcalls_try() - The next event, if there is one. Makes no progress. */
bool nic_upcalls_try(struct nic_upcalls *u, struct upcall *out);
/** nic_upcalls_count() - From now on what is queued raises @c, which lives as
 * long, or NULL. */
void nic_upcalls_count(struct nic_upcalls *u, struct nic_counter *c);

/* --- suspension --------------------------------------------------------------- */

/**
 * nic_mr_suspend() - Nobody accesses the region from the return on, until it is
 * resumed; waits for moves that are in it.
 * @expected_ns: what peers are told; 0: nobody knows
 * Return: as mr_suspend().
 */
int nic_mr_suspend(struct nic *nic, uint32_t key, uint64_t expected_ns);
/** nic_mr_update() - Return: as mr_update(); -EFAULT: not all is mapped there. */
int nic_mr_update(struct nic *nic, uint32_t key, uint64_t addr,
		  uint64_t length);
/** nic_mr_resume() - Return: as mr_resume(). */
int nic_mr_resume(struct nic *nic, uint32_t key);

/**
 * struct nic_suspension
 * @held:	connections whose peer is asked to hold
 * @since_ns:	for how long it has been suspended, or 0
 * @limit_ns:	how long standard peers bear it (qp_patience_ns()), UINT64_MAX: there
 *		are none in the region's protection domain
 * @pause_ns:	how long the last suspension held up the first who met it
 */
struct nic_suspension {
	bool suspended;
	unsigned held;
	uint64_t since_ns, expected_ns, limit_ns, pause_ns;
};
int nic_mr_suspension(struct nic *nic, uint32_t key,
		      struct nic_suspension *out);

/* The numbers are those of enum ib_uverbs_advise_mr_advice. */
enum nic_advice {
	NIC_PREFETCH,
	NIC_PREFETCH_WRITE,
	NIC_PREFETCH_NO_FAULT,
};
/**
 * nic_mr_advise() - Bring pages in (or only learn which are there).
 * @flush:	wait until it is done; else ranges beyond a bound are forgotten
 * Return: -EFAULT for an unmapped or protected range (when flushing), a bad key
 * or range, rights that the region lacks; -EINVAL: of another PD.
 */
int nic_mr_advise(struct nic *nic, uint32_t pd, enum nic_advice advice,
		  bool flush, const struct sge *sge, unsigned n);

/* --- event counters ------------------------------------------------------------ */

/**
 * nic_counter_fn - @value: of the counter now, higher than at the last call.
 * Return: not 0: not to be called again.
 */
typedef int (*nic_counter_fn)(void *arg, uint64_t value);

/**
 * nic_counter_create() - Peers of QPs in @pd may raise it, by its identifier.
 * @handler:	NULL, or called with @arg by a thread of ours whenever it has risen
 */
int nic_counter_create(struct nic *nic, uint32_t pd, nic_counter_fn handler,
		       void *arg, struct nic_counter **out);
/**
 * nic_counter_close() - It cannot be raised any more, and who waits ends with
 * -ECANCELED. Waits for them, but for no handler.
 */
void nic_counter_close(struct nic_counter *c);
/**
 * nic_counter_free() - Closes it if need be; waits for handlers.
 * Return: 0; -EDEADLK: we are one.
 */
int nic_counter_free(struct nic_counter *c);

uint32_t nic_counter_id(const struct nic_counter *c);
/** nic_counter_word() - Where the value is, until nic_counter_free(). */
const uint64_t *nic_counter_word(const struct nic_counter *c);
/**
 * nic_counter_reserve() - From now on one thread at a time can wait whatever becomes
 * scarce. Nobody waits yet.
 * Return: 0; -EMFILE; -ENODEV.
 */
int nic_counter_reserve(struct nic_counter *c);

/**
 * nic_counter_fd() - A descriptor, the counter's, that is readable when the value
 * has risen since nic_counter_poll().
 */
int nic_counter_fd(struct nic_counter *c, int *fd);
/** nic_counter_poll() - Make progress, then look. */
int nic_counter_poll(struct nic_counter *c, uint64_t *value);
/** nic_counter_raise() - By one, as a peer does. */
void nic_counter_raise(struct nic_counter *c);

/*
 * SPIN: make progress and look, again and again. BLOCK: sleep on the sockets, and
 * run the engine. FUTEX: sleep until whoever runs it wakes us, if somebody does.
 */
enum nic_wait { NIC_WAIT_SPIN, NIC_WAIT_BLOCK, NIC_WAIT_FUTEX, NIC_WAIT_NUM };

/**
 * nic_counter_wait() - Until the value is @target at least.
 * @timeout_ns:	TIME_NEVER: none
 * Return: 0; -ETIMEDOUT; -EINTR; -ECANCELED: it was closed; -EINVAL: @how; -EMFILE.
 */
int nic_counter_wait(struct nic_counter *c, uint64_t target,
		     uint64_t timeout_ns, enum nic_wait how);
/**
 * nic_counter_run() - Call @handler whenever it has risen, until it does not return
 * 0 (then 0) or the counter is closed (-ECANCELED).
 */
int nic_counter_run(struct nic_counter *c, nic_counter_fn handler, void *arg);

/* --- queue pairs --------------------------------------------------------------- */

/**
 * struct nic_qp_init - What a program asks for; in/out: what it got.
 * @ud:		datagrams: WQEs say where to, and are SENDs of up to @max_message
 * @max_message: out: bytes that one request may carry
 */
struct nic_qp_init {
	uint32_t pd;
	struct nic_cq *send_cq, *recv_cq;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge;
	uint32_t max_inline;
	bool sq_sig_all, ud;
	uint32_t max_message;
	void *cookie;
};

/** nic_qp_create() - A QP of a reliable connection, or of datagrams, in RESET. */
int nic_qp_create(struct nic *nic, struct nic_async *async,
		  struct nic_qp_init *init, struct nic_qp **out, uint32_t *qpn);
int nic_qp_destroy(struct nic_qp *qp);
/** nic_qp_modify() - @mask: IBV_QP_* numbers (enum qp_attr_mask). */
int nic_qp_modify(struct nic_qp *qp, const struct qp_attr *attr, uint32_t mask);
int nic_qp_query(struct nic_qp *qp, struct qp_attr *attr,
		 struct nic_qp_init *init);

/**
 * nic_qp_set_fault() - What answers missing pages from now on.
 * @s:		STRATEGY_NONE: what the NIC does
 * Return: 0; -EINVAL: no such strategy; -EOPNOTSUPP: STRATEGY_BLOCK is of a NIC
 * as a whole.
 */
int nic_qp_set_fault(struct nic_qp *qp, enum strategy s);
int nic_qp_fault(struct nic_qp *qp, enum strategy *out);

/**
 * nic_qp_set_counting() - Is the immediate data of WRITEs that come the identifier
 * of a counter to raise, in network byte order, and takes no receive?
 * Return: 0; -EOPNOTSUPP: datagrams.
 */
int nic_qp_set_counting(struct nic_qp *qp, bool counts);
/**
 * nic_qp_notifies() - Does its peer know WR_WRITE_NOTIFY?
 * Return: 0; -EOPNOTSUPP: no; -EAGAIN: that is not known yet; -EINVAL: no peer.
 */
int nic_qp_notifies(struct nic_qp *qp);

/**
 * Posting: nic_send_begin() locks the send queue; then for each request
 * nic_send_slot(), fill the WQE (op, flags, SGEs or inline data, length),
 * nic_send_publish(); at last nic_send_end(), which unlocks and runs the
 * engine. The SGE count and inline size are checked by the caller against
 * nic_qp_limits(). Receives likewise.
 *
 * nic_send_begin() Return: 0; -EINVAL: the QP's state takes no sends;
 * -ENODEV. nic_send_slot() Return: NULL when the queue is full.
 */
int nic_send_begin(struct nic_qp *qp);
struct wqe *nic_send_slot(struct nic_qp *qp);
void nic_send_publish(struct nic_qp *qp);
void nic_send_end(struct nic_qp *qp);

/**
 * nic_send_lock() - nic_send_begin() in any state. Return: 0, -ENODEV.
 * nic_send_ready() - Locked: 0; -EINVAL: the QP's state takes no sends.
 */
int nic_send_lock(struct nic_qp *qp);
int nic_send_ready(const struct nic_qp *qp);

/**
 * nic_send_slot_ahead() - The slot @ahead behind the next free one; NULL when
 * the queue has none. nic_send_publish_many() - Publish the next @n slots at
 * once. For requests that are posted all or not at all (ibv_wr_complete()).
 */
struct wqe *nic_send_slot_ahead(struct nic_qp *qp, uint32_t ahead);
void nic_send_publish_many(struct nic_qp *qp, uint32_t n);

int nic_recv_begin(struct nic_qp *qp);
struct wqe *nic_recv_slot(struct nic_qp *qp);
void nic_recv_publish(struct nic_qp *qp);
void nic_recv_end(struct nic_qp *qp);

/** nic_qp_limits() - Constant after creation. */
const struct nic_qp_init *nic_qp_limits(const struct nic_qp *qp);

#endif
