/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.h: a transport with its memory, and no NIC. */
#ifndef NOPIN_TESTS_UNIT_XPORT_MEMORY_H
#define NOPIN_TESTS_UNIT_XPORT_MEMORY_H

#include "mem/mem.h"
#include "wire/roce.h"
#include "xport/xport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Open @mem and @x, with so many slots and tickets. Return: their memory, for free(). */
static inline void *open_memory_as(struct mem **mem, struct xport *x,
				   struct counters *cnt, unsigned slots,
				   unsigned tickets, bool exact)
{
	const uint64_t seed[2] = {1, 2};
	struct mem_config cfg = {.entries = 1 << 10,
				 .slots = slots,
				 .tickets = tickets,
				 .pagers = 4,
				 .exact = exact,
				 .slot_base = calloc(slots, MTU_MAX),
				 .counters = cnt};

	assert_int_equal(mem_open(mem, &cfg), 0);
	assert_int_equal(xport_open(x, *mem, cnt, slots, seed), 0);
	return cfg.slot_base;
}

static inline void *open_memory(struct mem **mem, struct xport *x,
				struct counters *cnt, unsigned slots)
{
	return open_memory_as(mem, x, cnt, slots, 8, false);
}

#endif
