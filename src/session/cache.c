/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cache.c: what a user knows to be ready of an owner's memory. blocks.c is what
 * it knows, news.c how it learns that; this asks the owner, and waits.
 *
 * One request at a time is under way. Who gave up waiting for it leaves it: its answer
 * is read when it comes, by whoever looks then.
 */
#include "base/page.h"
#include "base/range.h"
#include "session/link.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)

enum { ALIVE_MS = 250, PART_MS = 100 };

/**
 * struct mail - Of a user: the owner writes @news, the rest is read only.
 * @consumed:	what it is told between two requests
 */
struct mail {
	struct ask ask;
	uint64_t consumed, pad[7];
	struct news news[NEWS];
};

/**
 * struct nopin_cache
 * @counter:	batches of news
 * @first, @last: blocks of the request that is under way, if it is @asking
 * @told:	records that the owner knows to be read
 * @result:	of the last request
 * @busy:	a thread is in a call
 */
struct nopin_cache {
	struct link link;
	struct ibv_context *context;
	struct nopin_counter *counter;
	const uint64_t *word;
	struct mail *mail;
	struct ibv_mr *mr;
	struct nopin_card owner;
	struct blocks blocks;
	struct news_reader reader;
	struct nopin_cache_stats stats;
	uint64_t first, last, told;
	enum news_result result;
	unsigned shift;
	bool asking, started, busy;
};

/* --- life -------------------------------------------------------------------------- */

static void cache_free(struct nopin_cache *c)
{
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (c->counter)
		nopin_counter_destroy(c->counter);
	blocks_fini(&c->blocks);
	free(c->mail);
	free(c);
}

static int cache_attr_take(struct nopin_cache *c,
			   const struct nopin_cache_attr *a)
{
	if (a->reserved || a->block < PAGE_BYTES || a->block > READY_MAX ||
	    a->block & (a->block - 1))
		return EINVAL;
	c->shift = (unsigned)__builtin_ctzll(a->block);
	return -blocks_init(&c->blocks, a->blocks);
}

static int cache_open(struct nopin_cache *c)
{
	struct ibv_pd *pd = c->link.qp->pd;
	int rc = link_check(c->link.qp);

	if (!rc)
		rc = nopin_counter_create(pd, NULL, NULL, &c->counter);
	if (!rc)
		rc = ext_counter_reserve(c->counter);
	if (rc)
		return rc;
	c->word = nopin_counter_word(c->counter);
	c->mail = aligned_alloc(LINE, sizeof(*c->mail));
	if (!c->mail)
		return ENOMEM;
	memset(c->mail, 0, sizeof(*c->mail));
	c->reader.slot = c->mail->news;
	c->reader.cap = NEWS;
	c->mr = ibv_reg_mr(pd, c->mail, sizeof(*c->mail),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return c->mr ? 0 : errno;
}

int nopin_cache_create(struct ibv_qp *qp, const struct nopin_cache_attr *attr,
		       struct nopin_cache **cache, struct nopin_card *card)
{
	struct nopin_cache *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return ENOMEM;
	c->link.qp = qp;
	c->context = qp->context;
	rc = cache_attr_take(c, attr);
	if (!rc)
		rc = cache_open(c);
	if (rc) {
		cache_free(c);
		return rc;
	}
	*card = (struct nopin_card){.mail = (uintptr_t)c->mail->news,
				    .mail_rkey = c->mr->rkey,
				    .words = attr->block,
				    .objects = NEWS,
				    .counter = nopin_counter_id(c->counter)};
	*cache = c;
	return 0;
}

static bool cache_enter(struct nopin_cache *c)
{
	return !__atomic_exchange_n(&c->busy, true, __ATOMIC_ACQUIRE);
}

static void cache_leave(struct nopin_cache *c)
{
	__atomic_store_n(&c->busy, false, __ATOMIC_RELEASE);
}

int nopin_cache_start(struct nopin_cache *c, const struct nopin_card *owner)
{
	int rc = 0;

	if (in_child(c->link.qp->context))
		return ENODEV;
	if (!cache_enter(c))
		return EBUSY;
	if (c->started)
		rc = EINVAL;
	else
		c->owner = *owner;
	c->started = true;
	cache_leave(c);
	return rc;
}

/* --- news -------------------------------------------------------------------------- */

static int broken(struct nopin_cache *c)
{
	if (!c->link.failed)
		link_fail(&c->link);
	return ENOTCONN;
}

static void answered(struct nopin_cache *c, uint64_t result)
{
	c->asking = false;
	c->result = result < RESULT_NUM ? (enum news_result)result
					: RESULT_FAILED;
	if (c->result != RESULT_READY)
		return;
	for (uint64_t n = c->first; n <= c->last; n++)
		c->stats.evicted += blocks_add(&c->blocks, n);
}

static bool apply(struct nopin_cache *c, const struct news *n)
{
	switch (n->kind) {
	case NEWS_LOST:
		c->stats.invalidated += blocks_drop(
			&c->blocks, n->addr >> c->shift, n->last >> c->shift);
		return true;
	case NEWS_ALL_LOST:
		c->stats.invalidated += blocks_drop(&c->blocks, 0, UINT64_MAX);
		return true;
	default:
		if (!c->asking)
			return false;
		answered(c, n->result);
		return true;
	}
}

/* Who asks says how much was read. Who has not asked for half a row says that alone,
 * or the owner had to say that all is lost when the row is full. */
static void acknowledge(struct nopin_cache *c)
{
	if (c->reader.consumed - c->told < NEWS / 2)
		return;
	link_reap(&c->link);
	if (c->link.out)
		return;
	c->mail->consumed = c->told = c->reader.consumed;
	(void)link_write(&c->link, &c->mail->consumed, 8, c->mr->lkey,
			 c->owner.mail + offsetof(struct ask, consumed),
			 c->owner.mail_rkey, 0);
}

static int read_news(struct nopin_cache *c)
{
	const uint64_t arrived = __atomic_load_n(c->word, __ATOMIC_ACQUIRE);
	struct news n;
	int got;

	if (arrived == c->reader.batches)
		return 0;
	do
		got = reader_next(&c->reader, arrived, &n);
	while (got > 0 && apply(c, &n));
	if (got)
		return broken(c);
	acknowledge(c);
	return 0;
}

/* --- requests ---------------------------------------------------------------------- */

static int cache_say(struct nopin_cache *c, enum ask_op op, uint64_t addr,
		     uint64_t last)
{
	c->mail->ask = (struct ask){.consumed = c->reader.consumed,
				    .op = op,
				    .addr = addr,
				    .last = last};
	if (link_write(&c->link, &c->mail->ask, ASK_SENT, c->mr->lkey,
		       c->owner.mail, c->owner.mail_rkey, c->owner.counter) ||
	    link_write(&c->link, NULL, 0, 0, 0, 0, c->owner.bell))
		return broken(c);
	c->told = c->reader.consumed;
	c->asking = true;
	return 0;
}

/** struct patience - Of a call. */
struct patience {
	uint64_t until_ns;
	enum nopin_wait how;
};

static struct patience patience_of(const struct nopin_cache *c,
				   uint64_t timeout_ns, enum nopin_wait how)
{
	return (struct patience){sat_add(ext_now(c->context), timeout_ns), how};
}

/* One stretch of waiting for news; @most_ns at most. */
static int cache_wait_some(struct nopin_cache *c, const struct patience *p,
			   uint64_t most_ns)
{
	const uint64_t now = ext_now(c->context);
	const uint64_t left = p->until_ns > now ? p->until_ns - now : 0;
	int rc;

	if (!left) {
		/* who never waits is to find out, too, that nobody is there */
		rc = link_probe(&c->link);
		return rc ? rc : ETIMEDOUT;
	}
	rc = nopin_counter_wait(c->counter, c->reader.batches + 1,
				MIN(left, most_ns), p->how);
	return rc == ETIMEDOUT ? link_probe(&c->link) : rc;
}

/* Both WRITEs of a request need room; those of earlier ones go soon. */
static int make_room(struct nopin_cache *c, const struct patience *p)
{
	int rc = 0;

	for (link_reap(&c->link); c->link.out + 2 > LINK_DEPTH && !rc;
	     link_reap(&c->link))
		rc = c->link.failed ? ENOTCONN : cache_wait_some(c, p, MS);
	if (!rc && c->link.failed)
		rc = ENOTCONN;
	return rc;
}

/* Until there is no request under way. */
static int cache_settle(struct nopin_cache *c, const struct patience *p)
{
	int rc = read_news(c);

	while (!rc && c->asking) {
		rc = cache_wait_some(c, p, ALIVE_MS * MS);
		if (!rc)
			rc = read_news(c);
	}
	return rc;
}

/* --- calls ------------------------------------------------------------------------- */

/** struct wanted - Blocks first..last have addr..end; of those that are not known
 * missed is the first, and missed_last the last. */
struct wanted {
	uint64_t addr, end, first, last, missed, missed_last;
};

/* Return: how many are not known. */
static uint64_t cache_look(struct nopin_cache *c, struct wanted *w)
{
	uint64_t misses = 0;

	for (uint64_t n = w->first; n <= w->last; n++) {
		if (blocks_use(&c->blocks, n))
			continue;
		if (!misses++)
			w->missed = n;
		w->missed_last = n;
	}
	return misses;
}

static int cache_ask(struct nopin_cache *c, const struct wanted *w,
		     const struct patience *p)
{
	const uint64_t from = w->missed << c->shift;
	const uint64_t to = (w->missed_last << c->shift) |
			    ((UINT64_C(1) << c->shift) - 1);
	int rc = make_room(c, p);

	if (rc)
		return rc;
	c->first = w->missed;
	c->last = w->missed_last;
	rc = cache_say(c, ASK_READY, MAX(from, w->addr), MIN(to, w->end));
	if (!rc)
		rc = cache_settle(c, p);
	if (rc)
		return rc;
	switch (c->result) {
	case RESULT_READY:
		return 0;
	case RESULT_NO_REGION:
		return EINVAL;
	default:
		return EFAULT;
	}
}

/* What was asked for before may be what is wanted now. */
static int miss(struct nopin_cache *c, struct wanted *w,
		const struct patience *p)
{
	int rc = 0;

	if (c->asking) {
		rc = cache_settle(c, p);
		if (rc || !cache_look(c, w))
			return rc;
	}
	rc = cache_ask(c, w, p);
	if (rc)
		return rc;
	return cache_look(c, w) ? EAGAIN : 0;
}

static int ready(struct nopin_cache *c, struct wanted *w, uint64_t timeout_ns,
		 enum nopin_wait how)
{
	int rc = c->link.failed ? ENOTCONN : read_news(c);
	struct patience p;
	uint64_t misses;

	if (rc)
		return rc;
	misses = cache_look(c, w);
	c->stats.misses += misses;
	c->stats.hits += w->last - w->first + 1 - misses;
	if (!misses)
		return 0;
	p = patience_of(c, timeout_ns, how);
	return miss(c, w, &p);
}

int nopin_cache_ready(struct nopin_cache *c, uint64_t addr, uint64_t length,
		      uint64_t timeout_ns, enum nopin_wait how)
{
	struct wanted w = {.addr = addr};
	int rc = EINVAL;

	if (in_child(c->link.qp->context))
		return ENODEV;
	if (!length || length > READY_MAX || range_wraps(addr, length) ||
	    (unsigned)how > NOPIN_WAIT_FUTEX)
		return EINVAL;
	if (!cache_enter(c))
		return EBUSY;
	w.end = addr + (length - 1);
	w.first = addr >> c->shift;
	w.last = w.end >> c->shift;
	if (c->started && w.last - w.first < c->blocks.cap)
		rc = ready(c, &w, timeout_ns, how);
	cache_leave(c);
	return rc;
}

int nopin_cache_query(struct nopin_cache *c, struct nopin_cache_stats *out,
		      size_t size)
{
	if (!size || size > sizeof(*out))
		return EINVAL;
	if (in_child(c->link.qp->context))
		return ENODEV;
	if (!cache_enter(c))
		return EBUSY;
	c->stats.held = c->blocks.num;
	memcpy(out, &c->stats, size);
	cache_leave(c);
	return 0;
}

/* The owner is to know that its answer came, even if this process ends now: what is
 * sent behind that is answered. */
static void part(struct nopin_cache *c)
{
	const struct patience p = patience_of(c, PART_MS * MS,
					      NOPIN_WAIT_BLOCK);
	int rc = make_room(c, &p);

	if (!rc && link_write(&c->link, NULL, 0, 0, 0, 0, 0))
		rc = EIO;
	for (link_reap(&c->link); !rc && c->link.out && !c->link.failed;
	     link_reap(&c->link))
		rc = cache_wait_some(c, &p, MS / 10);
}

static int cache_say_goodbye(struct nopin_cache *c)
{
	const struct patience p = patience_of(c, UINT64_MAX, NOPIN_WAIT_BLOCK);
	int rc = cache_settle(c, &p);

	if (!rc)
		rc = make_room(c, &p);
	if (!rc)
		rc = cache_say(c, ASK_LEAVE, 0, 0);
	c->first = 1; /* no block is meant */
	c->last = 0;
	return rc ? rc : cache_settle(c, &p);
}

int nopin_cache_destroy(struct nopin_cache *c)
{
	if (in_child(c->link.qp->context))
		return ENODEV;
	if (!cache_enter(c))
		return EBUSY;
	if (c->started && !c->link.failed && !cache_say_goodbye(c))
		part(c);
	cache_free(c);
	return 0;
}
