/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* impl.h: what the files of the real host share among themselves. */
#ifndef NOPIN_OS_IMPL_H
#define NOPIN_OS_IMPL_H

#include "os/copy.h"
#include "os/names.h"
#include "os/net.h"
#include "os/pages.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/wait.h"

#include <pthread.h>
#include <signal.h>

struct board;
struct ucred;
struct pagers;

enum {
	OS_REGIONS_MAX = 64, /* os_memory() calls of one NIC */
	OS_LANES_MAX = 16, /* gathers at once before the slower way is taken */
	OS_LANE_BYTES = 65536,
	OS_STRIPES = 64, /* locks of the atomics, power of two */
	OS_GUESTS_MAX = 128, /* processes that go by the holder of a name */
	OS_SPARES = 8, /* sockets to ask the holders of names with */
	OS_LINE_SPARES = 4, /* and to connect, of either family */
};

/**
 * struct os_port - One receive socket.
 * @fd:		-1 when the index is free
 * @ovfl:	last SO_RXQ_OVFL value
 */
struct os_port {
	int fd;
	uint16_t port;
	uint32_t ovfl;
};

/** struct os_guest - A process that was told our secret. */
struct os_guest {
	int fd;
	uid_t uid;
};

/**
 * struct os_region - What one os_memory() call made.
 * @file:	it is part of the memfd, from @off on
 */
struct os_region {
	uint8_t *base;
	uint64_t bytes, off;
	bool file;
};

/**
 * struct os_lane - A small memfd and its mapping, used by one copy at a time.
 * @buf: NULL until it was first needed
 */
struct os_lane {
	int fd;
	uint8_t *buf;
};

enum { UDP_VAIN = 8 }; /* looks at one port in vain while others may wait */

/** struct fd_kept - Zero at first. @dev, @ino: what @fd was when it was opened */
struct fd_kept {
	bool kept;
	int fd;
	uint64_t dev, ino;
};

/**
 * struct os_door - The thread that lets others in (door.c).
 * @thread:	NULL: none, so what is to be done there is done by who wants it
 * @apart:	its descriptors are its own (the thread's)
 * @lock:	of callers, one of which has written @fn and @arg and waits for @state
 */
struct os_door {
	struct os_thread *thread;
	struct fd_kept wake;
	bool apart;
	bool stop; /* atomic */
	pthread_mutex_t lock;
	uint32_t state; /* atomic; a futex */
	int (*fn)(struct os *os, void *arg);
	void *arg;
	int ret;
};

/**
 * struct os - One NIC's host.
 * @alive:	a page of its own, 1 here and wiped to 0 in a forked child
 * @family:	AF_INET6 (both families) or AF_INET
 * @ready:	bit per port that had packets when last looked
 * @errors:	bit per port that reported an error os_recv_error() has not read
 * @lanes_busy:	bit per lane in use
 */
struct os {
	/* written by os_open() only */
	char *addr_filter;
	bool no_gro, gro, gso;
	int family;
	int pid;
	uint64_t *alive;
	uint64_t forks_at_open;
	int memfd;
	int kick_fd, ports_ep;
	struct pagers *pagers;
	struct board *board; /* or NULL */

	/* control path, under @lock; regions are published by @nregions */
	pthread_mutex_t lock;
	struct os_region region[OS_REGIONS_MAX];
	unsigned nregions;
	uint64_t mem_bytes;
	size_t rcvbuf;

	/* receivers and senders; ports come under @lock while others use
	 * those that are there
	 */
	struct os_port port[OS_PORTS_MAX];
	unsigned nports;
	int only; /* the index in use if nports == 1 */
	unsigned next; /* where the next look begins */
	unsigned streak; /* receives since the last look at all ports */
	unsigned vain; /* looks at @hot alone since then */
	int hot; /* the port that spoke last */
	uint64_t ready, errors;
	uint64_t drops;

	/* whoever reads addresses, under @ask_lock */
	pthread_mutex_t ask_lock;
	bool ask_again; /* so what is asked by stays open */
	struct fd_kept ask_rtnl, ask_v4, ask_v6;

	/* background and standby thread; atomic */
	bool closed; /* the program closed descriptors of ours */
	int net_fd; /* or -1: nobody tells of changes */
	bool net_changed; /* says @net_fd, since os_net_changed() */
	uint64_t net_dev, net_ino; /* what @net_fd is; written before it */

	/* the thread of the door, and whoever calls it; descriptors are numbers of
	 * its own */
	struct os_door door;
	int ctl_fd; /* or -1 */
	int ctl_client; /* who was let in, or -1 */
	uint64_t ctl_after_ns; /* nobody is let in before */
	bool ctl_asked; /* atomic */
	int claim_fd; /* the name that we hold and share, or -1 */
	uint64_t claim_secret;
	uint64_t claim_after_ns; /* nobody is told before */
	unsigned guests;
	struct os_guest guest[OS_GUESTS_MAX];

	/* under @lock: sockets that wait to be used, as whoever opens one later
	 * takes the program's lowest number */
	struct fd_kept port_spare, name_spare[OS_SPARES];
	struct fd_kept line_spare[2][OS_LINE_SPARES]; /* IPv4, IPv6 */
	bool spare_used; /* since os_prepare_due(); atomic */

	/* whoever has the engine lock; @holder_fd is atomic */
	int holder_fd; /* to that of a name that we do not hold, or -1 */
	uint64_t holder_dev, holder_ino; /* what it is */
	bool holder_spoke; /* atomic */

	/* movers; atomic, but for what a lane is to that which is busy with it */
	uint32_t lanes_busy;
	unsigned lanes_most; /* that were busy at once */
	struct os_lane lane[OS_LANES_MAX];
	pthread_mutex_t stripe[OS_STRIPES];
	uint8_t bin[512]; /* nobody reads it; movers write it at once */
};

/* fd.c */

/** fd_high() - Move @fd (or pass -errno on) out of the program's way. */
int fd_high(int fd);

/** fd_spare() - May the program lack descriptors that we keep in case they are needed? */
bool fd_spare(void);

/** fd_event() - fd_high() for what a program may hand to select(2). */
int fd_event(int fd);

/** fd_is() - Is @fd open, and what @dev and @ino say? The program may have closed it. */
bool fd_is(int fd, uint64_t dev, uint64_t ino);

/**
 * fd_kept() - Open by @open(@arg), or return the one that was kept.
 * @keep:	it stays open until fd_drop(): whoever opens takes the program's lowest
 *		number for a moment, so this is done once, on a thread of the program's
 * Return: a descriptor, for fd_unkept(), or what @open() returned. Callers take turns.
 */
int fd_kept(struct fd_kept *k, bool keep, int (*open)(int arg), int arg);
/** fd_unkept() - Close what fd_kept() returned, unless it is kept. */
void fd_unkept(const struct fd_kept *k, int fd);
void fd_drop(struct fd_kept *k);

/** fd_keep() - Keep @fd, which is open, in @k. Return: false: the kernel does not say
 * what it is. */
bool fd_keep(struct fd_kept *k, int fd);
/** fd_take() - Return: what was kept, the caller's now; -1: none. */
int fd_take(struct fd_kept *k);

/** fd_close() - Close if it is one; -1 and -errno are left alone. */
void fd_close(int fd);

/** fd_memory() - A file in memory: a memfd, or where that is refused an
 * unlinked file in /dev/shm or /tmp. Return: descriptor or -errno.
 */
int fd_memory(const char *name, uint64_t bytes);

/** fd_rlimit() - The soft limit RLIMIT_@what; @unknown if it cannot be asked for. */
uint64_t fd_rlimit(int what, uint64_t unknown);

/** fd_may_have() - May a file be written up to @bytes? (RLIMIT_FSIZE) */
bool fd_may_have(uint64_t bytes);

/** fd_resize() - ftruncate(2) of an empty file, or to more. Return: 0; -EFBIG: the
 * program set itself a limit; -errno. Never raises SIGXFSZ. */
int fd_resize(int fd, uint64_t bytes);

/* probe.c */

/** probe_calls() - Return: 0; -errno: one that is needed is denied, as was logged. */
int probe_calls(void);

/* file.c */

/**
 * file_borrow() - A descriptor of a file of /proc or /sys, to read with pread()
 * and to hand to file_return(). A program that closes all descriptors may close it
 * and get its number for something else: read() would take what is in there,
 * pread() of a socket or pipe fails.
 * Return: the descriptor, or -errno.
 */
int file_borrow(const char *path);

/** file_share() - The same, for who does not mind that others read it meanwhile. */
int file_share(const char *path);

/** file_return() - @fd is of one of these; -errno is left alone. */
void file_return(int fd);

/**
 * files_begin() - From now on what was borrowed stays open for the next who wants
 * it, until as many files_end(). Context: a thread of the program's, which sees
 * its lowest free numbers taken for a moment.
 */
void files_begin(void);
void files_end(void);

/* What fork_forget_parent() calls, before anything else of os/ runs in a child. */
void board_in_child(void);
void files_in_child(void);
void fresh_in_child(void);
void populate_in_child(void);
void touch_in_child(void);

/* fork.c */

/**
 * fork_init() - Before anything else of os/: in a child, forget what its parent had.
 * Return: 0 or -ENOMEM.
 */
int fork_init(void);
uint64_t fork_count(void);
bool fork_in_progress(void);

/**
 * fork_close_in_child() - A forked child must not keep @fd (a socket) alive.
 * fork_forget() before it is closed here.
 */
void fork_close_in_child(int fd);
void fork_forget(int fd);

/** fork_stop() - fork() waits until fork_go_on(), by the same thread. */
void fork_stop(void);
void fork_go_on(void);

/**
 * fork_keep_present() - Memory that no child gets is made present before each
 * fork(). fork_let_go() before it is unmapped.
 */
void fork_keep_present(uint64_t addr, uint64_t bytes);
void fork_let_go(uint64_t addr);

/* port.c */

/** port_fd() - Socket of port @index, -1 if there is none. */
static inline int port_fd(const struct os *os, int index)
{
	/* Pairs with the release in port_install(): the rest of the port. */
	return __atomic_load_n(&os->port[index].fd, __ATOMIC_ACQUIRE);
}

/** udp_error_note() - os_recv_error() has something to read at port @index. */
void udp_error_note(struct os *os, int index);

/** ports_open() - Count the open ports; if one, @only is that. */
static inline unsigned ports_open(const struct os *os, int *only)
{
	unsigned n = __atomic_load_n(&os->nports, __ATOMIC_ACQUIRE);

	*only = __atomic_load_n(&os->only, __ATOMIC_RELAXED);
	return n;
}

int port_probe(struct os *os, bool no_gso);
/** line_prepare() - Open the sockets for os_connect() that were used. */
void line_prepare(struct os *os);
void lines_close(struct os *os);

/* lane.c */

/** lane_get() - Return: a lane's index; -EAGAIN: all are in use; -errno: there is none:
 * no descriptor, or the program set itself a limit of the size of files. */
int lane_get(struct os *os);

/** lane_wait() - The same, but waits while all are in use. */
int lane_wait(struct os *os);
void lane_put(struct os *os, int lane);
/** lane_prepare() - Make one more than were ever in use at once. */
void lane_prepare(struct os *os);
void lanes_close(struct os *os);

/* cred.c */

/**
 * cred_check() - Ask for the owner of the other end of the unix socket @fd.
 * @apart:	the thread's descriptors are not those of the process, for which
 *		files are kept open
 * Return: 0: our user's or root's; -EPERM: a stranger's.
 */
int cred_check(int fd, bool apart, struct ucred *who);

/* addr.c */

/** net_add_link(), net_add_addr() - Return: 0; -ENOMEM. */
int net_add_link(struct os_net *net, const struct os_link *link);
/**
 * net_add_addr() - An address of an interface that was added; without that, or of
 * another family, it is left out.
 * @bytes:	@len of them, as the family has them
 */
int net_add_addr(struct os_net *net, int family, const void *bytes, size_t len,
		 uint32_t ifindex);
/** net_find_link() - Or NULL. */
const struct os_link *net_find_link(const struct os_net *net, uint32_t ifindex);
/** net_heard() - There is something to read at net_fd. Any thread. */
void net_heard(struct os *os);
void net_close(struct os *os);

/* rtnl.c */

/** rtnl_open() - Return: a socket that hears of @groups, 0: only answers; -errno. */
int rtnl_open(int groups);
/**
 * rtnl_read() - All interfaces and addresses.
 * @fd:	of rtnl_open(0), or -errno
 * Return: 0; -errno, @net is empty then.
 */
int rtnl_read(int fd, struct os_net *net);
/**
 * rtnl_parse() - Append what an answer to the dump @seq says.
 * Return: 0: there is more to come; 1: that was all; -EINTR: something changed
 * meanwhile, ask again; -EBADMSG: cut short; what the kernel answered.
 */
int rtnl_parse(struct os_net *net, const void *buf, size_t len, uint32_t seq);
/** rtnl_watch() - Return: a socket that becomes readable with each change; -errno. */
int rtnl_watch(void);
/** rtnl_drain() - Throw away what was told. Return: how many times; -errno. */
int rtnl_drain(int fd);

/* ifconf.c */

/** ifconf_read() - As rtnl_read(), without netlink. @fd: an IPv4 socket, or -errno */
int ifconf_read(int fd, struct os_net *net);

enum { NET_MTU_UNKNOWN = 1280 };

/* door.c */

/** door_open() - Start the thread, if there is none. Return: 0 or -errno. Context:
 * a thread of the program's, which sees its lowest free number taken for a moment. */
int door_open(struct os *os);
/** door_close() - End it. What it had open is closed when this returns. */
void door_close(struct os *os);
/**
 * door_call() - Let it do @fn(@os, @arg), which does not block.
 * @os:	NULL, or without a door: the caller does
 * Return: what @fn returned. Callers take turns.
 */
int door_call(struct os *os, int (*fn)(struct os *os, void *arg), void *arg);
/** door_keep() - @fd is open there for long. door_drop() closes it. */
void door_keep(const struct os *os, int fd);
void door_drop(const struct os *os, int fd);

/* What the door waits for, and does when it comes; on its thread only. */

/** ctl_watch() - Add to @fds[@n]. Return: how many there are now. */
unsigned ctl_watch(const struct os *os, struct pollfd *fds, unsigned n,
		   uint64_t now_ns, uint64_t *until_ns);
void ctl_heard(struct os *os);
void ctl_close(struct os *os);
unsigned claim_watch(const struct os *os, struct pollfd *fds, unsigned n,
		     uint64_t now_ns, uint64_t *until_ns);
void claim_heard(struct os *os);
void claim_close(struct os *os);

/* name.c */

void name_close(struct os *os);
/** name_prepare() - Open the sockets to ask holders with that were used. */
void name_prepare(struct os *os);

/* pager.c */
int pagers_open(struct pagers **out, unsigned max);
void pagers_close(struct pagers *pg);

/** pagers_fd() - Readable while answers wait. */
int pagers_fd(const struct pagers *pg);

/**
 * pagers_quiet() - Let pagers_fd() be readable no more if nothing waits: it may
 * have become so for answers that were reaped before.
 */
void pagers_quiet(struct pagers *pg);

/* thread.c */

/** thread_start() - As os_thread_start(), with a stack of @stack_bytes. */
int thread_start(struct os_thread **out, const char *name,
		 void (*fn)(void *arg), void *arg, size_t stack_bytes);

/** thread_leave() - Nobody will join @t. It keeps its stack for ever. */
void thread_leave(struct os_thread *t);

/* populate.c */

/** struct populate - Result of making a range present. */
struct populate {
	uint64_t bytes; /* ready from the start */
	int error; /* of what is behind: 0, -EFAULT, -ENOMEM */
	bool writable;
	bool by_hand; /* the kernel refused some of it, user mode could */
};

/**
 * populate_range() - Make pages present without writing to them. May block.
 * @end_ns: begin no more pages, after the first, from then on
 */
struct populate populate_range(uint64_t addr, uint64_t bytes, bool write,
			       uint64_t end_ns);

/** populate_probe() - Find what is present from the start; brings in nothing. */
struct populate populate_probe(uint64_t addr, uint64_t bytes);

/* touch.c */

/**
 * touch_page() - Load one byte at @addr, or (@write) or-in nothing, from user
 * mode. Context: a pager: SIGSEGV and SIGBUS not blocked. Return: 0, -EFAULT.
 */
int touch_page(uint64_t addr, bool write);

/** struct range - A half-open range of addresses. */
struct range {
	uint64_t start, end;
};

/* backing.c */
struct backing_cache;
struct backing_cache *backing_open(void);
void backing_close(struct backing_cache *c);

/** backing_forget() - Forget what is known of [addr, addr + len): it may be another
 * mapping by now. Until smaps is read again nothing is known of it. Context: any
 * thread; does not wait while smaps is read. */
void backing_forget(struct backing_cache *c, uint64_t addr, uint64_t len);

struct backing {
	enum os_backing kind;
	struct range cheap;
};

/**
 * backing_of() - Find what is behind @addr, as far as is known.
 * @slow: the fault just served took longer than a cheap one may
 */
struct backing backing_of(struct backing_cache *c, uint64_t addr, bool slow,
			  uint64_t now_ns);

/**
 * backing_doubt() - Before it is said that the page of @addr is there: is it not known
 * to be private anonymous memory, which only reclaim takes away? Then nothing is
 * believed for long (os_fresh_after()) until backing_learn(), which has to follow.
 * Context: a pager; does not wait while smaps is read.
 */
bool backing_doubt(struct backing_cache *c, uint64_t addr, uint64_t now_ns);

/**
 * backing_learn() - Find out what is at @addr, if it is time, or else when smaps is
 * read next: until then the doubt remains. Context: a pager that was in doubt; may
 * take milliseconds.
 * Return: false: it is other memory.
 */
bool backing_learn(struct backing_cache *c, uint64_t addr, uint64_t now_ns);

/**
 * backing_plain() - The mapping around @addr where a page that is dropped is an
 * empty page; {0, 0} if it is not, or is not known to be, such memory.
 * @early: written: nothing is known yet; smaps is being read, or will be in time
 * Context: a pager; may take milliseconds.
 */
struct range backing_plain(struct backing_cache *c, uint64_t addr, bool *early,
			   uint64_t now_ns);

/* wait.c */

enum { WAIT_CLOSED_NS = 50 * 1000 * 1000 }; /* do not spin on what is closed */

/* signal.c */

/** struct caught - Signals with a handler: with SA_RESTART, and without. */
struct caught {
	uint64_t restarts, ends;
};

/**
 * caught_before() - Read the installed handlers, for a sleep that begins now.
 * @again_ns:	by then it is to end, and to ask again; or TIME_NEVER
 */
struct caught caught_before(uint64_t now_ns, uint64_t *again_ns);

/** signals_mask() - @s->mask, as the C library wants it. */
sigset_t signals_mask(const struct os_signals *s);

/** caught_ends() - The sleep was interrupted: is the verb to end with EINTR? */
bool caught_ends(const struct os_signals *s, struct caught before);

/* host.c */

/** host_is_short() - Could an allocation have to wait? As last seen. */
bool host_is_short(void);

/** host_has_swap() - Could a page that was there be on disk? As last seen. */
bool host_has_swap(void);

/** host_look() - Look again if it is time. Context: one thread at a time. */
void host_look(uint64_t now_ns);
void host_look_now(void);

/* fresh.c */

/** fresh_check() - Look at the host's reclaim counters, if it is time. */
void fresh_check(uint64_t now_ns);

/** fresh_wanted() - Did anybody ask lately, so that looking makes sense? */
bool fresh_wanted(uint64_t now_ns);

/** fresh_still() - Was nothing reclaimed from @then_ns to a moment ago, and is
 * nothing about to be? Where something was in the last ten seconds more follows. */
bool fresh_still(uint64_t then_ns, uint64_t now_ns);

/** fresh_unsure() - A page was served that goes in ways nobody counts. */
void fresh_unsure(uint64_t now_ns);

/** fresh_unknown(), fresh_known() - It is not known if it was one; and now it is. */
void fresh_unknown(void);
void fresh_known(void);

/* os.c */
uint64_t clock_ns(void);

/** clock_cpu_ns() - The CPU time that the calling thread has used. */
uint64_t clock_cpu_ns(void);

/** until() - Time from now to @deadline_ns. Return: @ts, NULL for never. */
struct timespec *until(uint64_t deadline_ns, uint64_t now_ns,
		       struct timespec *ts);

#endif
