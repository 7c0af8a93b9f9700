/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nopin.h: what nopin has beyond verbs, for C and C++.
 *
 * The functions take the objects of <infiniband/verbs.h> and are exported, with
 * versions, by the libibverbs.so.1 of nopin: link with -lnopin. A program that is
 * then started without nopin does not load; one that is to run on other devices as
 * well looks the functions up with dlvsym(3), version "NOPIN_1.0".
 *
 * A call that waits ends with EINTR when a signal handler without SA_RESTART ran,
 * and nothing has changed.
 *
 * Unless it says otherwise a function returns 0 or a positive errno value, may be
 * called from any thread, is no cancellation point, and answers ENODEV in a
 * fork()ed child of the process that opened the device. On failure nothing has
 * changed and outputs are untouched. Each has a manual page in section 3.
 */
#ifndef NOPIN_H
#define NOPIN_H

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/**
 * enum nopin_fault - A strategy, which answers an access to a page that is not present.
 * NOPIN_FAULT_DEFAULT: for a QP the strategy of the NIC, for a region that of the QP.
 * The others are described in nopin(7), under NOPIN_FAULT. The numbers are part of
 * the ABI.
 */
enum nopin_fault {
	NOPIN_FAULT_DEFAULT = 0,
	NOPIN_FAULT_PARK = 1,
	NOPIN_FAULT_INLINE = 2,
	NOPIN_FAULT_OVERWRITE = 3,
	NOPIN_FAULT_BACKUP = 4,
	NOPIN_FAULT_REDIRECT = 5,
	NOPIN_FAULT_REPLAY = 6,
	NOPIN_FAULT_RESUME = 7,
	NOPIN_FAULT_RNR = 8,
	NOPIN_FAULT_DROP = 9,
	NOPIN_FAULT_BLOCK = 10,
	NOPIN_FAULT_ADAPTIVE = 11,
};

/**
 * nopin_fault_name() - Return the name of a strategy, as NOPIN_FAULT takes it, or
 * "default" for NOPIN_FAULT_DEFAULT. Constant memory. Return: NULL: no such strategy.
 */
const char *nopin_fault_name(enum nopin_fault fault);

/** nopin_fault_parse() - Find the strategy of this name. Return: 0; EINVAL: none. */
int nopin_fault_parse(const char *name, enum nopin_fault *fault);

/** nopin_get_fault() - Tell the strategy of the NIC (NOPIN_FAULT in the environment). */
int nopin_get_fault(struct ibv_context *context, enum nopin_fault *fault);

/**
 * nopin_qp_set_fault() - Choose the strategy that answers missing pages of this QP's
 * work from now on. Work that waits already is not moved. May be called in any state.
 * @fault:	not BLOCK, which is for a NIC as a whole
 * Return: 0; EINVAL: no such strategy; EOPNOTSUPP: BLOCK, or the NIC does BLOCK.
 */
int nopin_qp_set_fault(struct ibv_qp *qp, enum nopin_fault fault);
/** nopin_qp_get_fault() - Tell what nopin_qp_set_fault() chose, or DEFAULT. */
int nopin_qp_get_fault(struct ibv_qp *qp, enum nopin_fault *fault);

/**
 * nopin_mr_set_fault() - Choose the strategy that answers missing pages of this region
 * from now on, whichever QP asks.
 * With NOPIN_FAULT_OVERWRITE the program also agrees to see zeros, for a while, in
 * pages of the region that a peer is overwriting as a whole.
 * Return: as nopin_qp_set_fault(); ENOENT: the region was invalidated.
 */
int nopin_mr_set_fault(struct ibv_mr *mr, enum nopin_fault fault);
/** nopin_mr_get_fault() - Tell what nopin_mr_set_fault() chose, or DEFAULT. */
int nopin_mr_get_fault(struct ibv_mr *mr, enum nopin_fault *fault);

/**
 * struct nopin_met - What page faults of this NIC cost one work request.
 * @wait_ns:	how long it waited for pages; up to 2^48 - 1 (78 hours). Faults that
 *		were taken in the move are not in it
 * @faults:	accesses that met a page not known to be there; up to 65535
 * @reserved:	0
 */
struct nopin_met {
	uint64_t wait_ns;
	uint32_t faults;
	uint32_t reserved;
};

/**
 * nopin_cq_met() - Tell what the work request of a completion met that was polled.
 * Of a request: its source pages, and where the response to a READ or atomic went.
 * Of a receive: where its message went. Faults that the peer's NIC met are not in it.
 * @cq:		also ibv_cq_ex_to_cq() of an extended one
 * @back:	how many completions were polled after it: 0 is the last one; after an
 *		ibv_poll_cq() that returned n, wc[i] is n - 1 - i. Those that
 *		several threads poll are counted together
 * Return: 0; ENOENT: not so many were polled, or it is so long ago that more than
 * 31 later ones met faults.
 */
int nopin_cq_met(struct ibv_cq *cq, uint64_t back, struct nopin_met *met);

/**
 * nopin_mr_suspend() - Suspend a region: from the return on nothing touches its
 * memory, and the program may move it. Waits until nothing moves through the region.
 * Its keys stay good: a request that uses them, here or at a peer, waits until
 * nopin_mr_resume(). Other regions that have the same memory are not suspended.
 * @expected_ns: how long it will take, which peers are told; 0: not known
 * Return: 0; EINVAL: it is suspended; EOPNOTSUPP: it is the whole address space;
 * ENOENT: it was invalidated; ENOMEM.
 */
int nopin_mr_suspend(struct ibv_mr *mr, uint64_t expected_ns);

/**
 * nopin_mr_update() - Tell the NIC that the memory of a suspended region is at @addr
 * from now on. Addresses that go with its keys stay the same, also in SGEs of the
 * program.
 * @length:	of the region, no more and no less
 * Return: 0; EINVAL: not suspended, another length, or its addresses modulo 8 would
 * change; EFAULT: not all of it is mapped; EBUSY: nopin_mr_suspend() has not
 * returned; ENOMEM: it cannot be locked, where NOPIN_REG wants that; ENOENT.
 */
int nopin_mr_update(struct ibv_mr *mr, void *addr, size_t length);

/**
 * nopin_mr_resume() - Let all that waits go on, in the order of coming.
 * Return: 0; EINVAL: it is not suspended; ENOENT.
 */
int nopin_mr_resume(struct ibv_mr *mr);

/**
 * struct nopin_suspension
 * @suspended:	is it?
 * @held:	connections whose peer, a nopin, is asked to hold
 * @since_ns:	for so long it has been suspended, or 0
 * @expected_ns: as nopin_mr_suspend() was told, last
 * @limit_ns:	for so long peers that are no nopins bear it at least, if their
 *		timeouts and retries are those of our side of the connection;
 *		UINT64_MAX: the region's protection domain has no such peer
 * @pause_ns:	for so long the last suspension held up the first access that met it
 */
struct nopin_suspension {
	uint32_t suspended, held;
	uint64_t since_ns, expected_ns, limit_ns, pause_ns;
};

/**
 * nopin_mr_query_suspension() - Tell whether and how a region is suspended. May be called
 * before a suspension, too, for its limit.
 * @size:	sizeof(*@out)
 * Return: 0; EINVAL: @size; ENOENT: the region was invalidated.
 */
int nopin_mr_query_suspension(struct ibv_mr *mr, struct nopin_suspension *out,
			      size_t size);

/**
 * struct nopin_counter - A number that peers raise by one with each WRITE that
 * names it, when all data of that WRITE and of what was posted before it is in
 * memory. It consumes no receive and makes no completion here.
 */
struct nopin_counter;

/**
 * nopin_handler - @value: of the counter now, higher than at the last call;
 * one call may stand for several notifications.
 * Return: not 0: it is not to be called again.
 */
typedef int (*nopin_handler)(void *arg, uint64_t value);

/**
 * nopin_counter_create() - Create a counter that QPs of @pd can raise. Its value is 0.
 * @handler:	NULL; or called with @arg whenever the counter has risen, by a thread
 *		of its own, which has all signals blocked but SIGSEGV and SIGBUS
 * Return: 0; ENOMEM; EAGAIN: no thread; EMFILE: no descriptor for it.
 */
int nopin_counter_create(struct ibv_pd *pd, nopin_handler handler, void *arg,
			 struct nopin_counter **counter);

/**
 * nopin_counter_destroy() - Destroy a counter: its identifier is none from now on, and
 * calls that wait for it end with ECANCELED. Waits for them, and until its handler
 * returned.
 * Return: 0; EDEADLK: called by its handler.
 */
int nopin_counter_destroy(struct nopin_counter *counter);

/** nopin_counter_id() - Return the name of it for peers; never 0. Not secret, but hard
 * to guess. */
uint32_t nopin_counter_id(const struct nopin_counter *counter);

/**
 * nopin_counter_word() - Return the address of its value, good until it is destroyed:
 * to be read with acquire semantics. Looking there makes no progress: a thread of nopin
 * does, as long as no thread of the program polls.
 */
const uint64_t *nopin_counter_word(const struct nopin_counter *counter);

/** nopin_counter_poll() - Make progress, as ibv_poll_cq() does, and read it. */
int nopin_counter_poll(struct nopin_counter *counter, uint64_t *value);

/**
 * nopin_counter_fd() - Give a descriptor for poll(2) and the like: readable when the
 * counter has risen since nopin_counter_poll(). It is the counter's: do not close it.
 * Return: 0; EMFILE.
 */
int nopin_counter_fd(struct nopin_counter *counter, int *fd);

/**
 * enum nopin_wait - How a thread waits.
 * SPIN: it polls. BLOCK: it polls for a little (NOPIN_SPIN), then sleeps, and is
 * woken by any packet. FUTEX: the same while no other thread of the program polls or
 * blocks; else it sleeps until such a thread, or one of nopin's, wakes it: for many
 * threads that wait.
 */
enum nopin_wait {
	NOPIN_WAIT_SPIN = 0,
	NOPIN_WAIT_BLOCK = 1,
	NOPIN_WAIT_FUTEX = 2,
};

/**
 * nopin_counter_wait() - Wait until its value is @target or more.
 * @timeout_ns:	UINT64_MAX: for ever
 * Return: 0; ETIMEDOUT; EINTR, but not with SPIN; ECANCELED: it was destroyed;
 * EINVAL: @how; EMFILE.
 */
int nopin_counter_wait(struct nopin_counter *counter, uint64_t target,
		       uint64_t timeout_ns, enum nopin_wait how);

/**
 * nopin_counter_run() - Call @handler, on the calling thread, whenever the counter has
 * risen, until that does not return 0; in between sleep as with BLOCK.
 * Return: 0; EINTR; ECANCELED: the counter was destroyed; EMFILE.
 */
int nopin_counter_run(struct nopin_counter *counter, nopin_handler handler,
		      void *arg);

/**
 * nopin_qp_notifies() - Find out whether the peer of @qp knows nopin_post_write_notify().
 * Return: 0: it does; EOPNOTSUPP: it is no nopin, or @qp has no connection; EAGAIN: that
 * is not known yet: a peer that says nothing is asked for a second; EINVAL: before RTR.
 */
int nopin_qp_notifies(struct ibv_qp *qp);

/**
 * nopin_post_write_notify() - Post a list of IBV_WR_RDMA_WRITE, as ibv_post_send() does:
 * each @wr of it raises the peer's counter @id. With 0 bytes it does nothing else.
 * Completions say IBV_WC_RDMA_WRITE; IBV_WC_REM_ACCESS_ERR also if the peer has no
 * such counter in the protection domain of its QP, and IBV_WC_LOC_QP_OP_ERR if it
 * is no nopin.
 * Return: as ibv_post_send(); EINVAL: another opcode; EOPNOTSUPP: @qp has no
 * connection.
 */
int nopin_post_write_notify(struct ibv_qp *qp, struct ibv_send_wr *wr,
			    uint32_t id, struct ibv_send_wr **bad_wr);

/**
 * nopin_qp_set_counting() - Choose the meaning of the immediate data of RDMA WRITEs that
 * come from now on. With @on not 0 it is the identifier of a counter to raise, in network
 * byte order, and consumes no receive: so a peer can notify that is no nopin, or does not
 * know nopin_post_write_notify(). May be called in any state; before RTR no WRITE can
 * come earlier.
 * Return: 0; EOPNOTSUPP: @qp has no connection.
 */
int nopin_qp_set_counting(struct ibv_qp *qp, int on);

/**
 * enum nopin_upcall_reason - Why what was known of a range is known no longer.
 * EVERYTHING: the queue was full, and all that it was to tell is this one event
 * REPLACED: the NIC's table needed the entry, or it grew too old: ask for the pages
 *	again before they are counted on
 * EVICTED: the pages were not in memory (any more) when the NIC looked
 * PROTECTED: they are not ready for writing any more: the program forks
 * SUSPENDED, MOVED, RESUMED: nopin_mr_suspend(), nopin_mr_update(),
 *	nopin_mr_resume(), by the program or nopin-suspend(1); of the whole region
 * The numbers are part of the ABI.
 */
enum nopin_upcall_reason {
	NOPIN_UPCALL_EVERYTHING = 0,
	NOPIN_UPCALL_REPLACED = 1,
	NOPIN_UPCALL_EVICTED = 2,
	NOPIN_UPCALL_PROTECTED = 3,
	NOPIN_UPCALL_SUSPENDED = 4,
	NOPIN_UPCALL_MOVED = 5,
	NOPIN_UPCALL_RESUMED = 6,
};

/** NOPIN_UPCALL_BELOW_MINIMUM - The region has its minimum of entries no longer. */
#define NOPIN_UPCALL_BELOW_MINIMUM 1

/**
 * struct nopin_upcall - What is not known any more.
 * @mr:		NULL: of all regions of the queue (EVERYTHING)
 * @addr, @length: bytes of the region, in addresses as its keys are used with;
 *		EVERYTHING: 0 and UINT64_MAX
 * @at_ns:	CLOCK_MONOTONIC, when it happened; of a range, the first of it
 * @reason:	enum nopin_upcall_reason; ignore numbers that you do not know
 * @flags:	NOPIN_UPCALL_BELOW_MINIMUM or 0
 */
struct nopin_upcall {
	struct ibv_mr *mr;
	uint64_t addr, length, at_ns;
	uint32_t reason, flags;
};

/** struct nopin_upcalls - A queue of them. */
struct nopin_upcalls;

/**
 * nopin_upcalls_open() - Open a queue of upcalls.
 * @events:	that it holds, 1..4096
 * Return: 0; EINVAL: @events; ENOMEM; EMFILE.
 */
int nopin_upcalls_open(struct ibv_context *context, uint32_t events,
		       struct nopin_upcalls **out);

/**
 * nopin_upcalls_close() - Close a queue. No thread may be in another call on it. Events
 * that are queued are forgotten.
 * Return: 0; EBUSY: a region uses it.
 */
int nopin_upcalls_close(struct nopin_upcalls *queue);

/** nopin_upcalls_fd() - Return a descriptor to poll(): readable while events are queued. */
int nopin_upcalls_fd(const struct nopin_upcalls *queue);

/**
 * nopin_upcalls_get() - Take the next event; sleep until there is one, unless the
 * descriptor is O_NONBLOCK. A cancellation point while it sleeps.
 * @size:	sizeof(*out)
 * Return: 0; EINTR; EAGAIN: O_NONBLOCK, and there is none; EINVAL: @size.
 */
int nopin_upcalls_get(struct nopin_upcalls *queue, struct nopin_upcall *out,
		      size_t size);

/** nopin_upcall_fn - Return: 0: go on. */
typedef int (*nopin_upcall_fn)(const struct nopin_upcall *event, void *arg);

/**
 * nopin_upcalls_run() - Take events and give each to @fn, on this thread, until it
 * does not return 0. However long @fn takes, only this queue waits. A
 * cancellation point while it sleeps.
 * Return: 0: @fn ended it; else as nopin_upcalls_get().
 */
int nopin_upcalls_run(struct nopin_upcalls *queue, nopin_upcall_fn fn,
		      void *arg);

/**
 * struct nopin_reg_attr - Zero what you do not need.
 * @addr, @length, @access: as of ibv_reg_mr()
 * @minimum:	entries of the NIC's table that others do not take from the region if
 *		that can be, while it has no more of them
 * @weight:	1..1000; 0: 1. Of two entries that were not used for long, that of the
 *		region with less weight is replaced
 * @upcalls:	NULL: the program is told nothing
 */
struct nopin_reg_attr {
	void *addr;
	size_t length;
	uint32_t access, minimum, weight, reserved;
	struct nopin_upcalls *upcalls;
};

/**
 * nopin_reg() - Register memory as ibv_reg_mr() does, with more to say; ibv_dereg_mr()
 * ends it. Nothing is told of a region once that has returned.
 * @size:	sizeof(*attr)
 * Return: NULL with errno: as ibv_reg_mr(); EINVAL: @size, @weight, @reserved, or a
 * queue of another context; ENOSPC: all minimums together would be more than half
 * of the table; ENOMEM: also for more than 4096 such regions.
 */
struct ibv_mr *nopin_reg(struct ibv_pd *pd, const struct nopin_reg_attr *attr,
			 size_t size);

/**
 * struct nopin_home - Where counting semaphores and wait queues are that processes
 * share, on any hosts: its members. Its manual page describes all of it.
 */
struct nopin_home;
/** struct nopin_member - A process, or a thread of one, at a home. */
struct nopin_member;

/**
 * struct nopin_card - What a member and its home tell each other before they
 * begin, by means of the program, as R_Keys. In host byte order.
 */
struct nopin_card {
	uint64_t mail, words;
	uint32_t mail_rkey, words_rkey, counter, bell, objects, index;
};

/**
 * struct nopin_home_attr - 0: what stands in brackets.
 * @members:	at the same time (64), up to 16384
 * @objects:	semaphores and wait queues (16), up to 65536
 * @alive_ns:	so often a silent member is asked whether it lives (500 ms), 1 ms at
 *		least
 */
struct nopin_home_attr {
	uint32_t members, objects;
	uint64_t alive_ns;
};

/**
 * nopin_home_create() - Create a home. @attr: NULL: all 0.
 * Return: 0; EINVAL: @attr; ENOMEM; EMFILE; EIO: no connection to itself.
 */
int nopin_home_create(struct ibv_pd *pd, const struct nopin_home_attr *attr,
		      struct nopin_home **home);

/**
 * nopin_home_destroy() - Destroy a home and its objects: members' calls fail with ENOTCONN.
 * Return: 0; EBUSY: a thread is in nopin_home_serve().
 */
int nopin_home_destroy(struct nopin_home *home);

/**
 * nopin_home_join() - Add the member at the other end of @qp. Until nopin_home_serve()
 * reports the member, @qp is the home's, with its completions. It has the home's
 * protection domain, 8 sends at least, and a send CQ of its own.
 * @theirs:	from nopin_member_create()
 * @ours:	for nopin_member_start(), when @qp is RTS
 * Return: 0; EUSERS: there are too many; EINVAL: @qp, @theirs; ENOMEM.
 */
int nopin_home_join(struct nopin_home *home, struct ibv_qp *qp,
		    const struct nopin_card *theirs, struct nopin_card *ours);

/**
 * enum nopin_gone - DIED: the connection failed. LEFT: nopin_member_destroy(). LIED:
 * it sent what no member sends.
 */
enum nopin_gone {
	NOPIN_GONE_DIED = 1,
	NOPIN_GONE_LEFT = 2,
	NOPIN_GONE_LIED = 3,
};

/**
 * struct nopin_home_event - A member is none any more.
 * @qp:		the program's again
 * @index:	from the card of nopin_home_join(); may be another's from now on
 * @waited:	the object in whose queue it was, or 0. A unit that it was just taking may
 *		be lost; nothing says so
 */
struct nopin_home_event {
	struct ibv_qp *qp;
	uint32_t index;
	enum nopin_gone gone;
	uint32_t waited, reserved;
};

/**
 * nopin_home_serve() - Serve the members, on the calling thread, until there is something
 * to tell. To be called again at once: meanwhile no member is woken.
 * @how:	it waits for members
 * Return: 0; EINTR; ECANCELED: nopin_home_stop(); EBUSY: another thread does; EINVAL: @how;
 * EIO: the home cannot reach its own memory.
 */
int nopin_home_serve(struct nopin_home *home, enum nopin_wait how,
		     struct nopin_home_event *event);
/** nopin_home_stop() - Have nopin_home_serve() return, now and ever. */
int nopin_home_stop(struct nopin_home *home);

/**
 * nopin_sem_create() - Create a semaphore of @units units.
 * @sem:	what members name it by; never 0
 * Return: 0; EINVAL: more than INT32_MAX; ENOSPC: there are too many objects.
 */
int nopin_sem_create(struct nopin_home *home, uint32_t units, uint32_t *sem);
/** nopin_waitq_create() - Create a wait queue; otherwise as nopin_sem_create(). */
int nopin_waitq_create(struct nopin_home *home, uint32_t *waitq);
/** nopin_home_waiting() - Count those that wait now. Return: 0; EINVAL: no such object. */
int nopin_home_waiting(struct nopin_home *home, uint32_t object, uint32_t *num);

/**
 * nopin_member_create() - Create a member of the home to which @qp is connected, or will
 * be. Until nopin_member_destroy() @qp is the member's, with its completions. It has 8
 * sends at least, and a send CQ of its own.
 * @card:	for nopin_home_join()
 * Return: 0; EINVAL: @qp; ENOMEM; EMFILE: no descriptor to be woken by.
 *
 * One thread at a time calls a member: EBUSY. Calls on semaphores and wait queues
 * fail with ENOTCONN once the home was found not to be reachable, and ever after.
 */
int nopin_member_create(struct ibv_qp *qp, struct nopin_member **member,
			struct nopin_card *card);
/** nopin_member_start() - Start a member. @home: from nopin_home_join(). Return: 0;
 * ENOMEM; EINVAL: it was started before; EBUSY. */
int nopin_member_start(struct nopin_member *member,
		       const struct nopin_card *home);
/**
 * nopin_member_destroy() - Leave, if the home is there; units that were taken stay so. A
 * home that does not serve may report the member as DIED.
 */
int nopin_member_destroy(struct nopin_member *member);

/**
 * nopin_sem_wait() - Take a unit; first come, first served.
 * @timeout_ns:	UINT64_MAX: for ever. 250 ms more if the home does not serve
 * Return: 0; ETIMEDOUT; EINTR; EINVAL: @sem, @how; ENOTCONN: the semaphore may have a
 * unit less, which no member has; EBUSY; EMFILE.
 */
int nopin_sem_wait(struct nopin_member *member, uint32_t sem,
		   uint64_t timeout_ns, enum nopin_wait how);
/** nopin_sem_trywait() - Take a unit, without waiting for one. Return: as
 * nopin_sem_wait(); EAGAIN: there is none. */
int nopin_sem_trywait(struct nopin_member *member, uint32_t sem);
/**
 * nopin_sem_post() - Give one back. May have to wait for a home that does not serve.
 * Return: 0; EOVERFLOW: there are INT32_MAX; EINVAL; ENOTCONN: it may have been given;
 * EBUSY.
 */
int nopin_sem_post(struct nopin_member *member, uint32_t sem);

/**
 * nopin_waitq_prepare() - Prepare to wait, before the program looks whether it has to:
 * nopin_waitq_wait() with this @ticket sees every wake-up from now on.
 */
int nopin_waitq_prepare(struct nopin_member *member, uint32_t waitq,
			uint64_t *ticket);
/**
 * nopin_waitq_wait() - Wait until the member is woken; then the program looks again: the
 * wake-up may be for nothing.
 * Return: as nopin_sem_wait().
 */
int nopin_waitq_wait(struct nopin_member *member, uint32_t waitq,
		     uint64_t ticket, uint64_t timeout_ns, enum nopin_wait how);
/**
 * nopin_waitq_wake() - Wake the first @num members that wait, UINT64_MAX: all. If there
 * were fewer, members between prepare and wait are woken too.
 * Return: as nopin_sem_post(); EINVAL: also if @num is 0.
 */
int nopin_waitq_wake(struct nopin_member *member, uint32_t waitq, uint64_t num);

/**
 * struct nopin_owner - It has memory that other processes, its users, write to, and tells
 * them which of it is ready for that. The manual page describes all of it.
 */
struct nopin_owner;

/**
 * struct nopin_owner_attr - 0: what stands in brackets.
 * @users:	at the same time (64), up to 16384
 * @alive_ns:	so often a silent user is asked whether it lives (500 ms), 1 ms at least
 */
struct nopin_owner_attr {
	uint32_t users, reserved;
	uint64_t alive_ns;
};

/**
 * nopin_owner_create() - Create an owner. @attr: NULL: all 0.
 * Return: 0; EINVAL: @attr; ENOMEM; EMFILE.
 */
int nopin_owner_create(struct ibv_pd *pd, const struct nopin_owner_attr *attr,
		       struct nopin_owner **owner);
/**
 * nopin_owner_destroy() - Destroy an owner: its users' calls fail with ENOTCONN.
 * Return: 0; EBUSY: a thread is in nopin_owner_serve(), or there are regions.
 */
int nopin_owner_destroy(struct nopin_owner *owner);

/**
 * nopin_owner_reg() - Register, as nopin_reg() does, memory that users may ask for. @attr
 * has IBV_ACCESS_REMOTE_WRITE, not IBV_ACCESS_ZERO_BASED, and no upcalls of its own.
 * Return: as nopin_reg(); NULL with EINVAL: @attr.
 */
struct ibv_mr *nopin_owner_reg(struct nopin_owner *owner,
			       const struct nopin_reg_attr *attr, size_t size);
/**
 * nopin_owner_dereg() - Unregister such a region, as ibv_dereg_mr() does, and tell users.
 * Return: as ibv_dereg_mr(); EINVAL: it is none.
 */
int nopin_owner_dereg(struct nopin_owner *owner, struct ibv_mr *mr);

/**
 * nopin_owner_join() - Add the user at the other end of @qp. Until nopin_owner_serve()
 * reports the user, @qp is the owner's, with its completions. It has the owner's
 * protection domain, 8 sends at least, and a send CQ of its own.
 * @theirs:	from nopin_cache_create()
 * @ours:	for nopin_cache_start(), when @qp is RTS
 * Return: 0; EUSERS: there are too many; EINVAL: @qp, @theirs; ENOMEM.
 */
int nopin_owner_join(struct nopin_owner *owner, struct ibv_qp *qp,
		     const struct nopin_card *theirs, struct nopin_card *ours);

/**
 * struct nopin_owner_event - A user is none any more.
 * @qp:		the program's again
 * @index:	from the card of nopin_owner_join(); may be another's from now on
 * @gone:	LEFT: nopin_cache_destroy()
 */
struct nopin_owner_event {
	struct ibv_qp *qp;
	uint32_t index;
	enum nopin_gone gone;
};

/**
 * nopin_owner_serve() - Serve the users, on the calling thread, until there is something
 * to tell. To be called again at once. Several threads may be in here: each makes
 * pages ready for one user at a time.
 * @how:	it waits for users and upcalls
 * Return: 0; EINTR; ECANCELED: nopin_owner_stop(); EINVAL: @how; EMFILE.
 */
int nopin_owner_serve(struct nopin_owner *owner, enum nopin_wait how,
		      struct nopin_owner_event *event);
/** nopin_owner_stop() - Have nopin_owner_serve() return, now and ever. */
int nopin_owner_stop(struct nopin_owner *owner);

/**
 * struct nopin_cache - What a user knows of an owner's memory: which blocks are ready
 * to be written to without a page fault. A hint: it never decides what is right.
 */
struct nopin_cache;

/**
 * struct nopin_cache_attr - @block: bytes of a block, a power of two, 4 KiB to 1 GiB.
 * @blocks:	that it remembers, up to 2^24; those used least recently go first
 */
struct nopin_cache_attr {
	uint64_t block;
	uint32_t blocks, reserved;
};

/**
 * nopin_cache_create() - Create a cache of the owner to which @qp is connected, or will
 * be. Until nopin_cache_destroy() @qp is the cache's, with its completions: data is
 * written on another. It has 8 sends at least, and a send CQ of its own.
 * @card:	for nopin_owner_join()
 * Return: 0; EINVAL: @qp, @attr; ENOMEM; EMFILE: no descriptor to be woken by.
 *
 * One thread at a time calls a cache: EBUSY. nopin_cache_ready() fails with ENOTCONN
 * once the owner was found not to be reachable, and ever after; hits do not find out.
 */
int nopin_cache_create(struct ibv_qp *qp, const struct nopin_cache_attr *attr,
		       struct nopin_cache **cache, struct nopin_card *card);
/** nopin_cache_start() - Start a cache. @owner: from nopin_owner_join(). Return: 0;
 * EINVAL: it was started before; EBUSY. */
int nopin_cache_start(struct nopin_cache *cache,
		      const struct nopin_card *owner);
/** nopin_cache_destroy() - Leave, if the owner is there. */
int nopin_cache_destroy(struct nopin_cache *cache);

/**
 * nopin_cache_ready() - Be told that all of a range is ready, or have it made so. If
 * all its blocks are known to be, that is a look into the process's own memory:
 * nothing is sent, no system call is made, but once in 64 records of what the owner
 * lost, which say then that they were read. Else the owner is asked.
 * @addr, @length: as in WRITEs, in one region of the owner, which is found out only if
 *		that is asked; up to 1 GiB, and no more blocks than the cache remembers
 * @timeout_ns:	to wait for the owner; UINT64_MAX: for ever
 * Return: 0; and else the caller may WRITE all the same, but a page may not be there:
 * ETIMEDOUT, EINTR: the owner goes on with it; EAGAIN: it was lost again at once; EFAULT:
 * the owner cannot have the pages; EINVAL: the range, @how; ENOTCONN; EBUSY; EMFILE.
 */
int nopin_cache_ready(struct nopin_cache *cache, uint64_t addr, uint64_t length,
		      uint64_t timeout_ns, enum nopin_wait how);

/**
 * struct nopin_cache_stats - In blocks, since nopin_cache_create().
 * @hits, @misses: that nopin_cache_ready() looked for, and found or not
 * @invalidated: that the owner lost
 * @evicted:	that had to make room
 * @held:	now
 */
struct nopin_cache_stats {
	uint64_t hits, misses, invalidated, evicted, held;
};
/** nopin_cache_query() - Tell the counts of a cache. @size: sizeof(*@out). Return: 0;
 * EINVAL: @size; EBUSY. */
int nopin_cache_query(struct nopin_cache *cache, struct nopin_cache_stats *out,
		      size_t size);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
