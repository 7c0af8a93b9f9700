/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.c: who runs the engine (design D9): whoever polls, whoever posts,
 * whoever blocks for an event, and a background thread when none of them does.
 *
 * Theory of operation. Receiving is done by the holder of the receive token,
 * from os_recv() to the last commit, so that packets are taken in the order
 * they came. If its moves take longer than 50 us (a page blocks against all
 * expectation) the token may be taken over; the QP that is moving then gets its
 * packets into slots. Everything else is work behind the hand-off of the engine
 * lock (handoff.h).
 * The background thread sleeps on the sockets; while somebody polls it sleeps
 * on a timer instead, so that packets do not wake it for nothing.
 */
#include "nic/progress.h"
#include "base/base.h"
#include "nic/arbiter.h"
#include "nic/ctl.h"
#include "nic/device.h"
#include "nic/due.h"
#include "nic/engine.h"
#include "nic/errors.h"
#include "nic/handoff.h"
#include "nic/holder.h"
#include "nic/net.h"
#include "nic/standby.h"
#include "nic/step.h"
#include "nic/usage.h"
#include "os/copy.h"
#include "os/pages.h"
#include "os/run.h"
#include "os/wait.h"

#include <errno.h>
#include <pthread.h>

enum {
	TOKEN_MOVING_NS = 50 * 1000,
	/* The scheduler took the holder off its CPU. What is received before
	 * it comes back looks as if its burst were lost. */
	TOKEN_STALE_NS = 200 * 1000 * 1000,
	HEAR_WAITS = 100, /* for who holds the token, TOKEN_MOVING_NS each */
	/* What sending one takes, on a slow machine. */
	ACK_LEAVES_NS = 5 * 1000,
	WORK_ROUNDS = 32, /* steps that a program's thread does in one call */
	TURN_ROUNDS =
		1024, /* bursts that the background thread takes at once */
	ASLEEP_MAX = 64, /* times in turn, after polling in vain */
	/* Who blocks and always finds packets lets signals in that often. */
	BLOCK_TURN_NS = 1000 * 1000,
};

/* nic.token: 0, or the time it was taken at << 1, | TOKEN_MOVES. One word: whoever
 * overtakes takes the mark with it, so nobody finds the new holder's token with
 * the old one's mark (model: tests/model/token.pml). */
enum { TOKEN_MOVES = 1 };

static uint64_t token_limit_ns(uint64_t token)
{
	return token & TOKEN_MOVES ? TOKEN_MOVING_NS : TOKEN_STALE_NS;
}

static bool token_held(uint64_t token, uint64_t now_ns)
{
	uint64_t since = token >> 1;

	return token &&
	       (now_ns < since || now_ns - since < token_limit_ns(token));
}

/* Return: the token as it is while nobody overtakes us and nothing moves; 0:
 * somebody else has it. */
static uint64_t token_take(struct nic *nic, uint64_t now_ns)
{
	uint64_t held = __atomic_load_n(&nic->token, __ATOMIC_RELAXED);
	uint64_t mine = now_ns << 1;

	if (token_held(held, now_ns) ||
	    !__atomic_compare_exchange_n(&nic->token, &held, mine, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	if (held)
		count_atomic(&nic->cnt,
			     held & TOKEN_MOVES ? CNT_token_moving
						: CNT_token_stale,
			     1);
	return mine;
}

/* Only between a plan and its commit may the token be taken over soon: then the
 * QP is known to be moving. Before, our burst is out of the socket and known to
 * nobody, and whoever overtook us would take it for lost. */
static void token_moves(struct nic *nic, uint64_t mine, bool moves)
{
	uint64_t from = mine | (moves ? 0 : TOKEN_MOVES);

	__atomic_compare_exchange_n(&nic->token, &from, from ^ TOKEN_MOVES,
				    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static void token_give(struct nic *nic, uint64_t mine)
{
	__atomic_compare_exchange_n(&nic->token, &mine, 0, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* @mine: our token; @taken: bytes received and committed, at least 1, or 0 if the
 * sockets were empty. Who is overtaken in here may still count its bytes to the next
 * holder's: that is as good as having received them a little later.
 */
static void heard(struct nic *nic, uint64_t mine, uint32_t taken)
{
	uint64_t bytes, from, from_ns = mine >> 1;

	if (__atomic_load_n(&nic->token, __ATOMIC_RELAXED) != mine)
		return; /* it was taken over */
	bytes = __atomic_add_fetch(&nic->hear_bytes, taken, __ATOMIC_RELAXED);
	if (taken && bytes < nic->rcvbuf)
		return;
	from = taken ? __atomic_load_n(&nic->hear_from, __ATOMIC_RELAXED)
		     : from_ns;
	__atomic_store_n(&nic->heard, from, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->hear_from, from_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->hear_bytes, 0, __ATOMIC_RELAXED);
}

static bool receive(struct nic *nic, struct step *s, uint64_t token)
{
	struct os_usage before = usage_begin(nic, CNT_own_majflt);
	bool got;

	s->token = token;
	got = engine_receive(nic, s);
	if (accounted(nic, CNT_own_majflt))
		before.majflt += s->majflt;
	usage_end(nic, CNT_own_majflt, before, NULL);
	return got;
}

static bool inherit(struct nic *nic, struct step *s)
{
	bool got;

	if (!__atomic_load_n(&nic->rest, __ATOMIC_RELAXED))
		return false;
	handoff_lock(&nic->engine);
	got = engine_inherit(nic, s);
	handoff_leave(&nic->engine);
	handoff_unlock(&nic->engine);
	return got;
}

/* @now_ns: now, afterwards too. What there is to do then is left to the caller
 * (work_waits()). */
bool progress_receive(struct nic *nic, uint64_t *now_ns)
{
	const uint64_t mine = token_take(nic, *now_ns);
	bool got = false, begun;
	struct step *s;

	if (!mine)
		return false;
	s = step_get(nic);
	if (s && (inherit(nic, s) || receive(nic, s, mine))) {
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
			heard(nic, mine, got ? MAX(1, s->taken) : 0);
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

static void work_in(struct nic *nic, struct step *s, bool flush_acks,
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

static void work(struct nic *nic, bool flush_acks, uint64_t now_ns)
{
	struct step *s;

	handoff_leave(&nic->engine);
	s = step_get(nic);
	if (s) {
		work_in(nic, s, flush_acks, now_ns);
		step_put(nic, s);
	} else {
		/* Those who have a step may have looked for the last time, or
		 * may be blocked; the background thread has its own. */
		os_kick(nic->os);
	}
}

/* While the program forks its stacks become copy-on-write, and a step on one of
 * them would wait for the end of the fork; the background thread has its own. */
static bool not_here(const struct nic *nic)
{
	return nic->cfg.manual || os_forking(nic->os);
}

void progress_work(struct nic *nic, bool flush_acks)
{
	if (!not_here(nic)) {
		work(nic, flush_acks, os_now(nic->os));
		return;
	}
	handoff_leave(&nic->engine);
	if (!nic->cfg.manual)
		os_kick(nic->os);
}

static void turn_begins(struct nic *nic, const struct step *step)
{
	if (step)
		standby_watch(nic, true);
}

static void turn_work(struct nic *nic, struct step *step, bool flush_acks)
{
	turn_begins(nic, step);
	if (!step) {
		work(nic, flush_acks, os_now(nic->os));
		return;
	}
	handoff_leave(&nic->engine);
	work_in(nic, step, flush_acks, os_now(nic->os));
}

/* A deadline is only one when timers may run so far: whoever looked in vain
 * again and again would keep the lock from the thread that has the token.
 */
static bool work_waits(struct nic *nic)
{
	return handoff_left(&nic->engine) || os_pages_waiting(nic->os) ||
	       __atomic_load_n(&nic->heard, __ATOMIC_RELAXED) >=
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

/* Who polls, or is about to block, runs the engine: if a page stops it, others
 * take over. */
static void attend(struct nic *nic, uint64_t now_ns)
{
	__atomic_store_n(&nic->last_poll, now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->last_poller, os_self(), __ATOMIC_RELAXED);
	nic_prepare(nic);
}

void progress_poll(struct nic *nic)
{
	uint64_t now = os_now(nic->os);
	uint32_t empty;

	if (not_here(nic))
		return;
	attend(nic, now);
	if (progress_receive(nic, &now)) {
		__atomic_store_n(&nic->empty_polls, 0, __ATOMIC_RELAXED);
		if (work_waits(nic))
			work(nic, false, now);
		return;
	}
	empty = __atomic_add_fetch(&nic->empty_polls, 1, __ATOMIC_RELAXED);
	errors_take(nic);
	if (work_waits(nic))
		work(nic, false, now);
	else if (empty >= 2 &&
		 __atomic_load_n(&nic->acks_owed, __ATOMIC_RELAXED))
		work(nic, true, now);
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
	last = nic->acks_begun;
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

	while ((int32_t)(__atomic_load_n(&nic->acks_ended, __ATOMIC_ACQUIRE) -
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
	struct step *s = not_here(nic) ? NULL : step_get(nic);
	uint32_t last;

	if (!s)
		return;
	last = acks_send(nic, s);
	step_put(nic, s);
	acks_await(nic, last);
}

void progress_owed(struct nic *nic)
{
	if (unlikely(__atomic_load_n(&nic->acks_now, __ATOMIC_RELAXED)))
		acks_leave(nic);
	if (handoff_left(&nic->engine))
		progress_work(nic, false);
}

void progress_hear(struct nic *nic)
{
	const uint64_t from = os_now(nic->os);
	uint64_t now = from;
	int waits = 0;

	while (!not_here(nic) && waits < HEAR_WAITS &&
	       __atomic_load_n(&nic->heard, __ATOMIC_RELAXED) < from) {
		if (progress_receive(nic, &now)) {
			if (work_waits(nic))
				work(nic, false, now);
			continue;
		}
		now = os_now(nic->os);
		waits++;
		if (token_held(__atomic_load_n(&nic->token, __ATOMIC_RELAXED),
			       now))
			os_doze(nic->os, -1, now + TOKEN_MOVING_NS);
	}
}

/* Nobody is woken by it: whoever waits next finds out. */
void progress_closed(struct nic *nic)
{
	if (!os_closed(nic->os) ||
	    __atomic_load_n(&nic->closed, __ATOMIC_RELAXED))
		return;
	engine_closed(nic);
	progress_work(nic, false);
}

/* Does a thread of the program look at the sockets? Not one that sleeps on them
 * until a deadline that was later than the one that has passed: then timers
 * would wait for ever for somebody to look. */
static bool looked_after(const struct nic *nic, uint64_t now_ns)
{
	uint64_t polled = __atomic_load_n(&nic->last_poll, __ATOMIC_RELAXED);

	if (os_forking(nic->os))
		return false;
	return now_ns - polled < POLLED_RECENTLY_NS ||
	       (__atomic_load_n(&nic->blocked, __ATOMIC_RELAXED) &&
		now_ns < __atomic_load_n(&nic->deadline, __ATOMIC_RELAXED));
}

uint64_t progress_turn(struct nic *nic, struct step *step,
		       enum os_wait_for *what)
{
	uint64_t now = os_now(nic->os), deadline;
	int empty = 0, rounds = 0;

	if (looked_after(nic, now)) {
		*what = OS_WAIT_TIMER;
		if (work_waits(nic))
			turn_work(nic, step, false);
		return now + POLLED_RECENTLY_NS;
	}
	/* a socket that is never empty keeps it from nothing else */
	while (empty < 2 && rounds++ < TURN_ROUNDS) {
		now = os_now(nic->os);
		turn_begins(nic, step);
		if (token_held(__atomic_load_n(&nic->token, __ATOMIC_RELAXED),
			       now)) {
			*what = OS_WAIT_TIMER;
			if (work_waits(nic))
				turn_work(nic, step, false);
			return now + POLLED_RECENTLY_NS;
		}
		if (progress_receive(nic, &now)) {
			empty = 0;
			if (work_waits(nic))
				turn_work(nic, step, false);
		} else {
			empty++;
		}
	}
	errors_take(nic);
	turn_work(nic, step, true);
	*what = OS_WAIT_PACKETS;
	deadline = __atomic_load_n(&nic->deadline, __ATOMIC_RELAXED);
	if (!handoff_left(&nic->engine))
		return deadline;
	if (!(nic->cfg.strategies & STRATEGY_BIT(STRATEGY_BLOCK)))
		return now;
	/* whoever has the engine may sleep in a fault: spinning wakes nobody */
	*what = OS_WAIT_TIMER;
	return now + POLLED_RECENTLY_NS;
}

void progress_sleep(struct nic *nic, uint64_t until, enum os_wait_for what)
{
	until = MIN(until, os_now(nic->os) + SLEEP_MAX_NS);
	/* Either we see a deadline that was set meanwhile, or whoever sets it
	 * sees until when we sleep, and kicks. */
	__atomic_store_n(&nic->bg_until, until, __ATOMIC_SEQ_CST);
	if (what == OS_WAIT_PACKETS &&
	    __atomic_load_n(&nic->deadline, __ATOMIC_SEQ_CST) < until)
		return;
	os_wait(nic->os, what, until, -1);
	progress_closed(nic);
}

static void background(void *arg)
{
	struct nic *nic = arg;

	while (!__atomic_load_n(&nic->stop, __ATOMIC_ACQUIRE)) {
		enum os_wait_for what;
		uint64_t until;

		until = progress_turn(nic, &nic->steps[BACKGROUND_STEP], &what);
		standby_watch(nic, false);
		until = arbiter_turn(nic, until);
		until = roce_turn(nic, until);
		until = net_turn(nic, until);
		progress_sleep(nic, until, what);
		ctl_serve(nic);
	}
}

static void unblock(void *arg)
{
	struct nic *nic = arg;

	__atomic_fetch_sub(&nic->blocked, 1, __ATOMIC_RELAXED);
}

/* A thread that is cancelled leaves with the signals that it came with. */
static void restore_signals(void *arg)
{
	os_signals_restore(arg);
}

/* Until when, for what? Whoever has the token has what came, or lost its CPU with
 * it: then neither packets nor a deadline are anything for us to do. */
static uint64_t block_until(const struct nic *nic, uint64_t now_ns,
			    enum os_wait_for *what)
{
	*what = OS_WAIT_PACKETS;
	if (handoff_left(&nic->engine))
		return now_ns;
	if (!token_held(__atomic_load_n(&nic->token, __ATOMIC_RELAXED), now_ns))
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
		__atomic_store_n(&nic->empty_polls, 0, __ATOMIC_RELAXED);
		if (work_waits(nic))
			work(nic, false, *now);
	}
	/* What is owed then goes with what the program sends, as if it polled. An
	 * error that nobody reads would end each sleep at once. */
	if (!__atomic_load_n(woken, __ATOMIC_ACQUIRE)) {
		errors_take(nic);
		work(nic, true, *now);
	}
}

/* Being woken takes longer than many an answer: so whoever blocks looks for that
 * long first (NOPIN_SPIN), if it is the only one, and if nothing came in that time
 * twice as many times not, up to ASLEEP_MAX: then others need the CPU, or what
 * comes takes longer anyway (Karlin et al., 1991: at most twice the cost of the
 * best choice).
 */
static void block_spin(struct nic *nic, const uint32_t *woken,
		       uint64_t until_ns, uint64_t *now)
{
	const uint64_t end = MIN(*now + nic->cfg.spin_ns, until_ns);
	const uint32_t left = __atomic_load_n(&nic->asleep_left,
					      __ATOMIC_RELAXED);
	uint32_t times;

	if (left) {
		__atomic_store_n(&nic->asleep_left, left - 1, __ATOMIC_RELAXED);
		return;
	}
	while (*now < end &&
	       !__atomic_load_n(&nic->blocked, __ATOMIC_RELAXED)) {
		os_relax();
		block_receive(nic, woken, end, now);
		if (__atomic_load_n(woken, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&nic->asleep, 0, __ATOMIC_RELAXED);
			return;
		}
		*now = os_now(nic->os);
	}
	times = 2 * __atomic_load_n(&nic->asleep, __ATOMIC_RELAXED) + 1;
	times = MIN(times, (uint32_t)ASLEEP_MAX);
	__atomic_store_n(&nic->asleep, times, __ATOMIC_RELAXED);
	__atomic_store_n(&nic->asleep_left, times, __ATOMIC_RELAXED);
}

static int block_sleep(struct nic *nic, int fd, uint64_t until_ns,
		       uint64_t now_ns, struct os_signals *sig)
{
	enum os_wait_for what;
	uint64_t at;
	int err;

	__atomic_fetch_add(&nic->blocked, 1, __ATOMIC_RELAXED);
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

int progress_doze(struct nic *nic, int fd, uint64_t until_ns,
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

int progress_block(struct nic *nic, int fd, const uint32_t *woken,
		   uint64_t until_ns, struct os_signals *sig)
{
	uint64_t now = os_now(nic->os), turn;
	int err = 0;

	/* the background thread runs the engine, then */
	if (until_ns == TIME_NEVER && os_signals_differ(sig))
		return progress_doze(nic, fd, until_ns, sig);
	if (not_here(nic))
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

bool progress_attended(const struct nic *nic)
{
	return looked_after(nic, os_now(nic->os)) &&
	       (__atomic_load_n(&nic->blocked, __ATOMIC_RELAXED) ||
		__atomic_load_n(&nic->last_poller, __ATOMIC_RELAXED) !=
			os_self());
}

int progress_start(struct nic *nic)
{
	int err;

	if (nic->cfg.manual)
		return 0;
	err = standby_start(nic);
	if (err)
		return err;
	err = os_thread_start(nic->os, &nic->bg, "nopin-bg", background, nic);
	if (err)
		progress_stop(nic);
	return err;
}

void progress_stop(struct nic *nic)
{
	__atomic_store_n(&nic->stop, true, __ATOMIC_RELEASE);
	if (nic->bg) {
		os_kick(nic->os);
		os_thread_join(nic->bg);
		nic->bg = NULL;
	}
	standby_stop(nic);
}
