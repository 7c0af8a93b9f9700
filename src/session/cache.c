/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cache.c: what a user knows to be ready of an owner's memory. blocks.c is what
 * it knows, news.c how it learns that; this asks the owner, and waits.
 *
 * One request at a time is under way. A call that gave up waiting for it leaves it: its
 * answer is read when it comes, by the call that looks then.
 */
#include "base/range.h"
#include "session/caller.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

enum { PART_MS = 100 };

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
 * struct cache_asked - The request that is under way, if it is @under_way, or was last.
 * @first, @last: its blocks
 * @result:	what came of the last
 */
struct cache_asked {
	uint64_t first, last;
	enum news_result result;
	bool under_way;
};

/**
 * struct nopin_cache
 * @mail:	that of @caller
 * @word:	batches of news
 * @told:	records that the owner knows to be read
 * @shift:	of an address, to the number of its block
 */
struct nopin_cache {
	struct caller caller;
	struct mail *mail;
	const uint64_t *word;
	struct blocks blocks;
	struct news_reader reader;
	struct nopin_cache_stats stats;
	struct cache_asked asked;
	uint64_t told;
	unsigned shift;
	bool started;
};

/* --- life -------------------------------------------------------------------------- */

static void cache_free(struct nopin_cache *c)
{
	caller_close(&c->caller);
	blocks_fini(&c->blocks);
	free(c);
}

static int cache_attr_take(struct nopin_cache *c,
			   const struct nopin_cache_attr *a)
{
	if (a->reserved || !is_block(a->block))
		return EINVAL;
	c->shift = (unsigned)__builtin_ctzll(a->block);
	return -blocks_init(&c->blocks, a->blocks);
}

int nopin_cache_create(struct ibv_qp *qp, const struct nopin_cache_attr *attr,
		       struct nopin_cache **cache, struct nopin_card *card)
{
	struct nopin_cache *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return ENOMEM;
	rc = cache_attr_take(c, attr);
	if (!rc)
		rc = caller_open(&c->caller, qp, sizeof(*c->mail));
	if (rc) {
		cache_free(c);
		return rc;
	}
	c->mail = c->caller.mail;
	c->word = nopin_counter_word(c->caller.counter);
	c->reader.slot = c->mail->news;
	c->reader.cap = NEWS;
	*card = caller_card(&c->caller, c->mail->news);
	card->words = attr->block;
	card->objects = NEWS;
	*cache = c;
	return 0;
}

int nopin_cache_start(struct nopin_cache *c, const struct nopin_card *owner)
{
	int rc = caller_enter(&c->caller);

	if (rc)
		return rc;
	if (c->started)
		rc = EINVAL;
	else
		c->caller.peer = *owner;
	c->started = true;
	caller_leave(&c->caller);
	return rc;
}

/* --- news -------------------------------------------------------------------------- */

static void answered(struct nopin_cache *c, uint64_t result)
{
	c->asked.under_way = false;
	c->asked.result = result < RESULT_NUM ? (enum news_result)result
					      : RESULT_FAILED;
	if (c->asked.result != RESULT_READY)
		return;
	for (uint64_t n = c->asked.first; n <= c->asked.last; n++)
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
		if (!c->asked.under_way)
			return false;
		answered(c, n->result);
		return true;
	}
}

/* A user that asks says how much was read. One that has not asked for half a row says
 * that alone, or the owner had to say that all is lost when the row is full. */
static void acknowledge(struct nopin_cache *c)
{
	if (c->reader.consumed - c->told < NEWS / 2)
		return;
	link_reap(&c->caller.link);
	if (c->caller.link.out + 1 >= LINK_DEPTH)
		return;
	c->mail->consumed = c->told = c->reader.consumed;
	(void)link_write(&c->caller.link, &c->mail->consumed, 8,
			 c->caller.mr->lkey,
			 c->caller.peer.mail + offsetof(struct ask, consumed),
			 c->caller.peer.mail_rkey, 0);
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
		return caller_lost(&c->caller);
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
	if (caller_ask(&c->caller, &c->mail->ask, ASK_SENT,
		       c->caller.peer.mail))
		return ENOTCONN;
	c->told = c->reader.consumed;
	c->asked.under_way = true;
	return 0;
}

/* One stretch of waiting for news; @most_ns at most. */
static int cache_wait_some(struct nopin_cache *c, const struct patience *p,
			   uint64_t most_ns)
{
	return caller_wait(&c->caller, c->reader.batches + 1, p, most_ns);
}

/* Both WRITEs of a request need room; those of earlier ones go soon. */
static int make_room(struct nopin_cache *c, const struct patience *p)
{
	int rc = 0;

	for (link_reap(&c->caller.link);
	     c->caller.link.out + 2 > LINK_DEPTH && !rc;
	     link_reap(&c->caller.link))
		rc = c->caller.link.failed ? ENOTCONN
					   : cache_wait_some(c, p, MS);
	if (!rc && c->caller.link.failed)
		rc = ENOTCONN;
	return rc;
}

/* Until there is no request under way. */
static int cache_settle(struct nopin_cache *c, const struct patience *p)
{
	int rc = read_news(c);

	while (!rc && c->asked.under_way) {
		rc = cache_wait_some(c, p, CALLER_BEAT_MS * MS);
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
	c->asked.first = w->missed;
	c->asked.last = w->missed_last;
	rc = cache_say(c, ASK_READY, MAX(from, w->addr), MIN(to, w->end));
	if (!rc)
		rc = cache_settle(c, p);
	if (rc)
		return rc;
	switch (c->asked.result) {
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

	if (c->asked.under_way) {
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
	int rc = c->caller.link.failed ? ENOTCONN : read_news(c);
	struct patience p;
	uint64_t misses;

	if (rc)
		return rc;
	misses = cache_look(c, w);
	c->stats.misses += misses;
	c->stats.hits += w->last - w->first + 1 - misses;
	if (!misses)
		return 0;
	p = caller_patience(&c->caller, timeout_ns, how);
	return miss(c, w, &p);
}

int nopin_cache_ready(struct nopin_cache *c, uint64_t addr, uint64_t length,
		      uint64_t timeout_ns, enum nopin_wait how)
{
	struct wanted w = {.addr = addr};
	int rc;

	if (!length || length > READY_MAX || range_wraps(addr, length) ||
	    (unsigned)how > NOPIN_WAIT_FUTEX)
		return EINVAL;
	rc = caller_enter(&c->caller);
	if (rc)
		return rc;
	rc = EINVAL;
	w.end = addr + (length - 1);
	w.first = addr >> c->shift;
	w.last = w.end >> c->shift;
	if (c->started && w.last - w.first < c->blocks.cap)
		rc = ready(c, &w, timeout_ns, how);
	caller_leave(&c->caller);
	return rc;
}

int nopin_cache_query(struct nopin_cache *c, struct nopin_cache_stats *out,
		      size_t size)
{
	int rc;

	if (!size || size > sizeof(*out))
		return EINVAL;
	rc = caller_enter(&c->caller);
	if (rc)
		return rc;
	c->stats.held = c->blocks.num;
	memcpy(out, &c->stats, size);
	caller_leave(&c->caller);
	return 0;
}

/* The owner is to know that its answer came, even if this process ends now: what is
 * sent behind that is answered. */
static void part(struct nopin_cache *c)
{
	const struct patience p = caller_patience(&c->caller, PART_MS * MS,
						  NOPIN_WAIT_BLOCK);
	int rc = make_room(c, &p);

	if (!rc && link_ask(&c->caller.link))
		rc = EIO;
	for (link_reap(&c->caller.link);
	     !rc && c->caller.link.out && !c->caller.link.failed;
	     link_reap(&c->caller.link))
		rc = cache_wait_some(c, &p, MS / 10);
}

static int cache_say_goodbye(struct nopin_cache *c)
{
	const struct patience p = caller_patience(&c->caller, UINT64_MAX,
						  NOPIN_WAIT_BLOCK);
	int rc = cache_settle(c, &p);

	if (!rc)
		rc = make_room(c, &p);
	if (!rc)
		rc = cache_say(c, ASK_LEAVE, 0, 0);
	c->asked.first = 1; /* no block is meant */
	c->asked.last = 0;
	return rc ? rc : cache_settle(c, &p);
}

int nopin_cache_destroy(struct nopin_cache *c)
{
	int rc = caller_enter(&c->caller);

	if (rc)
		return rc;
	if (c->started && !c->caller.link.failed && !cache_say_goodbye(c))
		part(c);
	cache_free(c);
	return 0;
}
