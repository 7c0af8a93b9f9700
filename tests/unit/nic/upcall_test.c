/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall_test.c: queues of upcalls: descriptors that are readable when, and only
 * when, there is something; threads that sleep until there is; and a NIC whose table
 * is so small that it says something all the time.
 */
#include "../sanitized.h"
#include "mem/mr.h"
#include "mem/upcall.h"
#include "nic/event_counter.h"
#include "nic/memory.h"
#include "nic/suspension.h"
#include "nic/upcall_queue.h"
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENTRIES = 64, EVENTS = 64, EVER = -1, PAGES = BUF / 4096 };

static struct nic *nic; /* of side 1 */
static struct nic_upcalls *queue;
static int fd, cookie;
static uint32_t key; /* all of its buffer */
static struct upcall u;

static int setup(void **state)
{
	const struct nic_config cfg = {.os = {.addr = "lo", .pagers = 2},
				       .entries = ENTRIES,
				       .pool_bytes = 1 << 20,
				       .strategies = 1u << STRATEGY_REDIRECT};
	struct mr_attr attr = {.length = BUF,
			       .access = ACCESS_LOCAL_WRITE |
					 ACCESS_REMOTE_WRITE,
			       .cookie = &cookie};

	(void)state;
	sides_open(&cfg);
	nic = side[1].nic;
	assert_int_equal(nic_upcalls_open(nic, EVENTS, &queue, &fd), 0);
	assert_false(side_readable(fd, 0));
	attr.pd = side[1].pd;
	attr.addr = attr.iova = (uintptr_t)side[1].buf;
	attr.upcalls = nic_upcalls_queue(queue);
	assert_int_equal(nic_mr_reg(nic, &attr, &key), 0);
	return 0;
}

static int teardown(void **state)
{
	if (key)
		assert_int_equal(nic_mr_dereg(nic, key), 0);
	key = 0;
	assert_int_equal(nic_upcalls_close(queue), 0);
	return sides_close(state);
}

static void nonblock(void)
{
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

static void write_to(const uint8_t *addr, uint32_t rkey)
{
	side_post(&side[0],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)addr,
			       .rkey = rkey},
		  side[0].buf, 4096);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
}

static void write_page(unsigned page)
{
	write_to(side[1].buf + page * 4096, key);
}

static void upcalls__readable_while_something_is_queued(void **state)
{
	(void)state;
	nonblock();
	assert_int_equal(nic_upcalls_get(queue, &u), -EAGAIN);
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	assert_true(side_readable(fd, EVER));
	assert_int_equal(nic_mr_resume(nic, key), 0);
	assert_int_equal(nic_upcalls_get(queue, &u), 0);
	assert_int_equal(u.reason, UPCALL_SUSPENDED);
	assert_ptr_equal(u.cookie, &cookie);
	assert_true(u.at_ns <= os_now(nic->os));
	assert_true(side_readable(fd, EVER));
	assert_int_equal(nic_upcalls_get(queue, &u), 0);
	assert_int_equal(u.reason, UPCALL_RESUMED);
	assert_false(side_readable(fd, 0));
	assert_int_equal(nic_upcalls_get(queue, &u), -EAGAIN);
}

static void *suspend_soon(void *arg)
{
	const struct timespec soon = {.tv_nsec = 20000000};

	(void)arg;
	nanosleep(&soon, NULL);
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	return NULL;
}

static void upcalls__get_sleeps_until_there_is_one(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, suspend_soon, NULL), 0);
	assert_int_equal(nic_upcalls_get(queue, &u), 0);
	assert_int_equal(u.reason, UPCALL_SUSPENDED);
	pthread_join(thread, NULL);
	assert_false(side_readable(fd, 0));
}

static void upcalls__close(void **state)
{
	(void)state;
	assert_int_equal(nic_upcalls_close(queue), -EBUSY);
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	assert_true(side_readable(fd, EVER));
	assert_int_equal(nic_mr_dereg(nic, key), 0);
	key = 0; /* and close it with what is queued */
}

static void upcalls__nothing_after_dereg(void **state)
{
	(void)state;
	nonblock();
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	assert_true(side_readable(fd, EVER));
	assert_int_equal(nic_mr_dereg(nic, key), 0);
	key = 0;
	assert_int_equal(nic_upcalls_get(queue, &u), -EAGAIN);
	assert_false(side_readable(fd, 0));
}

static void upcalls__open(void **state)
{
	struct nic_upcalls *other;
	int other_fd;

	(void)state;
	assert_int_equal(nic_upcalls_open(nic, 0, &other, &other_fd), -EINVAL);
	assert_int_equal(
		nic_upcalls_open(nic, UPCALLS_MAX + 1, &other, &other_fd),
		-EINVAL);
	assert_int_equal(nic_upcalls_open(nic, UPCALLS_MAX, &other, &other_fd),
			 0);
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	assert_true(side_readable(fd, EVER));
	assert_false(side_readable(other_fd, 0));
	assert_int_equal(nic_upcalls_close(other), 0);
}

/* All of the region, four times as large as the table: as many entries were
 * replaced as were told, and nothing beyond the region. */
static void upcalls__of_replaced_pages(void **state)
{
	const uint64_t start = (uintptr_t)side[1].buf;
	uint64_t pages = 0;

	(void)state;
	nonblock();
	for (unsigned i = 0; i < PAGES; i++) {
		write_page(i);
		while (!nic_upcalls_get(queue, &u)) {
			if (u.reason != UPCALL_REPLACED)
				continue;
			assert_ptr_equal(u.cookie, &cookie);
			assert_true(u.iova >= start &&
				    u.iova + u.length <= start + BUF);
			pages += u.length / 4096;
		}
	}
	assert_true(pages >= PAGES - ENTRIES - 4);
	assert_int_equal(side[1].nic->cnt.v[CNT_upcall_overflows], 0);
}

/* Of a file, so what is known is looked at again after 10 ms. */
static void upcalls__of_a_page_that_is_gone(void **state)
{
	const struct timespec stale = {.tv_nsec = 30000000};
	const int file = memfd_create("gone", MFD_CLOEXEC);
	struct mr_attr attr = {.length = 8192,
			       .access = ACCESS_LOCAL_WRITE |
					 ACCESS_REMOTE_WRITE,
			       .pd = side[1].pd,
			       .iova = 0x1000,
			       .upcalls = nic_upcalls_queue(queue)};
	const size_t room_bytes = 1 << 30;
	uint8_t *room, *mem;
	uint32_t of_file;

	(void)state;
	nonblock();
	assert_int_equal(ftruncate(file, 8192), 0);
	/* where nothing was, of which the table may know */
	room = mmap(NULL, room_bytes, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(room != MAP_FAILED);
	mem = mmap(room + room_bytes / 2, 8192, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, file, 0);
	assert_true(mem != MAP_FAILED);
	attr.addr = (uintptr_t)mem;
	assert_int_equal(nic_mr_reg(nic, &attr, &of_file), 0);
	write_to((uint8_t *)0x2000, of_file);
	nanosleep(&stale, NULL);
	write_to((uint8_t *)0x2000, of_file); /* it is there */
	/* the kernel counts faults on a sanitizer's memory as the pager's */
	if (!nic_upcalls_get(queue, &u) && !SANITIZED)
		fail_msg("reason %d of 0x%llx", (int)u.reason,
			 (unsigned long long)u.iova);
	assert_int_equal(madvise(mem, 8192, MADV_DONTNEED), 0);
	nanosleep(&stale, NULL);
	write_to((uint8_t *)0x2000, of_file);
	/* by another thread than that which acknowledged */
	assert_true(side_readable(fd, EVER));
	assert_int_equal(nic_upcalls_get(queue, &u), 0);
	assert_int_equal(u.reason, UPCALL_EVICTED);
	assert_int_equal(u.iova, 0x2000);
	assert_int_equal(u.length, 4096);
	assert_int_equal(nic_upcalls_get(queue, &u), -EAGAIN);
	assert_int_equal(nic_mr_dereg(nic, of_file), 0);
	munmap(room, room_bytes);
	close(file);
}

/* Nobody looks but at the descriptor. */
static void upcalls__the_background_thread_wakes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * ENTRIES; i++)
		write_page(i);
	assert_true(side_readable(fd, EVER));
}

static void upcalls__overflow_and_on(void **state)
{
	(void)state;
	nonblock();
	for (int i = 0; i <= EVENTS / 2; i++) {
		assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
		assert_int_equal(nic_mr_resume(nic, key), 0);
	}
	assert_int_equal(nic_upcalls_get(queue, &u), 0);
	assert_int_equal(u.reason, UPCALL_EVERYTHING);
	assert_int_equal(nic_upcalls_get(queue, &u), -EAGAIN);
	assert_false(side_readable(fd, 0));
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	assert_true(side_readable(fd, EVER));
	assert_int_equal(nic_upcalls_get(queue, &u), 0);
	assert_int_equal(u.reason, UPCALL_SUSPENDED);
}

/* Who waits for a counter hears of them, too. */
static void upcalls__raise_a_counter(void **state)
{
	struct nic_counter *c;
	pthread_t thread;

	(void)state;
	assert_int_equal(nic_counter_create(nic, side[1].pd, NULL, NULL, &c),
			 0);
	assert_false(nic_upcalls_try(queue, &u));
	nic_upcalls_count(queue, c);
	assert_int_equal(pthread_create(&thread, NULL, suspend_soon, NULL), 0);
	assert_int_equal(nic_counter_wait(c, 1, UINT64_MAX, NIC_WAIT_BLOCK), 0);
	pthread_join(thread, NULL);
	assert_true(nic_upcalls_try(queue, &u));
	assert_int_equal(u.reason, UPCALL_SUSPENDED);
	assert_false(nic_upcalls_try(queue, &u));
	assert_int_equal(nic_mr_resume(nic, key), 0);
	assert_int_equal(nic_counter_wait(c, 2, UINT64_MAX, NIC_WAIT_FUTEX), 0);
	nic_counter_raise(c);
	assert_int_equal(*nic_counter_word(c), 3);
	nic_upcalls_count(queue, NULL);
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	assert_int_equal(*nic_counter_word(c), 3);
	assert_int_equal(nic_counter_free(c), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(upcalls__readable_while_something_is_queued),
		TEST(upcalls__get_sleeps_until_there_is_one),
		TEST(upcalls__close),
		TEST(upcalls__nothing_after_dereg),
		TEST(upcalls__open),
		TEST(upcalls__of_replaced_pages),
		TEST(upcalls__of_a_page_that_is_gone),
		TEST(upcalls__the_background_thread_wakes),
		TEST(upcalls__overflow_and_on),
		TEST(upcalls__raise_a_counter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
