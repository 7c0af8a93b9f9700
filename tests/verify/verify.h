/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verify.h: a verifier of data for programs that do not look at theirs.
 *
 * The library is preloaded into both programs of a pair, between them and
 * libibverbs. It fills what they send with patterns and checks what arrives.
 * The two copies share files in a directory, so that each knows what the other
 * meant to say; only the network is under test.
 *
 * SEND   leaves from a box of ours that is filled with a pattern of the QP, of
 *        the number of the message and of the position, and arrives in another
 *        box; compared when the receive completes.
 * WRITE  leaves from such a box, and goes to the place that the program named
 *        or to a box in the arena of the peer. The sender also applies it to
 *        the *image* of that memory; compared when both have come to their end.
 * READ   arrives in a box, is compared with the image on completion.
 * atomic is applied to the image; what it returns is compared.
 *
 * A box has margins, which must stay as they were. What a program does not get
 * a box for (there are so many, and the eighth of each is left alone) moves in
 * the program's own memory and is compared as far as that can tell.
 *
 * Environment: VERIFY_DIR, the shared directory, new for each pair;
 * VERIFY_ROLE, "server" or "client"; VERIFY_TURNS, set where the programs
 * answer each other WRITE by WRITE and see them by their last byte; VERIFY_EVICT,
 * every so many milliseconds boxes are evicted.
 *
 * hook.c   what programs call
 * track.c  what is posted, and its boxes
 * evict.c  boxes that do not stay in memory
 * share.c  images, the log of SENDs, the end of both
 * report.c what was found, in VERIFY_DIR/ROLE.report
 */
#ifndef NOPIN_TESTS_VERIFY_H
#define NOPIN_TESTS_VERIFY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind {
	KIND_FLUSH,
	KIND_RECV,
	KIND_SEND,
	KIND_WRITE,
	KIND_READ,
	KIND_ATOMIC,
	KIND_NUM,
};

/** struct request - Something posted and not yet completed.
 * @memory:	the program's, its only piece; @box takes its place unless NULL
 * @remote:	address at the peer; @arena_box says whether it is one in its arena
 * @compare_add, @swap, @is_swap, @expected:	an atomic's operands, and what it
 *		will find
 */
struct request {
	enum kind kind;
	bool signaled, arena_box, is_swap;
	uint32_t length, rkey;
	uint8_t *memory, *box;
	uint64_t remote, compare_add, swap, expected;
};

/** struct line - Requests of a queue, oldest first. */
struct line {
	struct request *ring;
	uint32_t head, tail, capacity;
};

/** struct track - What we know of a QP.
 * @sent, @received:	SENDs so far, by which the ends agree on patterns
 * @broken:		a request failed; that is the program's to report
 */
struct track {
	struct ibv_qp *qp;
	uint32_t qpn, peer_qpn;
	uint64_t sent, received, posted;
	bool broken;
	struct line sq, rq;
	struct sent *mine, *peers;
};

/** struct sent - What the sender of a SEND says of it.
 * @number:	how many that QP had sent before, plus one
 * @pattern:	it left from a box
 */
struct sent {
	uint64_t number, sum;
	uint32_t length;
	bool pattern;
};

/* --- share.c: what the other copy must know --------------------------------- */

bool share_on(void);
const char *share_role(void);
const char *share_peer(void);
void share_region(struct ibv_mr *mr, int access);
void share_publish(struct ibv_pd *pd);
uint8_t *share_image(uint32_t rkey, uint64_t remote, uint32_t length);
void share_written(uint32_t rkey, uint64_t remote, uint32_t length);
void share_arena(struct request *req);
void share_arena_done(const struct request *req);
void share_sent(struct track *t, const void *data, uint32_t length,
		bool pattern);
const struct sent *share_next_sent(struct track *t);
bool share_arrived(void);
void share_compare(void);
void share_done(void);
void share_meet(void);
void share_close(struct ibv_pd *pd);

/* --- track.c: QPs ----------------------------------------------------------- */

struct track *track_of(uint32_t qpn);
struct track *track_add(struct ibv_qp *qp);
struct track *track_next(struct track *t);
void track_post(struct track *t, struct request *req, struct ibv_sge *sge);
void track_abort(struct track *t, bool is_recv);
void track_done(const struct ibv_wc *wc);
bool track_drained(const struct track *t);
bool track_needs_flush(const struct track *t);
void track_close(struct ibv_pd *pd);

/* --- pattern.c -------------------------------------------------------------- */

void pattern_fill(void *to, uint64_t seed, size_t length);
uint64_t pattern_sum(const void *of, size_t length);
uint64_t pattern_seed(const char *role, uint32_t qpn, uint64_t number);

/* --- report.c: said when the program ends ----------------------------------- */

void report_wrong(const char *what, const void *have, const void *want,
		  uint64_t length, uint64_t where);
void report_posted(enum kind kind);
void report_checked(enum kind kind, uint64_t bytes);
void report_problem(const char *what);

/* --- evict.c: where boxes are ----------------------------------------------- */

/** struct evictions - How often memory was taken away, or was locked. */
struct evictions {
	uint64_t taken, locked;
};

void *evict_memory(size_t bytes);
struct evictions evict_done(void);

/* --- hook.c ----------------------------------------------------------------- */

struct ibv_mr *real_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   int access);
int real_dereg_mr(struct ibv_mr *mr);

#endif
