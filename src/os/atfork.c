/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* atfork.c: what a child of fork() forgets of its parent (design D7, D13).
 *
 * Theory of operation. What may not outlive a fork() lies in memory that a child
 * finds zeroed (heap.h), or is forgotten by fork_forget_parent(): here is the only
 * list. That is done once in a process, by the first of these: our handler, or
 * an open, be it in a handler that runs before ours or after a fork that runs none.
 * A thread that the child lacks may have been in the middle of anything, so locks
 * are made anew, and tables are written in an order in which they make sense at
 * any moment.
 *
 * Our handlers are installed when the library is loaded, so that those of the
 * program, which may use the NIC, run outside of them. One that was installed even
 * before runs between them: the lock that is held across a fork() lets its thread in
 * again. It may open and close devices; data moves when fork() has returned, or in
 * the child. They cannot be taken back; the library is never unloaded.
 */
#include "os/atfork.h"
#include "base/heap.h"
#include "os/board.h"
#include "os/file.h"
#include "os/fork.h"
#include "os/fresh.h"
#include "os/populate.h"
#include "os/signal.h"
#include "os/touch.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

/** struct life - A process's own. @begun: it has forgotten what was its parent's */
struct life {
	pthread_mutex_t lock;
	bool begun;
};

static void *life_place;
/* There may be something to forget in a child. By life.lock. */
static bool lived;
static int fork_ret;

static void fork_forget_parent(void)
{
	fork_in_child();
	board_in_child();
	files_in_child();
	fresh_in_child();
	populate_in_child();
	touch_in_child();
	signals_in_child();
}

/* Return: 0 or -ENOMEM: then it is tried again when a device is opened. */
static int life_begin(void)
{
	struct life *life = heap_own(&life_place, sizeof(*life));

	if (!life)
		return -ENOMEM;
	if (__atomic_load_n(&life->begun, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&life->lock);
	if (!life->begun && lived)
		fork_forget_parent();
	lived = true;
	__atomic_store_n(&life->begun, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&life->lock);
	return 0;
}

static void fork_before(void)
{
	/* Or an open before the fork would take itself for one in a child. */
	(void)life_begin();
	heap_before_fork();
	fork_begin();
}

static void fork_child(void)
{
	(void)life_begin();
}

__attribute__((constructor)) static void fork_install(void)
{
	fork_ret = -pthread_atfork(fork_before, fork_end, fork_child);
}

int fork_init(void)
{
	return fork_ret < 0 ? fork_ret : life_begin();
}
