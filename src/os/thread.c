/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* thread.c: threads of a guest (design D9, D13): named, small, all signals
 * blocked but the two that a guarded touch needs, allowed on every CPU that
 * the process is allowed on, whatever thread creates them.
 */
#include "os/impl.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { THREAD_STACK = 128 * 1024, THREAD_SLICE_NS = 100 * 1000 };

/** struct os_thread - @stack: of our own, so that it outlives a fork() writable */
struct os_thread {
	pthread_t id;
	void *stack;
	void (*fn)(void *arg);
	void *arg;
};

struct thread_boot {
	void *(*fn)(void *arg);
	void *arg;
	char name[16];
};

/* The thread-group leader's affinity is the process's: taskset sets it, a
 * creator that pinned itself does not.
 */
static void thread_spread(void)
{
	long leader = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0), n;
	cpu_set_t set;

	n = sys_call(SYS_sched_getaffinity, leader, sizeof(set), SYS_PTR(&set),
		     0, 0, 0);
	if (n > 0)
		(void)sys_call(SYS_sched_setaffinity, 0, n, SYS_PTR(&set), 0, 0,
			       0);
}

/* linux/sched/types.h, without what it does to <sched.h> */
struct thread_sched {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* Our threads run for microseconds, but soon after they are woken, also when
 * spinning programs fill the CPUs: with a shorter slice the scheduler (since
 * Linux 6.12, and without privilege) lets them before those. */
static void thread_slice(void)
{
	struct thread_sched attr = {.size = sizeof(attr)};

	if (sys_call(SYS_sched_getattr, 0, SYS_PTR(&attr), sizeof(attr), 0, 0,
		     0) < 0 ||
	    (attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH))
		return;
	attr.runtime = THREAD_SLICE_NS;
	(void)sys_call(SYS_sched_setattr, 0, SYS_PTR(&attr), 0, 0, 0, 0);
}

static void *thread_main(void *arg)
{
	struct thread_boot boot = *(struct thread_boot *)arg;
	sigset_t faults;

	free(arg);
	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
	(void)sys_call(SYS_prctl, PR_SET_NAME, SYS_PTR(boot.name), 0, 0, 0, 0);
	/* Sleep to the nanosecond: the default slack is 50 us. */
	(void)sys_call(SYS_prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0, 0);
	thread_spread();
	thread_slice();
	return boot.fn(boot.arg);
}

/* Large thread-local storage of the program or a sanitizer may not leave
 * enough of a small stack: then the default size.
 */
static int thread_create(pthread_t *out, struct thread_boot *boot, void *stack)
{
	pthread_attr_t attr;
	int ret = -pthread_attr_init(&attr);

	if (ret < 0)
		return ret;
	if (stack)
		pthread_attr_setstack(&attr, stack, THREAD_STACK);
	else
		pthread_attr_setstacksize(&attr, THREAD_STACK);
	ret = -pthread_create(out, &attr, thread_main, boot);
	pthread_attr_destroy(&attr);
	if (ret == -EINVAL)
		ret = -pthread_create(out, NULL, thread_main, boot);
	return ret;
}

int thread_start(pthread_t *out, const char *name, void *(*fn)(void *arg),
		 void *arg, void *stack)
{
	struct thread_boot *boot;
	sigset_t all, before;
	int keep = errno, ret;

	boot = calloc(1, sizeof(*boot));
	if (!boot) {
		errno = keep;
		return -ENOMEM;
	}
	boot->fn = fn;
	boot->arg = arg;
	memcpy(boot->name, name, strnlen(name, sizeof(boot->name) - 1));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = thread_create(out, boot, stack);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret < 0)
		free(boot);
	errno = keep;
	return ret;
}

static void *os_thread_main(void *arg)
{
	struct os_thread *t = arg;

	t->fn(t->arg);
	return NULL;
}

/**
 * os_thread_start() - Start @fn(@arg).
 * @name: at most 15 characters are shown
 */
int os_thread_start(struct os *os, struct os_thread **out, const char *name,
		    void (*fn)(void *arg), void *arg)
{
	struct os_thread *t;
	int keep = errno, ret;

	(void)os;
	t = malloc(sizeof(*t));
	errno = keep;
	if (!t)
		return -ENOMEM;
	t->fn = fn;
	t->arg = arg;
	t->stack = heap_stack(THREAD_STACK);
	ret = thread_start(&t->id, name, os_thread_main, t, t->stack);
	if (ret < 0) {
		heap_free(t->stack);
		free(t);
	} else {
		*out = t;
	}
	return ret;
}

/** os_thread_join() - Wait for its end; consumes @t. */
void os_thread_join(struct os_thread *t)
{
	int keep = errno, state;

	/* pthread_join() itself is a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_join(t->id, NULL);
	pthread_setcancelstate(state, NULL);
	heap_free(t->stack);
	free(t);
	errno = keep;
}
