/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* thread.c: virtual threads, and the calls of os/wait.h. Mutexes
 * and conditions of pthreads are in pthread.c.
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
#include "base/check.h"
#include "base/list.h"
#include "base/timerq.h"
#include "simhost/impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* A stack may have been left in the middle of functions. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define STACK_UNPOISON(stack, bytes) __asan_unpoison_memory_region(stack, bytes)
#else
#define STACK_UNPOISON(stack, bytes) (void)(stack)
#endif

enum { SIM_STACK_BYTES = 256 << 10 };

/**
 * struct sim_thread
 * @gen:	number of the current sleep
 * @waiting, @packets, @fd: it is in os_wait(), and what else ends that
 */
struct sim_thread {
	struct list link;
	struct os *os;
	void (*fn)(void *arg);
	void *arg;
	uint64_t gen;
	bool done, waiting, packets;
	int fd;
	void *sp, *stack;
};

/* sim_switch(save, sp) - Go on with another stack: push what a function must keep,
 * leave the stack pointer in *@save, take @sp, and pop what was pushed there. Does
 * what swapcontext() does without its two system calls, which were a fifth of the
 * simulator's time. Signal masks and floating-point modes are the same for all
 * virtual threads. */
void sim_switch(void **save, void *sp);
/* NOLINTNEXTLINE(hicpp-no-assembler): no other way to switch stacks */
__asm__(".text\n"
	".globl sim_switch\n"
	".type sim_switch, @function\n"
	"sim_switch:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size sim_switch, . - sim_switch\n");

/* What a new thread's stack returns to. */
static void thread_main(void)
{
	struct sim_thread *t = sim_world->running;
	struct sim *sim = t->os->sim;

	t->fn(t->arg);
	t->done = true;
	t->gen++;
	sim->running = NULL;
	sim_switch(&t->sp, sim->main_sp);
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
	sim_switch(&sim->main_sp, t->sp);
}

/* Back to the world until something resumes the current thread. */
static void thread_yield(struct sim *sim)
{
	struct sim_thread *t = sim->running;

	sim->running = NULL;
	sim_switch(&t->sp, sim->main_sp);
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

/* The stack as sim_switch() leaves one: six registers, then where to return to, so
 * that thread_main() finds it aligned as after a call. */
static void thread_prepare(struct sim_thread *t)
{
	enum { SAVED = 6 };
	void **top = (void **)((char *)t->stack + SIM_STACK_BYTES);

	STACK_UNPOISON(t->stack, SIM_STACK_BYTES);
	top -= 1;
	*top = NULL; /* the return address that thread_main() never uses */
	*--top = (void *)(uintptr_t)thread_main;
	for (unsigned i = 0; i < SAVED; i++)
		*--top = NULL;
	t->sp = top;
}

void sim_spawn(struct os *os, void (*fn)(void *arg), void *arg,
	       uint64_t delay_ns)
{
	struct sim_thread *t = thread_alloc(os->sim);

	t->os = os;
	t->fn = fn;
	t->arg = arg;
	t->done = t->waiting = false;
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

static void sim_wait_event(struct sim_thread *t, int fd, uint64_t deadline_ns)
{
	if (t && !sim_event_is_set(fd) && deadline_ns > t->os->sim->now_ns)
		thread_wait(t, false, deadline_ns, fd);
}

bool os_has_packet(const struct os *os)
{
	return packets_queued(os);
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

int os_wait_in_verb(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int fd, struct os_signals *s)
{
	(void)s;
	if (what == OS_WAIT_EVENT)
		sim_wait_event(os->sim->running, fd, deadline_ns);
	else
		os_wait(os, what, deadline_ns, fd);
	return 0;
}

/* There are no signals. */
void os_signals_block(struct os_signals *s)
{
	(void)s;
}

void os_signals_restore(struct os_signals *s)
{
	(void)s;
}

bool os_signals_differ(struct os_signals *s)
{
	(void)s;
	return false;
}

int os_event_wait(int fd, struct os_signals *s)
{
	(void)s;
	sim_wait_event(sim_world ? sim_world->running : NULL, fd, TIME_NEVER);
	return 0;
}

void os_doze(struct os *os, int event_fd, uint64_t deadline_ns)
{
	sim_wait_event(os->sim->running, event_fd, deadline_ns);
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
