/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* backing.h: what kind of memory is at an address, as far as is known. */
#ifndef NOPIN_OS_BACKING_H
#define NOPIN_OS_BACKING_H

#include "os/mapping.h"
#include "os/pages.h"

#include <stdbool.h>
#include <stdint.h>

struct backing_cache;

struct backing_cache *backing_open(void);
void backing_close(struct backing_cache *c);

/** backing_forget() - Forget what is known of [addr, addr + len): it may be another
 * mapping by now. Until smaps is read again nothing is known of it. Context: any
 * thread; does not wait while smaps is read. */
void backing_forget(struct backing_cache *c, uint64_t addr, uint64_t len);

struct backing {
	enum os_backing kind;
	struct range cheap;
};

/**
 * backing_of() - Find what is behind @addr, as far as is known.
 * @slow: the fault just served took longer than a cheap one may
 */
struct backing backing_of(struct backing_cache *c, uint64_t addr, bool slow,
			  uint64_t now_ns);

/**
 * backing_doubt() - True if the page of @addr is not known to be private anonymous
 * memory, which only reclaim takes away. Then nothing is believed for long
 * (os_fresh_after()) until backing_learn(), which has to follow.
 * Context: a pager, before it says that the page is there; does not wait while smaps
 * is read.
 */
bool backing_doubt(struct backing_cache *c, uint64_t addr, uint64_t now_ns);

/**
 * backing_learn() - Find out what is at @addr, if it is time, or else when smaps is
 * read next: until then the doubt remains. Context: a pager that was in doubt; may
 * take milliseconds.
 * Return: false: it is other memory.
 */
bool backing_learn(struct backing_cache *c, uint64_t addr, uint64_t now_ns);

/**
 * backing_plain() - Find the mapping around @addr, if a page of it that is dropped is
 * an empty page. Return: {0, 0}: it is not, or is not known to be, such memory.
 * @early: written: nothing is known yet; smaps is being read, or will be in time
 * Context: a pager; may take milliseconds.
 */
struct range backing_plain(struct backing_cache *c, uint64_t addr, bool *early,
			   uint64_t now_ns);

#endif
