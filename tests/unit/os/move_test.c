/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* move_test.c: memory gets another backing while threads of the program load from
 * it, store to it and hand it to system calls: they lose nothing and see nothing
 * else.
 */
#include "base/page.h"
#include "host_fixture.h"
#include "os/pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PAGES = 256, ROUNDS = 30 };

static struct os *os;
static uint8_t *p;
static char path[64];

static int setup(void **state)
{
	(void)state;
	os = host_plain();
	p = pages_apart(PAGES, PROT_READ | PROT_WRITE);
	snprintf(path, sizeof(path), "/tmp/test-of-move-%d", getpid());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	munmap(p, PAGES * PAGE_BYTES);
	unlink(path);
	refuse_none();
	os_close(os);
	return 0;
}

static struct os_move_req req(enum os_move_to to)
{
	return (struct os_move_req){.to = to,
				    .addr = (uintptr_t)p,
				    .len = PAGES * PAGE_BYTES,
				    .path = path};
}

/* Where the kernel refuses it, that is what is said, and nothing has changed. */
static void move(const struct os_move_req *r, uint64_t *copied)
{
	int err = os_move(os, r, copied);

	if (err == -EPERM)
		skip();
	assert_int_equal(err, 0);
}

/* Hidden, 0, from who is not root. */
static uint64_t frame(const void *at)
{
	return page_entry(at) & ((UINT64_C(1) << 55) - 1);
}

static void os_mapped__holes(void **state)
{
	const uint64_t at = (uintptr_t)p;

	(void)state;
	assert_int_equal(os_mapped(os, at + 1, PAGE_BYTES), 0);
	assert_int_equal(os_mapped(os, at, 0), 0);
	munmap(p + 3 * PAGE_BYTES, PAGE_BYTES);
	assert_int_equal(os_mapped(os, at, 3 * PAGE_BYTES), 0);
	assert_int_equal(os_mapped(os, at, 3 * PAGE_BYTES + 1), -EFAULT);
	assert_int_equal(os_mapped(os, at + 4 * PAGE_BYTES - 1, 1), -EFAULT);
	assert_int_equal(os_mapped(os, UINT64_C(1) << 62, 1), -EFAULT);
}

/* Other memory, the same content; what was never touched costs nothing. */
static void os_move__recreate(void **state)
{
	struct os_move_req r = req(OS_MOVE_RECREATE);
	uint64_t copied, was[2];

	(void)state;
	memset(p + PAGE_BYTES, 7, PAGE_BYTES);
	memset(p + 200 * PAGE_BYTES, 9, PAGE_BYTES);
	was[0] = frame(p + PAGE_BYTES);
	was[1] = frame(p + 200 * PAGE_BYTES);
	move(&r, &copied);
	assert_int_equal(copied, 2 * PAGE_BYTES);
	if (was[0]) /* who may see frames */
		assert_true(frame(p + PAGE_BYTES) != was[0] &&
			    frame(p + 200 * PAGE_BYTES) != was[1]);
	for (size_t i = 0; i < PAGES * PAGE_BYTES; i++)
		assert_int_equal(p[i], i / PAGE_BYTES == 1     ? 7
				       : i / PAGE_BYTES == 200 ? 9
							       : 0);
	/* part of a mapping, and of pages */
	r.addr += 100 * PAGE_BYTES + 5;
	r.len = 100 * PAGE_BYTES - 4;
	move(&r, &copied);
	assert_int_equal(copied, 101 * PAGE_BYTES); /* they were read */
	assert_int_equal(p[200 * PAGE_BYTES], 9);
}

/* --- threads that use it ------------------------------------------------------ */

static bool stop;
static int pipe_fd[2];

/* Adds 1 to a word of each page, and hands pages to system calls. */
static void *use(void *arg)
{
	uint64_t *word = arg, n = 0, back;

	for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); n++)
		for (int i = 0; i < PAGES; i++) {
			uint64_t *w = word + i * (PAGE_BYTES / 8);

			if (*w != n)
				return (void *)w;
			++*w;
			if (i % 16)
				continue;
			if (write(pipe_fd[1], w, 8) != 8 ||
			    read(pipe_fd[0], &back, 8) != 8 || back != n + 1)
				return (void *)w;
		}
	*word = n;
	return NULL;
}

static void while_used(struct os_move_req r)
{
	pthread_t thread;
	uint64_t copied;
	void *lost;
	int err = 0;

	assert_int_equal(pipe(pipe_fd), 0);
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, use, p), 0);
	for (int i = 0; i < ROUNDS && !err; i++) {
		err = os_move(os, &r, &copied);
		if (r.to == OS_MOVE_TO_FILE)
			break;
		usleep(1000);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, &lost);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	if (err == -EPERM)
		skip();
	assert_int_equal(err, 0);
	assert_null(lost);
}

static void os_move__recreate_while_used(void **state)
{
	(void)state;
	while_used(req(OS_MOVE_RECREATE));
}

static void os_move__to_file_while_used(void **state)
{
	(void)state;
	while_used(req(OS_MOVE_TO_FILE));
}

static void os_move__to_file(void **state)
{
	struct os_move_req r = req(OS_MOVE_TO_FILE);
	uint64_t copied, was = 0;
	struct stat st;
	int fd;

	(void)state;
	p[5 * PAGE_BYTES] = 5;
	move(&r, &copied);
	assert_int_equal(copied, PAGE_BYTES);
	p[6 * PAGE_BYTES] = 6;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, PAGES * PAGE_BYTES);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(pread(fd, &was, 1, 5 * PAGE_BYTES), 1);
	assert_int_equal(was, 5);
	assert_int_equal(pread(fd, &was, 1, 6 * PAGE_BYTES), 1);
	assert_int_equal(was, 6);
	close(fd);
	/* it is no longer private memory, and the file is there */
	assert_int_equal(os_move(os, &r, &copied), -EOPNOTSUPP);
}

/* A child that is forked meanwhile has it all. */
static void os_move__fork_waits(void **state)
{
	struct os_move_req r = req(OS_MOVE_RECREATE);
	uint64_t copied;
	int status;

	(void)state;
	memset(p, 1, PAGES * PAGE_BYTES);
	move(&r, &copied);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;

		stop = false;
		assert_int_equal(pipe(pipe_fd), 0);
		memset(p, 0, PAGES * PAGE_BYTES);
		assert_int_equal(pthread_create(&thread, NULL, use, p), 0);
		if (i % 2)
			assert_int_equal(os_move(os, &r, &copied), 0);
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		memset(p, i + 1, PAGES * PAGE_BYTES);
		if (fork() == 0) {
			for (size_t k = 0; k < PAGES * PAGE_BYTES; k++)
				if (p[k] != i + 1)
					_exit(1);
			_exit(0);
		}
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
}

/* --- refused ------------------------------------------------------------------ */

static void os_move__refused(void **state)
{
	struct os_move_req r = req(OS_MOVE_RECREATE);
	uint64_t copied;
	int fd;

	(void)state;
	p[0] = 1;
	/* what it runs on, and what the functions that it calls run on */
	r.len = PAGE_BYTES;
	for (unsigned i = 1; i <= 4; i++) {
		r.addr = (uintptr_t)__builtin_frame_address(0) - i * PAGE_BYTES;
		assert_int_equal(os_move(os, &r, &copied), -EOPNOTSUPP);
	}
	r = req(OS_MOVE_TO_FILE);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(os_move(os, &r, &copied), -EEXIST);
	unlink(path);
	r.path = "/nowhere/at/all";
	assert_int_equal(os_move(os, &r, &copied), -ENOENT);
	/* By system calls: the sanitizers make mlock(3) do nothing. */
	if (syscall(SYS_mlock, p, PAGE_BYTES) == 0) {
		r = req(OS_MOVE_RECREATE);
		assert_int_equal(os_move(os, &r, &copied), -EOPNOTSUPP);
		syscall(SYS_munlock, p, PAGE_BYTES);
	}
	munmap(p + 3 * PAGE_BYTES, PAGE_BYTES);
	for (int to = OS_MOVE_RECREATE; to <= OS_MOVE_TO_NODE; to++) {
		r = req((enum os_move_to)to);
		assert_int_equal(os_move(os, &r, &copied), -EFAULT);
	}
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(p[0], 1);
}

static void os_move__refused_by_the_kernel(void **state)
{
	struct os_move_req r = req(OS_MOVE_TO_FILE);
	uint64_t copied;

	(void)state;
	refuse(SYS_userfaultfd, -1, 0, EPERM);
	refuse(SYS_ioctl, -1, 0, EPERM);
	p[0] = 3;
	assert_int_equal(os_move(os, &r, &copied), -EPERM);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(p[0], 3);
}

static void os_move__nodes(void **state)
{
	struct os_move_req r = req(OS_MOVE_TO_NODE);
	uint64_t copied;

	(void)state;
	memset(p, 4, PAGES * PAGE_BYTES);
	assert_int_equal(os_move(os, &r, &copied), 0);
	r.node = 1000;
	assert_int_equal(os_move(os, &r, &copied), -ENODEV);
	r.node = 1u << 30;
	assert_int_equal(os_move(os, &r, &copied), -ENODEV);
	for (size_t i = 0; i < PAGES * PAGE_BYTES; i++)
		assert_int_equal(p[i], 4);
}

/* Half way the kernel says no: what was taken away comes back. */
static void os_move__put_back(void **state)
{
	uint64_t copied;

	(void)state;
	for (int to = OS_MOVE_RECREATE; to <= OS_MOVE_TO_FILE; to++) {
		struct os_move_req r = req((enum os_move_to)to);

		move(&(struct os_move_req){.to = OS_MOVE_RECREATE,
					   .addr = (uintptr_t)p,
					   .len = PAGES * PAGE_BYTES},
		     &copied);
		for (int i = 0; i < PAGES; i++)
			p[(size_t)i * PAGE_BYTES] = (uint8_t)(i + 1);
		/* the API call, the registration, then copies: the pagemap is
		 * read in two parts */
		if (to == OS_MOVE_RECREATE)
			refuse_nth(SYS_ioctl, 4, ENOMEM);
		else
			refuse_nth(SYS_pwrite64, 2, ENOSPC);
		assert_int_equal(os_move(os, &r, &copied),
				 to == OS_MOVE_RECREATE ? -ENOMEM : -ENOSPC);
		refuse_none();
		for (int i = 0; i < PAGES; i++)
			assert_int_equal(p[(size_t)i * PAGE_BYTES],
					 (uint8_t)(i + 1));
		assert_int_equal(access(path, F_OK), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(os_mapped__holes),
		T(os_move__recreate),
		T(os_move__recreate_while_used),
		T(os_move__to_file_while_used),
		T(os_move__to_file),
		T(os_move__fork_waits),
		T(os_move__refused),
		T(os_move__refused_by_the_kernel),
		T(os_move__nodes),
		T(os_move__put_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
