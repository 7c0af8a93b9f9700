/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* thread_test.c: our threads are guests: name, signals, CPUs, stack. */
#include "base/heap.h"
#include "host_fixture.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>

struct seen {
	char name[16];
	sigset_t blocked;
	cpu_set_t cpus;
	size_t stack;
	int slack;
};

static void look(void *arg)
{
	struct seen *s = arg;
	pthread_attr_t attr;

	prctl(PR_GET_NAME, s->name);
	s->slack = prctl(PR_GET_TIMERSLACK);
	pthread_sigmask(SIG_BLOCK, NULL, &s->blocked);
	sched_getaffinity(0, sizeof(s->cpus), &s->cpus);
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstacksize(&attr, &s->stack);
	pthread_attr_destroy(&attr);
}

static struct seen start(const char *name)
{
	struct os_thread *t;
	struct seen s;

	errno = 123;
	assert_int_equal(os_thread_start(NULL, &t, name, look, &s), 0);
	os_thread_join(t);
	assert_int_equal(errno, 123);
	return s;
}

static void os_thread_start__is_a_guest(void **state)
{
	struct seen s = start("nopin-bg");
	sigset_t mine;

	(void)state;
	assert_string_equal(s.name, "nopin-bg");
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			assert_int_equal(sigismember(&s.blocked, sig),
					 sig != SIGSEGV && sig != SIGBUS);
	assert_int_equal(sigismember(&s.blocked, SIGRTMAX), 1);
	assert_int_equal(s.slack, 1);
	assert_true(s.stack <= 256 * 1024 || s.stack >= 1 << 20);
	/* the creator's mask is as it was */
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	assert_int_equal(sigismember(&mine, SIGUSR1), 0);
	assert_string_equal(start("a-name-that-is-too-long").name,
			    "a-name-that-is-");
}

static int cpus_of_new_thread(void)
{
	struct seen s = start("x");

	return CPU_COUNT(&s.cpus);
}

static int from_pinned_creator;

static void *pinned_creator(void *arg)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(*(int *)arg, &one);
	sched_setaffinity(0, sizeof(one), &one);
	from_pinned_creator = cpus_of_new_thread();
	return NULL;
}

/* Not the creator's affinity, but the process's. */
static void os_thread_start__cpus(void **state)
{
	cpu_set_t all, one;
	pthread_t t;
	int cpu = 0;

	(void)state;
	sched_getaffinity(getpid(), sizeof(all), &all);
	if (CPU_COUNT(&all) < 2)
		skip();
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	pthread_create(&t, NULL, pinned_creator, &cpu);
	pthread_join(t, NULL);
	assert_int_equal(from_pinned_creator, CPU_COUNT(&all));
	/* taskset: the whole process */
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(getpid(), sizeof(one), &one);
	assert_int_equal(cpus_of_new_thread(), 1);
	sched_setaffinity(getpid(), sizeof(all), &all);
}

/* What a child finds of a thread of ours. */
static __thread int in_tls;
static const volatile int *tls, *frame;
static sem_t begun, end;

static void stay(void *arg)
{
	volatile int local = 7;

	(void)arg;
	in_tls = 5;
	tls = &in_tls;
	frame = &local;
	sem_post(&begun);
	while (sem_wait(&end) != 0)
		;
}

/* Not all memory is wiped where objects come from the C library. */
static bool stack_is_ours(void)
{
	void *stack = heap_stack(1 << 20);

	heap_free(stack);
	return stack;
}

static void os_thread_start__in_a_child(void **state)
{
	const int left = stack_is_ours() ? 0 : 7;
	struct os_thread *t;
	int status;
	pid_t pid;

	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&end, 0, 0);
	assert_int_equal(os_thread_start(NULL, &t, "x", stay, NULL), 0);
	while (sem_wait(&begun) != 0)
		;
	pid = fork();
	if (pid == 0)
		_exit(*tls != 5 ? 1 : *frame != left ? 2 : 42);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 42 << 8);
	sem_post(&end);
	os_thread_join(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_thread_start__is_a_guest),
		cmocka_unit_test(os_thread_start__cpus),
		cmocka_unit_test(os_thread_start__in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
