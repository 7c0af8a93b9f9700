/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pages.h: pages of application memory: bringing them in, how long they may be believed
 * to be there, locking them, and other memory in their place. The rules are in run.h.
 */
#ifndef NOPIN_OS_PAGES_H
#define NOPIN_OS_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct os;

/**
 * The backing of a page decides how its fault may be answered; the pager
 * finds out and tells with each answer.
 * BACKING_CHEAP: a fault in [cheap_start, cheap_end) needs no I/O and cannot
 * block (never-touched private anonymous memory where there is no swap, no
 * memory limit near, no userfaultfd, no huge pages).
 */
enum os_backing { BACKING_UNKNOWN, BACKING_CHEAP, BACKING_SLOW };

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
 * os_page_ask() - Hand a request to the pagers, which bring pages in without
 * writing to them, from user mode if need be. Never blocks. Asking and reaping is
 * for one thread at a time.
 * Return: 0, or -EAGAIN when too many are out (ask again after a reap).
 */
int os_page_ask(struct os *os, const struct os_page_req *req);

/**
 * os_page_forget() - Forget what is known of how the pages of [addr, addr + len) come
 * and go: the mapping there may be another than before. Context: any thread.
 */
void os_page_forget(struct os *os, uint64_t addr, uint64_t len);

/**
 * os_page_now() - Bring pages in as a pager would, but here and now, however long it
 * takes.
 * Return: 0, or -EFAULT. Context: only where the engine is meant to sleep in
 * faults (strategy block), or a program's thread without a lock.
 */
int os_page_now(struct os *os, uint64_t addr, uint64_t bytes, bool write);

/** os_page_reap() - Take up to @max answers. */
unsigned os_page_reap(struct os *os, struct os_page_done *out, unsigned max);

/** os_pages_waiting() - Is there an answer to reap? No system call. */
bool os_pages_waiting(struct os *os);

/**
 * os_fresh_after() - Return a time: readiness learned before it may be outdated
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
 * os_pinned() - Is any of [*addr, *addr + *len) locked, by us or the program? Meant for
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
 * stop threads that touch it (there must be a userfaultfd that stops system calls,
 * too); -EEXIST and others of open(2); -ENOSPC: @path; -ENODEV: @node; -ENOMEM.
 * Context: a thread of ours, no lock held. Takes as long as the copy.
 */
int os_move(struct os *os, const struct os_move_req *req, uint64_t *copied);

#endif
