/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend.h: regions whose users are held up. */
#ifndef NOPIN_MEM_SUSPEND_H
#define NOPIN_MEM_SUSPEND_H

#include <stdbool.h>
#include <stdint.h>

struct mem;
struct waiter;

/**
 * mr_suspend() - Let accesses to a region wait from now on; its keys are as good as before.
 * It is suspended when mr_idle() says that no move is in it.
 * Return: 0; -ENOENT: no such region, or revoked; -EINVAL: it is suspended already;
 * -EOPNOTSUPP: it is the whole address space; -ENOMEM.
 */
int mr_suspend(struct mem *m, uint32_t key, uint64_t expected_ns,
	       uint64_t now_ns);

/**
 * mr_update() - Note that the memory of a suspended region is at @addr now. That this is
 * mapped is the caller's business.
 * Return: 0; -ENOENT; -EINVAL: not suspended, another length, the range wraps, or
 * atomics would be aligned otherwise; -EBUSY: moves are in it still.
 */
int mr_update(struct mem *m, uint32_t key, uint64_t addr, uint64_t length);

/**
 * mr_resume() - Resume a suspended region. Waiters come from moved_take(), in the order in
 * which they met the suspension; nothing that was known of the pages counts.
 * Return: 0; -ENOENT; -EINVAL: it is not suspended.
 */
int mr_resume(struct mem *m, uint32_t key, uint64_t now_ns);

/**
 * struct mr_suspension
 * @moving:	moves are still in it
 * @since_ns, @expected_ns: of this suspension, or the last
 * @pause_ns:	how long the first waiter that met the last one waited; 0: none did
 */
struct mr_suspension {
	bool suspended, moving;
	uint64_t since_ns, expected_ns, pause_ns;
};
/** mr_suspension() - Tell about the suspension of a region. Return: 0, or -ENOENT. */
int mr_suspension(struct mem *m, uint32_t key, struct mr_suspension *out);

/** waiter_suspended() - Return the key of the suspended region that @w waits for, or 0. */
uint32_t waiter_suspended(struct mem *m, const struct waiter *w,
			  uint64_t *expected_ns);

#endif
