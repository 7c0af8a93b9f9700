/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pins.h: which pages we locked, how often, and which of them nobody needs. */
#ifndef NOPIN_NIC_PINS_H
#define NOPIN_NIC_PINS_H

#include "os/pages.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pin_edge;

/**
 * struct pins - The locked pages of a NIC.
 * @os:		locks them
 * @cnt:	its (a) counters pin_*
 * @limit:	bytes that we keep locked, beyond what is in use; 0: none
 * @sticky:	what the program locked is forgotten by pins_look() only
 * The rest is pins.c's, under @lock, which is held while the kernel locks: a leaf.
 */
struct pins {
	struct os *os;
	struct counters *cnt;
	uint64_t limit;
	bool sticky;
	pthread_mutex_t lock;
	struct pin_edge *v;
	uint32_t num, cap, users;
	uint64_t pages, clock;
};

void pins_open(struct pins *p, struct os *os, struct counters *cnt);
/** pins_close() - Unlock all that we locked. No range is in use. */
void pins_close(struct pins *p);

/**
 * pins_get() - Add a user of the pages of [addr, addr + len), and lock those that neither
 * we nor the program had locked.
 * @fetch:	see os_pin()
 * Return: 0; -ENOMEM, -EFAULT: then nothing has changed. Context: any thread.
 */
int pins_get(struct pins *p, uint64_t addr, uint64_t len, bool fetch);

/**
 * pins_put() - Remove a user of a range that was given to pins_get(). Pages that we locked
 * and that have no other are unlocked, or kept for the next user if there is a limit.
 */
void pins_put(struct pins *p, uint64_t addr, uint64_t len);

/**
 * pins_look() - Find out what of the range the program itself locked: pins_get()
 * and pins_put() leave that alone. (pins_get() does this for what it locks,
 * unless @sticky.)
 */
int pins_look(struct pins *p, uint64_t addr, uint64_t len);

#endif
