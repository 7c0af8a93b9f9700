/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pager.c: the threads that wait for pages, so that no other thread has to
 * (design D7, D8). What they do with a page is in populate.c.
 *
 * Theory of operation
 *
 * Requests wait in a ring, answers in another. The thread that asks and reaps is one
 * at a time (the engine) and takes no lock, which a pager may keep while it is
 * not running. Pagers have one among themselves, never held across a fault. There is
 * always one idle pager more than the work needs, up to the limit: a pager that takes a
 * request while no other is idle first starts another. So a page that hangs blocks
 * neither the other requests nor os_page_ask(), which starts no thread itself (that takes
 * the address-space lock).
 *
 * When all but one wait for pages the last one waits for none: it answers for
 * pages that turn out to be present, and leaves the others for later. So slow
 * pages do not delay those that were only not looked at for a while.
 *
 * A pager that hangs in a page cannot be stopped. pagers_close() leaves it
 * behind with a reference on this struct; it frees it when the page comes.
 *
 * One idle pager, the watcher, also looks at the reclaim counters (fresh.c).
 */
#include "os/pager.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/page.h"
#include "base/timerq.h"
#include "os/backing.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/fresh.h"
#include "os/host.h"
#include "os/mapping.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/populate.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/thread.h"
#include "os/wait.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

enum {
	PAGER_RING = 1024, /* requests not yet reaped; a power of two */
	PAGER_AT_OPEN = 2,
	PAGERS_MAX = 32,
	PAGER_CHEAP_NS = 20000, /* a page; slower revokes cheapness */
};

static const uint64_t pager_watch_ns = 6000000;
static const uint64_t pager_close_ns = 50000000;

/** struct pager_ring - Requests in the order they came. */
struct pager_ring {
	unsigned head, tail;
	struct os_page_req req[PAGER_RING];
};

struct pager {
	struct pagers *pg;
	struct os_thread *thread;
	bool ended; /* it returns, or has */
};

/**
 * struct pagers - All under @lock, but what is the engine's or atomic.
 * @refs:	the NIC's and one per thread
 * @idle:	threads that sleep or are about to look for work
 * @wake:	futex: counts what a sleeper should wake for
 * @gone:	futex: counts references given back
 * @done_head:	the engine's, read by all: answers that were reaped
 * @done_tail:	answers that were given
 * @serving:	threads that may be waiting for a page
 * @out:	the engine's: requests not yet reaped
 * @asked:	requests that no pager looked at; its tail is the engine's
 * @slow:	requests whose pages were absent when only one pager was left
 */
struct pagers {
	pthread_mutex_t lock;
	unsigned max, threads, idle, refs, serving;
	struct pager pager[PAGERS_MAX];
	bool closing, watching;
	uint32_t wake, gone;
	int done_fd;
	struct backing_cache *backing;
	unsigned out;
	unsigned done_head, done_tail;
	struct pager_ring asked, slow;
	struct os_page_done done[PAGER_RING];
};

static void pager_main(void *arg);

int pagers_fd(const struct pagers *pg)
{
	return pg->done_fd;
}

static void pager_gone(struct pagers *pg)
{
	__atomic_fetch_add(&pg->gone, 1, __ATOMIC_RELAXED);
	(void)sys_futex_wake(&pg->gone, 1);
}

/* Consumes a reference and the lock. */
static void pagers_put(struct pagers *pg)
{
	bool last = --pg->refs == 0;

	/* Under the lock: afterwards @pg may not be there. */
	pager_gone(pg);
	pthread_mutex_unlock(&pg->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&pg->lock);
	backing_close(pg->backing);
	heap_free(pg);
}

/* The caller has counted the thread (threads, idle, refs). */
static int pager_start(struct pagers *pg, unsigned n)
{
	struct pager *p = &pg->pager[n];
	char name[16] = "nopin-pg0";
	int ret;

	name[8] = (char)(n < 10 ? '0' + n : 'a' + n % 26);
	p->pg = pg;
	ret = os_thread_start(NULL, &p->thread, name, pager_main, p);
	if (ret < 0) {
		/* The caller has another reference. */
		pthread_mutex_lock(&pg->lock);
		p->thread = NULL;
		pg->threads--;
		pg->idle--;
		pg->refs--;
		pager_gone(pg);
		pthread_mutex_unlock(&pg->lock);
	}
	return ret;
}

static void pager_count(struct pagers *pg)
{
	pg->threads++;
	pg->idle++;
	pg->refs++;
}

int pagers_open(struct pagers **out, unsigned max)
{
	struct pagers *pg = heap_alloc(sizeof(*pg));
	int ret = 0;

	if (!pg)
		return -ENOMEM;
	pthread_mutex_init(&pg->lock, NULL);
	pg->refs = 1;
	pg->max = MIN(max, PAGERS_MAX);
	pg->done_fd = fd_high((int)sys_call(
		SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK, 0, 0, 0, 0));
	pg->backing = backing_open();
	if (pg->done_fd < 0 || !pg->backing)
		ret = pg->done_fd < 0 ? pg->done_fd : -ENOMEM;
	for (unsigned i = 0; i < MIN(pg->max, PAGER_AT_OPEN) && ret == 0; i++) {
		pthread_mutex_lock(&pg->lock);
		pager_count(pg);
		pthread_mutex_unlock(&pg->lock);
		ret = pager_start(pg, i);
	}
	if (ret < 0)
		pagers_close(pg);
	else
		*out = pg;
	return ret;
}

/* Called and returns with the lock. */
static void pagers_join(struct pagers *pg)
{
	for (unsigned i = 0; i < PAGERS_MAX; i++) {
		struct pager *p = &pg->pager[i];

		if (p->thread && p->ended) {
			pthread_mutex_unlock(&pg->lock);
			os_thread_join(p->thread);
			pthread_mutex_lock(&pg->lock);
		} else if (p->thread) {
			thread_leave(p->thread);
		}
	}
}

void pagers_close(struct pagers *pg)
{
	uint64_t now = clock_ns(), end = now + pager_close_ns;
	struct timespec ts;

	if (!pg)
		return;
	pthread_mutex_lock(&pg->lock);
	pg->closing = true;
	__atomic_fetch_add(&pg->wake, 1, __ATOMIC_RELAXED);
	(void)sys_futex_wake(&pg->wake, INT32_MAX);
	/* The idle ones end for sure; one that is in a page may hang. */
	while (pg->refs > 1 && (pg->idle > 0 || now < end)) {
		uint32_t seen = __atomic_load_n(&pg->gone, __ATOMIC_RELAXED);
		uint64_t limit = pg->idle > 0 ? TIME_NEVER : end;

		pthread_mutex_unlock(&pg->lock);
		(void)sys_futex_wait(&pg->gone, seen, until(limit, now, &ts));
		now = clock_ns();
		pthread_mutex_lock(&pg->lock);
	}
	pagers_join(pg);
	/* One that hangs may answer long after; this may be another's number then. */
	fd_close(pg->done_fd);
	pagers_put(pg);
}

/* --- a pager -------------------------------------------------------------- */

/* Sleep until @wake is no more what was @seen before looking for something to
 * do. Called and returns with the lock. */
static void pager_sleep(struct pagers *pg, uint32_t seen)
{
	uint64_t now = clock_ns();
	struct timespec ts;
	bool watch;

	watch = !pg->watching && fresh_wanted(now);
	pg->watching |= watch;
	pthread_mutex_unlock(&pg->lock);
	(void)sys_futex_wait(
		&pg->wake, seen,
		until(watch ? now + pager_watch_ns : TIME_NEVER, now, &ts));
	if (watch)
		fresh_check(clock_ns());
	pthread_mutex_lock(&pg->lock);
	if (watch)
		pg->watching = false;
}

static void pager_answer(struct pagers *pg, const struct os_page_done *done)
{
	pthread_mutex_lock(&pg->lock);
	pg->done[pg->done_tail % PAGER_RING] = *done;
	/* Either we see that all before this were reaped, and wake, or whoever
	 * reaped them sees this one. */
	__atomic_store_n(&pg->done_tail, pg->done_tail + 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&pg->done_head, __ATOMIC_SEQ_CST) + 1 ==
		    pg->done_tail &&
	    !pg->closing)
		os_event_set(pg->done_fd);
	pthread_mutex_unlock(&pg->lock);
}

/* Did the thread wait for something, as opposed to being preempted? */
static bool pager_too_slow(const struct os_page_done *done,
			   const struct rusage *before,
			   const struct rusage *after)
{
	uint64_t pages = MAX(pages_spanned(0, done->bytes), 1);

	return done->service_ns / pages > PAGER_CHEAP_NS &&
	       (after->ru_nvcsw != before->ru_nvcsw ||
		after->ru_majflt != before->ru_majflt ||
		after->ru_nivcsw == before->ru_nivcsw);
}

/* Is it memory of which nothing has to be brought in? */
static void pager_look(struct pagers *pg, const struct os_page_req *req)
{
	struct os_page_done done = {.id = req->id, .addr = req->addr};
	struct range plain = backing_plain(pg->backing, req->addr, &done.early,
					   clock_ns());

	done.plain_start = plain.start;
	done.plain_end = plain.end;
	pager_answer(pg, &done);
}

static void pager_serve(struct pagers *pg, const struct os_page_req *req)
{
	struct rusage before = {.ru_majflt = 0}, after = before;
	struct os_page_done done = {.id = req->id, .addr = req->addr};
	uint64_t began = clock_ns(), now;
	struct populate got;
	struct backing b;
	bool doubt;

	(void)sys_getrusage(RUSAGE_THREAD, &before);
	if (req->probe)
		got = populate_probe(req->addr, req->bytes);
	else
		got = populate_range(req->addr, req->bytes, req->write,
				     req->whole ? UINT64_MAX
						: began + OS_PAGES_SLOW_NS);
	now = clock_ns();
	(void)sys_getrusage(RUSAGE_THREAD, &after);
	done.bytes = got.bytes;
	done.error = got.error;
	done.writable = got.writable;
	done.by_hand = got.by_hand;
	done.major = after.ru_majflt != before.ru_majflt;
	done.absent = !req->probe &&
		      (done.major || after.ru_minflt != before.ru_minflt);
	done.service_ns = now - began;
	b = backing_of(pg->backing, req->addr,
		       !req->probe && pager_too_slow(&done, &before, &after),
		       now);
	done.backing = b.kind;
	done.cheap_start = b.cheap.start;
	done.cheap_end = b.cheap.end;
	doubt = done.bytes && backing_doubt(pg->backing, req->addr, now);
	pager_answer(pg, &done);
	/* Work for the next request must not delay this one. */
	host_look(now);
	if (doubt)
		(void)backing_learn(pg->backing, req->addr, now);
	if (fresh_wanted(now))
		fresh_check(now);
	heap_prepare();
}

static void ring_put(struct pager_ring *r, const struct os_page_req *req)
{
	r->req[r->tail % PAGER_RING] = *req;
	/* pairs with ring_take() */
	__atomic_store_n(&r->tail, r->tail + 1, __ATOMIC_RELEASE);
}

static bool ring_take(struct pager_ring *r, struct os_page_req *req)
{
	if (r->head == __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE))
		return false;
	*req = r->req[r->head++ % PAGER_RING];
	return true;
}

/* Must the pager that takes a request now not wait for a page? */
static bool pager_is_last(const struct pagers *pg)
{
	return pg->max > 1 && pg->serving + 1 >= pg->max;
}

static bool pager_next(struct pagers *pg, struct os_page_req *req)
{
	return (!pager_is_last(pg) && ring_take(&pg->slow, req)) ||
	       ring_take(&pg->asked, req);
}

/* Without the lock. Return: false if the request is for later. */
static bool pager_try(struct pagers *pg, const struct os_page_req *req,
		      bool last)
{
	if (req->look) {
		pager_look(pg, req);
		return true;
	}
	if (last && !req->probe &&
	    populate_probe(req->addr, req->bytes).bytes < req->bytes)
		return false;
	pager_serve(pg, req);
	return true;
}

/* Called and returns with the lock; false: time to end. */
static bool pager_turn(struct pagers *pg)
{
	struct os_page_req req;
	unsigned start = 0;
	bool last, served;

	for (;;) {
		uint32_t seen = __atomic_load_n(&pg->wake, __ATOMIC_SEQ_CST);

		if (pg->closing)
			return false;
		if (pager_next(pg, &req))
			break;
		pager_sleep(pg, seen);
	}
	last = pager_is_last(pg);
	pg->serving += !last;
	pg->idle--;
	if (pg->idle == 0 && pg->threads < pg->max) {
		start = pg->threads;
		pager_count(pg);
	}
	pthread_mutex_unlock(&pg->lock);
	if (start > 0)
		(void)pager_start(pg, start);
	served = pager_try(pg, &req, last);
	pthread_mutex_lock(&pg->lock);
	if (!served)
		ring_put(&pg->slow, &req);
	pg->serving -= !last;
	pg->idle++;
	return true;
}

static void pager_main(void *arg)
{
	struct pager *p = arg;
	struct pagers *pg = p->pg;

	pthread_mutex_lock(&pg->lock);
	while (pager_turn(pg))
		;
	pg->idle--;
	pg->threads--;
	p->ended = true;
	pagers_put(pg);
}

/* --- requests -------------------------------------------------------------- */

void os_page_forget(struct os *os, uint64_t addr, uint64_t len)
{
	if (os->pagers->backing)
		backing_forget(os->pagers->backing, addr, len);
}

/**
 * os_page_ask() - See pages.h.
 * @req: copied
 * Return: 0, or -EAGAIN while 1024 are out.
 */
int os_page_ask(struct os *os, const struct os_page_req *req)
{
	struct pagers *pg = os->pagers;

	if (pg->out == PAGER_RING)
		return -EAGAIN;
	pg->out++;
	ring_put(&pg->asked, req);
	__atomic_fetch_add(&pg->wake, 1, __ATOMIC_SEQ_CST);
	(void)sys_futex_wake(&pg->wake, 1);
	return 0;
}

/**
 * os_page_now() - See pages.h.
 * @addr, @bytes: any range
 * @write: is to be written
 *
 * On a thread of the program, which may block the signals that touch.c needs.
 */
int os_page_now(struct os *os, uint64_t addr, uint64_t bytes, bool write)
{
	struct populate got;
	sigset_t faults, old;

	(void)os;
	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &faults, &old);
	got = populate_range(addr, bytes, write, UINT64_MAX);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return got.error;
}

static bool answers_wait(const struct pagers *pg)
{
	/* pairs with pager_answer() */
	return __atomic_load_n(&pg->done_tail, __ATOMIC_SEQ_CST) !=
	       __atomic_load_n(&pg->done_head, __ATOMIC_RELAXED);
}

/** os_pages_waiting() - See pages.h. */
bool os_pages_waiting(struct os *os)
{
	return answers_wait(os->pagers);
}

void pagers_quiet(struct pagers *pg)
{
	if (answers_wait(pg))
		return;
	(void)os_event_clear(pg->done_fd);
	if (answers_wait(pg))
		os_event_set(pg->done_fd);
}

/** os_page_reap() - See pages.h. No system call while there is nothing. */
unsigned os_page_reap(struct os *os, struct os_page_done *out, unsigned max)
{
	struct pagers *pg = os->pagers;
	unsigned n = 0;

	while (n < max && answers_wait(pg)) {
		out[n++] = pg->done[pg->done_head % PAGER_RING];
		/* pairs with pager_answer() */
		__atomic_store_n(&pg->done_head, pg->done_head + 1,
				 __ATOMIC_SEQ_CST);
		pg->out--;
	}
	if (n > 0)
		pagers_quiet(pg);
	return n;
}
