/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* impl.h: what the files of nic/ share; also included by the simulator's tests,
 * which drive the steps of a NIC themselves.
 *
 * Locks, in the order they are taken:
 *   nic_qp.sq_lock  ->  nic_qp.rq_lock  ->  engine lock
 *   nic_cq.poll              ->  engine lock
 *   nic.net_lock  ->  engine lock  ->  nic.idle_lock
 *   engine lock  ->  nic.gids_lock
 *   channel and async queues, counters: leaves
 * The engine lock is never held across a call that may block.
 */
#ifndef NOPIN_NIC_IMPL_H
#define NOPIN_NIC_IMPL_H

#include "mem/eventcount.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "nic/gids.h"
#include "nic/handoff.h"
#include "nic/nic.h"
#include "nic/pins.h"
#include "os/copy.h"
#include "os/names.h"
#include "os/net.h"
#include "os/pages.h"
#include "os/run.h"
#include "os/wait.h"
#include "wire/wire.h"

#include <pthread.h>

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

/**
 * enum arbiter_rule - How the NIC memory of a host and user is shared (arbiter.c).
 * OFF: each NIC has its own. In the order of the values.
 */
enum arbiter_rule { ARBITER_OFF, ARBITER_FAIR, ARBITER_FIRST, ARBITER_NUM };
#define ARBITER_NAMES "fair first off"
extern const char *const arbiter_names[ARBITER_NUM];

/* What is shared: entries of the table, slots of the pool, ms of pagers a second. */
enum arb { ARB_ENTRIES, ARB_SLOTS, ARB_PAGERS, ARB_NUM };

/**
 * struct nic_config - The environment, checked (nic/config.c).
 * @manual:	no threads, no progress by polling: a test drives the steps, and no
 *		reclaim of the host between two of them makes a page unknown
 * @exact:	the host drives the shadow page table (simulator)
 */
struct nic_config {
	struct os_config os;
	enum log_level log;
	enum strategy fault; /* as the user said it */
	strategies_t strategies;
	enum reg_mode reg;
	uint64_t pin_cache; /* NOPIN_PIN_CACHE or 0 */
	enum ahead ahead;
	bool scatter;
	unsigned paths; /* to each nopin; 0: one */
	uint32_t spin_ns; /* whoever blocks polls so long before it sleeps */
	uint32_t mtu; /* NOPIN_MTU or 0 */
	uint64_t pool_bytes;
	uint32_t entries;
	enum arbiter_rule arbiter;
	uint64_t budget; /* entries of all NICs of the user */
	uint32_t weight;
	const char
		*board; /* tests: where it is; NULL: as os_board_open() says */
	uint32_t tickets; /* 0: as many as a NIC has */
	bool always_ready; /* test builds: a table that is always wrong */
	/* Count faults and sleeps of moves; of all else: getrusage(), two system
	 * calls for a packet, or a dozen and two for each look in vain. */
	bool account, account_own;
	bool manual, exact;
	bool standard; /* tests: be a NIC that knows no extensions */
};

/** config_read() - Return: 0; -EINVAL after logging what would be valid. */
int config_read(struct nic_config *cfg);
/** config_check() - Check what only the host can tell. Return: as config_read(). */
int config_check(const struct nic_config *cfg, struct os *os);

enum {
	STEPS_MAX = 9,
	BACKGROUND_STEP = 0, /* never in steps_free */
	/* A wake-up is lost if the program closes our descriptors: our threads
	 * sleep no longer than this. */
	SLEEP_MAX_NS = 1000 * 1000 * 1000,
	STEP_BUF = 66 * 1024,
	STEP_IOV = OS_IOV_MAX,
	QPNS_PER_PORT = 1024,
	TICKETS = 1024,
};

enum {
	SIDE_BYTES = XDATA_HDR + ICRC_BYTES,
	SCATTER_MIN = 1024, /* payload below this goes through staging */
};

enum step_kind { STEP_NONE, STEP_RX, STEP_DRAIN, STEP_SEND, STEP_NUM };

/**
 * struct step - One plan, its moves and its commit. Lives in NIC memory, so
 * that moves can name its parts.
 * @buf:	received bytes (RX), or staged payload of standard packets (SEND)
 * @at:		RX: offset of the next segment in @buf
 * @taken:	RX: bytes that came, also those in place; 0 before the first plan
 * @token:	RX: what nic.token is while nobody has overtaken us
 * @majflt:	major faults on application memory, of the last move or receive
 * @npkts:	RX: parsed packets that the run refers to
 * @error:	SEND: what os_send() said
 */
struct step {
	enum step_kind kind;
	int index;
	uint64_t token;
	struct os_rx rx;
	uint32_t at;
	unsigned npkts;
	struct pkt pkts[RUN_PKTS];
	struct rx_run run;
	struct burst burst;
	int error;
	uint64_t majflt;
	struct scatter scatter;
	uint32_t taken;
	bool lost, efault; /* of a burst that was received in place */
	uint8_t side[BURST_SEGS * SIDE_BYTES]; /* scattered: CRC and header */
	struct iovec iov[STEP_IOV];
	uint8_t buf[STEP_BUF];
};

/**
 * struct nic_port - A local UDP port and the QPNs that name it.
 * @free:	ring of the QPNs' lower bits that no QP has, [free_at, free_end)
 */
struct nic_port {
	int os_port; /* index in os/, -1: unused */
	uint16_t number;
	uint32_t used;
	struct nic_qp *qp[QPNS_PER_PORT];
	uint16_t free[QPNS_PER_PORT];
	uint32_t free_at, free_end;
};

enum { ASYNC_OWN_MAX = 4 }; /* kinds of events that belong to no object */

struct nic_async {
	struct nic *nic;
	int fd;
	struct list all; /* nic.asyncs */
	pthread_mutex_t lock;
	struct list cqs, qps; /* with events to report */
	/* the device's and the port's, in this order, each once */
	enum nic_event_type own[ASYNC_OWN_MAX];
	unsigned nown;
};

struct nic_channel {
	struct nic *nic;
	int fd;
	pthread_mutex_t lock;
	struct list ready; /* struct nic_cq.ready */
	uint32_t woken; /* it is not empty (atomic) */
};

/**
 * struct nic_cq
 * @poll:	serialises pollers, resize and cq_forget()
 * @pending:	events queued on the channel and not yet taken (channel lock)
 * @taken:	completions ever taken; @met: the last of them that met faults, and
 *		which they were; @mets: how many there were (@poll)
 */
struct nic_cq {
	struct cq cq;
	struct nic *nic;
	struct nic_async *async;
	struct nic_channel *channel;
	void *cookie;
	unsigned refs;
	pthread_mutex_t poll;
	struct list ready;
	unsigned pending;
	struct list async_link;
	uint64_t taken, mets;
	struct {
		uint64_t at;
		struct met met;
	} met[NIC_METS];
};

/** struct nic_qp - @all: on nic.qps */
struct nic_qp {
	struct qp qp;
	struct nic *nic;
	struct nic_async *async;
	struct nic_qp_init init;
	struct wq sq, rq;
	pthread_mutex_t sq_lock, rq_lock;
	struct list all;
	struct list async_link;
	uint32_t events;
	struct nic_port *port;
	/* posted.c */
	struct nic_qp *posted_next;
	uint32_t posted;
};

enum { PREFETCHES = 128 };

/* What the pagers are asked for a prefetch: + its index; tickets' are less. */
#define PREFETCH_ID (UINT64_C(1) << 32)

/**
 * struct prefetch - A range that is brought in while nobody waits.
 * @link:	unless a piece of it is with the pagers
 * @rest:	what was not asked for yet
 * @protects:	nic.protects when the last piece was asked for
 */
struct prefetch {
	struct list link;
	uint32_t pd;
	enum nic_advice advice;
	struct sge rest;
	uint64_t protects;
};

/**
 * struct arbiter - The background thread's (arbiter.c).
 * @on:		the board is open
 * @wants:	we said so
 * @resizing:	what share says is not so yet
 * @budget:	of all NICs; @cap: what we may have alone; @share: of the budget
 * @short_ns:	until then we count as short of it
 * @measured_ns, @service_ns: when, and CNT_service_ns then
 * @pagers:	as last applied
 * @other, @all, @shares: of the computation
 */
struct arbiter {
	bool on, wants, resizing;
	struct fair mine[ARB_NUM];
	uint64_t budget[ARB_NUM], cap[ARB_NUM], share[ARB_NUM];
	uint64_t short_ns[ARB_NUM];
	uint64_t next_ns, measured_ns, service_ns;
	uint32_t pagers;
	const struct os_note *other[OS_NOTES_MAX];
	struct fair all[FAIR_MAX];
	uint64_t shares[FAIR_MAX];
};

/**
 * enum roce_state - Who serves us with what comes to UDP port 4791?
 * ROCE_UNASKED: that was not needed yet
 * ROCE_OURS:	we hold it
 * ROCE_SERVED:	a process of our user, or root's, passes on what is for us
 * ROCE_STRANGER: another user's has the name: nobody
 * ROCE_TAKEN:	something has the port that is no nopin: nobody
 */
enum roce_state {
	ROCE_UNASKED,
	ROCE_OURS,
	ROCE_SERVED,
	ROCE_STRANGER,
	ROCE_TAKEN,
	ROCE_NUM
};

/**
 * struct nic
 * @engine:	the engine lock and its hand-off (handoff.h)
 * @token:	the receive token: who holds it since when (progress.c)
 * @rest:	the step that moves while part of its burst is not planned yet
 * @heard:	all that had come by then has been taken from the sockets and
 *		committed; timers run no further (relaxed)
 * @hear_from, @hear_bytes:	what becomes @heard when so much was taken that
 *		nothing older can be left (token)
 * @last_poll, @last_poller: when a program's thread last polled, and which
 *		(relaxed)
 * @deadline:	next time anything is due (relaxed; for pollers)
 * @acks_owed:	some peer is owed an ACK (relaxed; for pollers)
 * @acks_now:	some peer is, or may be, owed one that is due, or it is on its way out
 *		(atomic; set before the completion that it is for)
 * @latest_ns:	the latest time that the engine was given; it never goes back (lock)
 * @acks_begun, @acks_ended: bursts of nothing but ACKs that were planned, committed
 * @blocked:	threads that sleep in progress_block()
 * @asleep:	how often in turn they do not look first, before they sleep, as they
 *		did in vain; @asleep_left: of these (relaxed)
 * @steps_free:	bit per free step (atomic)
 * @closed:	the program closed our descriptors (relaxed); @dead: that has been
 *		told
 */
struct nic {
	struct nic_config cfg;
	struct os *os;
	struct mem *mem;
	struct counters cnt;
	const struct reg_ops *reg;
	struct pins pins;
	struct xport x;
	struct rnd rnd;
	uint64_t nonce_key[2];
	/* net.c; read with the engine lock or @gids_lock, written with both */
	uint32_t mtu; /* atomic, too */
	struct gids gids;
	pthread_mutex_t gids_lock;
	uint64_t guid; /* and the next: as they were at first */
	char netdev[16];
	pthread_mutex_t net_lock; /* of the next two */
	bool net_news; /* the host said so and was not asked */
	uint64_t net_after_ns; /* not to be asked before */
	/* engine lock */
	struct handoff engine;
	struct nic_port *ports[OS_PORTS_MAX];
	/* roce.c */
	int roce_port; /* index in os/ of 4791, or -1 */
	int roce_claim; /* the name, for os_unclaim() */
	int roce_guest; /* connection to who has it, or -1 */
	uint64_t roce_secret; /* ours, or the holder's */
	bool roce_told; /* that secret is known */
	bool roce_late; /* it was waited for once, too long */
	enum roce_state roce_state, roce_said;
	bool roce_news; /* to be said (relaxed) */
	bool roce_orphan; /* who served us has ended (relaxed) */
	uint64_t roce_refused_ns; /* since when its name is taken and nobody
				   * can be asked, or 0 */
	struct os_holder roce_who; /* if another process holds it */
	uint64_t roce_try_ns;
	uint64_t forks; /* os_forks() that the shadow page table knows of */
	bool forking; /* and os_forking() */
	uint64_t protects; /* how often every page became readable only */
	struct list qps, peers, asyncs;
	struct list dests; /* peers that datagrams go to, the last used first */
	bool closed, dead;
	bool too_large; /* a packet, for some peer (relaxed) */
	struct timerq hello_timers;
	unsigned nqps, ud_qps, ndests, standard_peers, lined, sprayed;
	size_t rcvbuf;
	unsigned idle_waiters;
	pthread_mutex_t idle_lock;
	uint32_t idle_events; /* idle_lock */
	pthread_cond_t idle;
	struct {
		struct prefetch all[PREFETCHES];
		struct list idle, queue;
		unsigned out; /* pieces with the pagers */
	} prefetch;
	struct nic_qp *posted; /* atomic stack, posted.c */
	/* steps */
	struct step *steps;
	uint32_t steps_free;
	/* progress */
	uint64_t token;
	struct step *rest;
	uint64_t heard, hear_from, hear_bytes;
	uint64_t last_poll;
	uintptr_t last_poller;
	uint64_t deadline;
	uint64_t latest_ns;
	uint32_t acks_owed, acks_now, acks_begun, acks_ended;
	uint32_t empty_polls;
	uint32_t blocked;
	uint32_t asleep, asleep_left;
	uint64_t bg_until; /* when the background thread wakes by itself */
	uint32_t peek; /* a large transfer is in progress (relaxed) */
	bool stop;
	struct os_thread *bg;
	/* standby.c */
	struct os_thread *standby;
	int standby_fd; /* event that wakes it */
	bool standby_asleep; /* until it is woken */
	struct arbiter arbiter;
	uint64_t bg_busy; /* since when the background thread works; 0: idle */
};

/* nic.c */
/** nic_child() - In a fork()ed child, where all our objects are zero (heap.h)? */
static inline bool nic_child(const struct nic *nic)
{
	return !nic || os_child(nic->os);
}

int nic_open(struct nic **out, const struct nic_config *cfg);
void nic_close(struct nic *nic);
void nic_lock(struct nic *nic);
/** nic_unlock() - And see that work left meanwhile is done. */
void nic_unlock(struct nic *nic);
/** nic_wait_idle() - Engine lock held: until a commit happened, or so. */
void nic_wait_idle(struct nic *nic);
/** nic_wake_idle() - Engine lock held: something was committed. */
void nic_wake_idle(struct nic *nic);

/* net.c */
/** net_open() - Find the addresses. Return: -ENODEV: there is none, ... */
int net_open(struct nic *nic);
/** net_follow() - See what they are now, and tell programs. No lock held. */
int net_follow(struct nic *nic);
/**
 * net_turn() - The same, if the host said that something changed and it is time. No
 * lock held. Context: the background thread, or who stands in for it.
 * Return: when to call it again at the latest; @until: when there is no reason to.
 */
uint64_t net_turn(struct nic *nic, uint64_t until);

/* demux.c */
/** demux_open() - The first port. */
int demux_open(struct nic *nic);
int demux_add(struct nic *nic, struct nic_qp *qp, uint32_t *qpn);
void demux_remove(struct nic *nic, struct nic_qp *qp);
struct nic_qp *demux_find(struct nic *nic, uint32_t qpn);
void demux_close(struct nic *nic);

/* peers.c */
/**
 * peer_get() - The peer that @attr names, to be handed to peer_put().
 * Return: 0; -EINVAL, -ENODATA: as gids_path(); -ENOMEM.
 */
int peer_get(struct nic *nic, const struct qp_attr *attr,
	     const struct nic_qp *qp, uint64_t now_ns, struct peer **out);
void peer_put(struct nic *nic, struct peer *p);
void peers_hello(struct nic *nic, const struct pkt *p, const struct os_rx *rx,
		 uint64_t now_ns);
void peers_timers(struct nic *nic, uint64_t now_ns);
/** peers_too_large() - A packet of so many bytes to @p could not be sent: the log will
 * say by which interface. */
void peers_too_large(struct nic *nic, struct peer *p, uint32_t bytes);
/** peers_errors() - Take the ICMP errors. Takes the engine lock. */
void peers_errors(struct nic *nic);
/** peer_aim() - See ud_next(); asks who is there if that was never asked. */
void peer_aim(struct nic *nic, struct qp *qp, uint64_t now_ns);
/** peers_lend() - The redirect pool is another: tell the peers what they may fill. */
void peers_lend(struct nic *nic, uint64_t now_ns);
/** peers_close() - No QP is left. */
void peers_close(struct nic *nic);
/** peers_nonce() - Return the nonce of HELLOs from @ep; never 0. */
uint32_t peers_nonce(const struct nic *nic, const struct endpoint *ep);
/** peers_insist() - See peer.insist: unless that was done. */
void peers_insist(struct nic *nic, struct peer *p, uint64_t now_ns);
/** peers_proved() - A peer proved that it is a nopin. */
void peers_proved(struct nic *nic, struct peer *p, uint64_t now_ns);
/** peers_open() - OPEN came for @nq (xport/open.c). */
void peers_open(struct nic *nic, struct nic_qp *nq, const struct pkt *p,
		const struct os_rx *rx, uint64_t now_ns);
/** peers_say_open() - Send the OPENs that did not leave with data. */
void peers_say_open(struct nic *nic);

/* roce.c */
void roce_claim(struct nic *nic, uint64_t now_ns);
/** roce_welcome() - Before packets may come from standard peers: wait until the holder
 * has let us in, or what it passes on is not believed. It may be about to begin, and its
 * thread may not run at once. On a thread of the program, no lock held. */
void roce_welcome(struct nic *nic);
void roce_release(struct nic *nic);
bool roce_local(const struct ipaddr *ip);
/** roce_here() - Is @ip an address of this host? Lock held. */
bool roce_here(const struct nic *nic, const struct ipaddr *ip);
/** roce_pass_on() - A packet that came to 4791 for another NIC of this host. */
void roce_pass_on(struct nic *nic, const struct pkt *p,
		  const struct os_rx *from, uint8_t *bytes, uint32_t len);
/** roce_trusts() - Did the FORWARD @p come from who may pass on to us? */
bool roce_trusts(struct nic *nic, const struct pkt *p,
		 const struct os_rx *from);
/** roce_turn() - Serve others, see to it that we are served, and tell the program if we
 * are not. Return: do it again by then, @until at most. Context: background thread. */
uint64_t roce_turn(struct nic *nic, uint64_t until);
/** roce_needed() - Somebody can reach us through port 4791 only. */
void roce_needed(struct nic *nic, uint64_t now_ns);
struct text;
/** roce_text() - For `nopin stat --host`. Takes the engine lock. */
void roce_text(struct nic *nic, struct text *t);

/* engine.c: the three phases of a step. plan and commit: lock held */
/** engine_refresh() - Ask the host how it is, before any page is looked up. */
void engine_refresh(struct nic *nic, uint64_t now_ns);
/** engine_closed() - The program closed our descriptors. Any thread. */
void engine_closed(struct nic *nic);
/** accounted() - Are faults to be counted as @whose, engine_majflt or own_majflt? */
static inline bool accounted(const struct nic *nic, enum counter whose)
{
	return whose == CNT_own_majflt ? nic->cfg.account_own
				       : nic->cfg.account;
}

/**
 * usage_begin(), usage_end() - If they are accounted: major faults between the two
 * count as @whose, and minor ones of moves as engine_minflt.
 * @slept:	NULL, or set to whether the thread did
 * Return: how many major ones.
 */
struct os_usage usage_begin(const struct nic *nic, enum counter whose);
uint64_t usage_end(struct nic *nic, enum counter whose, struct os_usage before,
		   bool *slept);
/** engine_receive() - Fill @s from the sockets. No lock. false: nothing. */
bool engine_receive(struct nic *nic, struct step *s);
/** engine_inherit() - We overtook who held the token: take what it did not plan yet
 * of its burst, as if we had received it. Lock held. false: nothing. */
bool engine_inherit(struct nic *nic, struct step *s);
/** engine_rx_plan() - true: @s has moves to execute and commit; call again. */
bool engine_rx_plan(struct nic *nic, struct step *s, uint64_t now_ns);
/** engine_plan() - Anything but receiving. true: move and commit; call again. */
bool engine_plan(struct nic *nic, struct step *s, bool flush_acks,
		 uint64_t now_ns);
/** engine_plan_acks() - ACKs that are due, and nothing else. Lock held. true: move and
 * commit; call again. */
bool engine_plan_acks(struct nic *nic, struct step *s, uint64_t now_ns);
/**
 * engine_settled() - After a commit, lock held: is there nothing that
 * engine_plan() would do now? Then it is told when there will be, as by a plan.
 */
bool engine_settled(struct nic *nic, bool flush_acks, uint64_t now_ns);
/** engine_move() - No lock: copy or send. */
void engine_move(struct nic *nic, struct step *s);
void engine_commit(struct nic *nic, struct step *s, uint64_t now_ns);

/* txbatch.c */
void txbatch_send(struct nic *nic, struct step *s);

/* nic.c */

/** nic_refused() - Log which limit of the program is in the way, if it is one.
 * Return: @err, for the program. */
int nic_refused(int err);

/** nic_prepare() - Open what our threads may need, if anything was used. Context: a thread
 * of the program, no lock held. */
void nic_prepare(struct nic *nic);

/* step.c */
struct step *step_get(struct nic *nic);
void step_put(struct nic *nic, struct step *s);
/** step_plan_rx(), step_plan() - engine_rx_plan(), engine_plan(), accounted. */
bool step_plan_rx(struct nic *nic, struct step *s, uint64_t now_ns);
bool step_plan(struct nic *nic, struct step *s, bool flush_acks,
	       uint64_t now_ns);
/** step_run() - Move what is planned and commit it. The lock is held, but not during
 * the move. Return: the time after the move: reading the clock costs 30 ns. */
uint64_t step_run(struct nic *nic, struct step *s);

/* progress.c */
bool progress_receive(struct nic *nic, uint64_t *now_ns);
void progress_work(struct nic *nic, bool flush_acks);
/** progress_flush() - Send what is owed, now. */
void progress_flush(struct nic *nic);
void progress_poll(struct nic *nic);
/**
 * progress_owed() - Do what is owed for completions, before the program takes one.
 *
 * Another thread made them, and perhaps did not come to their ACKs, or is about to send
 * them. The program may tell the peer of what it received by other means, and the peer
 * may then end the connection: the ACK has left before.
 */
void progress_owed(struct nic *nic);
/** progress_hear() - Take what has come so far, into whoever's hands, but from a thread
 * that is long gone from its CPU. */
void progress_hear(struct nic *nic);
/** progress_deadline() - The next time anything is due; wakes who must know. */
void progress_deadline(struct nic *nic, uint64_t at_ns, uint64_t now_ns);
/**
 * progress_block() - Run the engine, sleep until @fd, @until_ns or something else.
 * @woken:	not 0 when @fd is readable (atomic)
 * @sig:	of the caller, which restores them in the end
 * Return: 0; -EINTR: a handler without SA_RESTART ran. Context: a thread that is
 * in a call of the program's, without a lock; a cancellation point.
 */
int progress_block(struct nic *nic, int fd, const uint32_t *woken,
		   uint64_t until_ns, struct os_signals *sig);
/** progress_doze() - The same, but others run the engine. */
int progress_doze(struct nic *nic, int fd, uint64_t until_ns,
		  struct os_signals *sig);
/** progress_attended() - Does another thread of the program poll, or block? */
bool progress_attended(const struct nic *nic);
/** progress_closed() - After os_wait(): did the program close our descriptors? */
void progress_closed(struct nic *nic);
int progress_start(struct nic *nic);
void progress_stop(struct nic *nic);
/** progress_turn() - One turn of the background thread, or (@step NULL) of who
 * stands in for it. Return: when to wake at the latest, and for what.
 */
uint64_t progress_turn(struct nic *nic, struct step *step,
		       enum os_wait_for *what);
/** progress_sleep() - Between two turns. */
void progress_sleep(struct nic *nic, uint64_t until, enum os_wait_for what);

/* standby.c */
int standby_start(struct nic *nic);
void standby_stop(struct nic *nic);
/** standby_watch() - The background thread begins to work (true), or ended. */
void standby_watch(struct nic *nic, bool works);
/** standby_call() - It does something that is no work of the NIC, until it says
 * that it ended: others are not to wait for that. */
void standby_call(struct nic *nic);

/* scatter.c */
/**
 * scatter_receive() - Peek and receive in place if that is possible.
 * Return: true: a burst was taken that way (or was lost); the rest of it, if
 * any, is in s->buf. No lock held; takes it to plan.
 */
bool scatter_receive(struct nic *nic, struct step *s);
/** scatter_packets() - Lock held: feed what was received in place to the QP. */
void scatter_packets(struct nic *nic, struct step *s, uint64_t now_ns);

/* prefetch.c: lock held */
void prefetch_init(struct nic *nic);
/** prefetch_ask() - Hand the next pieces to the pagers. */
void prefetch_ask(struct nic *nic);
/** prefetch_done() - An answer with PREFETCH_ID or more. */
void prefetch_done(struct nic *nic, const struct os_page_done *d,
		   uint64_t now_ns);

/* reg.c */
struct reg_ops;
/** struct reg_move - Which moves locked their pages: bit per move. */
struct reg_move {
	uint64_t pinned[DIV_ROUND_UP(MOVES_MAX, 64)];
};
/** reg_by_name() - Return: REG_NUM: there is none. */
enum reg_mode reg_by_name(const char *name);
void reg_open(struct nic *nic);
void reg_close(struct nic *nic);
/** reg_bounces() - Is payload to be copied through NIC memory? */
bool reg_bounces(const struct nic *nic);
/**
 * reg_enter() - Before a region is made: its pages are treated as the mode has it.
 * No lock held; may take as long as pages do.
 * Return: 0, or why the region is refused.
 */
int reg_enter(struct nic *nic, const struct mr_attr *attr);
/** reg_leave() - The region is gone: undo reg_enter(). */
void reg_leave(struct nic *nic, const struct mr_attr *attr);
/** reg_move_begin(), reg_move_end() - Around moves, which stay as they are. */
void reg_move_begin(struct nic *nic, const struct moves *mv,
		    struct reg_move *rm);
void reg_move_end(struct nic *nic, const struct moves *mv,
		  const struct reg_move *rm);

/* arbiter.c */
struct ctl_answer;
/** arbiter_open() - Before anything is in the table; steps can be made. */
void arbiter_open(struct nic *nic);
/**
 * arbiter_turn() - See what our shares are, if it is time, and keep to them. No lock
 * held. Context: the background thread.
 * Return: when to call it again at the latest; @until: when there is no reason to.
 */
uint64_t arbiter_turn(struct nic *nic, uint64_t until);

/** arbiter_text() - JSON: who holds what. Context: as arbiter_turn(). */
void arbiter_text(struct nic *nic, struct ctl_answer *a);

/* qp.c */
/**
 * nic_flush() - Peers get an ACK of all that the program can have seen. A second at
 * most: it may be in part, and the rest wait for a page.
 */
void nic_flush(struct nic *nic);

/* posted.c */
void posted_push(struct nic_qp *qp);
void posted_take(struct nic *nic, uint64_t now_ns);

/* ctl.c */
/**
 * struct ctl_answer - To a request at the control socket.
 * @error:	if not empty, the answer is this
 * @text:	else @len bytes from malloc(), the caller's to free; NULL: there was
 *		no memory
 */
struct ctl_answer {
	char error[192];
	char *text;
	size_t len;
};

/** ctl_answer() - Do what @req says, @len bytes that anybody may have written. */
void ctl_answer(struct nic *nic, const char *req, size_t len,
		struct ctl_answer *a);
/** ctl_serve() - Answer who asked. Context: the background thread. */
void ctl_serve(struct nic *nic);

/* suspend.c: commands of ctl.c */
void ctl_move(struct nic *nic, int argc, char **argv, struct ctl_answer *a);
void ctl_resume(struct nic *nic, int argc, char **argv, struct ctl_answer *a);
void ctl_suspend(struct nic *nic, int argc, char **argv, struct ctl_answer *a);

/* trace.c */

/** struct trace_qp - What is told of a QP; made under the engine lock. */
struct trace_qp {
	uint32_t qpn, dest_qpn;
	enum qp_state state;
	psn_t una, acc, snd, max;
	psn_t head, next;
	uint32_t sq, rq;
	enum live_wait wait;
	uint64_t spent_at;
	uint8_t retries, retry_cnt;
	struct flight log;
};
/** trace_state() - Its name. */
const char *trace_state(enum qp_state state);
void trace_copy(struct trace_qp *t, const struct nic_qp *nq);
/** trace_format() - Return: length; what does not fit is cut. */
size_t trace_format(char *buf, size_t size, const struct trace_qp *t,
		    uint64_t now_ns);
/** trace_text() - All of it. */
void trace_text(struct nic *nic, struct ctl_answer *a);

/* stat.c */

/** struct text - Grows; @lost: there was no memory for all of it. */
struct text {
	char *p;
	size_t len, size;
	bool lost;
};
/** text_add() - At most 255 bytes. */
__attribute__((format(printf, 2, 3))) void text_add(struct text *t,
						    const char *fmt, ...);
/** text_answer() - Consumes @t. */
void text_answer(struct text *t, struct ctl_answer *a);
/** stat_text() - JSON: what is accounted of the NIC, its QPs and regions. */
void stat_text(struct nic *nic, struct ctl_answer *a);

/* counter.c */
/** counter_raised() - Engine lock held: wake who waits for its value. */
void counter_raised(struct eventcount *e);
/** counter_raise() - Engine lock held: as if a peer had, and all that follows. */
void counter_raise(struct nic_counter *c);
/* upcall.c */
/** upcalls_deliver() - Lock held: wake whoever waits for upcalls. */
void upcalls_deliver(struct nic *nic);

/* events.c */
/** channel_quiet() - Locked: if no event is left there, its descriptor says so. */
void channel_quiet(struct nic_channel *ch);
void events_deliver(struct nic *nic);
/** events_raise() - Engine lock held: an event of the device or of its port. */
void events_raise(struct nic *nic, enum nic_event_type type);
/** events_died() - Engine lock held, nic.closed: fail every QP, tell everybody. */
void events_died(struct nic *nic, uint64_t now_ns);

#endif
