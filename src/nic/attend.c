/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attend.c: threads of the program that poll, or block for an event, run the engine. */
#include "nic/attend.h"
#include "base/check.h"
#include "base/timerq.h"
#include "nic/acks.h"
#include "nic/device.h"
#include "nic/due.h"
#include "nic/errors.h"
#include "nic/handoff.h"
#include "nic/progress.h"
#include "nic/sleepers.h"
#include "nic/token.h"
#include "os/run.h"
#include "os/wait.h"

#include <pthread.h>

enum {
	ASLEEP_MAX = 64, /* times in turn, after polling in vain */
	/* A thread that blocks and always finds packets lets signals in that often. */
	BLOCK_TURN_NS = 1000 * 1000,
};

/* A thread that polls, or is about to block, runs the engine: if a page stops it, others
 * take over. */
static void attend(struct nic *nic, uint64_t now_ns)
{
	__atomic_store_n(&nic->polls.last_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->polls.last, os_self(), __ATOMIC_RELAXED);
	nic_prepare(nic);
}

void attend_poll(struct nic *nic)
{
	uint64_t now = os_now(nic->os);
	uint32_t empty;

	if (progress_elsewhere(nic))
		return;
	attend(nic, now);
	if (progress_receive(nic, &now)) {
		__atomic_store_n(&nic->polls.empty, 0, __ATOMIC_RELAXED);
		if (progress_due(nic))
			progress_run(nic, false, now);
		return;
	}
	empty = __atomic_add_fetch(&nic->polls.empty, 1, __ATOMIC_RELAXED);
	errors_take(nic);
	if (progress_due(nic))
		progress_run(nic, false, now);
	else if (empty >= 2 &&
		 __atomic_load_n(&nic->acks.owed, __ATOMIC_RELAXED))
		progress_run(nic, true, now);
}

/* Others that seem to sleep may have left by siglongjmp(), so they are not relied on. Where
 * threads leave often the background thread sleeps shortly, and is not kicked. */
static void unblock(void *arg)
{
	struct nic *nic = arg;

	__atomic_fetch_add(&nic->sleepers.blocks, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&nic->sleepers.blocked, 1, __ATOMIC_SEQ_CST);
	due_left(nic, os_now(nic->os));
}

/* A thread that is cancelled leaves with the signals that it came with. */
static void restore_signals(void *arg)
{
	os_signals_restore(arg);
}

/* Until when, for what? A thread that has the token has what came, or lost its CPU with
 * it: then neither packets nor a deadline are anything for us to do. */
static uint64_t block_until(const struct nic *nic, uint64_t now_ns,
			    enum os_wait_for *what)
{
	*what = OS_WAIT_PACKETS;
	if (handoff_left(&nic->engine))
		return now_ns;
	if (!token_held(__atomic_load_n(&nic->rx.token, __ATOMIC_RELAXED),
			now_ns))
		return __atomic_load_n(&nic->deadline, __ATOMIC_RELAXED);
	*what = OS_WAIT_TIMER;
	return now_ns + TOKEN_MOVING_NS;
}

/* Packets that there are, until @woken or @until_ns. */
static void block_receive(struct nic *nic, const uint32_t *woken,
			  uint64_t until_ns, uint64_t *now)
{
	attend(nic, *now);
	while (!__atomic_load_n(woken, __ATOMIC_ACQUIRE) && *now < until_ns &&
	       progress_receive(nic, now)) {
		attend(nic, *now);
		__atomic_store_n(&nic->polls.empty, 0, __ATOMIC_RELAXED);
		if (progress_due(nic))
			progress_run(nic, false, *now);
	}
	/* Once @woken is set, an ACK that is owed goes with what the program sends,
	 * as if it polled. An unread error would end each sleep at once. */
	if (!__atomic_load_n(woken, __ATOMIC_ACQUIRE)) {
		errors_take(nic);
		progress_run(nic, true, *now);
	}
}

/* Being woken takes longer than many an answer: so a thread that blocks looks for that
 * long first (NOPIN_SPIN), if it is the only one, and if nothing came in that time
 * twice as many times not, up to ASLEEP_MAX: then others need the CPU, or what
 * comes takes longer anyway (Karlin et al., 1991: at most twice the cost of the
 * best choice).
 */
static void block_spin(struct nic *nic, const uint32_t *woken,
		       uint64_t until_ns, uint64_t *now)
{
	const uint64_t end = MIN(*now + nic->cfg.spin_ns, until_ns);
	const uint32_t left = __atomic_load_n(&nic->sleepers.asleep_left,
					      __ATOMIC_RELAXED);
	uint32_t times;

	if (left) {
		__atomic_store_n(&nic->sleepers.asleep_left, left - 1,
				 __ATOMIC_RELAXED);
		return;
	}
	while (*now < end &&
	       !__atomic_load_n(&nic->sleepers.blocked, __ATOMIC_RELAXED)) {
		os_relax();
		block_receive(nic, woken, end, now);
		if (__atomic_load_n(woken, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&nic->sleepers.asleep, 0,
					 __ATOMIC_RELAXED);
			return;
		}
		*now = os_now(nic->os);
	}
	times = 2 * __atomic_load_n(&nic->sleepers.asleep, __ATOMIC_RELAXED) +
		1;
	times = MIN(times, (uint32_t)ASLEEP_MAX);
	__atomic_store_n(&nic->sleepers.asleep, times, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->sleepers.asleep_left, times, __ATOMIC_RELAXED);
}

static int block_sleep(struct nic *nic, int fd, uint64_t until_ns,
		       uint64_t now_ns, struct os_signals *sig)
{
	enum os_wait_for what;
	uint64_t at;
	int err;

	__atomic_fetch_add(&nic->sleepers.blocks, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nic->sleepers.blocked, 1, __ATOMIC_RELAXED);
	/* os_wait_in_verb() may not return: the thread can be cancelled there. */
	pthread_cleanup_push(restore_signals, sig);
	pthread_cleanup_push(unblock, nic);
	at = block_until(nic, now_ns, &what);
	err = os_wait_in_verb(nic->os, what, MIN(at, until_ns), fd, sig);
	pthread_cleanup_pop(1);
	pthread_cleanup_pop(0);
	return err;
}

/* What only the thread that is woken does. */
static int block_idle(struct nic *nic, enum os_wait_for what, int fd,
		      uint64_t until_ns, struct os_signals *sig)
{
	int err;

	os_signals_block(sig);
	pthread_cleanup_push(restore_signals, sig);
	err = os_wait_in_verb(nic->os, what, until_ns, fd, sig);
	pthread_cleanup_pop(0);
	return err;
}

int attend_doze(struct nic *nic, int fd, uint64_t until_ns,
		struct os_signals *sig)
{
	int err;

	if (until_ns == TIME_NEVER && os_signals_differ(sig))
		err = os_event_wait(fd, sig);
	else
		err = block_idle(nic, OS_WAIT_EVENT, fd, until_ns, sig);
	progress_closed(nic);
	return err;
}

int attend_block(struct nic *nic, int fd, const uint32_t *woken,
		 uint64_t until_ns, struct os_signals *sig)
{
	uint64_t now = os_now(nic->os), turn;
	int err = 0;

	/* the background thread runs the engine, then */
	if (until_ns == TIME_NEVER && os_signals_differ(sig))
		return attend_doze(nic, fd, until_ns, sig);
	if (progress_elsewhere(nic))
		return block_idle(nic, OS_WAIT_TIMER, fd,
				  MIN(until_ns, now + POLLED_RECENTLY_NS), sig);
	os_signals_block(sig);
	turn = MIN(until_ns, now + BLOCK_TURN_NS);
	block_receive(nic, woken, turn, &now);
	if (nic->cfg.spin_ns && !__atomic_load_n(woken, __ATOMIC_ACQUIRE))
		block_spin(nic, woken, turn, &now);
	if (!__atomic_load_n(woken, __ATOMIC_ACQUIRE))
		err = block_sleep(nic, fd, until_ns, now, sig);
	progress_closed(nic);
	return err;
}
