/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* os.h: façade of os/: everything a NIC asks of its host, and the only place
 * that makes system calls. tests/simhost has the same façade over virtual time, a
 * virtual network and virtual pages; a test program links one or the other.
 *
 * Rules (design D8, D9, D13): no function here but
 * os_wait_in_verb() and os_event_wait() is a cancellation point, none uses more than 2 KiB of stack; errno is kept; every descriptor is CLOEXEC and
 * moved to a high number; nothing is written to standard output.
 * Unless it says otherwise a function may be called from any thread and
 * returns 0 or -errno.
 */
#ifndef NOPIN_OS_OS_H
#define NOPIN_OS_OS_H

#include "base/base.h"

#include <sys/uio.h>

struct os;

/**
 * struct os_config - What the environment asked for, already checked.
 * @addr:	NOPIN_ADDR: comma-separated addresses or interface names to
 *		offer, or NULL for all
 * @no_gso, @no_gro: refuse the feature as a kernel without it would
 * @pagers:	pager threads to start at most (0: no pagers, a page asked for
 *		never comes; for tests)
 */
struct os_config {
	const char *addr;
	bool no_gso, no_gro;
	unsigned pagers;
};

int os_open(struct os **out, const struct os_config *cfg);

/** os_close() - All threads of ours have ended; closes every descriptor. */
void os_close(struct os *os);

/** os_now() - Monotonic clock, ns. Never 0. */
uint64_t os_now(struct os *os);

/** os_random() - Kernel randomness. */
void os_random(struct os *os, void *buf, size_t len);

/**
 * os_memory() - NIC memory: zeroed, page-aligned, never pinned, freed by
 * os_close(). The @nic pointers of MOVE_SCATTER must lie in it (it is a memfd,
 * so that the kernel can copy from it to the application and say EFAULT).
 */
void *os_memory(struct os *os, size_t bytes);

/**
 * os_memory_limit() - Name the limit of the process that may be why memory is short.
 * @text:	of @size bytes, set: a phrase, terminated
 */
void os_memory_limit(char *text, size_t size);

/** os_memory_left() - Could @bytes more be mapped now, as far as limits go? */
bool os_memory_left(size_t bytes);

/** os_descriptor_limit() - Return how many descriptors the process may have. */
uint64_t os_descriptor_limit(void);

/**
 * os_prepare() - Open what threads of ours may need next. A descriptor that is opened
 * has the lowest free number of the program for a moment, which the program does not
 * expect of other threads than those that call verbs.
 * Context: a thread of the program, no lock held.
 */
void os_prepare(struct os *os);

/** os_prepare_due() - Was something used that os_prepare() had opened, since this was
 * asked last? Cheap. */
bool os_prepare_due(struct os *os);

/* --- addresses ---------------------------------------------------------- */

/**
 * struct os_addr - A local address that can be a GID.
 * @mtu:	of the interface, IP bytes
 * @up:		so is the interface
 */
struct os_addr {
	struct ipaddr ip;
	uint32_t ifindex;
	uint32_t mtu;
	uint8_t mac[6];
	bool up, loopback, link_local, default_route;
	char ifname[16];
};

/**
 * struct os_link - An interface.
 * @running:	packets can go out
 */
struct os_link {
	uint32_t ifindex;
	uint32_t mtu;
	uint8_t mac[6];
	bool up, running, loopback;
	char ifname[16];
};

/**
 * struct os_net - Interfaces, and those of their addresses that os_config.addr
 * allows, in the order of design D4: the default route's IPv4 address, other global
 * ones, link-local, loopback last; interfaces that are down last of all.
 */
struct os_net {
	unsigned naddrs, nlinks;
	struct os_addr *addr;
	struct os_link *link;
};

/**
 * os_net_read() - Read what there is now. To be freed, if nothing failed.
 * Return: 0; -errno, @net is empty then. Context: takes some 100 us.
 */
int os_net_read(struct os *os, struct os_net *net);
void os_net_free(struct os_net *net);

/**
 * os_net_watch() - From now on os_wait() of the background thread hears of changes.
 * Return: 0; -errno: the host does not tell us.
 */
int os_net_watch(struct os *os);
/** os_net_changed() - Did it, since the last call? Any thread. */
bool os_net_changed(struct os *os);

/**
 * os_addr_check() - Does everything in os_config.addr name an address or an
 * interface that is up?
 * @valid: if not, set to what could be named, with blanks between; cut if need
 *	be
 * Return: 0; -EINVAL.
 */
int os_addr_check(struct os *os, char *valid, size_t size);

/* --- datagrams ---------------------------------------------------------- */

enum {
	OS_PORTS_MAX = 64, /* receive ports of one NIC */
	OS_SEGS_MAX = 64, /* segments of one send, Linux < 6.9 */
	OS_SEND_MAX = 65000, /* bytes of one send */
	OS_IOV_MAX = 256, /* pieces of one send or receive */
};

/**
 * os_port_open() - Bind one more UDP port, on all addresses, IPv4 and IPv6.
 * @want:	port number, or 0 for a random free one in 49152..65535
 * Return: index of the port in [0, OS_PORTS_MAX), or -EADDRINUSE, -EMFILE, ...
 */
int os_port_open(struct os *os, uint16_t want, uint16_t *port);
void os_port_close(struct os *os, int index);

/** os_port_marks() - From now on os_rx.mark is known of what comes to that port. */
void os_port_marks(struct os *os, int index);

/** os_rcvbuf() - Bytes that the kernel lets one port hold (real SO_RCVBUF). */
size_t os_rcvbuf(struct os *os);

/**
 * struct os_rx - One receive: @len bytes, cut every @seg bytes (the last
 * segment may be shorter); @seg == @len for a single datagram.
 * @mark:	of the IP header; all zero: not known
 * @kernel_drops: what SO_RXQ_OVFL said, ever, all ports together
 * @all: nothing there means: at no port; else only at the one that spoke last
 */
struct os_rx {
	struct endpoint src;
	struct ipaddr dst;
	struct ip_mark mark;
	uint16_t dport;
	uint32_t len, seg;
	uint64_t kernel_drops;
	int port; /* index, in: try this one only (-1: all); out: which */
	bool all;
};

enum os_recv_mode { OS_TAKE, OS_PEEK };

/**
 * os_recv() - Take, or look at, what came in; never blocks.
 * OS_PEEK fills @iov, tells the whole length, and leaves the packet; a
 * following OS_TAKE with rx->port as it was returned gets the same packet. What
 * does not fit into the @iov of an OS_TAKE is lost and not in rx->len.
 * Of several ports that which spoke last is looked at most often, the others
 * after a few times in vain.
 * Return: 1; 0 when there is nothing; -EFAULT when a piece of @iov could not
 * be written (the whole burst is lost then); -EBADF: the program closed our
 * descriptors.
 * Context: one thread at a time (the receive token).
 */
int os_recv(struct os *os, struct iovec *iov, unsigned n, struct os_rx *rx,
	    enum os_recv_mode mode);

/**
 * os_recv_error() - Next ICMP error that came for something we sent.
 * Return: 1: @dst was unreachable (@err: ECONNREFUSED, EMSGSIZE with @mtu, ..);
 * 0: none. Context: costs nothing unless a call met an error; call it as often
 * as os_recv(), since unread errors take up receive buffer and wake os_wait().
 */
int os_recv_error(struct os *os, struct endpoint *dst, int *err, uint32_t *mtu);

/**
 * struct os_tx - One send: pieces that are cut every @seg bytes (0: do not).
 * @src:	source address, one of ours
 * @port:	index of the port to send from
 * @line:	from os_connect() to @dst, with this @mark; or 0
 */
struct os_tx {
	struct endpoint dst;
	struct ipaddr src;
	struct ip_mark mark;
	int port, line;
	struct iovec *iov;
	unsigned niov;
	uint32_t seg;
};

/**
 * os_connect() - A quicker way from @src to @dst, for sending only. What goes
 * that way has another source port, and the kernel numbers IPv4 packets as it
 * likes: not for standard peers.
 * Return: for os_tx.line, or 0: none. Context: any; does not block.
 */
int os_connect(struct os *os, const struct ipaddr *src,
	       const struct endpoint *dst, struct ip_mark mark);
void os_disconnect(struct os *os, int line);

/**
 * os_send() - Send; pieces may point to application memory.
 * Where GSO is refused the segments are sent one by one.
 * Return: 0; -EFAULT: nothing was sent; -EAGAIN: socket full, nothing sent;
 * -EMSGSIZE: larger than the path MTU; -ECONNREFUSED, -ENETUNREACH, ...
 */
int os_send(struct os *os, const struct os_tx *tx);

/** os_gso() - Does one send make several packets here (as probed)? */
bool os_gso(struct os *os);

/** os_gro() - Are bursts received whole here (as probed)? */
bool os_gro(struct os *os);

/* --- application memory ------------------------------------------------- */

/**
 * os_moves() - Execute copies, from the first that is not done; may block as
 * long as a page takes; never raises a signal. Stops at the first failure, see
 * struct moves; called again it goes on with the one that failed.
 * Context: any thread, no lock held.
 */
void os_moves(struct os *os, struct moves *mv);

/**
 * os_drop() - Only the first half of the MOVE_OVERWRITEs in @mv: for who writes
 * there by receiving. That a page cannot be dropped costs time, no more.
 */
void os_drop(struct os *os, const struct moves *mv);

/** struct os_usage - Faults of a thread, and how often it went to sleep. */
struct os_usage {
	uint64_t minflt, majflt, sleeps;
};

/** os_usage() - Of the calling thread so far. */
struct os_usage os_usage(void);

/**
 * What a page is backed by decides how its fault may be answered; the pager
 * finds out and tells with each answer.
 * BACKING_CHEAP: a fault in [cheap_start, cheap_end) needs no I/O and cannot
 * block (never-touched private anonymous memory where there is no swap, no
 * memory limit near, no userfaultfd, no huge pages).
 */
enum os_backing { BACKING_UNKNOWN, BACKING_CHEAP, BACKING_SLOW, BACKING_NUM };

enum { OS_PAGES_SLOW_NS = 200000 };

/**
 * struct os_page_req - Make [addr, addr + bytes) present, writable if so.
 * @addr, @bytes: whole pages
 * @probe:	only say what is there, bring in nothing
 * @whole:	answer when all is there; else after one page or more, when they
 *		took OS_PAGES_SLOW_NS
 * @look:	only say whether the first page is plain, bring in nothing
 */
struct os_page_req {
	uint64_t id;
	uint64_t addr, bytes;
	bool write, probe, whole, look;
};

/**
 * struct os_page_done - Answer to a request.
 * @bytes:	from the start of the request that are ready now; what is behind
 *		failed with @error (-EFAULT: protection or no mapping or SIGBUS),
 *		or was not tried (0)
 * @writable:	ready for writing too
 * @absent:	some page had to be faulted in, or made writable
 * @by_hand:	the kernel refused to, a load or store in user mode could
 * @service_ns: what the faults took
 * @plain_start, @plain_end: if @look: range around the first page in which a page
 *		that is dropped is an empty page: private anonymous memory in small
 *		pages, writable, not locked, without userfaultfd; or equal
 * @early:	if @look: nothing can be said yet, soon it can
 */
struct os_page_done {
	uint64_t id;
	uint64_t addr;
	uint64_t bytes;
	int error;
	bool writable;
	bool major, absent, by_hand, early;
	uint64_t service_ns;
	enum os_backing backing;
	uint64_t cheap_start, cheap_end;
	uint64_t plain_start, plain_end;
};

/**
 * os_page_ask() - Hand a request to the pagers, who bring pages in without
 * writing to them, from user mode if need be. Never blocks. Asking and reaping is
 * for one thread at a time.
 * Return: 0, or -EAGAIN when too many are out (ask again after a reap).
 */
int os_page_ask(struct os *os, const struct os_page_req *req);

/**
 * os_page_forget() - The mapping at [addr, addr + len) may be another than before: what
 * is known of how its pages come and go is forgotten. Context: any thread.
 */
void os_page_forget(struct os *os, uint64_t addr, uint64_t len);

/**
 * os_page_now() - As a pager would, but here and now, however long it takes.
 * Return: 0, or -EFAULT. Context: only where the engine is meant to sleep in
 * faults (strategy block), or a program's thread without a lock.
 */
int os_page_now(struct os *os, uint64_t addr, uint64_t bytes, bool write);

/** os_page_reap() - Take up to @max answers. */
unsigned os_page_reap(struct os *os, struct os_page_done *out, unsigned max);

/** os_pages_waiting() - Is there an answer to reap? No system call. */
bool os_pages_waiting(struct os *os);

/**
 * os_fresh_after() - Readiness learned before this time may be outdated
 * (now - 10 ms; longer ago while the kernel's counters say that nothing was
 * reclaimed, later when they just said that something was).
 * Context: cheap, no system call.
 */
uint64_t os_fresh_after(struct os *os, uint64_t now_ns);

/**
 * os_pin() - Lock [addr, addr + len), whole pages of it, into RAM: all or nothing.
 * @fetch:	bring in what is absent; else it is locked when it comes, and this
 *		waits for no page
 * Return: 0; -ENOMEM: more than may be locked; -EFAULT: not all of it is mapped.
 */
int os_pin(struct os *os, uint64_t addr, uint64_t len, bool fetch);

/**
 * os_unpin() - Return: 0; -EFAULT: not all of it is mapped (any more); the rest
 * is unlocked nevertheless.
 */
int os_unpin(struct os *os, uint64_t addr, uint64_t len);

/**
 * os_pinned() - Is any of [*addr, *addr + *len) locked, by whomever? Meant for
 * memory that is about to be locked: pages may be aged by the question.
 * Return: true: the first such range is in @addr, @len.
 */
bool os_pinned(struct os *os, uint64_t *addr, uint64_t *len);

/** os_mapped() - Return: 0; -EFAULT: not all of [addr, addr + len) is mapped. */
int os_mapped(struct os *os, uint64_t addr, uint64_t len);

/*
 * RECREATE: new memory with the same content. TO_FILE: a shared mapping of a new
 * file at @path. TO_NODE: pages on the NUMA node @node, now and if it has room.
 */
enum os_move_to { OS_MOVE_RECREATE, OS_MOVE_TO_FILE, OS_MOVE_TO_NODE };

/** struct os_move_req - Of all pages that [addr, addr + len) touches. */
struct os_move_req {
	enum os_move_to to;
	uint64_t addr, len;
	const char *path;
	unsigned node;
};

/**
 * os_move() - Give memory another backing at the same address, while the threads
 * of the process may use it: they wait where they touch it, and lose nothing.
 * @copied:	set: bytes that had a content (not with TO_NODE)
 * Return: 0; nothing has changed after: -EFAULT: a part is not mapped;
 * -EOPNOTSUPP: it is not private, anonymous, writable memory in small pages that
 * are not locked, or it is the caller's stack; -EPERM: the kernel does not let us
 * stop those who touch it (there must be a userfaultfd that stops system calls,
 * too); -EEXIST and others of open(2); -ENOSPC: @path; -ENODEV: @node; -ENOMEM.
 * Context: a thread of ours, no lock held. Takes as long as the copy.
 */
int os_move(struct os *os, const struct os_move_req *req, uint64_t *copied);

/* --- waiting, threads, names -------------------------------------------- */

/**
 * struct os_signals - Of a thread of the program in a verb that may sleep; begins
 * as {.blocked = false}.
 * @mask:	signals that the program blocks there, bit n - 1 for signal n; known while
 *		@blocked
 */
struct os_signals {
	uint64_t mask;
	bool blocked;
};

/** os_signals_block() - Until os_signals_restore() only os_wait_in_verb() lets
 * them in. */
void os_signals_block(struct os_signals *s);
void os_signals_restore(struct os_signals *s);

/**
 * os_signals_differ() - Are handlers installed that are to end a wait, and others
 * with SA_RESTART? Then only os_event_wait() does what each wants.
 */
bool os_signals_differ(const struct os_signals *s);

/* EVENT: nothing but @extra_fd. */
enum os_wait_for { OS_WAIT_TIMER, OS_WAIT_PACKETS, OS_WAIT_EVENT };

/**
 * os_wait() - Sleep until a page answer, a kick, the deadline or, if asked, a
 * packet. @extra_fd (or -1): also until it is readable, and not for a kick.
 * Context: threads of ours; several may wait at once.
 */
void os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
	     int extra_fd);

/**
 * os_wait_in_verb() - The same, of a thread of the program. A cancellation point.
 * @s:		blocked: are let in, also if the deadline has passed
 * Return: 0; -EINTR: a handler without SA_RESTART ran.
 */
int os_wait_in_verb(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int fd, const struct os_signals *s);

/**
 * os_event_wait() - Sleep until @fd, an event, is set, which it stays; or for no
 * reason. Signals are as in read(2).
 * @s:		restored
 * Return: 0; -EINTR. Context: a thread of the program; a cancellation point.
 */
int os_event_wait(int fd, struct os_signals *s);

/** os_doze() - Sleep until @event_fd (or -1) is set, which it clears, or
 * @deadline_ns. */
void os_doze(struct os *os, int event_fd, uint64_t deadline_ns);

/** os_kick() - Wake the background thread out of os_wait(). */
void os_kick(struct os *os);
/** os_closed() - Did os_wait() find that the program closed our descriptors? */
bool os_closed(const struct os *os);

/** os_event_open() - A pollable descriptor; starts unreadable. */
int os_event_open(void);
/** os_event_own() - One that no program is told of: out of its way. */
int os_event_own(void);
void os_event_set(int fd);
/** os_event_clear() - Return: true if it was set. */
bool os_event_clear(int fd);
void os_event_close(int fd);
/** os_event_nonblock() - Did the program set O_NONBLOCK on it? */
bool os_event_nonblock(int fd);

/** os_log() - Write a finished line to standard error. */
void os_log(const char *line, size_t len);

struct os_thread;
/** os_thread_start() - A thread as design D13 says: named, signals blocked. */
int os_thread_start(struct os *os, struct os_thread **out, const char *name,
		    void (*fn)(void *arg), void *arg);
void os_thread_join(struct os_thread *t);

/** os_self() - Name the thread that runs, in its process; not 0. */
uintptr_t os_self(void);

/** os_relax() - A moment's pause in a spin. */
void os_relax(void);

/**
 * os_claim() - Become the holder of a name in this network namespace (an
 * abstract unix socket; the kernel frees it when the process dies).
 * Return: a number for os_unclaim() and os_claim_share(); -EADDRINUSE while another
 * process is the holder. Context: a thread of ours that never blocks does it.
 */
int os_claim(struct os *os, const char *name);
void os_unclaim(struct os *os, int claim);

/**
 * os_claim_share() - From now on each process that asks the holder of the name
 * @claim is told @secret, if it is of our user or root's, or we are root's; every 5 ms
 * at most.
 * Return: 0, or -errno. Context: one name of a NIC.
 */
int os_claim_share(struct os *os, int claim, uint64_t secret);

/** os_claim_unshare() - For those that were told the holder has ended. */
void os_claim_unshare(struct os *os);

/** struct os_holder - Of a name, as our process and user namespaces see it. */
struct os_holder {
	int32_t pid;
	uint32_t uid;
};

/**
 * os_holder_ask() - Ask the holder of @name for its secret, one at a time. Never
 * blocks.
 * @who: set, of a stranger too
 * Return: a descriptor; -EPERM: it is neither our user's nor root's; -ECONNREFUSED:
 * there is none, or it does not share; -EAGAIN: too many ask.
 */
int os_holder_ask(struct os *os, const char *name, struct os_holder *who);

/**
 * os_holder_says() - Read what it has said since. Never blocks.
 * Return: 1: its @secret; 0: nothing, and it lives; -EPIPE: it has ended, or does
 * not want us.
 */
int os_holder_says(struct os *os, int fd, uint64_t *secret);

/** os_holder_wait() - Sleep until it says something, or ends, or it is @until_ns. */
void os_holder_wait(struct os *os, int fd, uint64_t until_ns);
void os_holder_leave(struct os *os, int fd);
/** os_holder_spoke() - Has the background thread's os_wait() seen that it did, or
 * ended, since this was asked last? */
bool os_holder_spoke(struct os *os);

/**
 * os_ctl_open() - Let programs of our user and root ask questions: listen under
 * a name with our process id. Who asks wakes the background thread.
 * Return: 0; -EADDRINUSE: another NIC of this process does. Context: a thread of the
 * program's.
 */
int os_ctl_open(struct os *os);

/**
 * os_ctl_take() - Read what somebody asks, if anything was heard of it.
 * Never blocks, and lets nobody in more often than every 50 ms.
 * @buf:	@size bytes, not terminated
 * Return: bytes > 0: os_ctl_answer() is due. -EAGAIN: nobody, or not now.
 * -EPERM, -EMSGSIZE: somebody who may not, or no request: has been told. Whoever was
 * let in and says nothing stays as long as nobody else wants to be.
 * Context: background thread.
 */
int os_ctl_take(struct os *os, char *buf, size_t size);

/**
 * os_ctl_answer() - Say @error; or, if that is NULL, hand @text over as a file in
 * memory, so that a slow reader keeps nobody waiting.
 */
int os_ctl_answer(struct os *os, const char *error, const char *text,
		  size_t len);

enum { OS_NOTES_MAX = 256, OS_NOTE_BYTES = 192 };

/** struct os_note - Of the process @pid. What is in @bytes anybody may have written. */
struct os_note {
	int32_t pid;
	char name[20];
	uint8_t bytes[OS_NOTE_BYTES];
};

/**
 * os_board_open() - Join the board, where the processes of our user pin up notes for
 * each other. None of these functions waits for another process, whatever it does.
 * @dir:	where it is; NULL: in shared memory
 * Return: 0; -EBUSY: another NIC of this process has; -EUSERS: no room; -EPERM: the
 * file there is not ours alone; -EBADMSG: it is something else; -ENOENT, ...
 * Context: this and the others: one thread at a time.
 */
int os_board_open(struct os *os, const char *dir);
void os_board_close(struct os *os);

/**
 * os_board_post() - Pin up a note of OS_NOTE_BYTES, in place of the one before.
 * Return: 0; -EBADF: the board is lost (the program closed it, or somebody broke it).
 */
int os_board_post(struct os *os, const void *note);

/**
 * os_board_read() - Notes of the other processes that are alive.
 * @out:	of OS_NOTES_MAX; good until the next call
 * Return: how many; -EBADF: as os_board_post().
 */
int os_board_read(struct os *os, const struct os_note **out);

/** os_board_mine() - Our own, as it was posted last. */
const struct os_note *os_board_mine(struct os *os);

/** os_child() - Are we a fork()ed child of the process that opened @os (or NULL)? */
bool os_child(const struct os *os);

/** os_forks() - Count the forks of this process since os_open(). */
uint64_t os_forks(const struct os *os);

/** os_forking() - Is it in fork()? Faults wait until it is not. */
bool os_forking(const struct os *os);

/**
 * os_step_begin() - Hold off forks up to os_step_end(): what is found out about pages
 * from here on may be used until then without asking for forks again. One that begins
 * meanwhile waits for the end, 5 ms at most.
 * Return: to be handed to os_step_end(). false: a fork is on, and does not wait.
 */
bool os_step_begin(void);
void os_step_end(bool begun);

#endif
