/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reorder.h: how late packets come that others overtook. */
#ifndef NOPIN_XPORT_REORDER_H
#define NOPIN_XPORT_REORDER_H

#include <stdint.h>

struct lateness;

/** late_came() - Learn that a gap was filled after @ns by the packet that had been sent
 * first. */
void late_came(struct lateness *l, uint64_t ns);

/** late_doubted() - Learn that what was sent again after a gap was not lost: it came @ns
 * later or earlier than that. */
void late_doubted(struct lateness *l, uint64_t ns);

/** late_gap() - Count one more gap that is over, however it was filled. Where few are late
 * the wait shrinks. */
void late_gap(struct lateness *l);

#endif
