/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* news.c: the row of news, as the owner writes it and as the user reads it. */
#include "session/news.h"
#include "base/check.h"
#include "base/range.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* --- the owner ------------------------------------------------------------------- */

void row_init(struct news_row *r, struct news *slot, uint32_t cap)
{
	*r = (struct news_row){.slot = slot, .cap = cap, .silent = true};
}

static uint64_t room(const struct news_row *r)
{
	return r->cap - (r->written - r->consumed);
}

static void news_put(struct news_row *r, const struct news *n)
{
	CHECK(room(r) > 0);
	r->slot[r->written++ % r->cap] = *n;
}

void row_consumed(struct news_row *r, uint64_t consumed)
{
	if (consumed > r->consumed && consumed <= r->sent)
		r->consumed = consumed;
}

/* Is it next to what is to be sent last, or part of that? */
static bool merge(struct news_row *r, uint64_t addr, uint64_t last)
{
	struct news *n = &r->slot[(r->written - 1) % r->cap];

	if (r->written == r->sent || n->kind != NEWS_LOST ||
	    addr > sat_add(n->last, 1) || n->addr > sat_add(last, 1))
		return false;
	n->addr = MIN(n->addr, addr);
	n->last = MAX(n->last, last);
	return true;
}

static void tell(struct news_row *r, uint64_t addr, uint64_t last)
{
	if (r->silent || merge(r, addr, last))
		return;
	r->silent = room(r) < NEWS_ROOM_MIN;
	news_put(r,
		 &(struct news){.kind = r->silent ? NEWS_ALL_LOST : NEWS_LOST,
				.addr = addr,
				.last = last});
}

void row_lost(struct news_row *r, uint64_t addr, uint64_t last)
{
	r->doubt |= r->asked && addr <= r->last && r->addr <= last;
	tell(r, addr, last);
}

void row_ask(struct news_row *r, uint64_t addr, uint64_t last)
{
	r->asked = true;
	r->doubt = false;
	r->addr = addr;
	r->last = last;
}

bool row_answer(struct news_row *r, enum news_result result)
{
	if (room(r) < 2)
		return false;
	news_put(r, &(struct news){.kind = NEWS_ANSWER, .result = result});
	r->silent = false;
	if (r->doubt)
		tell(r, r->addr, r->last);
	r->asked = r->doubt = false;
	return true;
}

bool row_send(struct news_row *r, uint32_t *at, uint32_t *num)
{
	const uint32_t from = (uint32_t)(r->sent % r->cap);

	*at = from;
	*num = (uint32_t)MIN(r->written - r->sent, r->cap - from);
	if (!*num)
		return false;
	r->slot[from].batch = *num;
	r->sent += *num;
	return true;
}

/* --- the user -------------------------------------------------------------------- */

/* What it reads may be written to at any time, by an owner that does not keep to
 * this: it is copied, then looked at. */
static struct news copy_of(const struct news *from)
{
	const volatile struct news *v = from;

	return (struct news){v->kind, v->batch, v->addr, v->last, v->result};
}

int reader_next(struct news_reader *r, uint64_t arrived, struct news *out)
{
	const uint32_t at = (uint32_t)(r->consumed % r->cap);
	struct news n;

	if (!r->left && r->batches == arrived)
		return 0;
	n = copy_of(&r->slot[at]);
	if (!r->left) {
		if (n.batch == 0 || n.batch > r->cap - at)
			return -EPROTO;
		r->left = n.batch;
		r->batches++;
	}
	if (n.kind <= NEWS_NONE || n.kind >= NEWS_NUM)
		return -EPROTO;
	r->left--;
	r->consumed++;
	*out = n;
	return 1;
}
