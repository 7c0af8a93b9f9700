/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* board_test.c: the notes of processes of a user for each other: who is there, and
 * that who dies, lies, tears or breaks the file harms only itself.
 */
#include "base/check.h"
#include "base/rand.h"
#include "os/clock.h"
#include "os/names.h"
#include "os/os.h"
#include "os/run.h"
#include "os/sys.h"
#include "refuse.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MS = 1000000, HEADER = 4096, SLOT = 256, CHILDREN = 8, QUIT = 255 };

static char dir[64], path[128];
static const struct os_note *note[OS_NOTES_MAX];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test-of-board-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/nopin-%d", dir, (int)geteuid());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static struct os *host_open(void)
{
	const struct os_config cfg = {.pagers = 0};
	struct os *os = NULL;

	assert_int_equal(os_open(&os, &cfg), 0);
	return os;
}

static struct os *joined(void)
{
	struct os *os = host_open();

	assert_int_equal(os_board_open(os, dir), 0);
	return os;
}

static void say(struct os *os, uint8_t what)
{
	uint8_t bytes[OS_NOTE_BYTES];

	memset(bytes, what, sizeof(bytes));
	assert_int_equal(os_board_post(os, bytes), 0);
}

/* --- another process ------------------------------------------------------------ */

struct child {
	pid_t pid;
	int in, out;
};

/* It says @what, and that it did; then what it is told, until it is ended. */
static struct child child_start(uint8_t what)
{
	int to[2], from[2];
	struct child c;
	char byte = 0;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	fflush(NULL);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		struct os *os = NULL;
		const struct os_config cfg = {.pagers = 0};
		uint8_t bytes[OS_NOTE_BYTES];

		close(to[1]);
		close(from[0]);
		if (os_open(&os, &cfg) || os_board_open(os, dir))
			_exit(1);
		do {
			memset(bytes, what, sizeof(bytes));
			if (os_board_post(os, bytes))
				_exit(1);
			if (write(from[1], &byte, 1) != 1)
				_exit(1);
		} while (read(to[0], &what, 1) == 1 && what != QUIT);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	c.out = to[1];
	c.in = from[0];
	assert_int_equal(read(c.in, &byte, 1), 1);
	return c;
}

static void child_end(struct child *c, int signal)
{
	const uint8_t quit = QUIT;
	int status;

	if (signal)
		assert_int_equal(kill(c->pid, signal), 0);
	else
		assert_int_equal(write(c->out, &quit, 1), 1);
	close(c->out);
	close(c->in);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, signal);
}

static const struct os_note *of(int n, pid_t pid)
{
	for (int i = 0; i < n; i++)
		if (note[i]->pid == pid)
			return note[i];
	return NULL;
}

/* --- tests ------------------------------------------------------------------------ */

static void os_board_read__others(void **state)
{
	struct child c[2];
	struct os *os;
	int n;

	(void)state;
	c[0] = child_start(11);
	os = joined();
	say(os, 7);
	c[1] = child_start(12);
	n = os_board_read(os, note);
	assert_int_equal(n, 2);
	for (int i = 0; i < 2; i++) {
		assert_non_null(of(n, c[i].pid));
		assert_int_equal(of(n, c[i].pid)->bytes[0], 11 + i);
		assert_int_equal(of(n, c[i].pid)->bytes[191], 11 + i);
		assert_string_equal(of(n, c[i].pid)->name, "os_board_test");
	}
	assert_int_equal(os_board_mine(os)->bytes[5], 7);
	child_end(&c[0], 0);
	n = os_board_read(os, note);
	assert_int_equal(n, 1);
	assert_int_equal(note[0]->pid, c[1].pid);
	child_end(&c[1], 0);
	assert_int_equal(os_board_read(os, note), 0);
	os_close(os);
}

/* Gone as soon as it is gone; and who comes takes its place. */
static void os_board_read__killed(void **state)
{
	struct child c[CHILDREN];
	struct os *os = joined();
	uint64_t from;

	(void)state;
	for (int i = 0; i < CHILDREN; i++)
		c[i] = child_start((uint8_t)i);
	assert_int_equal(os_board_read(os, note), CHILDREN);
	for (int i = 0; i < CHILDREN; i++) {
		child_end(&c[i], SIGKILL);
		from = clock_ns();
		assert_int_equal(os_board_read(os, note), CHILDREN - 1);
		assert_true(clock_ns() - from < 100 * MS);
		c[i] = child_start(200);
		assert_int_equal(os_board_read(os, note), CHILDREN);
		assert_int_equal(of(CHILDREN, c[i].pid)->bytes[0], 200);
	}
	for (int i = 0; i < CHILDREN; i++)
		child_end(&c[i], SIGKILL);
	os_close(os);
}

/* A forked child is not there, and cannot keep its parent there. */
static void os_board_read__forked(void **state)
{
	struct child c = child_start(1);
	struct os *os = joined();
	int status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	say(os, 3);
	assert_int_equal(os_board_read(os, note), 1);
	child_end(&c, SIGKILL);
	os_close(os);
}

static void os_board_open__one_of_a_process(void **state)
{
	struct os *os = joined(), *other = host_open();

	(void)state;
	assert_int_equal(os_board_open(other, dir), -EBUSY);
	os_board_close(os);
	assert_int_equal(os_board_open(other, dir), 0);
	os_close(other);
	os_close(os);
}

static void make_file(const char *what, size_t bytes, mode_t mode)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	if (bytes)
		assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (what)
		assert_int_equal(pwrite(fd, what, strlen(what), 0),
				 strlen(what));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void os_board_open__refuses(void **state)
{
	const size_t size = HEADER + (size_t)OS_NOTES_MAX * SLOT;
	struct os *os = host_open();
	char other[140];

	(void)state;
	make_file(NULL, 0, 0644);
	assert_int_equal(os_board_open(os, dir), -EPERM);
	make_file(NULL, 1, 0600);
	assert_int_equal(os_board_open(os, dir), -EBADMSG);
	make_file("nopin board 2\n", size, 0600);
	assert_int_equal(os_board_open(os, dir), -EBADMSG);
	make_file("nopin board 1\n", size + 1, 0600);
	assert_int_equal(os_board_open(os, dir), -EBADMSG);
	make_file("nopin board 1\n", size, 0660);
	assert_int_equal(os_board_open(os, dir), -EPERM);
	make_file("nopin board 1\n", size, 0600);
	snprintf(other, sizeof(other), "%s-2", path);
	assert_int_equal(link(path, other), 0);
	assert_int_equal(os_board_open(os, dir), -EBADMSG);
	unlink(path);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(os_board_open(os, dir), -ELOOP);
	unlink(path);
	unlink(other);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(os_board_open(os, dir), -EBADMSG);
	unlink(path);
	if (geteuid() == 0) {
		make_file("nopin board 1\n", size, 0600);
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(os_board_open(os, dir), -EPERM);
		unlink(path);
	}
	assert_int_equal(os_board_open(os, "/nowhere"), -ENOENT);
	/* what was begun by another is finished */
	make_file(NULL, size, 0600);
	assert_int_equal(os_board_open(os, dir), 0);
	os_close(os);
}

/* It looks like ours, as others' do in a user namespace that has no number for them;
 * the kernel knows better. */
static void os_board_open__of_a_user_without_number(void **state)
{
	struct os *os = host_open();

	(void)state;
	refuse(SYS_fchmod, -1, 0, EPERM);
	assert_int_equal(os_board_open(os, dir), -EPERM);
	refuse_none();
	os_close(os);
}

/* Whatever the umask is: the next one can open it. */
static void os_board_open__umask(void **state)
{
	const mode_t was = umask(0777);
	struct os *os = joined();
	struct stat st;

	(void)state;
	umask(was);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	os_close(os);
}

/* Where the slot of @c is. */
static off_t slot_of(int fd, pid_t pid)
{
	for (int i = 0; i < OS_NOTES_MAX; i++) {
		struct flock l = {.l_type = F_WRLCK,
				  .l_start = HEADER + i * SLOT,
				  .l_len = SLOT};

		assert_int_equal(fcntl(fd, F_GETLK, &l), 0);
		if (l.l_type != F_UNLCK && l.l_pid == pid)
			return HEADER + i * SLOT;
	}
	fail();
	return 0;
}

/* Torn, damaged: what was there before counts; of who said nothing yet, nothing.
 * NOLINTNEXTLINE(readability-function-size) */
static void os_board_read__torn(void **state)
{
	struct child c = child_start(5), d;
	struct os *os = joined();
	uint8_t was[SLOT], junk[SLOT];
	struct rnd r = {1, 2, 0};
	/* not our own descriptor of it: that would drop our lock */
	int fd = os->board ? open("/dev/null", O_RDONLY) : -1;
	pid_t pid;
	int status;

	(void)state;
	close(fd);
	assert_int_equal(os_board_read(os, note), 1);
	fflush(NULL);
	pid = fork(); /* the vandal */
	if (pid == 0) {
		fd = open(path, O_RDWR);
		off_t at = slot_of(fd, c.pid);

		if (pread(fd, was, SLOT, at) != SLOT)
			_exit(1);
		for (int i = 0; i < SLOT; i++)
			junk[i] = (uint8_t)rnd_next(&r);
		/* half of a note */
		memcpy(junk, was, SLOT / 4);
		_exit(pwrite(fd, junk, SLOT, at) != SLOT);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(os_board_read(os, note), 1);
	for (int i = 0; i < OS_NOTE_BYTES; i++)
		assert_int_equal(note[0]->bytes[i], 5);
	/* it says something else, and is heard */
	assert_int_equal(write(c.out, "x", 1), 1);
	assert_int_equal(read(c.in, junk, 1), 1);
	assert_int_equal(os_board_read(os, note), 1);
	assert_int_equal(note[0]->bytes[0], 'x');
	/* killed in the middle of it: as if it never was */
	child_end(&c, SIGKILL);
	assert_int_equal(os_board_read(os, note), 0);
	d = child_start(9);
	assert_int_equal(os_board_read(os, note), 1);
	assert_int_equal(note[0]->bytes[0], 9);
	child_end(&d, SIGKILL);
	os_close(os);
}

/* Whoever has the slot of one who is gone is not heard before he said something. */
static void os_board_read__not_the_dead(void **state)
{
	struct child c = child_start(5);
	struct os *os = joined();
	const off_t at = HEADER; /* who was first */
	char byte = 0;
	int from[2];
	pid_t pid;

	(void)state;
	assert_int_equal(os_board_read(os, note), 1);
	child_end(&c, SIGKILL);
	assert_int_equal(pipe(from), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR);
		struct flock l = {
			.l_type = F_WRLCK, .l_start = at, .l_len = SLOT};

		_exit(fcntl(fd, F_SETLK, &l) != 0 ||
		      pwrite(fd, "junk", 4, at) != 4 ||
		      write(from[1], &byte, 1) != 1 || pause());
	}
	assert_int_equal(read(from[0], &byte, 1), 1);
	assert_int_equal(os_board_read(os, note), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* nor is a process that joined, and said nothing yet */
	c = child_start(5);
	child_end(&c, SIGKILL);
	pid = fork();
	if (pid == 0) {
		struct os *other = host_open();

		_exit(os_board_open(other, dir) ||
		      write(from[1], &byte, 1) != 1 || pause());
	}
	assert_int_equal(read(from[0], &byte, 1), 1);
	assert_int_equal(os_board_read(os, note), 1);
	assert_int_equal(note[0]->pid, pid);
	assert_int_equal(note[0]->bytes[0], 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(from[0]);
	close(from[1]);
	os_close(os);
}

/* Somewhere something, or one slot as it is into another. */
static void vandalise(int fd, struct rnd *r)
{
	const uint64_t all = HEADER + (uint64_t)OS_NOTES_MAX * SLOT;
	uint8_t b[3 * SLOT];
	size_t n = 1 + rnd_next(r) % sizeof(b);
	uint64_t at = rnd_next(r) % (rnd_next(r) % 2 ? all : 6 * SLOT);

	/* mostly where slots are in use */
	at += at < 6 * SLOT ? HEADER : 0;
	for (size_t i = 0; i < n; i++)
		b[i] = rnd_next(r) % 8 ? (uint8_t)rnd_next(r) : 0;
	if (rnd_next(r) % 4 == 0) {
		n = pread(fd, b, SLOT,
			  HEADER + (off_t)(rnd_next(r) % 3) * SLOT);
		at = HEADER + rnd_next(r) % 3 * SLOT;
	}
	n = MIN(n, all - MIN(at, all));
	assert_int_equal(pwrite(fd, b, n, (off_t)at), n);
}

/* What is read is what somebody said, whatever is written where; and who says
 * something again is heard. */
static void os_board_read__vandal(void **state)
{
	struct child c[2] = {child_start(11), child_start(12)};
	struct os *os = joined();
	struct rnd r = {3, 4, 0};
	int fd = open(path, O_RDWR), n;
	uint8_t byte = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		vandalise(fd, &r);
		n = os_board_read(os, note);
		assert_in_range(n, 0, 2);
		for (int k = 0; k < n; k++) {
			const uint8_t said = note[k]->bytes[0];

			assert_true(note[k]->pid == c[0].pid ||
				    note[k]->pid == c[1].pid);
			assert_true(said == 11 || said == 12 || said == 7);
			for (int at = 0; at < OS_NOTE_BYTES; at++)
				assert_int_equal(note[k]->bytes[at], said);
			assert_non_null(memchr(note[k]->name, 0,
					       sizeof(note[k]->name)));
		}
		if (i % 16)
			continue;
		say(os, 7);
		for (int k = 0; k < 2; k++) {
			byte = (uint8_t)(11 + k);
			assert_int_equal(write(c[k].out, &byte, 1), 1);
			assert_int_equal(read(c[k].in, &byte, 1), 1);
		}
		n = os_board_read(os, note);
		assert_int_equal(n, 2);
		for (int k = 0; k < 2; k++)
			assert_int_equal(of(n, c[k].pid)->bytes[0], 11 + k);
	}
	for (int k = 0; k < 2; k++)
		child_end(&c[k], SIGKILL);
	os_close(os);
	close(fd); /* not before: it would drop our lock */
}

/* Somebody cuts the file short, or locks all of it: no SIGBUS, nobody waits. */
static void os_board_post__broken(void **state)
{
	struct os *os = joined();
	uint8_t bytes[OS_NOTE_BYTES] = {1};
	struct child c = child_start(1);

	(void)state;
	assert_int_equal(os_board_read(os, note), 1);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(os_board_post(os, bytes), -EBADF);
	assert_int_equal(os_board_read(os, note), -EBADF);
	child_end(&c, SIGKILL);
	os_close(os);
}

/* By @lock: the locks of open files are no process's. */
static void one_locks_all(int lock)
{
	struct child c = child_start(1);
	struct os *os = joined(), *other = host_open();
	char byte = 0;
	int from[2];
	pid_t pid;

	assert_int_equal(pipe(from), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR);

		for (int i = 0; i < OS_NOTES_MAX; i++) {
			struct flock l = {.l_type = F_WRLCK,
					  .l_start = HEADER + i * SLOT,
					  .l_len = SLOT};

			(void)fcntl(fd, lock, &l);
		}
		_exit(write(from[1], &byte, 1) != 1 || pause());
	}
	assert_int_equal(read(from[0], &byte, 1), 1);
	say(os, 1);
	/* it said nothing that anybody could go by */
	assert_int_equal(os_board_read(os, note), 1);
	assert_int_equal(note[0]->pid, c.pid);
	/* who comes is alone */
	os_board_close(os);
	assert_int_equal(os_board_open(other, dir), 0);
	os_board_close(other);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	child_end(&c, SIGKILL);
	close(from[0]);
	close(from[1]);
	os_close(other);
	os_close(os);
}

static void os_board_read__one_who_locks_all(void **state)
{
	(void)state;
	one_locks_all(F_SETLK);
	one_locks_all(F_OFD_SETLK);
}

/* In a child: the note of slot @from, which is its own, in all behind it. */
static int pin_everywhere(int from, int to)
{
	int fd = open(path, O_RDWR);
	uint8_t mine[SLOT];

	if (pread(fd, mine, SLOT, HEADER + from * SLOT) != SLOT)
		return 1;
	for (int i = from + 1; i < to; i++) {
		struct flock l = {.l_type = F_WRLCK,
				  .l_start = HEADER + i * SLOT,
				  .l_len = SLOT};

		if (fcntl(fd, F_SETLK, &l) ||
		    pwrite(fd, mine, SLOT, l.l_start) != SLOT)
			return 1;
	}
	return 0;
}

/* It counts once, or it would get the share of many. */
static void os_board_read__one_who_is_everywhere(void **state)
{
	struct os *os = joined();
	char byte = 0;
	int from[2], n;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(from), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct os *other = host_open();

		if (os_board_open(other, dir))
			_exit(1);
		say(other, 7);
		_exit(pin_everywhere(1, OS_NOTES_MAX) ||
		      write(from[1], &byte, 1) != 1 || pause());
	}
	close(from[1]);
	assert_int_equal(read(from[0], &byte, 1), 1);
	n = os_board_read(os, note);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(n, 1);
	assert_int_equal(note[0]->pid, pid);
	assert_int_equal(note[0]->bytes[0], 7);
	close(from[0]);
	os_close(os);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(os_board_read__others),
		TEST(os_board_read__killed),
		TEST(os_board_read__forked),
		TEST(os_board_open__one_of_a_process),
		TEST(os_board_open__refuses),
		TEST(os_board_open__of_a_user_without_number),
		TEST(os_board_open__umask),
		TEST(os_board_read__torn),
		TEST(os_board_read__vandal),
		TEST(os_board_read__not_the_dead),
		TEST(os_board_post__broken),
		TEST(os_board_read__one_who_locks_all),
		TEST(os_board_read__one_who_is_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
