/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.c: a thread runs the engine (design D9): one that polls, posts, blocks for
 * an event (attend.c) or gives the engine lock back, and the background thread when
 * none of them does (turn.c).
 *
 * Theory of operation. Receiving is done by the holder of the receive token
 * (token.c), from os_recv() to the last commit, so that packets are taken in the order
 * they came. If its moves take longer than 50 us (a page blocks against all
 * expectation) the token may be taken over; the QP that is moving then gets its
 * packets into slots. Everything else is work behind the hand-off of the engine
 * lock (handoff.h).
 */
#include "nic/progress.h"
#include "base/check.h"
#include "base/counters.h"
#include "nic/acks.h"
#include "nic/closed.h"
#include "nic/device.h"
#include "nic/due.h"
#include "nic/engine.h"
#include "nic/handoff.h"
#include "nic/inlet.h"
#include "nic/lock.h"
#include "nic/sleepers.h"
#include "nic/step.h"
#include "nic/stint.h"
#include "nic/token.h"
#include "nic/usage.h"
#include "os/copy.h"
#include "os/pages.h"
#include "os/run.h"
#include "os/wait.h"

#include <errno.h>
#include <pthread.h>

enum {
	HEAR_WAITS = 100, /* for the token's holder, TOKEN_MOVING_NS each */
	/* What sending one takes, on a slow machine. */
	ACK_LEAVES_NS = 5 * 1000,
	WORK_ROUNDS = 32, /* steps that a program's thread does in one call */
};

static bool progress_take(struct nic *nic, struct step *s, uint64_t token)
{
	struct os_usage before = usage_begin(nic, CNT_own_majflt);
	bool got;

	s->token = token;
	got = inlet_receive(nic, s);
	if (accounted(nic, CNT_own_majflt))
		before.majflt += s->majflt;
	usage_end(nic, CNT_own_majflt, before, NULL);
	return got;
}

bool progress_receive(struct nic *nic, uint64_t *now_ns)
{
	const uint64_t mine = token_take(nic, *now_ns);
	bool got = false, begun;
	struct step *s;

	if (!mine)
		return false;
	s = step_get(nic);
	if (s && (inlet_inherit(nic, s) || progress_take(nic, s, mine))) {
		got = true;
		begun = os_step_begin();
		handoff_lock(&nic->engine);
		*now_ns = os_now(nic->os);
		while (step_plan_rx(nic, s, *now_ns)) {
			token_moves(nic, mine, true);
			*now_ns = step_run(nic, s);
			token_moves(nic, mine, false);
		}
		if (!engine_settled(nic, false, *now_ns))
			handoff_leave(&nic->engine);
		handoff_unlock(&nic->engine);
		os_step_end(begun);
	}
	if (s) {
		if (got || s->rx.all)
			inlet_taken(nic, mine, got ? MAX(1, s->taken) : 0);
		step_put(nic, s);
	}
	token_give(nic, mine);
	return got;
}

/* Lock held. Return: true when the rounds were used up. */
static bool work_rounds(struct nic *nic, struct step *s, bool flush_acks,
			uint64_t *now_ns)
{
	bool more = true;

	for (int i = 0; more && i < WORK_ROUNDS; i++) {
		const bool begun = os_step_begin();

		more = step_plan(nic, s, flush_acks, *now_ns);
		if (more) {
			*now_ns = step_run(nic, s);
			more = !engine_settled(nic, flush_acks, *now_ns);
		}
		os_step_end(begun);
	}
	return more;
}

void progress_run_step(struct nic *nic, struct step *s, bool flush_acks,
		       uint64_t now_ns)
{
	bool more = false;

	while (!more && handoff_left(&nic->engine) &&
	       handoff_try(&nic->engine)) {
		handoff_take(&nic->engine);
		more = work_rounds(nic, s, flush_acks, &now_ns);
		if (more)
			handoff_leave(&nic->engine);
		handoff_unlock(&nic->engine);
	}
	if (more)
		os_kick(nic->os);
}

void progress_run(struct nic *nic, bool flush_acks, uint64_t now_ns)
{
	struct step *s;

	handoff_leave(&nic->engine);
	s = step_get(nic);
	if (s) {
		progress_run_step(nic, s, flush_acks, now_ns);
		step_put(nic, s);
	} else {
		/* The threads that have a step may have looked for the last time,
		 * or may be blocked; the background thread has its own. */
		os_kick(nic->os);
	}
}

/* While the program forks its stacks become copy-on-write, and a step on one of
 * them would wait for the end of the fork; the background thread has its own. */
bool progress_elsewhere(const struct nic *nic)
{
	return nic->cfg.manual || os_forking(nic->os);
}

void progress_work(struct nic *nic, bool flush_acks)
{
	if (!progress_elsewhere(nic)) {
		progress_run(nic, flush_acks, os_now(nic->os));
		return;
	}
	handoff_leave(&nic->engine);
	if (!nic->cfg.manual)
		os_kick(nic->os);
}

/* A deadline is only one when timers may run so far: a thread that looked in vain
 * again and again would keep the lock from the thread that has the token.
 */
bool progress_due(struct nic *nic)
{
	return handoff_left(&nic->engine) || os_pages_waiting(nic->os) ||
	       inlet_heard(nic) >=
		       __atomic_load_n(&nic->deadline, __ATOMIC_RELAXED);
}

void progress_flush(struct nic *nic)
{
	struct step *s = nic->cfg.manual ? NULL : step_get(nic);
	uint64_t now;

	if (!s)
		return;
	handoff_lock(&nic->engine);
	now = os_now(nic->os);
	work_rounds(nic, s, true, &now);
	handoff_leave(&nic->engine);
	handoff_unlock(&nic->engine);
	step_put(nic, s);
}

/* Send the ACKs that are due. Return: the number of the last burst that another thread
 * may have under way. */
static uint32_t acks_send(struct nic *nic, struct step *s)
{
	uint32_t last;
	uint64_t now;

	handoff_lock(&nic->engine);
	now = os_now(nic->os);
	while (engine_plan_acks(nic, s, now))
		now = step_run(nic, s);
	last = nic->acks.begun;
	if (!engine_settled(nic, false, now))
		handoff_leave(&nic->engine);
	handoff_unlock(&nic->engine);
	return last;
}

/* That thread runs, and has left the kernel in a moment, or was taken off its CPU. */
static void acks_await(struct nic *nic, uint32_t last)
{
	const uint64_t spin = os_now(nic->os) + ACK_LEAVES_NS;
	int waits = 0;

	while ((int32_t)(__atomic_load_n(&nic->acks.ended, __ATOMIC_ACQUIRE) -
			 last) < 0 &&
	       waits < HEAR_WAITS) {
		const uint64_t now = os_now(nic->os);

		os_relax();
		if (now < spin)
			continue;
		waits++;
		os_doze(nic->os, -1, now + TOKEN_MOVING_NS);
	}
}

static void acks_leave(struct nic *nic)
{
	struct step *s = progress_elsewhere(nic) ? NULL : step_get(nic);
	uint32_t last;

	if (!s)
		return;
	last = acks_send(nic, s);
	step_put(nic, s);
	acks_await(nic, last);
}

void progress_owed(struct nic *nic)
{
	if (unlikely(__atomic_load_n(&nic->acks.due, __ATOMIC_RELAXED)))
		acks_leave(nic);
	if (handoff_left(&nic->engine))
		progress_work(nic, false);
}

void progress_hear(struct nic *nic)
{
	const uint64_t from = os_now(nic->os);
	uint64_t now = from;
	int waits = 0;

	while (!progress_elsewhere(nic) && waits < HEAR_WAITS &&
	       inlet_heard(nic) < from) {
		if (progress_receive(nic, &now)) {
			if (progress_due(nic))
				progress_run(nic, false, now);
			continue;
		}
		now = os_now(nic->os);
		waits++;
		if (token_held(
			    __atomic_load_n(&nic->rx.token, __ATOMIC_RELAXED),
			    now))
			os_doze(nic->os, -1, now + TOKEN_MOVING_NS);
	}
}

/* That wakes no thread: the next that waits finds out. */
void progress_closed(struct nic *nic)
{
	if (!os_closed(nic->os) || closed_noted(nic))
		return;
	closed_note(nic);
	progress_work(nic, false);
}

/* Do threads sleep on the sockets, and wake for what comes there? */
static bool progress_blocked(const struct nic *nic)
{
	return __atomic_load_n(&nic->sleepers.blocked, __ATOMIC_SEQ_CST) &&
	       __atomic_load_n(&nic->sleepers.blocks, __ATOMIC_RELAXED) !=
		       __atomic_load_n(&nic->sleepers.lapsed, __ATOMIC_RELAXED);
}

bool progress_polled(const struct nic *nic, uint64_t now_ns)
{
	return now_ns - __atomic_load_n(&nic->polls.last_ns, __ATOMIC_RELAXED) <
	       POLLED_RECENTLY_NS;
}

bool progress_looked_after(const struct nic *nic, uint64_t now_ns)
{
	if (os_forking(nic->os))
		return false;
	return progress_polled(nic, now_ns) ||
	       (progress_blocked(nic) &&
		now_ns < __atomic_load_n(&nic->deadline, __ATOMIC_RELAXED));
}

bool progress_attended(const struct nic *nic)
{
	return progress_looked_after(nic, os_now(nic->os)) &&
	       (__atomic_load_n(&nic->sleepers.blocked, __ATOMIC_RELAXED) ||
		__atomic_load_n(&nic->polls.last, __ATOMIC_RELAXED) !=
			os_self());
}

void nic_unlock(struct nic *nic)
{
	handoff_leave(&nic->engine);
	handoff_unlock(&nic->engine);
	progress_work(nic, false);
}

void nic_wait_idle(struct nic *nic)
{
	uint32_t seen;
	int cancel;

	/* The engine lock is given back by nic_unlock(), which looks at what
	 * was left meanwhile; waiting on a condition with it would not. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	nic->idle.waiters++;
	seen = nic->idle.events;
	nic_unlock(nic);
	pthread_mutex_lock(&nic->idle.lock);
	if (nic->idle.events == seen)
		pthread_cond_wait(&nic->idle.committed, &nic->idle.lock);
	pthread_mutex_unlock(&nic->idle.lock);
	nic_lock(nic);
	nic->idle.waiters--;
	pthread_setcancelstate(cancel, &cancel);
}

void nic_prepare(struct nic *nic)
{
	if (os_prepare_due(nic->os))
		os_prepare(nic->os);
}
