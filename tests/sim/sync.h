/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync.h: a home and members of it on simulated NICs: sync_node.c does with them what
 * src/session does with verbs, sync.c is the programs.
 */
#ifndef NOPIN_TESTS_SYNC_H
#define NOPIN_TESTS_SYNC_H

#include "session/sync.h"
#include "session/sync_home.h"
#include "session/sync_member.h"
#include "world.h"

enum {
	MEMBERS = 6,
	SELF = MEMBERS, /* the connection of the home to itself */
	LINE = 64,
	SEM = 0,
	WAITQ = 1,
};

#define ALIVE_NS (20 * (uint64_t)SIM_MS)
#define BOUND_NS (30000 * (uint64_t)SIM_MS)
#define LOST_NS	 (500 * (uint64_t)SIM_MS)
#define CUT_NS	 (6000 * (uint64_t)SIM_MS)
#define GRACE_NS (100 * (uint64_t)SIM_US)

/** struct side - One end of a connection, and memory of its node for it. */
struct side {
	struct node *node;
	struct nic_qp *qp;
	uint32_t qpn;
	unsigned out;
	bool failed;
	uint64_t mem;
	uint32_t key;
	struct nic_counter *counter;
};

/* Where what is in memory: of a member, and of its box at the home. */
enum { M_ANSWER = 0, M_OLD = 8, M_CONFIRMED = 16, M_MSG = 32 };
enum { B_MSG = 0, B_CONFIRMED = 64, B_ANSWER = 128 };

struct member {
	struct sync_world *s;
	unsigned index, rounds;
	struct side here, home;
	int64_t guess[2];
	uint64_t sent, answers, owed, since_ns, beat_ns, broken_ns;
	unsigned believes;
	bool active, gone, dies_holding;
};

struct sync_world {
	struct world *w;
	struct member m[MEMBERS];
	struct side self[2];
	uint64_t words;
	uint32_t words_key;
	struct nic_counter *bell;
	struct sync_home core;
	struct sync_seat seat[MEMBERS];
	struct sync_object object[2];
	unsigned queue[2][MEMBERS], queued[2];
	unsigned units, held, items, deaths, broken, lost, active, first;
	unsigned given_up;
	bool stop;
	uint64_t longest_ns, quiet_ns;
};

/** side_read(), side_write() - Memory of @side, as its program. */
void side_read(struct side *side, uint64_t off, void *to, uint64_t len);
void side_write(struct side *side, uint64_t off, const void *from,
		uint64_t len);
void qp_break(struct nic_qp *qp);

/** home_thread() - @arg: the sync_world. */
void home_thread(void *arg);
struct sync_port home_port(struct sync_world *s);

/** member_settle() - The home has seen all that @m said, or cannot be reached. */
void member_settle(struct member *m);

/**
 * member_call() - @patience_ns: 0: it waits for ever.
 * Return: SYNC_PENDING: the connection failed.
 */
enum sync_result member_call(struct member *m, enum call_kind kind,
			     uint64_t *value, uint64_t patience_ns);

#endif
