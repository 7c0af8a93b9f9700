/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.h: what the tests on the real host share: processes, reliable
 * connections between them, pages that take a while, and the NIC's counters.
 * They are ordinary verbs programs: nothing in them calls into nopin, and each
 * process has a NIC of its own, so they fork before they open the device.
 *
 * Whatever goes wrong ends the process with 1 and says where; a process whose
 * parent ended ends too.
 */
#ifndef NOPIN_TESTS_HOST_HOST_H
#define NOPIN_TESTS_HOST_HOST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MS	      UINT64_C(1000000) /* in ns */
#define SECOND	      (1000 * MS)

enum { PAGE = 4096, DEPTH = 64, INLINE = 64, EXIT_SKIP = 77 };

#define REQUIRE(c)                                                             \
	do {                                                                   \
		if (!(c))                                                      \
			host_fail(__FILE__, __LINE__, #c);                     \
	} while (0)

/* REQUIRE_LE(a, b): a <= b; prints both. */
#define REQUIRE_LE(a, b)                                                       \
	do {                                                                   \
		const uint64_t left_ = (a), right_ = (b);                      \
		if (left_ > right_)                                            \
			host_fail_two(__FILE__, __LINE__, #a, left_,           \
				      "more than " #b, right_);                \
	} while (0)

/* REQUIRE_EQ(a, b): a == b; prints both. */
#define REQUIRE_EQ(a, b)                                                       \
	do {                                                                   \
		const uint64_t left_ = (a), right_ = (b);                      \
		if (left_ != right_)                                           \
			host_fail_two(__FILE__, __LINE__, #a, left_,           \
				      "not " #b, right_);                      \
	} while (0)

__attribute__((noreturn)) void host_fail(const char *file, int line,
					 const char *what);
__attribute__((noreturn)) void host_fail_two(const char *file, int line,
					     const char *a, uint64_t va,
					     const char *b, uint64_t vb);
/** host_skip() - Print why this cannot be tested here and exit with 77. */
__attribute__((noreturn)) void host_skip(const char *why);

/* --- host.c: processes ------------------------------------------------------- */

uint64_t host_now(void);
void host_sleep(uint64_t ns);

/** host_start() - First of all: the environment (NOPIN_ADDR: lo, if it does not say). */
void host_start(void);

/**
 * host_fork() - A child that runs @role and exits with 0. Before host_open().
 * Return: a socket whose other end is @role's argument.
 */
int host_fork(void (*role)(int fd));

/** host_join() - All children ended, and well; judges host_no_retries(). */
void host_join(void);
/** host_retried(), host_off_cpu() - For that: what a process retried, and why it may. */
void host_retried(const char *what);
void host_off_cpu(void);

/**
 * host_tool() - What starts the program at @path also for an ordinary user, who may
 * not reach it where it lies (a clone below /root). Before host_user(); it is open in
 * what is started from here. Return: a path for this process and its children.
 */
const char *host_tool(const char *path);

/**
 * host_own_network() - A network namespace of our own, before anything else; an ordinary
 * user gets one, too, with a user namespace around it, or skips.
 */
void host_own_network(void);

/** host_enter() - Go on in the network namespace @name of ip(8), before host_open(). */
void host_enter(const char *name);

/** host_user() - Become an ordinary user, if we are root. */
void host_user(void);

/** host_say(), host_hear() - A message of 8 bytes. */
void host_say(int fd, uint64_t what);
uint64_t host_hear(int fd);

/** host_quantile() - Sorts @v. @q: 0..1 */
uint64_t host_quantile(uint64_t *v, size_t n, double q);

/** host_random() - The next number of a fixed row. */
uint64_t host_random(void);

/** host_fill(), host_check() - @n bytes at @p that no other @round has there. */
void host_fill(uint8_t *p, size_t n, uint64_t round);
void host_check(const uint8_t *p, size_t n, uint64_t round);

/** host_resident() - How many pages of @base are in RAM. */
size_t host_resident(void *base, size_t bytes);

/** host_map() - Fresh anonymous pages, 4 KiB each; @at: where, or NULL. */
void *host_map(void *at, size_t bytes);

/** host_shared() - Zeroes that are the same memory in processes of host_fork(). */
void *host_shared(size_t bytes);

/* --- dev.c: the device and connections --------------------------------------- */

/**
 * struct host - The first device of a process, with one PD and one CQ.
 * @gid_index:	of its first GID that is an IPv4 address
 * @nopin:	it is ours: has counters
 */
struct host {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	enum ibv_mtu mtu;
	union ibv_gid gid;
	uint8_t gid_index;
	bool nopin;
};

/**
 * struct link - One end of a connection.
 * @va, @rkey:	the region of the other side that it told us of
 */
struct link {
	struct host *h;
	struct ibv_qp *qp;
	uint64_t va;
	uint32_t rkey;
};

/**
 * struct link_card - What one end tells the other.
 * @told:	for those who put it where both can see it
 */
struct link_card {
	union ibv_gid gid;
	uint64_t va;
	uint32_t qpn, rkey, psn;
	bool told;
};

/** link_timeout, link_retries, link_rnr_retries - Of links that are opened from now
 * on. */
extern uint8_t link_timeout, link_retries, link_rnr_retries;
/** link_psn_ahead - And by so many their PSNs are ahead of what their peer expects. */
extern uint32_t link_psn_ahead;
/** link_srq - And they take their receives from this queue, unless it is NULL. */
extern struct ibv_srq *link_srq;

void host_open(struct host *h);

/**
 * host_close() - Everything of the device but its MRs and QPs, which must be
 * gone; then the counters of a nopin are known, and VmLck must be what it was.
 */
void host_close(struct host *h);

/** host_counter() - After host_close(). */
uint64_t host_counter(const char *name);

/**
 * host_no_retries() - After host_close(): nothing was said or sent twice. host_join()
 * judges it: a thread of any process may have had no CPU for so long (200 ms) that what
 * it had in hand was taken for lost (token_stale). Then a retry is right.
 */
void host_no_retries(void);

/**
 * host_no_slow_move() - After host_close(): no move waited for a page that takes
 * @page_ns, however the threads ran. Code and data of the library that the system had
 * dropped are major faults of a move, too: they come from the disk in less than a tenth
 * of that.
 */
void host_no_slow_move(uint64_t page_ns);

struct ibv_mr *host_reg(struct host *h, void *addr, size_t bytes);
void host_dereg(struct ibv_mr *mr);

/** link_open() - A QP to the process at @fd, which does the same. @mr: to tell
 * it of, or NULL.
 */
void link_open(struct link *l, struct host *h, int fd, const struct ibv_mr *mr);
/** link_make(), link_connect() - Its two halves: a QP and its @card; and the connection
 * with whose is @peer. */
void link_make(struct link *l, struct host *h, const struct ibv_mr *mr,
	       struct link_card *card);
void link_connect(struct link *l, const struct link_card *mine,
		  const struct link_card *peer);
void link_close(struct link *l);

/** host_say_mr(), link_hear_mr() - What @mr is, for who works on it from now on. */
void host_say_mr(int fd, const struct ibv_mr *mr);
void link_hear_mr(struct link *l, int fd);

/** link_post() - A signaled request; @len at @addr of @mr (NULL: inline). */
void link_post(struct link *l, enum ibv_wr_opcode op, const struct ibv_mr *mr,
	       const void *addr, uint32_t len, uint64_t offset);
void link_recv(struct link *l, const struct ibv_mr *mr, void *addr,
	       uint32_t len);

/** host_poll() - Return: up to @n good completions. */
unsigned host_poll(struct host *h, unsigned n);
/**
 * host_rest() - Let others run after a look that found nothing: yield, and sleep between
 * looks once there were thousands, so that a wait for seconds costs no CPU.
 * @vain:	counts such looks; 0 at first
 */
void host_rest(unsigned *vain);
/** host_wait() - Poll until @n good completions came, and host_rest() in between. */
void host_wait(struct host *h, unsigned n);
/** host_status() - Wait for one completion. Return: its status. */
enum ibv_wc_status host_status(struct host *h);

/* --- slow.c: pages that take a while ------------------------------------------ */

/**
 * struct slow - A range whose missing pages are brought in by threads of ours.
 * @faults:	pages that somebody asked for (atomic)
 * @brought_ns:	when the last of them came (atomic)
 * @hang:	none is brought (atomic)
 * @fetch:	called first, if set; may do verbs
 */
struct slow {
	int uffd;
	uint8_t *base, *backing;
	size_t bytes;
	uint64_t delay_ns;
	uint64_t faults;
	uint64_t brought_ns;
	bool hang;
	void (*fetch)(struct slow *s, size_t offset);
};

/** enum slow_kind - USER: userfaultfd that only serves user mode; no root. */
enum slow_kind { SLOW_KERNEL, SLOW_USER };

/**
 * slow_open() - From now on each missing page of [base, base + bytes) comes
 * after @delay_ns. Stays until the process ends, and so has @s to.
 */
void slow_open(struct slow *s, enum slow_kind kind, void *base, size_t bytes,
	       uint64_t delay_ns);

/** slow_evict() - The range goes and comes back with the same content. Nobody
 * may write to it meanwhile.
 */
void slow_evict(struct slow *s, size_t offset, size_t bytes);

/** slow_hang() - No page comes until slow_release(), which brings all of them. */
void slow_hang(struct slow *s);
void slow_release(struct slow *s);

/** slow_asked() - Wait until @n pages were asked for since slow_open(). */
void slow_asked(struct slow *s, uint64_t n);

/* --- swap.c: swap of our own (root) -------------------------------------------- */

/**
 * swap_run() - Run @test with @bytes of swap, which goes however it ends.
 * Before host_open(). Skips where no swap can be made.
 */
void swap_run(size_t bytes, void (*test)(void));

/**
 * swap_push() - Let the kernel swap out what it can of the pages of @base, from
 * each CPU that the thread may run on; after it the thread may be on any again.
 * Return: false: the kernel knows no MADV_PAGEOUT.
 */
bool swap_push(void *base, size_t bytes);

/** swap_pageout() - The same, and all of them must go. */
void swap_pageout(void *base, size_t bytes);

/** swap_reads() - Pages that the kernel has swapped in since it started. */
uint64_t swap_reads(void);

#endif
