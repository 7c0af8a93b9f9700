/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* signal_test.c: which handlers end a wait. */
#include "base/check.h"
#include "base/timerq.h"
#include "host_fixture.h"
#include "os/clock.h"
#include "os/signal.h"
#include "os/sys_file.h"
#include "os/wait.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENDS = SIGUSR1, GOES_ON = SIGUSR2, SIG_LAST = 64 };

/* What the clock says; 0: as the host's. */
static uint64_t stopped_ns;

uint64_t clock_ns(void)
{
	struct timespec ts;

	if (stopped_ns)
		return stopped_ns;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

static unsigned handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void handle(int sig, int flags)
{
	struct sigaction act = {.sa_flags = flags};

	act.sa_handler = handler;
	assert_int_equal(sigaction(sig, &act, NULL), 0);
}

static uint64_t bit(int sig)
{
	return UINT64_C(1) << (sig - 1);
}

/* What was seen last is old. */
static uint64_t later(void)
{
	return clock_ns() + 1000 * MS;
}

/* Of a thread that asks for the first time. */
static struct caught ask(uint64_t now_ns, uint64_t *again)
{
	struct os_signals s = {.blocked = false};

	return caught_before(&s, now_ns, again);
}

static int forget(void **state)
{
	uint64_t again;

	(void)state;
	signal(ENDS, SIG_DFL);
	signal(GOES_ON, SIG_DFL);
	signal(SIGRTMAX, SIG_DFL);
	handled = 0;
	stopped_ns = 0;
	(void)ask(later(), &again);
	return 0;
}

/* cmocka handles most of them, and that makes no difference. */
static bool is_synchronous(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE ||
	       sig == SIGILL || sig == SIGTRAP || sig == SIGSYS;
}

static void caught_before__each_signal(void **state)
{
	uint64_t again;
	struct caught c;

	(void)state;
	for (int sig = 1; sig <= SIG_LAST; sig++) {
		struct sigaction old;

		if (sigaction(sig, NULL, &old) < 0 || sig == SIGKILL ||
		    sig == SIGSTOP || is_synchronous(sig))
			continue;
		handle(sig, 0);
		c = ask(later(), &again);
		assert_true(c.ends & ~c.restarts & bit(sig));
		handle(sig, SA_RESTART);
		c = ask(later(), &again);
		assert_true(~c.ends & c.restarts & bit(sig));
		signal(sig, SIG_IGN);
		c = ask(later(), &again);
		assert_false((c.ends | c.restarts) & bit(sig));
		sigaction(sig, &old, NULL);
	}
}

/* The system is not asked for each sleep, but sleeps are short then. */
static void caught_before__again(void **state)
{
	uint64_t again, now;

	(void)state;
	stopped_ns = clock_ns();
	now = later();
	(void)ask(now, &again);
	assert_int_equal(again, now + 1000 * MS);
	now = clock_ns();
	for (uint64_t ns = 0; ns < MS; ns += MS - 1) {
		(void)ask(now + ns, &again);
		assert_int_equal(again, now + MS);
	}
	(void)ask(now + MS, &again);
	assert_int_equal(again, now + 1001 * MS);
}

/* A sleep for which it was asked is longer. */
static void caught_before__asked_beforehand(void **state)
{
	struct os_signals s = {.blocked = false};
	uint64_t again, now;

	(void)state;
	stopped_ns = clock_ns();
	for (int i = 0; i < 2; i++) {
		now = stopped_ns += 2 * MS; /* the answer is old */
		assert_false(os_signals_differ(&s));
		(void)caught_before(&s, now, &again);
		assert_int_equal(again, now + 1000 * MS);
		(void)caught_before(&s, now, &again);
		assert_true(again < now + 1000 * MS);
	}
}

static void caught_ends__now_or_before(void **state)
{
	const struct os_signals open = {.mask = 0, .blocked = true};
	const struct os_signals not_that = {.mask = bit(ENDS), .blocked = true};
	const struct caught none = {0, 0}, was = {0, bit(ENDS)};

	(void)state;
	handle(GOES_ON, SA_RESTART);
	assert_false(caught_ends(&open, none));
	assert_true(caught_ends(&open, was)); /* SA_RESETHAND */
	assert_false(caught_ends(&not_that, was));
	handle(ENDS, 0);
	assert_true(caught_ends(&open, none));
	assert_false(caught_ends(&not_that, none));
}

/* One that came and went while it slept: no other can have run. */
static void caught_ends__of_a_handler_nobody_saw(void **state)
{
	const struct os_signals open = {.mask = 0, .blocked = true};
	const struct os_signals no_other = {.mask = bit(GOES_ON),
					    .blocked = true};
	struct caught none, restarts;
	uint64_t again;

	(void)state;
	none = restarts = ask(later(), &again);
	restarts.restarts |= bit(GOES_ON);
	assert_true(caught_ends(&open, none));
	assert_false(caught_ends(&open, restarts));
	assert_true(caught_ends(&no_other, restarts));
	handle(GOES_ON, SA_RESTART);
	assert_false(caught_ends(&open, none));
	assert_true(caught_ends(&no_other, none));
}

/* Between a look at the descriptor and one at the signals it could come otherwise. */
static void signals_mask__of_the_c_library(void **state)
{
	enum { SET_IDS = 33 };
	const struct os_signals s = {.mask = bit(ENDS), .blocked = true};
	const struct {
		struct caught before;
		int fd;
		bool in;
	} cases[] = {
		{{0, 0}, -1, true},
		{{0, 0}, 0, false},
		{{0, bit(SIGRTMAX)}, 0, false},
		/* it would not end the wait, and their handlers run with it blocked */
		{{bit(SIGRTMAX), 0}, 0, true},
		{{bit(ENDS), 0}, 0, false},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		const sigset_t mask = signals_mask(&s, cases[i].before,
						   cases[i].fd);
		uint64_t bits;

		memcpy(&bits, &mask, sizeof(bits));
		assert_int_equal(bits,
				 bit(ENDS) | (cases[i].in ? 0 : bit(SET_IDS)));
	}
}

static uint64_t blocked(int how, uint64_t set)
{
	uint64_t was;

	assert_int_equal(
		syscall(SYS_rt_sigprocmask, how, &set, &was, sizeof(set)), 0);
	return was;
}

/* A handler that runs in a sleep may fork: the child's setuid() would wait for ever. */
static void signals_in_child__of_a_handler(void **state)
{
	enum { SET_IDS = 33 };
	int status;
	pid_t pid;

	(void)state;
	blocked(SIG_BLOCK, bit(SET_IDS));
	pid = fork();
	if (pid == 0)
		_exit(!!(blocked(SIG_BLOCK, 0) & bit(SET_IDS)));
	assert_true(blocked(SIG_UNBLOCK, bit(SET_IDS)) & bit(SET_IDS));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void os_signals_differ__of_those_let_in(void **state)
{
	struct os_signals s = {.blocked = false};
	uint64_t again;
	sigset_t set;

	(void)state;
	assert_false(os_signals_differ(&s));
	handle(ENDS, 0);
	handle(SIGRTMAX, 0);
	(void)ask(later(), &again);
	assert_false(os_signals_differ(&s));
	handle(GOES_ON, SA_RESTART);
	(void)ask(later(), &again);
	assert_true(os_signals_differ(&s));
	sigemptyset(&set);
	sigaddset(&set, GOES_ON);
	sigprocmask(SIG_BLOCK, &set, NULL);
	assert_false(os_signals_differ(&s));
	os_signals_block(&s);
	assert_false(os_signals_differ(&s)); /* all are blocked, by us */
	os_signals_restore(&s);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	os_signals_block(&s);
	assert_true(os_signals_differ(&s));
	os_signals_restore(&s);
}

static void os_signals_block__until_restored(void **state)
{
	struct os_signals s = {.blocked = false};
	sigset_t before, now;

	(void)state;
	handle(ENDS, 0);
	sigprocmask(SIG_BLOCK, NULL, &before);
	os_signals_block(&s);
	os_signals_block(&s);
	raise(ENDS);
	raise(SIGTERM);
	assert_int_equal(handled, 0);
	sigprocmask(SIG_BLOCK, NULL, &now);
	/* whoever touches memory dies of it, or has a handler for it */
	assert_false(sigismember(&now, SIGSEGV) || sigismember(&now, SIGBUS) ||
		     sigismember(&now, SIGSYS));
	signal(SIGTERM, SIG_IGN);
	os_signals_restore(&s);
	assert_int_equal(handled, 1);
	sigprocmask(SIG_BLOCK, NULL, &now);
	assert_memory_equal(&before, &now, sizeof(uint64_t));
	os_signals_restore(&s);
	signal(SIGTERM, SIG_DFL);
}

/* A handler that ran in a sleep, with the C library's signal blocked, never came back: the
 * next wait of the thread lets it in again. */
static void os_signals_block__after_a_handler_that_left(void **state)
{
	enum { SET_IDS = 33 };
	struct os_signals s = {.blocked = false};

	(void)state;
	blocked(SIG_BLOCK, bit(SET_IDS));
	os_signals_block(&s);
	os_signals_restore(&s);
	assert_false(blocked(SIG_UNBLOCK, bit(SET_IDS)) & bit(SET_IDS));
}

static void os_event_wait__puts_back(void **state)
{
	struct os_signals s = {.blocked = false};
	const int fd = os_event_open();

	(void)state;
	os_event_set(fd);
	assert_int_equal(os_event_wait(fd, &s), 0);
	assert_int_equal(os_event_wait(fd, &s), 0);
	assert_true(os_event_clear(fd));
	assert_false(os_event_clear(fd));
	sys_fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(os_event_wait(fd, &s), 0);
	assert_false(os_event_clear(fd));
	os_event_close(fd);
}

/* It was blocked until now, and would not end a read(2) that comes after it. */
static void os_event_wait__what_was_pending(void **state)
{
	struct os_signals s = {.blocked = false};
	const int fd = os_event_open();

	(void)state;
	handle(ENDS, 0);
	handle(GOES_ON, SA_RESTART);
	os_signals_block(&s);
	raise(ENDS);
	assert_int_equal(os_event_wait(fd, &s), -EINTR);
	assert_int_equal(handled, 1);
	assert_false(s.blocked);
	os_signals_block(&s);
	raise(GOES_ON);
	os_event_set(fd);
	assert_int_equal(os_event_wait(fd, &s), 0);
	assert_int_equal(handled, 2);
	os_event_close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, forget, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(caught_before__each_signal),
		TEST(caught_before__again),
		TEST(caught_before__asked_beforehand),
		TEST(caught_ends__now_or_before),
		TEST(caught_ends__of_a_handler_nobody_saw),
		TEST(signals_mask__of_the_c_library),
		TEST(signals_in_child__of_a_handler),
		TEST(os_signals_differ__of_those_let_in),
		TEST(os_signals_block__until_restored),
		TEST(os_signals_block__after_a_handler_that_left),
		TEST(os_event_wait__puts_back),
		TEST(os_event_wait__what_was_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
