/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spare.h: questions that are not asked again so soon. A process without CPU does not
 * read, and its socket buffer has places for 512 small packets where the system's limit
 * is the usual one (os/port.c asks for as much). It holds what QPs sent (flow.c), and
 * what they ask while nothing is heard: beyond SPARE_FROM questions a second each QP asks
 * eight times more rarely instead of twice. It still asks itself, as that of another QP
 * may be lost, or be for a QP that is gone.
 */
#ifndef NOPIN_XPORT_SPARE_H
#define NOPIN_XPORT_SPARE_H

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	SPARE_FROM = 64,
	SPARE_MAX_NS = 512 * 1000 * 1000,
	SPARE_WITHIN_NS = 1000 * 1000 * 1000,
};

/**
 * struct spared - What a peer was asked since it was heard, within SPARE_WITHIN_NS: few
 * that ask for long are not many.
 * @num: so often, since @since_ns
 */
struct spared {
	uint64_t since_ns, heard_ns;
	unsigned num;
};

/**
 * struct spare - What a QP asks.
 * @gap_ns:	so long it does not ask again, if its peer is to be spared; 0: it has not
 *		asked yet
 * @asked_ns:	when it asked last
 */
struct spare {
	uint64_t gap_ns, asked_ns;
};

/** spared_asked() - Count one more question to the peer. */
static inline void spared_asked(struct spared *p, uint64_t now_ns)
{
	if (now_ns >= p->since_ns + SPARE_WITHIN_NS)
		*p = (struct spared){.since_ns = now_ns,
				     .heard_ns = p->heard_ns};
	p->num++;
}

/** spared_heard() - Note that something of the peer is taken: it runs, or did lately. */
static inline void spared_heard(struct spared *p, uint64_t now_ns)
{
	p->heard_ns = now_ns;
	p->num = 0;
}

/** spare_heard() - Was the peer heard since we asked? Then it is likely to run, and what it
 * did not answer to be lost. */
static inline bool spare_heard(const struct spare *s, const struct spared *p)
{
	return p->heard_ns >= s->asked_ns;
}

/** spare_asks() - Is a question that is due asked? */
static inline bool spare_asks(const struct spare *s, const struct spared *p,
			      uint64_t now_ns)
{
	return p->num < SPARE_FROM || spare_heard(s, p) ||
	       now_ns >= s->asked_ns + s->gap_ns;
}

/** spare_asked() - Set the gap after a question that is asked now. @first_ns: the first
 * gap, also when the peer was heard. */
static inline void spare_asked(struct spare *s, const struct spared *p,
			       uint64_t first_ns, uint64_t now_ns)
{
	s->gap_ns = s->gap_ns && !spare_heard(s, p)
			    ? MIN(8 * s->gap_ns, (uint64_t)SPARE_MAX_NS)
			    : first_ns;
	s->asked_ns = now_ns;
}

#endif
