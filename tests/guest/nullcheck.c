/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nullcheck.c first|last|replace: a program that takes SIGSEGV as the Java
 * virtual machine does (a null check is a load that may fault), in the middle of
 * receiving. Its handler is installed before the device is opened, or after and
 * chains what is not its own, or after and does not. It may only ever see its
 * own faults. Meanwhile receives go to memory that is not there, which makes
 * nopin meet faults of its own.
 */
#include "link.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

enum { ROUNDS = 300 };

static struct sigaction older;
static int chains;
static volatile sig_atomic_t taken, inside;
static sigjmp_buf back;
static pthread_t self;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	if (chains && !(inside && pthread_equal(pthread_self(), self))) {
		older.sa_sigaction(sig, info, context);
		return;
	}
	REQUIRE(inside && pthread_equal(pthread_self(), self));
	REQUIRE((uintptr_t)info->si_addr < 4096);
	inside = 0;
	taken = taken + 1;
	siglongjmp(back, 1);
}

static void take_handler(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault,
			       .sa_flags = SA_SIGINFO | SA_ONSTACK};
	static char stack[65536];
	stack_t alt = {.ss_sp = stack, .ss_size = sizeof(stack)};

	REQUIRE(sigaltstack(&alt, NULL) == 0);
	REQUIRE(sigaction(SIGSEGV, &sa, &older) == 0);
	chains &= (older.sa_flags & SA_SIGINFO) != 0;
}

__attribute__((no_sanitize("undefined"))) static void null_pointer_exception(
	void)
{
	int *volatile nowhere = NULL;

	if (sigsetjmp(back, 1))
		return;
	inside = 1;
	(void)*(volatile int *)nowhere;
	REQUIRE(!"reached");
}

/* A receive into memory that may not be written. */
static void receive_nowhere(void)
{
	struct link l;
	void *page;

	link_open(&l);
	page = l.buf + LINK_BYTES;
	REQUIRE(mprotect(page, LINK_BYTES, PROT_NONE) == 0);
	REQUIRE(link_post(&l, 0, 5000) == 0);
	null_pointer_exception();
	REQUIRE(link_wait(l.cq[1]).status == IBV_WC_LOC_PROT_ERR);
	REQUIRE(link_wait(l.cq[0]).status == IBV_WC_REM_OP_ERR);
	REQUIRE(mprotect(page, LINK_BYTES, PROT_READ | PROT_WRITE) == 0);
	link_close(&l);
}

int main(int argc, char **argv)
{
	const int first = argc > 1 && strcmp(argv[1], "first") == 0;
	struct link l;

	self = pthread_self();
	chains = argc > 1 && strcmp(argv[1], "last") == 0;
	if (first)
		take_handler();
	link_open(&l);
	if (!first)
		take_handler();
	for (int i = 0; i < ROUNDS; i++) {
		REQUIRE(link_post(&l, i & 1, LINK_BYTES) == 0);
		null_pointer_exception();
		/* fresh pages: they fault while the payload arrives */
		REQUIRE(madvise(l.buf, 2 * LINK_BYTES, MADV_DONTNEED) == 0);
		for (int k = 0; k < LINK_ENDS; k++)
			REQUIRE(link_wait(l.cq[k]).status == IBV_WC_SUCCESS);
		if (i % 50 == 0)
			receive_nowhere();
	}
	REQUIRE(taken == ROUNDS + ROUNDS / 50);
	link_close(&l);
	null_pointer_exception();
	return 0;
}
