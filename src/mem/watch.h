/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* watch.h: regions that have a minimum, a weight or upcalls. */
#ifndef NOPIN_MEM_WATCH_H
#define NOPIN_MEM_WATCH_H

#include "base/list.h"
#include "mem/upcall.h"

#include <stdint.h>

struct mem;
struct mr;
struct mr_attr;

/** struct upcall_event - Queued: [off, off + len) of the region of @key. */
struct upcall_event {
	uint64_t off, len, at_ns;
	uint32_t key;
	uint8_t reason; /* enum upcall_reason */
	bool below;
};

/**
 * struct watch - The live regions that have a minimum, a weight or upcalls.
 * @mr, @start:	by first page
 * @end:	a tree: of region i, the page behind it is at @cap + i; of the inner
 *		nodes, n is the larger one of 2n and 2n + 1. 0: no region
 * @num, @cap:	@cap is 0 or a power of two
 * @promised:	all that they are promised
 * @counted:	spt_known()'s own
 * @news:	struct upcalls
 */
struct watch {
	struct mr **mr;
	uint64_t *start, *end;
	uint32_t num, cap;
	uint32_t promised, counted;
	struct list news;
};

int watch_room(struct mem *m, const struct mr_attr *attr);
void watch_fini(struct mem *m);
void watch_add(struct mem *m, struct mr *mr, const struct mr_attr *attr);
void watch_remove(struct mem *m, struct mr *mr);
void watch_put_back(struct mem *m, struct mr *mr);
void watch_renew(struct mem *m, struct mr *mr);
void watch_forget(struct mem *m);
struct mr *watch_next(const struct watch *w, uint64_t vpn, uint32_t *at);
void upcall_page(struct mem *m, uint64_t vpn, uint64_t e,
		 enum upcall_reason reason);
void upcall_region(struct mem *m, const struct mr *mr,
		   enum upcall_reason reason);
void upcall_all(struct mem *m, enum upcall_reason reason);
void mr_let_go(struct mr *mr);

#endif
