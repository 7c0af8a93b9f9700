/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pattern.h: what accesses to a region are like. */
#ifndef NOPIN_MEM_PATTERN_H
#define NOPIN_MEM_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

struct pages;

enum { STREAMS = 4, SEEN = 8 };

/** struct seen - An access: its first page that was missing, and how many more. */
struct seen {
	uint64_t vpn, pages;
};

/**
 * struct stream - Accesses a stride apart.
 * @at, @pages:	the last one
 * @stride:	pages; 0: there is no stream
 * @hits:	of what was fetched; halved when that was in vain
 * @used:	pattern.clock then
 * @depth:	how many accesses ahead it may be, as things go
 * @asked:	how many were asked for; @want: are to be
 */
struct stream {
	uint64_t at, pages;
	int64_t stride;
	uint32_t hits, used;
	uint8_t depth, asked, want;
};

/**
 * struct pattern - What accesses to a region are like.
 * @seen:	a ring: those that are in no stream; @next: where the next goes
 */
struct pattern {
	struct stream s[STREAMS];
	struct seen seen[SEEN];
	uint32_t clock;
	uint16_t credit;
	uint8_t num, next;
};

void pattern_init(struct pattern *p);
struct stream *pattern_note(struct pattern *p, uint64_t vpn, uint64_t pages,
			    bool hit);
bool pattern_next(struct pattern *p, struct stream *s,
		  const struct pages *limit, struct pages *out);
bool pattern_asked(const struct pattern *p, unsigned i, struct pages *out);

#endif
