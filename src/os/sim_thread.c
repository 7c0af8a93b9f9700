/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim_thread.c: virtual threads, and the calls of os/os.h that wait. Mutexes
 * and conditions of pthreads are in sim_pthread.c.
 *
 * Theory of operation
 *
 * A virtual thread has a stack of its own and runs, on the real thread of
 * sim_run(), until it sleeps; then the world goes on with the next event. It is
 * resumed by an event that carries the number of the sleep it ends (@gen): a
 * sleep that several things can end is ended by the first, and the events of the
 * others find a newer number and do nothing. Structs of threads that ended are
 * used again and freed only with the world, because such events may still point
 * to them.
 */
#include "os/sim_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIM_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define SIM_TSAN 1
#endif
#ifdef SIM_TSAN
#include <sanitizer/tsan_interface.h>
#define fiber_self()	  __tsan_get_current_fiber()
#define fiber_new()	  __tsan_create_fiber(0)
#define fiber_free(fiber) __tsan_destroy_fiber(fiber)
#define fiber_go(fiber)	  __tsan_switch_to_fiber(fiber, 0)
#else
#define fiber_self()	  NULL
#define fiber_new()	  NULL
#define fiber_free(fiber) (void)(fiber)
#define fiber_go(fiber)	  (void)(fiber)
#endif

enum { SIM_STACK_BYTES = 256 << 10 };

/**
 * struct sim_thread
 * @gen:	number of the current sleep
 * @waiting, @packets, @fd: it is in os_wait(), and what else ends that
 * @futex:	or it is in os_futex_wait()
 */
struct sim_thread {
	struct list link;
	struct os *os;
	void (*fn)(void *arg);
	void *arg;
	uint64_t gen;
	bool done, waiting, packets;
	int fd;
	const uint32_t *futex;
	ucontext_t ctx;
	void *stack, *fiber;
};

static void thread_main(unsigned lo, unsigned hi)
{
	struct sim_thread *t = (void *)((uintptr_t)hi << 32 | (uintptr_t)lo);
	struct sim *sim = t->os->sim;

	t->fn(t->arg);
	t->done = true;
	t->gen++;
	sim->running = NULL;
	fiber_go(sim->main_fiber);
	setcontext(&sim->main);
}

static void thread_resume(void *arg, uint64_t gen)
{
	struct sim_thread *t = arg;
	struct sim *sim = t->os->sim;

	if (t->done || gen != t->gen)
		return;
	if (t->os->paused_until_ns > sim->now_ns) {
		sim_at(sim, t->os->paused_until_ns, thread_resume, t, gen);
		return;
	}
	CHECK(!sim->running);
	t->gen++;
	t->waiting = false;
	sim_note(sim, 'T', t->os->index);
	sim->running = t;
	sim->main_fiber = fiber_self();
	fiber_go(t->fiber);
	swapcontext(&sim->main, &t->ctx);
}

/* Back to the world until something resumes the current thread. */
static void thread_yield(struct sim *sim)
{
	struct sim_thread *t = sim->running;

	sim->running = NULL;
	fiber_go(sim->main_fiber);
	swapcontext(&t->ctx, &sim->main);
}

static struct sim_thread *thread_alloc(struct sim *sim)
{
	struct sim_thread *t;

	list_for_each(l, &sim->threads) {
		t = list_entry(l, struct sim_thread, link);
		if (t->done && t != sim->running)
			return t;
	}
	t = calloc(1, sizeof(*t));
	CHECK(t);
	t->stack = malloc(SIM_STACK_BYTES);
	CHECK(t->stack);
	list_add_tail(&sim->threads, &t->link);
	return t;
}

/* Apart, because getcontext() may return twice as far as compilers know. */
static __attribute__((noinline)) void thread_prepare(struct sim_thread *t)
{
	getcontext(&t->ctx);
	t->ctx.uc_stack.ss_sp = t->stack;
	t->ctx.uc_stack.ss_size = SIM_STACK_BYTES;
	t->ctx.uc_link = NULL;
	makecontext(&t->ctx, (void (*)(void))thread_main, 2,
		    (unsigned)(uintptr_t)t, (unsigned)((uintptr_t)t >> 32));
}

void sim_spawn(struct os *os, void (*fn)(void *arg), void *arg,
	       uint64_t delay_ns)
{
	struct sim_thread *t = thread_alloc(os->sim);

	t->os = os;
	t->fn = fn;
	t->arg = arg;
	t->done = t->waiting = false;
	if (t->fiber)
		fiber_free(t->fiber);
	t->fiber = fiber_new();
	thread_prepare(t);
	sim_at(os->sim, os->sim->now_ns + delay_ns, thread_resume, t, t->gen);
}

void sim_sleep(struct sim *sim, uint64_t ns)
{
	struct sim_thread *t = sim->running;

	if (!t)
		return;
	sim_at(sim, sim->now_ns + ns, thread_resume, t, t->gen);
	thread_yield(sim);
}

bool sim_in_thread(const struct sim *sim)
{
	return sim->running != NULL;
}

unsigned sim_threads(const struct sim *sim)
{
	unsigned num = 0;

	list_for_each(l, &sim->threads)
		num += !list_entry(l, struct sim_thread, link)->done;
	return num;
}

/* A thread that kills its own process goes on until it sleeps. */
void sim_threads_end(struct os *os)
{
	list_for_each(l, &os->sim->threads) {
		struct sim_thread *t = list_entry(l, struct sim_thread, link);

		if (t->os == os && !t->done) {
			t->done = true;
			t->gen++;
		}
	}
}

void sim_threads_free(struct sim *sim)
{
	list_for_each_safe(l, tmp, &sim->threads) {
		struct sim_thread *t = list_entry(l, struct sim_thread, link);

		list_del(l);
		if (t->fiber)
			fiber_free(t->fiber);
		free(t->stack);
		free(t);
	}
}

/* --- waiting --------------------------------------------------------------- */

static void thread_wake(struct sim_thread *t)
{
	t->waiting = false;
	sim_at(t->os->sim, t->os->sim->now_ns, thread_resume, t, t->gen);
}

void sim_wake(struct os *os, bool packet)
{
	list_for_each(l, &os->sim->threads) {
		struct sim_thread *t = list_entry(l, struct sim_thread, link);

		if (t->os == os && t->waiting && (t->packets || !packet))
			thread_wake(t);
	}
}

void sim_wake_fd(struct sim *sim, int fd)
{
	list_for_each(l, &sim->threads) {
		struct sim_thread *t = list_entry(l, struct sim_thread, link);

		if (t->waiting && t->fd == fd)
			thread_wake(t);
	}
}

static bool packets_queued(const struct os *os)
{
	for (unsigned i = 0; i < OS_PORTS_MAX; i++) {
		if (os->port[i].open && !list_empty(&os->port[i].queue))
			return true;
	}
	return false;
}

static void thread_wait(struct sim_thread *t, bool packets,
			uint64_t deadline_ns, int fd)
{
	struct sim *sim = t->os->sim;

	t->waiting = true;
	t->packets = packets;
	t->fd = fd;
	if (deadline_ns != TIME_NEVER)
		sim_at(sim, deadline_ns, thread_resume, t, t->gen);
	thread_yield(sim);
}

/** os_futex_wait() - Outside of a virtual thread it returns at once. */
void os_futex_wait(struct os *os, uint32_t *word, uint32_t value,
		   uint64_t deadline_ns)
{
	struct sim_thread *t = os->sim->running;

	if (!t || __atomic_load_n(word, __ATOMIC_RELAXED) != value ||
	    deadline_ns <= os->sim->now_ns)
		return;
	t->futex = word;
	thread_wait(t, false, deadline_ns, -1);
	t->futex = NULL;
}

void os_futex_wake(uint32_t *word)
{
	if (!sim_world)
		return;
	list_for_each(l, &sim_world->threads) {
		struct sim_thread *t = list_entry(l, struct sim_thread, link);

		if (t->waiting && t->futex == word)
			thread_wake(t);
	}
}

/** os_wait() - Outside of a virtual thread it returns at once. */
void os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
	     int extra_fd)
{
	struct sim_thread *t = os->sim->running;
	const bool ready = os->kicked || !list_empty(&os->answers) ||
			   sim_event_is_set(extra_fd) ||
			   (what == OS_WAIT_PACKETS && packets_queued(os));

	os->kicked = false;
	if (!t || ready || deadline_ns <= os->sim->now_ns)
		return;
	thread_wait(t, what == OS_WAIT_PACKETS, deadline_ns, extra_fd);
	os->kicked = false;
}

void os_doze(struct os *os, int event_fd, uint64_t deadline_ns)
{
	struct sim_thread *t = os->sim->running;

	if (t && !sim_event_is_set(event_fd) && deadline_ns > os->sim->now_ns)
		thread_wait(t, false, deadline_ns, event_fd);
	os_event_clear(event_fd);
}

bool os_closed(const struct os *os)
{
	(void)os;
	return false;
}

void os_kick(struct os *os)
{
	os->kicked = true;
	sim_wake(os, false);
}

uintptr_t os_self(void)
{
	return sim_world && sim_world->running ? (uintptr_t)sim_world->running
					       : 1;
}

/** os_relax() - Outside of a virtual thread the world takes a step, or waiting
 * in a loop would never end.
 */
void os_relax(void)
{
	if (sim_world->running)
		sim_sleep(sim_world, 200);
	else
		sim_step(sim_world);
}

struct os_thread {
	struct sim *sim;
	void (*fn)(void *arg);
	void *arg;
	bool done;
};

static void os_thread_main(void *arg)
{
	struct os_thread *t = arg;

	t->fn(t->arg);
	t->done = true;
}

int os_thread_start(struct os *os, struct os_thread **out, const char *name,
		    void (*fn)(void *arg), void *arg)
{
	struct os_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->sim = os->sim;
	t->fn = fn;
	t->arg = arg;
	sim_say(os->sim, "host %u: thread %s", os->index, name);
	sim_spawn(os, os_thread_main, t, 0);
	*out = t;
	return 0;
}

void os_thread_join(struct os_thread *t)
{
	while (!t->done)
		os_relax();
	free(t);
}
