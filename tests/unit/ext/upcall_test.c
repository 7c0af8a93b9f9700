/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall_test.c: a program registers regions with attributes and is told what
 * becomes of them; what cannot be registered is refused.
 */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, LEN = 8 * PAGE, EVENTS = 16 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct nopin_upcalls *queue;
static char *mem;

static int setup(void **state)
{
	(void)state;
	setenv("NOPIN_ENTRIES", "64", 1);
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(nopin_upcalls_open(ctx, EVENTS, &queue), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(nopin_upcalls_close(queue), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	munmap(mem, LEN);
	return 0;
}

static struct nopin_reg_attr usual(void)
{
	return (struct nopin_reg_attr){.addr = mem,
				       .length = LEN,
				       .access = IBV_ACCESS_LOCAL_WRITE,
				       .upcalls = queue};
}

static struct ibv_mr *reg(struct nopin_reg_attr a)
{
	errno = 0;
	return nopin_reg(pd, &a, sizeof(a));
}

static void refused(struct nopin_reg_attr a, int err)
{
	assert_null(reg(a));
	assert_int_equal(errno, err);
}

static struct nopin_upcall get(enum nopin_upcall_reason reason)
{
	struct nopin_upcall ev;

	memset(&ev, 0xff, sizeof(ev));
	assert_int_equal(nopin_upcalls_get(queue, &ev, sizeof(ev)), 0);
	assert_int_equal(ev.reason, reason);
	assert_int_equal(ev.flags, 0);
	return ev;
}

static bool readable(void)
{
	struct pollfd p = {.fd = nopin_upcalls_fd(queue), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void nopin_reg__is_a_region(void **state)
{
	struct nopin_reg_attr a = usual();
	struct ibv_mr *mr;

	(void)state;
	a.minimum = 4;
	a.weight = 1000;
	mr = reg(a);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, mem);
	assert_int_equal(mr->length, LEN);
	assert_int_equal(nopin_mr_set_fault(mr, NOPIN_FAULT_RNR), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* no more than an older program knows of */
	mr = nopin_reg(pd, &a, offsetof(struct nopin_reg_attr, minimum));
	assert_non_null(mr);
	assert_int_equal(nopin_upcalls_close(queue), 0);
	assert_int_equal(nopin_upcalls_open(ctx, EVENTS, &queue), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static struct nopin_reg_attr minimal(char *at, size_t pages, uint32_t minimum)
{
	struct nopin_reg_attr a = usual();

	a.addr = at;
	a.length = pages * PAGE;
	a.minimum = minimum;
	return a;
}

/* How much of half of the table is promised: all but what one more may be. */
static uint32_t promised(void)
{
	for (uint32_t n = 32; n > 0; n--) {
		struct ibv_mr *mr = reg(minimal(mem, n, n));

		if (mr) {
			assert_int_equal(ibv_dereg_mr(mr), 0);
			return 32 - n;
		}
		assert_int_equal(errno, ENOSPC);
	}
	return 32;
}

/* More than a region has pages counts when it has more. */
static void nopin_reg__minimum_of_a_region_that_grows(void **state)
{
	struct ibv_mr *mr = reg(minimal(mem, 1, 16));

	(void)state;
	assert_non_null(mr);
	assert_int_equal(promised(), 1);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      mem, 30 * PAGE, 0),
			 0);
	assert_int_equal(promised(), 16);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      mem, 2 * PAGE, 0),
			 0);
	assert_int_equal(promised(), 2);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(promised(), 0);
}

/* What the old region is promised is for the new one; if there is none, for the old
 * one still. */
static void nopin_reg__minimum_of_a_region_that_is_replaced(void **state)
{
	struct ibv_mr *other, *mr = reg(minimal(mem, 24, 24));

	(void)state;
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		0);
	assert_int_equal(promised(), 24);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      mem, 24 * PAGE, 0),
			 0);
	assert_int_equal(promised(), 24);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      mem, 20 * PAGE, 0),
			 0);
	other = reg(minimal(mem, 10, 10));
	assert_non_null(other);
	assert_int_equal(promised(), 30);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      mem, 23 * PAGE, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(promised(), 30);
	assert_int_equal(nopin_mr_suspend(mr, 0), 0);
	assert_ptr_equal(get(NOPIN_UPCALL_SUSPENDED).mr, mr);
	assert_int_equal(nopin_mr_resume(mr), 0);
	assert_ptr_equal(get(NOPIN_UPCALL_RESUMED).mr, mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(promised(), 10);
	assert_int_equal(ibv_dereg_mr(other), 0);
}

static void nopin_reg__whole_address_space(void **state)
{
	struct nopin_reg_attr a = usual();
	struct nopin_upcall ev;
	struct ibv_mr *mr;
	pid_t pid;

	(void)state;
	a.addr = NULL;
	a.length = SIZE_MAX;
	refused(a, EINVAL);
	a.access |= IBV_ACCESS_ON_DEMAND;
	a.minimum = 10;
	mr = reg(a);
	assert_non_null(mr);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	ev = get(NOPIN_UPCALL_PROTECTED);
	assert_ptr_equal(ev.mr, mr);
	assert_int_equal(ev.addr, 0);
	assert_int_equal(ev.length, UINT64_MAX);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void nopin_reg__refused(void **state)
{
	struct ibv_context *other = open_device();
	struct nopin_upcalls *others;
	struct nopin_reg_attr a = usual();

	(void)state;
	assert_null(nopin_reg(pd, &a, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(nopin_reg(pd, &a, sizeof(a) + 1));
	assert_int_equal(errno, EINVAL);
	a.length = 0;
	refused(a, EINVAL);
	a = usual();
	a.addr = (void *)(UINTPTR_MAX - 9);
	a.length = 11;
	refused(a, EINVAL);
	a = usual();
	a.weight = 1001;
	refused(a, EINVAL);
	a = usual();
	a.reserved = 1;
	refused(a, EINVAL);
	a = usual();
	a.access = IBV_ACCESS_REMOTE_WRITE;
	refused(a, EINVAL);
	a = usual();
	a.access |= IBV_ACCESS_ON_DEMAND;
	a.addr = NULL;
	a.length = SIZE_MAX;
	a.minimum = 33;
	refused(a, ENOSPC);
	a = usual();
	assert_int_equal(nopin_upcalls_open(other, 1, &others), 0);
	a.upcalls = others;
	refused(a, EINVAL);
	assert_int_equal(ibv_close_device(other), 0);
	refused(a, EINVAL);
	assert_int_equal(nopin_upcalls_get(others, &(struct nopin_upcall){0},
					   sizeof(struct nopin_upcall)),
			 ENODEV);
	assert_int_equal(nopin_upcalls_close(others), 0);
}

static void nopin_upcalls_open__refused(void **state)
{
	struct nopin_upcalls *q = NULL;

	(void)state;
	assert_int_equal(nopin_upcalls_open(ctx, 0, &q), EINVAL);
	assert_int_equal(nopin_upcalls_open(ctx, 4097, &q), EINVAL);
	assert_null(q);
}

static void nopin_upcalls_get__in_addresses_of_the_keys(void **state)
{
	struct nopin_reg_attr a = usual();
	struct nopin_upcall ev;
	struct ibv_mr *mr;

	(void)state;
	a.addr = mem + 100;
	a.length = 5000;
	a.access |= IBV_ACCESS_ZERO_BASED;
	mr = reg(a);
	assert_non_null(mr);
	assert_int_equal(nopin_upcalls_close(queue), EBUSY);
	assert_false(readable());
	assert_int_equal(nopin_mr_suspend(mr, 0), 0);
	assert_true(readable());
	ev = get(NOPIN_UPCALL_SUSPENDED);
	assert_ptr_equal(ev.mr, mr);
	assert_int_equal(ev.addr, 0);
	assert_int_equal(ev.length, 5000);
	assert_false(readable());
	assert_int_equal(nopin_mr_update(mr, mem + 8 * 128 + 4, 5000), 0);
	assert_int_equal(nopin_mr_resume(mr), 0);
	get(NOPIN_UPCALL_MOVED);
	ev = get(NOPIN_UPCALL_RESUMED);
	assert_int_equal(ev.addr, 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void nopin_upcalls_get__size_and_nonblock(void **state)
{
	struct nopin_upcall ev;
	struct ibv_mr *mr = reg(usual());

	(void)state;
	assert_int_equal(fcntl(nopin_upcalls_fd(queue), F_SETFL, O_NONBLOCK),
			 0);
	assert_int_equal(nopin_upcalls_get(queue, &ev, sizeof(ev)), EAGAIN);
	assert_int_equal(nopin_mr_suspend(mr, 0), 0);
	assert_int_equal(nopin_upcalls_get(queue, &ev, 0), EINVAL);
	assert_int_equal(nopin_upcalls_get(queue, &ev, sizeof(ev) + 1), EINVAL);
	memset(&ev, 0xff, sizeof(ev));
	assert_int_equal(nopin_upcalls_get(queue, &ev, sizeof(ev.mr)), 0);
	assert_ptr_equal(ev.mr, mr);
	assert_int_equal(ev.length, UINT64_MAX);
	/* a new region with the old attributes; what was told of the old is not
	 * of it */
	assert_int_equal(nopin_mr_resume(mr), 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      mr->addr, mr->length, 0),
			 0);
	assert_int_equal(nopin_upcalls_get(queue, &ev, sizeof(ev)), EAGAIN);
	assert_int_equal(nopin_mr_suspend(mr, 0), 0);
	assert_ptr_equal(get(NOPIN_UPCALL_SUSPENDED).mr, mr);
	assert_int_equal(nopin_mr_resume(mr), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(nopin_upcalls_get(queue, &ev, sizeof(ev)), EAGAIN);
}

static int count_until_resumed(const struct nopin_upcall *ev, void *arg)
{
	(*(int *)arg)++;
	return ev->reason == NOPIN_UPCALL_RESUMED;
}

static void nopin_upcalls_run__until_told_to_stop(void **state)
{
	struct ibv_mr *mr = reg(usual());
	int n = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(nopin_mr_suspend(mr, 0), 0);
		assert_int_equal(nopin_mr_resume(mr), 0);
	}
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(
			nopin_upcalls_run(queue, count_until_resumed, &n), 0);
		assert_int_equal(n, 2 * i);
	}
	fcntl(nopin_upcalls_fd(queue), F_SETFL, O_NONBLOCK);
	assert_int_equal(nopin_upcalls_run(queue, count_until_resumed, &n),
			 EAGAIN);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/** struct stay - A handler that stays until it is let go. */
struct stay {
	sem_t there, go;
};

static int stays(const struct nopin_upcall *ev, void *arg)
{
	struct stay *s = arg;

	(void)ev;
	sem_post(&s->there);
	sem_wait(&s->go);
	return 1;
}

static void *runner(void *arg)
{
	return nopin_upcalls_run(queue, stays, arg) ? &queue : NULL;
}

/* A handler that does not return: its queue overflows, and that is all. */
static void nopin_upcalls_run__handler_that_stays(void **state)
{
	struct ibv_mr *mr = reg(usual());
	pthread_t thread;
	struct stay s;
	void *failed;

	(void)state;
	sem_init(&s.there, 0, 0);
	sem_init(&s.go, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, runner, &s), 0);
	assert_int_equal(nopin_mr_suspend(mr, 0), 0);
	sem_wait(&s.there);
	assert_int_equal(nopin_mr_resume(mr), 0);
	for (int i = 0; i < EVENTS; i++) {
		assert_int_equal(nopin_mr_suspend(mr, 0), 0);
		assert_int_equal(nopin_mr_resume(mr), 0);
	}
	get(NOPIN_UPCALL_EVERYTHING);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	sem_post(&s.go);
	pthread_join(thread, &failed);
	assert_null(failed);
}

/* A thread that sleeps for an event can be cancelled, and no event is lost. */
static inline void nopin_upcalls_run__cancelled(void **state)
{
	struct ibv_mr *mr = reg(usual());
	pthread_t thread;
	struct stay s;
	void *end;

	(void)state;
	sem_init(&s.there, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, runner, &s), 0);
	usleep(20000);
	pthread_cancel(thread);
	pthread_join(thread, &end);
	assert_ptr_equal(end, PTHREAD_CANCELED);
	assert_int_equal(nopin_mr_suspend(mr, 0), 0);
	get(NOPIN_UPCALL_SUSPENDED);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static bool all_enodev(void)
{
	struct nopin_upcalls *q = NULL;
	struct nopin_upcall ev;
	int n = 0;

	return nopin_upcalls_open(ctx, 1, &q) == ENODEV && !q &&
	       nopin_upcalls_get(queue, &ev, sizeof(ev)) == ENODEV &&
	       nopin_upcalls_run(queue, count_until_resumed, &n) == ENODEV &&
	       !reg(usual()) && errno == ENODEV &&
	       nopin_upcalls_close(queue) == ENODEV;
}

static void nopin_upcalls__not_in_a_child(void **state)
{
	struct ibv_mr *mr = reg(usual());
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(nopin_mr_suspend(mr, 0), 0);
	pid = fork();
	if (pid == 0)
		_exit(all_enodev() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	get(NOPIN_UPCALL_SUSPENDED);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* The close of the device takes down what is left. */
static void nopin_upcalls__left_behind(void **state)
{
	struct ibv_context *c = open_device();
	struct ibv_pd *p = ibv_alloc_pd(c);
	struct nopin_reg_attr a = usual();
	struct nopin_upcalls *q;
	struct ibv_mr *mr;

	(void)state;
	assert_int_equal(nopin_upcalls_open(c, 1, &q), 0);
	a.upcalls = q;
	mr = nopin_reg(p, &a, sizeof(a));
	assert_non_null(mr);
	assert_int_equal(ibv_close_device(c), 0);
	assert_int_equal(nopin_upcalls_close(q), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(nopin_reg__is_a_region),
		T(nopin_reg__minimum_of_a_region_that_grows),
		T(nopin_reg__minimum_of_a_region_that_is_replaced),
		T(nopin_reg__whole_address_space),
		T(nopin_reg__refused),
		T(nopin_upcalls_open__refused),
		T(nopin_upcalls_get__in_addresses_of_the_keys),
		T(nopin_upcalls_get__size_and_nonblock),
		T(nopin_upcalls_run__until_told_to_stop),
		T(nopin_upcalls_run__handler_that_stays),
#ifndef __SANITIZE_ADDRESS__ /* takes the stack of who is cancelled for in use */
		T(nopin_upcalls_run__cancelled),
#endif
		T(nopin_upcalls__not_in_a_child),
		T(nopin_upcalls__left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
