/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pattern.c: which pages of a region are accessed next? Arithmetic only: dma.c
 * looks at pages and asks for them.
 *
 * Theory of operation. Noted are accesses that met a missing page, or one that was
 * fetched ahead; not those that met what was there anyway. The last few are
 * remembered. When one is as far behind an earlier one as that is behind another,
 * the three are a stream, of this stride, forward or backward; others may come
 * between them. A stream goes on when one of the pages comes that are due, and
 * those after it are worth fetching: one access ahead at first, then more, as long
 * as what was fetched is used.
 *
 * What may be wasted is bounded by credit: a fetch for an access costs COST, and
 * when it was of use GAIN comes back. So in the long run, of GAIN fetches COST are
 * of use, or no more are made. Accesses that a stream foresaw while nothing was
 * fetched earn a little, or there would be no way back.
 */
#include "mem/pattern.h"
#include "base/check.h"
#include "base/range.h"
#include "mem/overwrite.h"

enum {
	STRIDE_MAX = 4096, /* pages */
	DEPTH_MAX = 16, /* accesses ahead, of a page each, or as many pages */
	COST = 4,
	GAIN = 5,
	FORESEEN = 1,
	CREDIT_START = 8 * COST,
	CREDIT_MAX = 4 * DEPTH_MAX * COST,
};

static bool among(uint64_t vpn, uint64_t first, uint64_t pages)
{
	return range_ok(vpn - first, 1, pages);
}

/* How many strides of @s lie between where it is and @vpn? 0: that is none of its
 * pages that are due. */
static unsigned steps_to(const struct stream *s, uint64_t vpn)
{
	int64_t d = (int64_t)(vpn - s->at);

	if (!s->stride || d % s->stride || d / s->stride < 1 ||
	    d / s->stride > (int64_t)s->asked + 1)
		return 0;
	return (unsigned)(d / s->stride);
}

static void earn(struct pattern *p, unsigned n)
{
	p->credit = (uint16_t)MIN(p->credit + n, (unsigned)CREDIT_MAX);
}

static void go_on(struct pattern *p, struct stream *s, unsigned steps,
		  uint64_t vpn, uint64_t pages, bool hit)
{
	bool asked = s->asked >= steps;
	unsigned most = (unsigned)MAX(DEPTH_MAX / pages, 1);

	if (hit && asked) {
		earn(p, GAIN);
		s->hits++;
	} else if (asked) {
		s->hits /= 2; /* it came, and went before it was used */
	} else {
		earn(p, FORESEEN);
	}
	s->asked = asked ? (uint8_t)(s->asked - steps) : 0;
	s->at = vpn;
	s->pages = pages;
	s->used = ++p->clock;
	s->depth = (uint8_t)MIN(1 + s->hits / 2, most);
	/* in runs, not one by one */
	s->want = s->asked * 2 <= s->depth ? s->depth : s->asked;
}

static struct stream *stream_new(struct pattern *p)
{
	struct stream *old = &p->s[0];

	for (unsigned i = 1; i < STREAMS; i++)
		if ((uint32_t)(p->clock - p->s[i].used) >
		    (uint32_t)(p->clock - old->used))
			old = &p->s[i];
	return old;
}

/* The k-th access before this one. */
static const struct seen *seen_at(const struct pattern *p, unsigned k)
{
	return &p->seen[(p->next + SEEN - k) % SEEN];
}

/* The stride at which @vpn follows two that were seen, or 0. */
static int64_t find_stride(const struct pattern *p, uint64_t vpn)
{
	for (unsigned i = 1; i < p->num; i++) {
		int64_t d = (int64_t)(vpn - seen_at(p, i)->vpn);

		if (d == 0 || d > STRIDE_MAX || d < -STRIDE_MAX)
			continue;
		for (unsigned k = i + 1; k <= p->num; k++)
			if ((int64_t)(seen_at(p, i)->vpn -
				      seen_at(p, k)->vpn) == d)
				return d;
	}
	return 0;
}

/* A part of what is known already? */
static bool known(const struct pattern *p, uint64_t vpn)
{
	for (unsigned i = 0; i < STREAMS; i++)
		if (p->s[i].stride && among(vpn, p->s[i].at, p->s[i].pages))
			return true;
	for (unsigned k = 1; k <= p->num; k++)
		if (among(vpn, seen_at(p, k)->vpn, seen_at(p, k)->pages))
			return true;
	return false;
}

/**
 * pattern_init() - Make a pattern: nothing was seen yet.
 * @p:		a region's
 */
void pattern_init(struct pattern *p)
{
	*p = (struct pattern){.credit = CREDIT_START};
}

/**
 * pattern_note() - Note an access that met a page which was missing or was fetched ahead.
 * @p:		of its region
 * @vpn:	that page
 * @pages:	that its message is known to need from there on, at least 1
 * @hit:	the page was fetched ahead, or is just being fetched
 *
 * Return: the stream that it belongs to, for pattern_next(); or NULL.
 */
struct stream *pattern_note(struct pattern *p, uint64_t vpn, uint64_t pages,
			    bool hit)
{
	struct stream *s;
	int64_t stride;

	for (unsigned i = 0; i < STREAMS; i++) {
		unsigned steps = steps_to(&p->s[i], vpn);

		if (!steps || among(vpn, p->s[i].at, p->s[i].pages))
			continue;
		go_on(p, &p->s[i], steps, vpn, pages, hit);
		return &p->s[i];
	}
	if (known(p, vpn))
		return NULL;
	stride = find_stride(p, vpn);
	p->seen[p->next] = (struct seen){vpn, pages};
	p->next = (p->next + 1) % SEEN;
	p->num = MIN(p->num + 1, SEEN);
	if (!stride)
		return NULL;
	s = stream_new(p);
	*s = (struct stream){.stride = stride};
	go_on(p, s, 1, vpn, pages, false);
	return s;
}

/**
 * pattern_next() - Take the next pages of a stream that are worth fetching: they count as
 * asked for.
 * @p, @s:	from pattern_note(), just now
 * @limit:	pages of the region
 * @out:	set on success; at most DEPTH_MAX pages, or those of one access
 *
 * Return: false: there are none.
 */
bool pattern_next(struct pattern *p, struct stream *s,
		  const struct pages *limit, struct pages *out)
{
	const bool run = s->stride > 0 && (uint64_t)s->stride <= s->pages;
	uint64_t start;
	int64_t off;

	if (s->asked >= s->want || p->credit < COST)
		return false;
	off = s->stride * (s->asked + 1);
	start = s->at + (uint64_t)off;
	if (!among(start, limit->start, limit->end - limit->start)) {
		s->want = s->asked;
		return false;
	}
	do {
		s->asked++;
		p->credit -= COST;
	} while (run && s->asked < s->want && p->credit >= COST);
	out->start = start;
	out->end = s->at + (uint64_t)(s->stride * s->asked) +
		   MIN(s->pages, (uint64_t)DEPTH_MAX);
	out->end = MIN(out->end, limit->end);
	return true;
}

/**
 * pattern_asked() - Tell one after the other the pages that were asked for and that maybe
 * no access used yet.
 * @p:		of a region
 * @i:		0, 1, ...: which
 * @out:	set on success
 *
 * Return: false: there are no more.
 */
bool pattern_asked(const struct pattern *p, unsigned i, struct pages *out)
{
	for (unsigned k = 0; k < STREAMS; k++) {
		const struct stream *s = &p->s[k];

		if (i < s->asked) {
			out->start = s->at +
				     (uint64_t)(s->stride * (int64_t)(i + 1));
			out->end = out->start +
				   MIN(s->pages, (uint64_t)DEPTH_MAX);
			return true;
		}
		i -= s->asked;
	}
	return false;
}
