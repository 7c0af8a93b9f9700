/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* signal.c: signals of a thread of the program that waits in a verb: they end the
 * wait as they would end read(2), or do not.
 *
 * Theory of operation. A handler that ran while a verb did the NIC's work would not
 * end the sleep that follows. So all signals are blocked meanwhile, and let in by
 * ppoll(2), which has a mask for that. It fails with EINTR after any handler,
 * whatever its flags are, and does not say which it was. Handlers that are all
 * installed with SA_RESTART, or all without, leave no question. Where they differ
 * the wait is read(2), which knows; the engine is not run then, and nothing has to
 * be blocked.
 * What is installed is asked of the kernel, signal by signal, before a sleep (a
 * handler may remove itself) and after one that was interrupted (it may be new). A
 * signal costs 150 ns, so an answer of the last millisecond serves for a sleep until
 * it is that old, and one of just now for a second. If in doubt the wait ends: a loop
 * that goes on after EINTR loses nothing, one that ought to end would hang. So it ends
 * where no handler is known that can have run: one came and removed itself since.
 *
 * Not told is a handler that does both within a second beside one with SA_RESTART.
 *
 * The C library has signals of its own, which end no read(2). By one of them all threads
 * change their ids when one calls setuid(), setgroups() and the like. Where a sleep that
 * it interrupts would end the wait it is not let in: a descriptor in the sleep says that it
 * waits, the sleep ends without EINTR, and the signal is delivered with the mask from
 * before. But a handler of the program that runs in such a sleep has that signal blocked,
 * and setuid() waits for it. So it is let in where all handlers have SA_RESTART. What has it
 * blocked by such a handler lets it in again: a child in our atfork handler or at its first
 * open, a thread that the handler left by siglongjmp(3) when it waits in a verb again.
 * Not told is a setuid() that comes before, or of a child of _Fork() that opens nothing, or
 * while a thread lives that the handler began. To keep the program's signals out of the
 * sleep, and wake by a descriptor, would mend that and break more: the kernel would give
 * those of the process to any other thread, and the wait would not end.
 * Where signalfd(2) is denied the signal is always let in, and such a call ends the wait
 * if no handler has SA_RESTART.
 */
#include "os/signal.h"
#include "base/check.h"
#include "os/clock.h"
#include "os/sys.h"
#include "os/wait.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/uio.h>

enum {
	CAUGHT_OLD_NS = 1000 * 1000,
	CAUGHT_AGAIN_NS = 1000 * 1000 * 1000,
	SIGNALS = 64,
	SIG_LIBC_CANCEL = 32,
	SIG_LIBC_IDS = 33, /* setuid() */
};

/* What rt_sigaction(2) writes. */
struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* Of the process, as last seen at @at. Relaxed: whoever reads halves of two answers
 * has seen neither of them too early. */
static struct {
	uint64_t at, restarts, ends;
} seen;

/* Raised where they happen, which is in no sleep; a thread that blocks them dies of
 * them. Many a program handles them, and with other flags than the rest. */
static const int synchronous[] = {SIGSEGV, SIGBUS,  SIGFPE,
				  SIGILL,  SIGTRAP, SIGSYS};

static uint64_t signal_bit(int sig)
{
	return UINT64_C(1) << (sig - 1);
}

/* The C library's sets are longer than the kernel's. */
static uint64_t signal_bits(const sigset_t *set)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof(bits));
	return bits;
}

/* As the C library wants them. */
static sigset_t signal_set(uint64_t bits)
{
	sigset_t set;

	sigemptyset(&set);
	memcpy(&set, &bits, sizeof(bits));
	return set;
}

int signals_libc_open(void)
{
	const uint64_t set = signal_bit(SIG_LIBC_IDS);

	return (int)sys_call(SYS_signalfd4, -1, SYS_PTR(&set), sizeof(set),
			     SFD_CLOEXEC | SFD_NONBLOCK, 0, 0);
}

sigset_t signals_mask(const struct os_signals *s, struct caught before,
		      int libc_fd)
{
	const bool in = libc_fd < 0 || (before.restarts & ~s->mask);

	return signal_set(s->mask | (in ? 0 : signal_bit(SIG_LIBC_IDS)));
}

/* The C library itself never blocks it for long. */
void signals_in_child(void)
{
	const uint64_t set = signal_bit(SIG_LIBC_IDS);

	(void)sys_call(SYS_rt_sigprocmask, SIG_UNBLOCK, SYS_PTR(&set), 0,
		       sizeof(set), 0, 0);
}

static bool counts(int sig)
{
	for (unsigned i = 0; i < ARRAY_SIZE(synchronous); i++)
		if (sig == synchronous[i])
			return false;
	return sig != SIG_LIBC_CANCEL && sig != SIG_LIBC_IDS;
}

static void caught_add(struct caught *c, int sig)
{
	struct kernel_action act = {.handler = SIG_DFL};

	if (sys_call(SYS_rt_sigaction, sig, 0, SYS_PTR(&act), sizeof(act.mask),
		     0, 0) < 0 ||
	    act.handler == SIG_DFL || act.handler == SIG_IGN)
		return;
	if (act.flags & SA_RESTART)
		c->restarts |= signal_bit(sig);
	else
		c->ends |= signal_bit(sig);
}

static struct caught caught_ask(void)
{
	struct caught c = {0, 0};

	for (int sig = 1; sig <= SIGNALS; sig++)
		if (counts(sig))
			caught_add(&c, sig);
	__atomic_store_n(&seen.restarts, c.restarts, __ATOMIC_RELAXED);
	__atomic_store_n(&seen.ends, c.ends, __ATOMIC_RELAXED);
	__atomic_store_n(&seen.at, clock_ns(), __ATOMIC_RELAXED);
	return c;
}

struct caught caught_before(struct os_signals *s, uint64_t now_ns,
			    uint64_t *again_ns)
{
	const uint64_t at = __atomic_load_n(&seen.at, __ATOMIC_RELAXED);
	const bool old = !at || now_ns >= at + CAUGHT_OLD_NS;

	*again_ns = old || s->asked ? now_ns + CAUGHT_AGAIN_NS
				    : at + CAUGHT_OLD_NS;
	s->asked = old;
	if (old)
		return caught_ask();
	return (struct caught){
		__atomic_load_n(&seen.restarts, __ATOMIC_RELAXED),
		__atomic_load_n(&seen.ends, __ATOMIC_RELAXED)};
}

bool caught_ends(const struct os_signals *s, struct caught before)
{
	const struct caught after = caught_ask();

	if ((before.ends | after.ends) & ~s->mask)
		return true;
	return ((before.restarts | after.restarts) & ~s->mask) == 0;
}

bool os_signals_differ(struct os_signals *s)
{
	uint64_t again, mask = s->mask;
	const struct caught c = caught_before(s, clock_ns(), &again);
	sigset_t now;

	if (!c.restarts || !c.ends)
		return false;
	if (!s->blocked) {
		pthread_sigmask(SIG_SETMASK, NULL, &now);
		mask = signal_bits(&now);
	}
	return (c.restarts & ~mask) && (c.ends & ~mask);
}

void os_signals_block(struct os_signals *s)
{
	sigset_t all, before;

	if (s->blocked)
		return;
	sigemptyset(&before);
	sigfillset(&all);
	for (unsigned i = 0; i < ARRAY_SIZE(synchronous); i++)
		sigdelset(&all, synchronous[i]);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	s->mask = signal_bits(&before);
	s->let_in_ns = 0;
	s->blocked = true;
}

void os_signals_restore(struct os_signals *s)
{
	const sigset_t mask = signal_set(s->mask);

	if (s->blocked) /* the C library leaves its own signals out of this */
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
	s->blocked = false;
}

/* Those that wait are delivered here, not in a sleep. */
static bool signals_end_here(struct os_signals *s)
{
	sigset_t waiting;

	if (!s->blocked)
		return false;
	sigemptyset(&waiting);
	sigpending(&waiting);
	os_signals_restore(s);
	return (signal_bits(&waiting) & ~s->mask & caught_ask().ends) != 0;
}

/* It puts back what it takes from the descriptor: a thread that takes an event decides
 * whether there are more. */
int os_event_wait(int fd, struct os_signals *s)
{
	struct timespec ts = {.tv_nsec = WAIT_CLOSED_NS};
	const int keep = errno;
	uint64_t set = 0;
	const struct iovec v = {&set, sizeof(set)};
	ssize_t n;
	int err;

	if (signals_end_here(s))
		return -EINTR;
	n = read(fd, &set, sizeof(set)); /* a cancellation point */
	if (n < 0 && sys_denied(-errno))
		n = readv(fd, &v, 1);
	err = n < 0 ? errno : 0;
	errno = keep;
	if (n == sizeof(set))
		os_event_set(fd);
	else if (err != EINTR && err != EAGAIN)
		(void)sys_ppoll(NULL, 0, &ts); /* closed by the program */
	return err == EINTR ? -EINTR : 0;
}
