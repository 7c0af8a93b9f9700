/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pager_test.c: pages asked for and answered, from every kind of memory, with
 * every way of the kernel, and with pages that hang.
 */
#include "base/check.h"
#include "base/page.h"
#include "base/timerq.h"
#include "host_fixture.h"
#include "os/pager.h"
#include "os/pages.h"
#include "os/wait.h"
#include "threads.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>

static struct os_page_done ask(struct os *os, const void *p, size_t bytes,
			       bool write)
{
	struct os_page_req req = {.id = (uintptr_t)p ^ 5,
				  .addr = (uintptr_t)p,
				  .bytes = bytes,
				  .write = write,
				  .whole = true};
	struct os_page_done done;

	assert_int_equal(os_page_ask(os, &req), 0);
	while (os_page_reap(os, &done, 1) == 0)
		os_wait(os, OS_WAIT_TIMER, os_now(os) + 5000 * MS, -1);
	assert_int_equal(done.id, req.id);
	return done;
}

static void expect(struct os *os, const void *p, size_t bytes, bool write,
		   size_t ready, int error)
{
	struct os_page_done done = ask(os, p, bytes, write);

	assert_int_equal(done.bytes, ready);
	assert_int_equal(done.error, error);
	assert_int_equal(done.writable, write && ready > 0);
}

static int file_new(size_t bytes)
{
	int fd = fileno(tmpfile());

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

/* Content is never changed, and what is ready is really present. */
static void ordinary(struct os *os)
{
	uint8_t *p = pages_apart(8, PROT_READ | PROT_WRITE);
	uint8_t *ro = pages_new(2, PROT_READ), *none = pages_new(1, PROT_NONE);

	expect(os, p, 3 * PAGE_BYTES, true, 3 * PAGE_BYTES, 0);
	assert_true(page_present(p) && page_present(p + 2 * PAGE_BYTES));
	assert_false(page_present(p + 3 * PAGE_BYTES));
	p[5] = 7;
	expect(os, p, PAGE_BYTES, true, PAGE_BYTES, 0);
	assert_false(ask(os, p, PAGE_BYTES, true).by_hand);
	expect(os, p, PAGE_BYTES, false, PAGE_BYTES, 0);
	assert_int_equal(p[5], 7);
	expect(os, p + 4 * PAGE_BYTES, PAGE_BYTES, false, PAGE_BYTES, 0);
	assert_true(page_present(p + 4 * PAGE_BYTES));
	munmap(p + 6 * PAGE_BYTES, PAGE_BYTES);
	expect(os, p, 8 * PAGE_BYTES, true, 6 * PAGE_BYTES, -EFAULT);
	expect(os, p, 8 * PAGE_BYTES, false, 6 * PAGE_BYTES, -EFAULT);
	expect(os, p + 6 * PAGE_BYTES, PAGE_BYTES, true, 0, -EFAULT);
	expect(os, ro, 2 * PAGE_BYTES, false, 2 * PAGE_BYTES, 0);
	expect(os, ro, 2 * PAGE_BYTES, true, 0, -EFAULT);
	expect(os, none, PAGE_BYTES, false, 0, -EFAULT);
	expect(os, none, PAGE_BYTES, true, 0, -EFAULT);
	expect(os, NULL, PAGE_BYTES, false, 0, -EFAULT);
	expect(os, (void *)-PAGE_BYTES, PAGE_BYTES, true, 0, -EFAULT);
	expect(os, (void *)-PAGE_BYTES, 2 * PAGE_BYTES, true, 0, -EFAULT);
	munmap(p, 8 * PAGE_BYTES);
	pages_free(ro, 2);
	pages_free(none, 1);
}

static void file(struct os *os)
{
	int fd = file_new(2 * PAGE_BYTES);
	uint8_t *p = mmap(NULL, 4 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);

	assert_int_equal(pwrite(fd, "x", 1, 4097), 1);
	expect(os, p, 2 * PAGE_BYTES, false, 2 * PAGE_BYTES, 0);
	expect(os, p, 2 * PAGE_BYTES, true, 2 * PAGE_BYTES, 0);
	/* beyond its end: a load would be SIGBUS */
	expect(os, p, 4 * PAGE_BYTES, false, 2 * PAGE_BYTES, -EFAULT);
	expect(os, p + 2 * PAGE_BYTES, PAGE_BYTES, true, 0, -EFAULT);
	assert_int_equal(p[4097], 'x');
	munmap(p, 4 * PAGE_BYTES);
	close(fd);
}

static void os_page_ask__kinds(void **state)
{
	struct os *os = host_plain();

	(void)state;
	ordinary(os);
	file(os);
	os_close(os);
}

/* What faults in a pager that has just begun are its own pages, not those asked for. */
static void os_page_ask__absent_or_not(void **state)
{
	uint8_t *p = pages_apart(2, PROT_READ | PROT_WRITE);

	(void)state;
	*p = 1;
	for (int i = 0; i < 20; i++) {
		struct os *os = host_plain();

		assert_false(ask(os, p, PAGE_BYTES, i % 2).absent);
		assert_false(ask(os, p, PAGE_BYTES, i % 2).absent);
		madvise(p + PAGE_BYTES, PAGE_BYTES, MADV_DONTNEED);
		assert_true(ask(os, p, 2 * PAGE_BYTES, true).absent);
		os_close(os);
	}
	pages_free(p, 2);
}

static void os_page_ask__huge_range(void **state)
{
	const size_t n = 64 << 20;
	struct os *os = host_plain();
	uint8_t *p = pages_apart(n / PAGE_BYTES, PROT_READ | PROT_WRITE);
	struct os_page_done done;

	(void)state;
	munmap(p + n - PAGE_BYTES, PAGE_BYTES);
	done = ask(os, p, n, true);
	assert_int_equal(done.bytes, n - PAGE_BYTES);
	assert_int_equal(done.error, -EFAULT);
	assert_true(done.service_ns > 0);
	assert_true(page_present(p + n - 2 * PAGE_BYTES));
	munmap(p, n - PAGE_BYTES);
	os_close(os);
}

static void os_page_ask__probe(void **state)
{
	struct os *os = host_plain();
	uint8_t *p = pages_new(300, PROT_READ | PROT_WRITE);
	struct os_page_req req = {
		.addr = (uintptr_t)p, .bytes = 300 * PAGE_BYTES, .probe = true};
	struct os_page_done done;

	(void)state;
	memset(p, 1, 200 * PAGE_BYTES);
	assert_int_equal(os_page_ask(os, &req), 0);
	while (os_page_reap(os, &done, 1) == 0)
		sched_yield();
	assert_int_equal(done.bytes, 200 * PAGE_BYTES);
	assert_int_equal(done.error, 0);
	assert_false(done.writable);
	assert_false(page_present(p + 200 * PAGE_BYTES));
	pages_free(p, 300);
	os_close(os);
}

/* --- userfaultfd ----------------------------------------------------------- */

static int uffd = -1;
static bool uffd_stop;
static useconds_t uffd_delay_us;
static uint8_t uffd_source[PAGE_BYTES];

static void *uffd_server(void *arg)
{
	struct uffdio_copy cp = {.len = PAGE_BYTES,
				 .src = (uintptr_t)uffd_source};
	struct pollfd ready = {.fd = uffd, .events = POLLIN};
	struct uffd_msg msg;

	while (!__atomic_load_n(&uffd_stop, __ATOMIC_RELAXED)) {
		if (poll(&ready, 1, 5) != 1 ||
		    read(uffd, &msg, sizeof(msg)) != sizeof(msg))
			continue;
		usleep(uffd_delay_us);
		cp.dst = msg.arg.pagefault.address & -PAGE_BYTES;
		ioctl(uffd, UFFDIO_COPY, &cp);
	}
	return arg;
}

static pthread_t uffd_serve(useconds_t delay_us)
{
	pthread_t t;

	uffd_stop = false;
	uffd_delay_us = delay_us;
	assert_int_equal(pthread_create(&t, NULL, uffd_server, NULL), 0);
	return t;
}

static void uffd_end(pthread_t t)
{
	__atomic_store_n(&uffd_stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	close(uffd);
}

/* Return: false if this host has no userfaultfd for us. */
static bool uffd_open(int flags, void *p, size_t pages)
{
	struct uffdio_register reg = {
		.range = {(uintptr_t)p, pages * PAGE_BYTES},
		.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags, 0,
			    0, 0, 0, 0);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) < 0)
		return false;
	assert_int_equal(ioctl(uffd, UFFDIO_REGISTER, &reg), 0);
	memset(uffd_source, 0x33, sizeof(uffd_source));
	return true;
}

/* The kernel gets EFAULT there; a load of the program's own would not. */
static void os_page_ask__user_mode_only_uffd(void **state)
{
	uint8_t *p = pages_new(8, PROT_READ | PROT_WRITE);
	struct os *os;
	pthread_t t;

	(void)state;
	if (!uffd_open(UFFD_USER_MODE_ONLY, p, 8))
		skip();
	os = host_plain();
	t = uffd_serve(0);
	assert_true(ask(os, p, PAGE_BYTES, true).by_hand);
	expect(os, p, 2 * PAGE_BYTES, true, 2 * PAGE_BYTES, 0);
	expect(os, p + 2 * PAGE_BYTES, 6 * PAGE_BYTES, false, 6 * PAGE_BYTES,
	       0);
	assert_int_equal(p[0], 0x33);
	assert_int_equal(p[8 * PAGE_BYTES - 1], 0x33);
	uffd_end(t);
	pages_free(p, 8);
	os_close(os);
}

/* What is there takes no time, and as much again is tried: of a slow range an
 * answer ends where the first slow pages end, so all but its second half was
 * there before. A pager that is preempted may answer sooner.
 */
static void os_page_ask__early_answer(void **state)
{
	uint8_t *p = pages_new(8, PROT_READ | PROT_WRITE);
	struct os_page_req req = {.addr = (uintptr_t)p,
				  .bytes = 8 * PAGE_BYTES};
	struct os_page_done done = {.bytes = 0};
	struct os *os;
	uint64_t present = 0;
	pthread_t t;

	(void)state;
	if (!uffd_open(0, p, 8))
		skip();
	os = host_plain();
	t = uffd_serve(OS_PAGES_SLOW_NS / 1000 + 1);
	for (unsigned asks = 0; done.bytes < req.bytes; asks++) {
		assert_true(asks < 1000);
		assert_int_equal(os_page_ask(os, &req), 0);
		while (os_page_reap(os, &done, 1) == 0)
			os_wait(os, OS_WAIT_TIMER, os_now(os) + 5000 * MS, -1);
		assert_int_equal(done.error, 0);
		assert_true(done.bytes >= PAGE_BYTES);
		assert_true(done.bytes == PAGE_BYTES ||
			    done.bytes / 2 <= present);
		present = MAX(present, done.bytes);
	}
	uffd_end(t);
	pages_free(p, 8);
	os_close(os);
}

/* Also where the caller's signals are blocked, whose mask stays as it was, and
 * the touch of a page beyond the end of a file raises one.
 */
static void os_page_now__here(void **state)
{
	uint8_t *beyond = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED, file_new(0), 0);
	uint8_t *p = pages_new(3, PROT_READ | PROT_WRITE);
	struct os *os;
	sigset_t all, old, after;
	pthread_t t;

	(void)state;
	if (!uffd_open(UFFD_USER_MODE_ONLY, p, 2))
		skip();
	os = host_plain();
	t = uffd_serve(1000);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	assert_int_equal(os_page_now(os, (uintptr_t)p + 1, PAGE_BYTES, true),
			 0);
	assert_true(page_present(p) && page_present(p + PAGE_BYTES));
	assert_int_equal(p[PAGE_BYTES], 0x33);
	mprotect(p + 2 * PAGE_BYTES, PAGE_BYTES, PROT_NONE);
	assert_int_equal(os_page_now(os, (uintptr_t)p, 3 * PAGE_BYTES, false),
			 -EFAULT);
	assert_int_equal(os_page_now(os, (uintptr_t)beyond, 1, false), -EFAULT);
	pthread_sigmask(SIG_SETMASK, &old, &after);
	assert_true(sigismember(&after, SIGSEGV) &&
		    sigismember(&after, SIGBUS));
	uffd_end(t);
	munmap(beyond, PAGE_BYTES);
	pages_free(p, 3);
	os_close(os);
}

/* As many slow pages as there are pagers: pages that are there are answered for
 * all the same.
 */
static void os_page_ask__slow_pages_delay_no_present_one(void **state)
{
	uint8_t *p = pages_new(4, PROT_READ | PROT_WRITE);
	uint8_t *fast = pages_new(20, PROT_READ | PROT_WRITE);
	struct os_page_done done;
	struct os *os;
	pthread_t t;

	(void)state;
	if (!uffd_open(0, p, 4))
		skip();
	os = host_plain();
	memset(fast, 1, 20 * PAGE_BYTES);
	for (unsigned i = 0; i < 4; i++) {
		struct os_page_req req = {.id = i,
					  .addr = (uintptr_t)p + i * PAGE_BYTES,
					  .bytes = PAGE_BYTES};

		assert_int_equal(os_page_ask(os, &req), 0);
	}
	for (size_t i = 0; i < 20; i++)
		expect(os, fast + i * PAGE_BYTES, PAGE_BYTES, true, PAGE_BYTES,
		       0);
	t = uffd_serve(20000); /* till now the slow ones hung */
	for (unsigned got = 0; got < 4;) {
		if (os_page_reap(os, &done, 1) == 0) {
			os_wait(os, OS_WAIT_TIMER, TIME_NEVER, -1);
			continue;
		}
		got++;
		assert_int_equal(done.bytes, PAGE_BYTES);
		assert_true(done.service_ns >= 20 * MS);
		assert_int_not_equal(done.backing, BACKING_CHEAP);
	}
	uffd_end(t);
	pages_free(p, 4);
	pages_free(fast, 20);
	os_close(os);
}

static unsigned pagers_now(void)
{
	return threads_now("nopin-pg", "RSD");
}

/* Threads come and go in their own time. */
static void expect_pagers(unsigned want)
{
	while (pagers_now() != want)
		usleep(5000);
}

/* The program closes all that is open beyond select(2)'s reach, and has the numbers
 * for a pipe. */
static void take_numbers(const int fd[2], int first, int num)
{
	for (int i = first; i < first + num; i++)
		assert_int_equal(dup2(fd[1], i), i);
}

/* A page that hangs outlives the NIC: neither may suffer, nor who has the NIC's
 * descriptors then. */
static void os_close__with_a_page_that_hangs(void **state)
{
	uint8_t *p = pages_new(1, PROT_READ | PROT_WRITE);
	struct os_page_req req = {.addr = (uintptr_t)p, .bytes = PAGE_BYTES};
	struct uffdio_copy cp = {.len = PAGE_BYTES};
	struct pollfd ready = {.events = POLLIN};
	const int first = 1024, num = 64;
	struct os *os;
	struct uffd_msg msg;
	int fd[2];

	(void)state;
	if (!uffd_open(0, p, 1))
		skip();
	os = host_plain();
	assert_int_equal(os_page_ask(os, &req), 0);
	ready.fd = uffd;
	assert_int_equal(poll(&ready, 1, -1), 1);
	assert_int_equal(read(uffd, &msg, sizeof(msg)), sizeof(msg));
	os_close(os); /* hangs if it waits for the page, which comes below */
	assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
	take_numbers(fd, first, num);
	cp.dst = (uintptr_t)p;
	cp.src = (uintptr_t)uffd_source;
	assert_int_equal(ioctl(uffd, UFFDIO_COPY, &cp), 0);
	expect_pagers(0);
	for (int i = first; i < first + num; i++)
		assert_int_equal(close(i), 0);
	assert_int_equal(close(fd[1]), 0);
	assert_int_equal(read(fd[0], &msg, sizeof(msg)), 0);
	assert_int_equal(close(fd[0]), 0);
	close(uffd);
	pages_free(p, 1);
}

/* --- bounds ------------------------------------------------------------------ */

static void os_page_ask__bounded(void **state)
{
	const struct os_config cfg = {.pagers = 0};
	struct os *os = host_open(&cfg);
	struct os_page_req req = {.addr = PAGE_BYTES, .bytes = PAGE_BYTES};
	struct os_page_done done;
	int n = 0;

	(void)state;
	while (os_page_ask(os, &req) == 0)
		n++;
	assert_int_equal(n, 1024);
	assert_int_equal(os_page_ask(os, &req), -EAGAIN);
	/* no pager: it never comes, and nobody waits for it */
	os_wait(os, OS_WAIT_TIMER, os_now(os) + MS, -1);
	assert_int_equal(os_page_reap(os, &done, 1), 0);
	os_close(os);
}

static void os_page_ask__all_answers_come(void **state)
{
	enum { ROUNDS = 20, EACH = 1000 };
	uint8_t *p = pages_new(EACH, PROT_READ | PROT_WRITE);
	static struct os_page_done done[64];
	static unsigned seen[EACH];
	struct os *os = host_plain();

	(void)state;
	for (unsigned r = 0; r < ROUNDS; r++) {
		unsigned got = 0;

		for (unsigned i = 0; i < EACH; i++) {
			struct os_page_req req = {.id = i,
						  .addr = (uintptr_t)p +
							  i * PAGE_BYTES,
						  .bytes = PAGE_BYTES,
						  .write = i % 2};

			assert_int_equal(os_page_ask(os, &req), 0);
		}
		while (got < EACH) {
			unsigned n = os_page_reap(os, done, 64);

			for (unsigned i = 0; i < n; i++) {
				assert_int_equal(done[i].bytes, PAGE_BYTES);
				seen[done[i].id]++;
			}
			got += n;
			if (n == 0)
				os_wait(os, OS_WAIT_TIMER,
					os_now(os) + 100 * MS, -1);
		}
		assert_int_equal(os_page_reap(os, done, 1), 0);
		for (unsigned i = 0; i < EACH; i++)
			assert_int_equal(seen[i], r + 1);
	}
	pages_free(p, EACH);
	os_close(os);
}

/* Whoever sleeps is woken by an answer, and by nothing that it has had. */
static void os_page_ask__wakes_once(void **state)
{
	enum { ROUNDS = 20000 };
	uint8_t *p = pages_new(1, PROT_READ | PROT_WRITE);
	struct os_page_req req = {.addr = (uintptr_t)p, .bytes = PAGE_BYTES};
	unsigned in_vain = 0, asked = 0;
	struct os_page_done done[4];
	uint64_t from;
	struct os *os = host_plain();

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned out = 1 + i % 4;

		asked += out;
		for (unsigned k = 0; k < out; k++)
			assert_int_equal(os_page_ask(os, &req), 0);
		while (out) {
			unsigned n = os_page_reap(os, done, 1 + i % 3);

			out -= n;
			if (n || !out)
				continue;
			os_wait(os, OS_WAIT_TIMER, TIME_NEVER, -1);
			in_vain += !os_pages_waiting(os);
		}
	}
	assert_in_range(in_vain, 0, asked / 4);
	/* A pager may make it readable for an answer that was reaped. */
	os_event_set(pagers_fd(os->pagers));
	os_wait(os, OS_WAIT_TIMER, TIME_NEVER, -1);
	from = os_now(os);
	os_wait(os, OS_WAIT_TIMER, from + 20 * MS, -1);
	assert_true(os_now(os) - from >= 20 * MS);
	pages_free(p, 1);
	os_close(os);
}

static void pagers_open__no_more_than_allowed(void **state)
{
	const struct os_config cfg = {.pagers = 3};
	uint8_t *p = pages_new(8, PROT_READ | PROT_WRITE);
	struct os_page_done done;
	struct os *os;
	pthread_t t;

	(void)state;
	if (!uffd_open(0, p, 8))
		skip();
	expect_pagers(0);
	os = host_open(&cfg);
	for (unsigned i = 0; i < 8; i++) {
		struct os_page_req req = {.addr = (uintptr_t)p + i * PAGE_BYTES,
					  .bytes = PAGE_BYTES};

		assert_int_equal(os_page_ask(os, &req), 0);
	}
	usleep(50000);
	expect_pagers(3);
	usleep(50000);
	assert_int_equal(pagers_now(), 3);
	t = uffd_serve(0);
	for (unsigned got = 0; got < 8; got += os_page_reap(os, &done, 1))
		os_wait(os, OS_WAIT_TIMER, os_now(os) + 100 * MS, -1);
	uffd_end(t);
	pages_free(p, 8);
	os_close(os);
	expect_pagers(0);
}

static void pagers_open__failures(void **state)
{
	const struct os_config cfg = {.pagers = 4};
	struct os *os = NULL;
	unsigned n = 2;

	(void)state;
	/* The n-th descriptor cannot be had: an error, and nothing leaks. The
	 * first call asks for none (probe.c). */
	for (; n < 5; n++) {
		refuse_none();
		refuse_nth(SYS_eventfd2, n, EMFILE);
		if (os_open(&os, &cfg) == 0)
			break;
		assert_null(os);
	}
	assert_int_equal(n, 4); /* kick and answers */
	refuse_none();
	os_close(os);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pagers_open__failures),
		cmocka_unit_test(pagers_open__no_more_than_allowed),
		cmocka_unit_test(os_page_ask__kinds),
		cmocka_unit_test(os_page_ask__absent_or_not),
		cmocka_unit_test(os_page_ask__huge_range),
		cmocka_unit_test(os_page_ask__probe),
		cmocka_unit_test(os_page_ask__user_mode_only_uffd),
		cmocka_unit_test(os_page_ask__early_answer),
		cmocka_unit_test(os_page_now__here),
		cmocka_unit_test(os_page_ask__slow_pages_delay_no_present_one),
		cmocka_unit_test(os_page_ask__bounded),
		cmocka_unit_test(os_page_ask__all_answers_come),
		cmocka_unit_test(os_page_ask__wakes_once),
		cmocka_unit_test(os_close__with_a_page_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
