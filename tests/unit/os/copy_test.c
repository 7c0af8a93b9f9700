/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy_test.c: moves: data, order, faults, atomics, and every way a kernel can
 * make us go.
 */
#include "base/check.h"
#include "base/page.h"
#include "host_fixture.h"
#include "os/copy.h"
#include "os/lane.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

enum { NIC_BYTES = 1 << 20, APP_PAGES = 40 };

struct env {
	struct os *os;
	uint8_t *nic, *app;
	struct moves mv;
};

static void env_open(struct env *e)
{
	e->os = host_plain();
	e->nic = os_memory(e->os, NIC_BYTES);
	e->app = pages_apart(APP_PAGES, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < NIC_BYTES; i++)
		e->nic[i] = (uint8_t)(i * 13 + i / 509);
	moves_reset(&e->mv);
}

static void env_close(struct env *e)
{
	pages_free(e->app, APP_PAGES);
	os_close(e->os);
}

static struct move *add(struct env *e, enum move_kind kind, void *app,
			void *nic, size_t len)
{
	struct move *m = &e->mv.m[e->mv.num++];

	*m = (struct move){.addr = (uintptr_t)app,
			   .nic = nic,
			   .len = (uint32_t)len,
			   .kind = (uint8_t)kind,
			   .token = 99};
	return m;
}

static void run(struct env *e, unsigned done, int error)
{
	errno = 123;
	os_moves(e->os, &e->mv);
	assert_int_equal(errno, 123);
	assert_int_equal(e->mv.done, done);
	assert_int_equal(e->mv.error, error);
}

static const size_t lengths[] = {1,    7,    8,	    255,   4095,  4096,
				 4097, 8193, 65536, 65537, 140000};

static void os_moves__scatter_lengths(void **state)
{
	struct env e;

	(void)state;
	env_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t n = lengths[i], at = i * 3;

		moves_reset(&e.mv);
		memset(e.app, 0xee, APP_PAGES * PAGE_BYTES);
		add(&e, MOVE_SCATTER, e.app + at + 1, e.nic + at, n);
		run(&e, 1, 0);
		assert_memory_equal(e.app + at + 1, e.nic + at, n);
		assert_int_equal(e.app[at], 0xee);
		assert_int_equal(e.app[at + 1 + n], 0xee);
		assert_int_equal(e.mv.m[0].token, 99);
	}
	env_close(&e);
}

static void gather_lengths(struct env *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t n = lengths[i], at = i * 5;

		moves_reset(&e->mv);
		memset(e->nic, 0xee, NIC_BYTES);
		for (size_t k = 0; k < n; k++)
			e->app[at + k] = (uint8_t)(k * 3 + k / 257);
		add(e, MOVE_GATHER, e->app + at, e->nic + at + 1, n);
		run(e, 1, 0);
		assert_memory_equal(e->app + at, e->nic + at + 1, n);
		assert_int_equal(e->nic[at], 0xee);
		assert_int_equal(e->nic[at + 1 + n], 0xee);
	}
}

static void os_moves__gather_lengths(void **state)
{
	struct env e;

	(void)state;
	env_open(&e);
	gather_lengths(&e);
	/* no lane is left: the other way */
	e.os->lanes.busy = (1u << OS_LANES_MAX) - 1;
	refuse_none();
	gather_lengths(&e);
	assert_int_equal(refuse_calls(SYS_pwritev), 0);
	assert_true(refuse_calls(SYS_process_vm_readv) > 0);
	e.os->lanes.busy = 0;
	env_close(&e);
}

static void os_moves__memfd_refused(void **state)
{
	struct env e;

	(void)state;
	refuse_none();
	refuse(SYS_memfd_create, -1, 0, EPERM);
	env_open(&e);
	gather_lengths(&e);
	moves_reset(&e.mv);
	add(&e, MOVE_SCATTER, e.app, e.nic, 5000);
	run(&e, 1, 0);
	assert_memory_equal(e.app, e.nic, 5000);
	env_close(&e);
	refuse_none();
}

/* Packets of a burst: headers between payloads are stepped over in one call;
 * backwards and far apart need calls of their own.
 */
static void os_moves__scatter_batches(void **state)
{
	static const struct {
		size_t stride, len, n;
		unsigned calls;
	} t[] = {
		{1000, 1000, 20, 1}, /* no gap */
		{1040, 1000, 20, 1},
		{1000 + 512, 1000, 20, 1},
		{1000 + 513, 1000, 20, 20},
		{100, 64, 192, 6}, /* 2 * 32 - 1 pieces a call */
		{64, 64, 192, 4},
	};
	struct env e;

	(void)state;
	env_open(&e);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		moves_reset(&e.mv);
		memset(e.app, 0xee, APP_PAGES * PAGE_BYTES);
		for (size_t k = 0; k < t[i].n; k++)
			add(&e, MOVE_SCATTER, e.app + k * (t[i].len + 1),
			    e.nic + k * t[i].stride, t[i].len);
		refuse_none();
		run(&e, (unsigned)t[i].n, 0);
		assert_int_equal(refuse_calls(SYS_preadv) +
					 refuse_calls(SYS_pread64),
				 t[i].calls);
		for (size_t k = 0; k < t[i].n; k++) {
			uint8_t *a = e.app + k * (t[i].len + 1);

			assert_memory_equal(a, e.nic + k * t[i].stride,
					    t[i].len);
			assert_int_equal(a[t[i].len], 0xee);
		}
	}
	moves_reset(&e.mv);
	for (size_t k = 0; k < 10; k++)
		add(&e, MOVE_SCATTER, e.app + k * 10, e.nic + 1000 - k * 20,
		    10);
	run(&e, 10, 0);
	for (size_t k = 0; k < 10; k++)
		assert_memory_equal(e.app + k * 10, e.nic + 1000 - k * 20, 10);
	env_close(&e);
}

static void os_moves__mixed_in_order(void **state)
{
	uint8_t other[100];
	struct env e;

	(void)state;
	env_open(&e);
	memset(other, 0x5a, sizeof(other));
	/* each reads what the one before it wrote */
	add(&e, MOVE_SCATTER, e.app, e.nic, 100);
	add(&e, MOVE_GATHER, e.app, e.nic + 5000, 100);
	add(&e, MOVE_SCATTER, e.app + 200, e.nic + 5000, 100);
	add(&e, MOVE_SCATTER, e.app + 200, other, 50); /* not NIC memory */
	add(&e, MOVE_FETCH_ADD, e.app + 200, NULL, 8)->operand = 1;
	add(&e, MOVE_SCATTER, e.app + 8, other + 50, 1);
	run(&e, 6, 0);
	assert_memory_equal(e.app, e.nic, 8);
	assert_int_equal(e.app[8], 0x5a);
	assert_int_equal(e.app[200], 0x5b);
	assert_memory_equal(e.app + 201, other, 49);
	assert_memory_equal(e.app + 250, e.nic + 50, 50);
	env_close(&e);
}

/* The piece that fails is named; what is before it is done; nothing behind. */
static void os_moves__faults(void **state)
{
	static const enum move_kind kinds[] = {MOVE_SCATTER, MOVE_GATHER};
	struct env e;

	(void)state;
	env_open(&e);
	for (int lanes = 0; lanes < 2; lanes++) {
		e.os->lanes.busy = lanes ? 0 : (1u << OS_LANES_MAX) - 1;
		for (unsigned k = 0; k < 2; k++)
			for (unsigned bad = 0; bad < 6; bad++) {
				uint8_t *hole =
					pages_apart(2, PROT_READ | PROT_WRITE);

				munmap(hole + PAGE_BYTES, PAGE_BYTES);
				moves_reset(&e.mv);
				memset(e.app, 0, PAGE_BYTES);
				for (unsigned i = 0; i < 6; i++)
					add(&e, kinds[k],
					    i == bad ? hole + PAGE_BYTES -
							       (bad % 3) * 40
						     : e.app + i * 100,
					    e.nic + 6 + i * 110, 100);
				run(&e, bad, -EFAULT);
				for (unsigned i = 0; i < bad; i++)
					assert_memory_equal(e.mv.m[i].nic,
							    e.app + i * 100,
							    100);
				if (bad < 5 && k == 0)
					assert_int_equal(e.app[500], 0);
				munmap(hole, PAGE_BYTES);
			}
	}
	env_close(&e);
}

/* Called again it begins with the piece that failed: atomics happen once. */
static void os_moves__goes_on(void **state)
{
	uint8_t *page = pages_new(1, PROT_NONE);
	uint64_t *cell;
	struct env e;

	(void)state;
	env_open(&e);
	cell = (uint64_t *)e.app;
	*cell = 40;
	moves_reset(&e.mv);
	add(&e, MOVE_FETCH_ADD, e.app, e.nic, 8);
	e.mv.m[0].operand = 2;
	add(&e, MOVE_SCATTER, page, e.nic + 8, 16);
	add(&e, MOVE_SCATTER, e.app + 64, e.nic + 24, 16);
	memset(e.nic + 8, 0x77, 32);
	run(&e, 1, -EFAULT);
	mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE);
	run(&e, 3, 0);
	assert_int_equal(*cell, 42);
	assert_int_equal(page[15], 0x77);
	assert_int_equal(e.app[64], 0x77);
	pages_free(page, 1);
	env_close(&e);
}

static void os_moves__fault_addresses(void **state)
{
	static const uint64_t bad[] = {
		0,
		1,
		0x7ffffffff000, /* below it may be the stack */
		UINT64_MAX - 7,
		UINT64_MAX,
		UINT64_C(1) << 63};
	uint8_t *ro = pages_new(1, PROT_READ);
	struct env e;

	(void)state;
	env_open(&e);
	for (unsigned kind = MOVE_GATHER; kind < MOVE_NUM; kind++)
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
			moves_reset(&e.mv);
			add(&e, kind, (void *)(uintptr_t)bad[i], e.nic, 8);
			run(&e, 0, -EFAULT);
		}
	for (unsigned kind = MOVE_SCATTER; kind < MOVE_NUM; kind++) {
		moves_reset(&e.mv);
		add(&e, kind, ro, e.nic, 8);
		run(&e, 0, -EFAULT);
	}
	moves_reset(&e.mv);
	add(&e, MOVE_GATHER, ro, e.nic, 8);
	run(&e, 1, 0);
	/* not NIC memory either, and not there */
	moves_reset(&e.mv);
	add(&e, MOVE_SCATTER, ro, e.mv.m, 8);
	run(&e, 0, -EFAULT);
	pages_free(ro, 1);
	env_close(&e);
}

static void os_moves__atomics(void **state)
{
	uint64_t *word;
	struct env e;

	(void)state;
	env_open(&e);
	word = (uint64_t *)e.app;
	*word = UINT64_MAX;
	add(&e, MOVE_FETCH_ADD, word, NULL, 8)->operand = 3;
	e.mv.m[1] = (struct move){.addr = (uintptr_t)word,
				  .kind = MOVE_CMP_SWP,
				  .len = 8,
				  .compare = 2,
				  .operand = 77};
	e.mv.m[2] = e.mv.m[1];
	e.mv.num = 3;
	run(&e, 3, 0);
	assert_int_equal(*word, 77);
	assert_true(e.mv.m[0].result == UINT64_MAX);
	assert_int_equal(e.mv.m[1].result, 2);
	assert_int_equal(e.mv.m[2].result, 77);
	env_close(&e);
}

enum { ADDERS = 4, ADDS = 20000 };

static struct os *adder_os;
static uint64_t adder_words[2];

static void *adder(void *arg)
{
	static __thread struct moves mv;

	(void)arg;
	for (int i = 0; i < ADDS; i++) {
		struct move *m = &mv.m[0];

		moves_reset(&mv);
		mv.num = 2;
		m[0] = (struct move){.addr = (uintptr_t)&adder_words[0],
				     .kind = MOVE_FETCH_ADD,
				     .len = 8,
				     .operand = 1};
		/* a spin lock made of a compare-and-swap */
		m[1] = (struct move){.addr = (uintptr_t)&adder_words[1],
				     .kind = MOVE_CMP_SWP,
				     .len = 8,
				     .compare = (uint64_t)i,
				     .operand = (uint64_t)i + 1};
		os_moves(adder_os, &mv);
		if (mv.done != 2)
			return (void *)1;
	}
	return NULL;
}

static void os_moves__atomics_from_four_threads(void **state)
{
	pthread_t t[ADDERS];
	void *bad;

	(void)state;
	adder_os = host_plain();
	for (int i = 0; i < ADDERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, adder, NULL), 0);
	for (int i = 0; i < ADDERS; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(adder_words[0], (uint64_t)ADDERS * ADDS);
	/* one of them won every value; which depends */
	assert_in_range(adder_words[1], 1, ADDS);
	assert_int_equal(adder_os->lanes.busy, 0);
	os_close(adder_os);
}

/* A program that spins on the last of several moves sees those before it. */
static uint8_t order_page[2 * PAGE_BYTES];

static void *order_reader(void *arg)
{
	volatile uint32_t *first = (void *)order_page,
			  *last = (void *)(order_page + PAGE_BYTES);
	uint32_t seen = 0;

	while (seen < 100000) {
		seen = __atomic_load_n(last, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(first, __ATOMIC_ACQUIRE) < seen)
			return (void *)1;
	}
	return arg;
}

static void os_moves__scatter_order(void **state)
{
	pthread_t t;
	struct env e;
	void *bad;

	(void)state;
	env_open(&e);
	assert_int_equal(pthread_create(&t, NULL, order_reader, NULL), 0);
	for (uint32_t i = 1; i <= 100000; i++) {
		memcpy(e.nic, &i, 4);
		memcpy(e.nic + 12, &i, 4);
		moves_reset(&e.mv);
		add(&e, MOVE_SCATTER, order_page, e.nic, 4);
		add(&e, MOVE_SCATTER, order_page + PAGE_BYTES, e.nic + 12, 4);
		run(&e, 2, 0);
	}
	pthread_join(t, &bad);
	assert_null(bad);
	env_close(&e);
}

/* A gather that is blocked in a page must not delay another. */
static struct env blocked;
static int uffd;

static void *blocked_gather(void *arg)
{
	run(&blocked, 1, 0);
	return arg;
}

static void os_moves__blocked_gather_delays_no_other(void **state)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_copy cp = {.len = PAGE_BYTES};
	struct uffd_msg msg;
	struct env e;
	pthread_t t;

	(void)state;
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC, 0, 0, 0, 0, 0);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) < 0)
		skip();
	env_open(&e);
	blocked = (struct env){.os = e.os, .app = pages_new(1, 3)};
	blocked.nic = e.nic + NIC_BYTES / 2;
	reg.range.start = (uintptr_t)blocked.app;
	reg.range.len = PAGE_BYTES;
	assert_int_equal(ioctl(uffd, UFFDIO_REGISTER, &reg), 0);
	add(&blocked, MOVE_GATHER, blocked.app, blocked.nic, 100);
	assert_int_equal(pthread_create(&t, NULL, blocked_gather, NULL), 0);
	assert_int_equal(read(uffd, &msg, sizeof(msg)), sizeof(msg));
	e.app[9] = 42;
	add(&e, MOVE_GATHER, e.app, e.nic, 100);
	add(&e, MOVE_FETCH_ADD, e.app + 8, NULL, 8)->operand = 1;
	run(&e, 2, 0); /* hangs if it waits for the page, which comes below */
	assert_int_equal(e.nic[9], 42);
	cp.dst = (uintptr_t)blocked.app;
	cp.src = (uintptr_t)order_page;
	assert_int_equal(ioctl(uffd, UFFDIO_COPY, &cp), 0);
	pthread_join(t, NULL);
	close(uffd);
	pages_free(blocked.app, 1);
	env_close(&e);
}

/* Each kind of move, once. */
static void some_of_each(struct env *e)
{
	uint64_t *word = (uint64_t *)e->app;

	moves_reset(&e->mv);
	memset(e->nic, 0x5a, 3 * PAGE_BYTES);
	*word = 7;
	add(e, MOVE_FETCH_ADD, e->app, NULL, 8)->operand = 3;
	add(e, MOVE_SCATTER, e->app + PAGE_BYTES, e->nic, 2 * PAGE_BYTES);
	add(e, MOVE_GATHER, e->app, e->nic + PAGE_BYTES, PAGE_BYTES);
	run(e, 3, 0);
	assert_int_equal(e->mv.m[0].result, 7);
	assert_int_equal(*word, 10);
	assert_memory_equal(e->app, e->nic + PAGE_BYTES, PAGE_BYTES);
	assert_memory_equal(e->app + PAGE_BYTES, e->nic, PAGE_BYTES);
	assert_int_equal(e->app[3 * PAGE_BYTES - 1], 0x5a);
}

/* Page 1 of the application's is gone: all before it arrives. */
static void faults_without_lane(struct env *e)
{
	moves_reset(&e->mv);
	assert_int_equal(munmap(e->app + PAGE_BYTES, PAGE_BYTES), 0);
	add(e, MOVE_SCATTER, e->app, e->nic, PAGE_BYTES);
	add(e, MOVE_FETCH_ADD, e->app + PAGE_BYTES, NULL, 8);
	run(e, 1, -EFAULT);
	moves_reset(&e->mv);
	add(e, MOVE_SCATTER, e->app + PAGE_BYTES, e->nic, 8);
	run(e, 0, -EFAULT);
	moves_reset(&e->mv);
	add(e, MOVE_GATHER, e->app + PAGE_BYTES, e->nic, 8);
	run(e, 0, -EFAULT);
}

static void os_moves__lane_cannot_be_made(void **state)
{
	struct env e;

	(void)state;
	env_open(&e);
	e.os->lanes.busy = 1; /* the one that there is */
	refuse_none();
	refuse(SYS_memfd_create, -1, 0, EMFILE);
	refuse(SYS_openat, 2, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, EMFILE);
	some_of_each(&e);
	refuse_none();
	e.os->lanes.busy = 0;
	some_of_each(&e);
	env_close(&e);
}

/* The program limits the size of files, before or after it opens the device. */
static void os_moves__no_files(void **state)
{
	struct rlimit before, none;
	struct env e;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &before);
	none = (struct rlimit){0, before.rlim_max};
	for (int late = 0; late < 2; late++) {
		if (late)
			env_open(&e);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
		if (!late)
			env_open(&e);
		refuse_none();
		some_of_each(&e);
		faults_without_lane(&e);
		assert_int_equal(refuse_calls(SYS_pwritev), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		env_close(&e);
	}
}

/* Of each two calls one is denied. */
static void os_moves__calls_denied(void **state)
{
	static const long denied[] = {SYS_pread64, SYS_preadv, SYS_pwritev,
				      SYS_pwrite64};
	struct env e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(denied); i++) {
		refuse_none();
		refuse(denied[i], -1, 0, i % 2 ? EPERM : ENOSYS);
		env_open(&e);
		some_of_each(&e);
		gather_lengths(&e);
		moves_reset(&e.mv);
		/* one behind the other, which is one call else */
		for (unsigned k = 0; k < 4; k++)
			add(&e, MOVE_SCATTER, e.app + 2 * k * PAGE_BYTES,
			    e.nic + k * 1000, 1000);
		run(&e, 4, 0);
		for (unsigned k = 0; k < 4; k++)
			assert_memory_equal(e.app + 2 * k * PAGE_BYTES,
					    e.nic + k * 1000, 1000);
		refuse_none();
		env_close(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_moves__scatter_lengths),
		cmocka_unit_test(os_moves__scatter_batches),
		cmocka_unit_test(os_moves__scatter_order),
		cmocka_unit_test(os_moves__gather_lengths),
		cmocka_unit_test(os_moves__memfd_refused),
		cmocka_unit_test(os_moves__mixed_in_order),
		cmocka_unit_test(os_moves__faults),
		cmocka_unit_test(os_moves__goes_on),
		cmocka_unit_test(os_moves__fault_addresses),
		cmocka_unit_test(os_moves__atomics),
		cmocka_unit_test(os_moves__atomics_from_four_threads),
		cmocka_unit_test(os_moves__blocked_gather_delays_no_other),
		cmocka_unit_test(os_moves__lane_cannot_be_made),
		cmocka_unit_test(os_moves__no_files),
		cmocka_unit_test(os_moves__calls_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
