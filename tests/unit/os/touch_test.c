/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* touch_test.c: guarded touches, and the program's own signal handling around
 * them: nothing of it may change.
 */
#include "base/page.h"
#include "host_fixture.h"
#include "os/touch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static uint8_t *page_none, *page_ro, *page_rw;

static int pages_setup(void **state)
{
	(void)state;
	page_none = pages_new(1, PROT_NONE);
	page_ro = pages_new(1, PROT_READ);
	page_rw = pages_new(1, PROT_READ | PROT_WRITE);
	memset(page_rw, 0x77, PAGE_BYTES);
	return 0;
}

static void verdicts(void)
{
	assert_int_equal(touch_page((uintptr_t)page_rw + 9, false), 0);
	assert_int_equal(touch_page((uintptr_t)page_rw + 4095, true), 0);
	assert_int_equal(touch_page((uintptr_t)page_ro, false), 0);
	assert_int_equal(touch_page((uintptr_t)page_ro, true), -EFAULT);
	assert_int_equal(touch_page((uintptr_t)page_none, false), -EFAULT);
	assert_int_equal(touch_page((uintptr_t)page_none, true), -EFAULT);
	assert_int_equal(touch_page(0, true), -EFAULT);
	for (size_t i = 0; i < PAGE_BYTES; i++)
		assert_int_equal(page_rw[i], 0x77);
}

static void touch_page__verdicts(void **state)
{
	(void)state;
	verdicts();
}

static void touch_page__beyond_end_of_file(void **state)
{
	int fd = fileno(tmpfile());
	uint8_t *p = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);

	(void)state;
	assert_int_equal(touch_page((uintptr_t)p, false), -EFAULT);
	assert_int_equal(touch_page((uintptr_t)p, true), -EFAULT);
	pages_free(p, 1);
	close(fd);
}

/* --- the program's handler ----------------------------------------------------- */

static sigjmp_buf out;
static volatile int handled;

static void program_handler(int sig, siginfo_t *info, void *uc)
{
	(void)uc;
	handled = sig;
	if (info->si_addr == page_none)
		siglongjmp(out, 1);
}

static void program_simple(int sig)
{
	handled = sig + 1000;
	siglongjmp(out, 1);
}

static void program_fault(void)
{
	handled = 0;
	if (sigsetjmp(out, 1) == 0)
		*(volatile uint8_t *)page_none = 1;
}

static void handle(void (*info)(int, siginfo_t *, void *), void (*old)(int))
{
	struct sigaction sa = {.sa_flags = info ? SA_SIGINFO : 0};

	if (info)
		sa.sa_sigaction = info;
	else
		sa.sa_handler = old;
	assert_int_equal(sigaction(SIGSEGV, &sa, NULL), 0);
}

/* Before us, after us, before us again: its faults reach it, ours do not. */
static void touch_page__beside_the_programs_handler(void **state)
{
	(void)state;
	handle(program_handler, NULL);
	for (int i = 0; i < 3; i++) {
		handled = 0;
		verdicts();
		assert_int_equal(handled, 0);
		program_fault();
		assert_int_equal(handled, SIGSEGV);
	}
	handle(NULL, program_simple);
	program_fault();
	assert_int_equal(handled, SIGSEGV + 1000);
	verdicts();
	program_fault();
	assert_int_equal(handled, SIGSEGV + 1000);
	/* sent, not faulted */
	handled = 0;
	if (sigsetjmp(out, 1) == 0)
		raise(SIGSEGV);
	assert_int_equal(handled, SIGSEGV + 1000);
}

static bool touched, enough;

static void *toucher(void *arg)
{
	assert_int_equal(touch_page((uintptr_t)page_ro, true), -EFAULT);
	__atomic_store_n(&touched, true, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		usleep(100);
	return arg;
}

/* Another thread came before the program's handler, and nothing but that says
 * so to ours (TSan). */
static void touch_page__of_another_thread(void **state)
{
	pthread_t t;

	(void)state;
	handle(NULL, program_simple);
	assert_int_equal(pthread_create(&t, NULL, toucher, NULL), 0);
	while (!__atomic_load_n(&touched, __ATOMIC_RELAXED))
		usleep(100);
	program_fault();
	assert_int_equal(handled, SIGSEGV + 1000);
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
}

/* The program's next handler comes when touch_page() has looked what is there. */
static bool meddle;

int __real_sigaction(int sig, const struct sigaction *sa,
		     struct sigaction *old);
int __wrap_sigaction(int sig, const struct sigaction *sa,
		     struct sigaction *old);

int __wrap_sigaction(int sig, const struct sigaction *sa, struct sigaction *old)
{
	const struct sigaction later = {.sa_handler = program_simple};
	int ret = __real_sigaction(sig, sa, old);

	if (meddle && sig == SIGSEGV && !sa) {
		meddle = false;
		__real_sigaction(SIGSEGV, &later, NULL);
	}
	return ret;
}

/* A handler that passes on what it does not know, to whom it replaced: us. */
static struct sigaction chained;
static volatile int chained_calls;

static void chaining_handler(int sig, siginfo_t *info, void *uc)
{
	chained_calls++;
	if (chained_calls > 10)
		_exit(99);
	if (chained.sa_flags & SA_SIGINFO)
		chained.sa_sigaction(sig, info, uc);
}

static void touch_page__no_circle(void **state)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO};

	(void)state;
	handle(program_handler, NULL);
	verdicts();
	sa.sa_sigaction = chaining_handler;
	sigaction(SIGSEGV, &sa, &chained);
	verdicts();
	chained_calls = 0;
	program_fault();
	assert_int_equal(chained_calls, 1);
	assert_int_equal(handled, SIGSEGV);
}

/* Runs in a child: how does it end? */
static int child_end(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void just_installed(void)
{
	handle(program_handler, NULL);
	meddle = true;
	verdicts();
	program_fault();
	_exit(!meddle && handled == SIGSEGV + 1000 ? 0 : 1);
}

static void touch_page__beside_a_handler_that_is_just_installed(void **state)
{
	(void)state;
	assert_int_equal(child_end(just_installed), 0);
}

static void die_of_fault(void)
{
	touch_page(0, false);
	*(volatile uint8_t *)page_none = 1;
}

static void die_of_kill(void)
{
	touch_page(0, false);
	kill(getpid(), SIGSEGV);
}

static void ignore_kill(void)
{
	signal(SIGSEGV, SIG_IGN);
	touch_page(0, false);
	kill(getpid(), SIGSEGV);
}

static void ignore_fault(void)
{
	signal(SIGSEGV, SIG_IGN);
	die_of_fault();
}

static void once_only(void)
{
	struct sigaction sa = {.sa_flags = (int)SA_RESETHAND};

	sa.sa_handler = program_simple;
	sigaction(SIGSEGV, &sa, NULL);
	touch_page(0, false);
	program_fault();
	program_fault();
}

static void touch_page__dispositions_stay(void **state)
{
	(void)state;
	assert_int_equal(WTERMSIG(child_end(die_of_fault)), SIGSEGV);
	assert_int_equal(WTERMSIG(child_end(die_of_kill)), SIGSEGV);
	assert_int_equal(child_end(ignore_kill), 0);
	assert_int_equal(WTERMSIG(child_end(ignore_fault)), SIGSEGV);
	assert_int_equal(WTERMSIG(child_end(once_only)), SIGSEGV);
}

/* A program that never stops replacing our handler: we give up, it does not. */
static void give_up(void)
{
	for (int i = 0; i < 20; i++) {
		handle(NULL, program_simple);
		if (touch_page((uintptr_t)page_none, false) != -EFAULT)
			_exit(1);
		program_fault();
		if (handled != SIGSEGV + 1000)
			_exit(2);
	}
}

static void touch_page__gives_up(void **state)
{
	(void)state;
	assert_int_equal(child_end(give_up), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(touch_page__verdicts),
		cmocka_unit_test(touch_page__beyond_end_of_file),
		cmocka_unit_test(touch_page__dispositions_stay),
		cmocka_unit_test(touch_page__beside_the_programs_handler),
		cmocka_unit_test(touch_page__of_another_thread),
		cmocka_unit_test(
			touch_page__beside_a_handler_that_is_just_installed),
		cmocka_unit_test(touch_page__no_circle),
		cmocka_unit_test(touch_page__gives_up),
	};

	return cmocka_run_group_tests(tests, pages_setup, NULL);
}
