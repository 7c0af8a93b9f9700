/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* thread.c: threads of a guest (design D9, D13): named, small, all signals
 * blocked but the two that a guarded touch needs, allowed on every CPU that
 * the process is allowed on, whichever thread creates them.
 */
#include "os/thread.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/page.h"
#include "os/os.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/sys_memory.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* Mostly untouched; a sanitizer that the program brings wants as much. */
enum { THREAD_STACK = 1024 * 1024, THREAD_SLICE_NS = 100 * 1000 };

/**
 * struct os_thread - @stack: of our own (heap.h), so that a fork() does not make
 * it copy-on-write; NULL where the C library made one. @state: LEFT: the
 * thread itself frees this
 */
struct os_thread {
	pthread_t id;
	void *stack;
	size_t stack_bytes;
	void (*fn)(void *arg);
	void *arg;
	char name[16];
	int state;
};

enum { RUNS, ENDED, LEFT };

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

/* What the C library keeps of a thread lies above its first frame: thread-local
 * storage and struct pthread, which a child of fork() reads (glibc 2.41). The
 * pages from @own down are the thread's: a child gets them zeroed, so that a
 * write to them never waits for the end of a fork(). */
static void thread_wipe(const struct os_thread *t, uintptr_t own)
{
	const uintptr_t start = DIV_ROUND_UP((uintptr_t)t->stack, PAGE_BYTES) *
				PAGE_BYTES;

	if (t->stack && own > start && own - start < t->stack_bytes)
		(void)sys_madvise(start, own - start, MADV_WIPEONFORK);
}

static __attribute__((noinline)) void thread_run(struct os_thread *t)
{
	sigset_t faults;

	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
	(void)sys_call(SYS_prctl, PR_SET_NAME, SYS_PTR(t->name), 0, 0, 0, 0);
	/* Sleep to the nanosecond: the default slack is 50 us. */
	(void)sys_call(SYS_prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0, 0);
	thread_spread();
	thread_slice();
	t->fn(t->arg);
}

static void *thread_main(void *arg)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0),
			own = here & -(uintptr_t)PAGE_BYTES;
	struct os_thread *t = arg;
	/* The frames that follow begin below @own. */
	volatile char *gap = __builtin_alloca(here - own + 1);

	*gap = 0;
	thread_wipe(t, own);
	thread_run(t);
	if (__atomic_exchange_n(&t->state, ENDED, __ATOMIC_ACQ_REL) == LEFT)
		heap_free(t);
	return NULL;
}

/* Large thread-local storage of the program or a sanitizer may not leave
 * enough of a small stack: then the default size.
 */
static int thread_create(struct os_thread *t)
{
	pthread_attr_t attr;
	int ret = -pthread_attr_init(&attr);

	if (ret < 0)
		return ret;
	if (t->stack)
		pthread_attr_setstack(&attr, t->stack, t->stack_bytes);
	else
		pthread_attr_setstacksize(&attr, t->stack_bytes);
	ret = -pthread_create(&t->id, &attr, thread_main, t);
	pthread_attr_destroy(&attr);
	if (ret == -EINVAL)
		ret = -pthread_create(&t->id, NULL, thread_main, t);
	return ret;
}

/** os_thread_start() - See run.h. @name: at most 15 characters are shown */
int os_thread_start(struct os *os, struct os_thread **out, const char *name,
		    void (*fn)(void *arg), void *arg)
{
	(void)os;
	return thread_start(out, name, fn, arg, THREAD_STACK);
}

int thread_start(struct os_thread **out, const char *name,
		 void (*fn)(void *arg), void *arg, size_t stack_bytes)
{
	struct os_thread *t = heap_alloc(sizeof(*t));
	int keep = errno, ret;
	sigset_t all, before;

	if (!t)
		return -ENOMEM;
	t->fn = fn;
	t->arg = arg;
	t->stack = heap_stack(stack_bytes);
	t->stack_bytes = stack_bytes;
	memcpy(t->name, name, strnlen(name, sizeof(t->name) - 1));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = thread_create(t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret < 0) {
		heap_free(t->stack);
		heap_free(t);
	} else {
		*out = t;
	}
	errno = keep;
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
	heap_free(t);
	errno = keep;
}

void thread_leave(struct os_thread *t)
{
	pthread_t id = t->id;

	if (__atomic_exchange_n(&t->state, LEFT, __ATOMIC_ACQ_REL) == ENDED)
		os_thread_join(t);
	else
		pthread_detach(id);
}
