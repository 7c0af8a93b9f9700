/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* psns.h: how far the requests of a requester are, in PSNs. Only the functions here write
 * that, and each is named for what happened. All of it belongs to the holder of the engine
 * lock.
 */
#ifndef NOPIN_XPORT_PSNS_H
#define NOPIN_XPORT_PSNS_H

#include "base/check.h"
#include "wire/psn.h"

#include <stdbool.h>

/**
 * struct req_psns - una <= snd <= max, una <= acc <= max.
 * @una:	first PSN not completed (not placed at the peer, or response not
 *		placed here)
 * @acc:	first PSN that the peer has not accepted
 * @snd:	next PSN to send; behind @max only after going back
 * @max:	first PSN never sent
 * @placed:	the peer said that all requests before this are; @una waits for the
 *		responses among them
 * @epoch:	counts how often we went back
 */
struct req_psns {
	psn_t una, acc, snd, max, placed;
	uint32_t epoch;
};

/** psns_check() - Fail if they are not in order. */
static inline void psns_check(const struct req_psns *p)
{
	CHECK(psn_diff(p->una, p->acc) <= 0 && psn_diff(p->acc, p->max) <= 0);
	CHECK(psn_diff(p->una, p->snd) <= 0 && psn_diff(p->snd, p->max) <= 0);
}

/** psns_begin() - Begin a life: the first request has @psn. Bursts of the life before are
 * of another epoch. */
static inline void psns_begin(struct req_psns *p, psn_t psn)
{
	p->una = p->acc = p->snd = p->max = p->placed = psn;
	p->epoch++;
}

/**
 * psns_sent() - Note that a burst takes @n PSNs at snd.
 * Return: how many of them were never sent before.
 */
static inline uint32_t psns_sent(struct req_psns *p, uint32_t n)
{
	int32_t fresh;

	p->snd = psn_add(p->snd, n);
	fresh = psn_diff(p->snd, p->max);
	if (fresh <= 0)
		return 0;
	p->max = p->snd;
	return (uint32_t)fresh;
}

/** psns_unsent() - Note that what a burst took did not leave: it began at @from, when
 * @max was the first PSN never sent. */
static inline void psns_unsent(struct req_psns *p, psn_t from, psn_t max)
{
	p->snd = from;
	p->max = max;
}

/** psns_aimed() - Send next what is at @psn. The caller aims back after the burst, unless
 * that went farther.
 * Return: what would have been next. */
static inline psn_t psns_aimed(struct req_psns *p, psn_t psn)
{
	const psn_t was = p->snd;

	p->snd = psn;
	return was;
}

/** psns_gone_back() - Note that all from @to on, una or acc, is sent again. */
static inline void psns_gone_back(struct req_psns *p, psn_t to)
{
	p->snd = p->acc = to;
	p->epoch++;
}

/**
 * psns_accepted() - Note that the peer says that it accepted all before @to.
 * @newest:	it answers our newest question: where it has less than it had, it forgot
 */
static inline void psns_accepted(struct req_psns *p, psn_t to, bool newest)
{
	const bool more = psn_diff(to, p->acc) > 0 && psn_diff(to, p->max) <= 0;
	const bool less = psn_diff(to, p->acc) < 0 && psn_diff(to, p->una) >= 0;

	if (more || (less && newest))
		p->acc = to;
}

/** psns_placed() - Note that the peer says that it placed all before @to.
 * Return: as far as it ever said. */
static inline psn_t psns_placed(struct req_psns *p, psn_t to)
{
	if (psn_diff(to, p->placed) > 0)
		p->placed = to;
	return p->placed;
}

/** psns_completed() - Note that all before @to is complete. So it was accepted, which a
 * response says, too, of a READ that was asked for again; and it is not sent again. */
static inline void psns_completed(struct req_psns *p, psn_t to)
{
	p->una = to;
	if (psn_diff(to, p->acc) > 0)
		p->acc = to;
	if (psn_diff(to, p->snd) > 0)
		p->snd = to;
}

#endif
