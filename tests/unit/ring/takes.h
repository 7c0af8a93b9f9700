/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* takes.h: which receive comes from a source. */
#ifndef NOPIN_TESTS_UNIT_RING_TAKES_H
#define NOPIN_TESTS_UNIT_RING_TAKES_H

#include "ring/receive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static inline void is(const struct wqe *w, uint64_t id)
{
	assert_non_null(w);
	assert_int_equal(w->wr_id, id);
}

/* The next one is @id, and becomes @r. */
static inline void takes(struct receive_source *s, struct receive *r,
			 uint64_t id)
{
	assert_true(receive_take(s, r));
	is(r->wqe, id);
}

#endif
