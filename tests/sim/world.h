/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* world.h: a simulated world of NICs and connections, built from a seed, and
 * what disturbs it. What the applications do in it, and whether they got what
 * they were promised, is in oracle.h.
 */
#ifndef NOPIN_TESTS_WORLD_H
#define NOPIN_TESTS_WORLD_H

#include "base/counters.h"
#include "mem/mr.h"
#include "nic/pair.h"
#include "os/copy.h"
#include "os/names.h"
#include "os/net.h"
#include "os/pages.h"
#include "os/run.h"
#include "os/wait.h"
#include "ring/cqe.h"
#include "simhost/sim.h"

struct flow;
struct world;

enum {
	NODES_MAX = 9,
	CONNS_MAX = 40,
	NODE_CQS = 3,
	AREAS_MAX = 64,
	CELLS = 8,
	CELL_HISTORY = 256
};

/* Kinds of work, as indices of world_config.mix. */
enum op_kind {
	OPK_NONE,
	OPK_SEND,
	OPK_SEND_IMM,
	OPK_SEND_INV, /* of a key that is used for nothing else */
	OPK_WRITE,
	OPK_WRITE_IMM,
	OPK_NOTIFY, /* raises the counter of the flow */
	OPK_READ,
	OPK_READ_BACK, /* READ of what WRITEs of the same flow wrote */
	OPK_RELAY, /* READ, then a fenced WRITE of what was read */
	OPK_FETCH_ADD,
	OPK_CMP_SWP,
	OPK_NUM
};

/**
 * struct world_config - What a scenario asks for; world_config_draw() fills it
 * with a bit of everything.
 * @hub:	so many connections are from the first node to the second, the others
 *		from the first to the third; 0: around in a ring
 * @neighbours:	all nodes but the first are processes of one machine
 * @arbiter, @budget: enum arbiter_rule; entries of all of a machine
 * @ops:	of each flow; 0: there are none, the scenario posts itself
 * @window:	operations of one flow outstanding, <= FLOW_SLOTS
 * @recvs:	receives kept posted, <= FLOW_SLOTS
 * @recv_lazy:	chance, a look, that missing receives are posted
 * @mix:	weights of the kinds of work
 * @big:	chance of messages of many packets
 * @evict_ns, @fork_ns, @pause_ns, @cut_ns, @away_ns: mean time between, 0: never
 * @flush_ns:	mean time between evictions of all at once, 0: so seldom that pages
 *		come in between
 * @preempt, @preempt_ns: probability that a thread loses the CPU as it receives,
 *		and for how long at most
 * @full:	probability that a send finds the socket's buffer full
 * @force:	evict pages that were just touched, too
 * @choose:	QPs and regions choose strategies of their own
 * @backing:	of the memory that the NICs work on
 * @counters:	flows have one, which OPK_NOTIFY needs
 * @weight:	of a node's NIC; 0: the usual
 * @attack_ns:	mean time between forged packets, 0: never
 * @upcalls:	events that the queue of a node holds (upcall.c); 0: there is none
 */
struct world_config {
	unsigned nodes, conns, hub, ops, window, recvs;
	uint32_t recv_lazy;
	uint32_t mix[OPK_NUM];
	uint32_t big;
	struct sim_link_config link;
	struct sim_mem_config mem;
	unsigned arbiter;
	uint64_t budget;
	uint32_t weight[NODES_MAX];
	bool neighbours;
	bool exact, force, choose, no_gso, no_gro, no_scatter, v6;
	enum sim_backing backing;
	uint64_t evict_ns, flush_ns, fork_ns, pause_ns, cut_ns, away_ns,
		attack_ns;
	uint32_t preempt;
	uint64_t preempt_ns;
	uint32_t full;
	uint32_t mtu, path_mtu;
	size_t rcvbuf;
	unsigned pagers, slots, entries, tickets, upcalls;
	strategies_t strategies;
	unsigned reg; /* enum reg_mode */
	unsigned paths; /* to each peer; 0: one */
	uint32_t spin_ns;
	unsigned ahead; /* enum ahead */
	uint64_t pin_cache;
	uint8_t timeout, retry_cnt, rnr_retry, rnr_timer, rd_atomic;
	bool always_ready;
	bool polite; /* nothing is sent for which no receive is posted */
	bool counters;
	bool shared; /* the QPs of a node share their receives (shared.h) */
	bool standard; /* no NIC learns that the others are nopins */
	unsigned deaf; /* so many HELLOs are lost: only some learn it */
	unsigned mute; /* and so many OPENs */
};

/** struct area - Memory that the watch knows: what may be written when. */
enum area_kind {
	AREA_NONE,
	AREA_LOCAL,
	AREA_TARGET,
	AREA_RECV,
	AREA_SHARED, /* srq.c */
	AREA_CELLS,
	AREA_DATAGRAMS, /* ud.c */
	AREA_SYNC, /* sync.c, which knows itself what is in it */
	AREA_DEAD
};
struct area {
	enum area_kind kind;
	unsigned regs; /* regions of its own that it is all of */
	bool suspended; /* its region: nothing may be written */
	uint8_t *believed; /* upcall.c: by page, or NULL */
	uint64_t addr, bytes;
	struct flow *flow;
};

/**
 * struct churn - Memory of a node that is registered and deregistered all the time
 * (reg.c), and what of it is now.
 * @moving:	not known: a call is under way
 * @stale:	it was unmapped and mapped again
 */
struct churn {
	uint64_t area, addr, bytes;
	bool live, moving, stale;
};

struct node {
	struct world *w;
	unsigned index;
	struct os *os;
	struct nic *nic;
	uint32_t pd;
	struct nic_cq *cq[NODE_CQS];
	struct area area[AREAS_MAX];
	unsigned areas;
	uint64_t cells;
	uint32_t cells_key;
	uint64_t cell_iova;
	uint64_t cell_history[CELLS][CELL_HISTORY];
	unsigned cell_changes[CELLS];
	struct churn churn;
	struct nic_upcalls *upcalls; /* or NULL */
	struct shared_recvs *shared; /* or NULL */
	struct watched *watched; /* ever */
};

/** struct end - A QP. @users: threads that are posting to it. */
struct end {
	struct node *node;
	struct nic_qp *qp;
	uint32_t qpn, sq_psn;
	unsigned users;
	struct nic_qp_init init;
	struct flow *out, *in;
};

struct conn {
	struct end end[2];
};

struct world {
	const char *scenario;
	uint64_t seed;
	struct sim *sim;
	struct world_config cfg;
	struct node node[NODES_MAX];
	struct conn conn[CONNS_MAX];
	struct flow *flow[2 * CONNS_MAX];
	unsigned flows;
	unsigned threads;
	bool stop, expect_errors, verbose;
	bool strangers; /* some nopins do not know each other, or not at first */
	unsigned suspending, longs; /* suspend.c */
	bool busy; /* a thread of the scenario is not done with it */
	void *own; /* the scenario's */
	struct counters total; /* of all NICs, at the end */
	struct sim_stats stats;
	bool hash_all; /* not the events alone */
	uint64_t hash[SIM_HASHES]; /* once it is closed */
	uint64_t forged; /* packets that have to be dropped */
	uint64_t forgotten; /* bytes that were given up in slots */
	uint64_t longest_ns; /* that an operation took */
};

void world_config_draw(struct world *w);
/** world_strategy() - Any but block and drop; @none: or no choice. */
enum strategy world_strategy(struct world *w, bool none);
/** world_some() - 0, or up to @most. */
uint32_t world_some(struct sim *sim, uint32_t most);
/** world_sim() - Its simulator; what was mixed of one before is kept. */
void world_sim(struct world *w, uint64_t seed);
/** world_nodes() - The network and the NICs, and nothing else. */
void world_nodes(struct world *w);
/** world_build() - NICs, connections, flows and the threads that use them. */
void world_build(struct world *w);
void world_run(struct world *w, uint64_t ns);
/** world_finish() - Run until all flows are done; fails when none goes on. */
void world_finish(struct world *w);
/** world_close() - Take everything down; no leak is left. */
void world_close(struct world *w);

/** world_fail() - Say what is wrong and with which seed; never returns. */
_Noreturn __attribute__((format(printf, 2, 3))) void world_fail(struct world *w,
								const char *fmt,
								...);

#define EXPECT(w, cond, ...)                                                   \
	do {                                                                   \
		if (!(cond))                                                   \
			world_fail(w, __VA_ARGS__);                            \
	} while (0)

/** area_add() - Map memory on @node and tell the watch about it. */
uint64_t area_add(struct node *node, enum area_kind kind, uint64_t bytes,
		  struct flow *flow);

/** area_kill() - From now on nothing may be written there. */
void area_kill(struct node *node, uint64_t addr);

/** node_open(), node_close() - The NIC, its CQs and its PD (node.c). */
void node_open(struct node *node);
void node_close(struct node *node);

/** end_create(), end_modify(), end_connect() - The steps of conn_open(). */
void end_create(struct world *w, struct end *e, struct node *node);
void end_modify(struct world *w, struct end *e, struct qp_attr *attr,
		enum qp_state state, uint32_t mask);
void end_connect(struct world *w, struct end *e, const struct end *peer);
/** conn_open() - Create and connect both QPs. */
void conn_open(struct world *w, struct conn *conn, struct node *a,
	       struct node *b);
/** end_again() - Reset the QP and connect it again; its peer is to send @rq_psn next. */
void end_again(struct end *e, const struct end *peer, uint32_t rq_psn);
void end_destroy(struct end *e);

/** attack_start() - Somebody forges packets, and must change nothing (attack.c). */
void attack_start(struct world *w);
/** attack_watch() - At the end: all of them were dropped, and counted. */
void attack_watch(struct world *w);

/** chaos_start() - Threads that evict, fork, pause and cut. */
void chaos_start(struct world *w);

/** node_poll() - nic_cq_poll(); what comes is mixed into the run's hash. */
int node_poll(struct node *node, struct nic_cq *cq, unsigned max,
	      struct cqe *e);

/** node_key_live() - May a peer still write at @iova with @key? */
bool node_key_live(const struct node *node, uint32_t key, uint64_t iova);
/** reg_watch() - Exactly what the registration mode promises is locked. */
void reg_watch(const struct node *node);

/*
 * upcall.c, and nothing where nobody is told anything: a region is about to be made;
 * the NIC wrote to an area; a node has a queue, and no regions any more.
 */
struct watched *upcall_watch(struct node *node, struct mr_attr *attr);
void upcall_wrote(struct node *node, struct area *a, uint64_t addr,
		  uint64_t len);
void upcall_open(struct node *node);
void upcall_close(struct node *node);

/** node_registered() - An explicit region of @addr was made. */
void node_registered(struct node *node, uint64_t addr);

/** node_watch() - Check what must be true of its NIC at any time. */
void node_watch(const struct node *node);
/** node_live() - Of its requests, each will end (I8; live.c). */
void node_live(const struct node *node);
/**
 * node_accounts() - Every fault is accounted, for each of whom it concerns (I6;
 * accounts.c). @over: no QP is left, so no fault either.
 */
void node_accounts(const struct node *node, bool over);

/** node_sums() - Budgets, quotas and slots add up over QPs and peers, at any time. */
void node_sums(const struct node *node);
/** node_mix() - Mix its counters, and the accounts of all its QPs and regions. */
void node_mix(const struct node *node);

/** node_thread() - A thread of @node that is joined by world_close(). */
void node_thread(struct node *node, void (*fn)(void *arg), void *arg);

#endif
