/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* oracle.h: the applications of a simulated world. A flow is one direction of a
 * connection: it posts random work, knows what memory must look like, and fails
 * the run when it does not.
 *
 * Theory of operation
 *
 * Every operation has a number; what it carries is a function of the flow, that
 * number and the offset, so nothing but the number is kept. The target memory of
 * a flow is written by nobody else. For each of its bytes the flow keeps which
 * posted operation writes it last (@last) and what then is there (@image).
 *
 * The watch (watch.c) sees every piece that a NIC writes to application memory,
 * in order, and asks: is it a byte of an operation that is outstanding, all of
 * whose predecessors are placed (I3a)? So also a late copy, a second execution
 * and a write beyond a buffer are noticed at the moment they happen. Completions
 * then find everything before them placed (I3b) and every byte right.
 */
#ifndef NOPIN_TESTS_ORACLE_H
#define NOPIN_TESTS_ORACLE_H

#include "ring/cqe.h"
#include "ring/wqe.h"
#include "world.h"

enum {
	FLOW_SLOTS = 16,
	FLOW_SGES = 4,
	LOCAL_BYTES = 192 << 10, /* of local memory for one operation */
	MESSAGE_MAX = 160 << 10,
	TARGET_BYTES = 192 << 10,
	SOURCE_BYTES = 192 << 10, /* that READs read */
	EXPECTS = 64,
	INV_KEYS = 4,
};

/** struct part - A piece of local memory. */
struct part {
	uint64_t addr;
	uint32_t len;
};

/**
 * struct op - Outstanding work. What is not said by @wr.
 * @stream, @stream_off: its data are gen_bytes(stream, stream_off + i, ...)
 * @remote:	offset in the target, the source or the cells
 * @high:	bytes from the start seen placed by the watch
 * @executed, @old: atomics: the watch saw it, and the value before
 * @before:	OPK_READ_BACK: what the range held when it was posted
 * @to:		it may answer what is before this number of the other direction
 */
struct op {
	bool used, signaled, fenced, inlined;
	enum op_kind kind;
	enum wr_op wr;
	uint64_t seq, stream, stream_off;
	uint64_t remote;
	uint32_t len, imm;
	unsigned parts;
	struct part part[FLOW_SGES];
	uint32_t high;
	bool executed;
	uint64_t old, operand, compare;
	uint8_t *before;
	uint64_t posted_ns, to;
};

/** struct expect - A message that will consume a receive; @to: as in struct op. */
struct expect {
	uint64_t seq, stream, remote, to;
	enum wr_op wr;
	uint32_t len, imm;
};

struct recv {
	bool posted;
	uint64_t number;
	unsigned parts;
	struct part part[FLOW_SGES];
};

/**
 * struct count - A flow's counter, at its receiver.
 * @imm:	immediate data names it
 * @posted:	WRITEs that notify; @seq: their numbers
 * @seen:	the value that was checked
 * @woken:	the value for which a thread or handler was woken
 */
struct count {
	struct nic_counter *counter;
	bool imm;
	uint64_t posted, seen, woken;
	uint64_t seq[EXPECTS];
};

struct flow {
	struct world *w;
	struct end *from, *to;
	unsigned index;
	uint64_t seed, source_stream;
	/* sender's node */
	uint64_t local;
	uint32_t local_key;
	struct op op[FLOW_SLOTS];
	uint64_t posted,
		completed; /* op numbers: [completed, posted) are out */
	unsigned unsignaled; /* posted in a row */
	uint64_t all; /* how many there will be */
	/* receiver's node */
	uint64_t target, recv_mem;
	bool zeros; /* pages of target may be seen empty */
	uint64_t iova; /* of target; what READs read is behind it */
	uint32_t remote_key, recv_key;
	uint32_t inv_key[INV_KEYS]; /* for OPK_SEND_INV, once each */
	unsigned invs;
	uint8_t *image;
	uint32_t *last; /* op number + 1 */
	struct recv recv[FLOW_SLOTS];
	uint64_t recv_posted, recv_done;
	struct expect expect[EXPECTS];
	uint64_t expected;
	struct count count;
	uint64_t longest_ns; /* that an operation took */
	bool failed; /* its QP is in error, as a scenario wanted */
	bool flushed, recv_flushed; /* an error completion came */
	bool remote_gone; /* @remote_key was deregistered */
};

void flow_open(struct flow *f, struct world *w, struct end *from,
	       struct end *to, unsigned index);
void flow_close(struct flow *f);

/** flow_post() - Post one random operation, if there is room. */
void flow_post(struct flow *f);
/** flow_recv() - Keep receives posted at the receiving end. */
void flow_recv(struct flow *f);
bool flow_done(const struct flow *f);
/** flow_break() - A scenario does something that it need not survive. */
void flow_break(struct flow *f);
/** flow_final() - Everything is done: is memory as it must be? */
void flow_final(struct flow *f);

/** end_completion() - A completion of the QP @end. */
void end_completion(struct end *end, const struct cqe *e);

/** op_at() - The outstanding operation @seq, or NULL. */
struct op *op_at(struct flow *f, uint64_t seq);
/** flow_placed() - Are the data of all operations before @seq placed? */
bool flow_placed(struct flow *f, uint64_t seq, uint64_t *missing);
bool op_writes(const struct op *op);
bool op_atomic(const struct op *op);
bool op_consumes(const struct op *op);
/** op_data() - Bytes [off, off + len) of what @op carries. */
void op_data(const struct op *op, uint64_t off, uint8_t *out, uint64_t len);
/** parts_read() - Read the first @len bytes of local memory. */
void parts_read(struct node *node, const struct part *part, unsigned parts,
		uint8_t *out, uint32_t len);
/** in_parts() - Does [@addr, @addr + @len) lie in one of them? */
bool in_parts(const struct part *part, unsigned parts, uint64_t addr,
	      uint64_t len);
/** page_in_parts() - Is all of the page at @addr in the first @len bytes of them? */
bool page_in_parts(const struct part *part, unsigned parts, uint64_t addr,
		   uint32_t len);
/** recv_make() - Draw the receive @number into @r, in the slot at @mem; fill in its WQE. */
void recv_make(struct sim *sim, struct recv *r, uint64_t number, uint64_t mem,
	       uint32_t key, uint32_t max_sge, struct wqe *wqe);

/** message_check() - Is the message of @x in the receive buffer @r? */
void message_check(struct flow *f, const struct expect *x,
		   const struct recv *r);

/* answer.c */
/** answer_to() - What is posted on @f now may answer all that is before this number
 * of the flow in the other direction. */
uint64_t answer_to(const struct flow *f);
/** answer_check() - Number @seq of @f is there: what it may answer is completed. */
void answer_check(struct flow *f, uint64_t seq, uint64_t to);

/* notify.c: nothing happens to flows without a counter */
void count_open(struct flow *f);
/** count_stop() - No thread waits for it any more. */
void count_stop(struct flow *f);
void count_close(struct flow *f);
/** count_note() - @op notifies. Return: its immediate data, or counter. */
uint32_t count_note(struct flow *f, const struct op *op);
/** count_check() - Is all placed that the value stands for? */
void count_check(struct flow *f);
/** count_completed() - @op, which notifies, did. */
void count_completed(struct flow *f, const struct op *op);
/** count_done() - Was everybody woken? */
bool count_done(const struct flow *f);

/** watch_write() - A NIC wrote [addr, addr + len) on @arg, a node. */
void watch_write(void *arg, uint64_t addr, uint64_t len);
/** watch_drop() - It is about to drop what the page at @addr holds. */
void watch_drop(void *arg, uint64_t addr);

/** ud_wrote() - And that is where datagrams are received (ud.c). */
void ud_wrote(const struct node *node, uint64_t addr, uint64_t len);

/** gen_bytes() - @len bytes from offset @off of the stream @seed. */
void gen_bytes(uint64_t seed, uint64_t off, uint8_t *out, uint64_t len);

const char *op_kind_name(enum op_kind kind);

/** application_thread() - Posts and polls for all QPs of a node. */
void application_thread(void *arg);

#endif
