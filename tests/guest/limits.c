/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* limits.c: limits that a program sets for itself. Under each the device works, or it
 * is refused with the errno that fits and a line that names the limit; no signal comes.
 */
#include "link.h"
#include "watch.h"

#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum { REFUSED = 2, NOBODY = 65534 };

static void limit(int what, uint64_t to)
{
	const struct rlimit r = {to, to};

	REQUIRE(setrlimit(what, &r) == 0);
}

/* --- what a program does; each ends it --------------------------------------------- */

static int error_expected;

static void work(uint64_t arg)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct link l;

	(void)arg;
	if (!list) {
		REQUIRE(errno == error_expected);
		_exit(REFUSED);
	}
	REQUIRE(list[0]);
	l.ctx = ibv_open_device(list[0]);
	if (!l.ctx) {
		REQUIRE(errno == error_expected);
		_exit(REFUSED);
	}
	link_setup(&l);
	link_work(&l);
	link_close(&l);
	_exit(0);
}

static void small_files(uint64_t bytes)
{
	limit(RLIMIT_FSIZE, bytes);
	work(0);
}

static void small_files_and_eager(uint64_t bytes)
{
	signal(SIGXFSZ, SIG_IGN);
	small_files(bytes);
}

/* As programs do that shut themselves in. */
static void small_files_late(uint64_t bytes)
{
	struct link l;

	link_open(&l);
	limit(RLIMIT_FSIZE, bytes);
	link_work(&l);
	link_close(&l);
	_exit(0);
}

static void all_locked(uint64_t bytes)
{
	limit(RLIMIT_MEMLOCK, bytes);
	if (geteuid() == 0) /* who may lock without limit */
		REQUIRE(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 &&
			setuid(NOBODY) == 0);
	REQUIRE(mlockall(MCL_FUTURE) == 0);
	error_expected = ENOMEM;
	work(0);
}

static void small_space(uint64_t bytes)
{
	limit(RLIMIT_AS, bytes);
	error_expected = ENOMEM;
	work(0);
}

static void few_descriptors(uint64_t num)
{
	limit(RLIMIT_NOFILE, num);
	error_expected = EMFILE;
	work(0);
}

/* --- judging it ----------------------------------------------------------------------- */

/* Return: wait status; what it wrote to standard error is in @text. */
static int watch(void (*program)(uint64_t), uint64_t arg, char *text)
{
	int from;
	pid_t pid = watch_fork(&from);

	if (pid == 0)
		program(arg);
	return watch_end(pid, from, text);
}

/* @name: of the limit; NULL: it is not to be in the way. Return: did it work? */
static bool tried(const char *what, void (*program)(uint64_t), uint64_t arg,
		  const char *name)
{
	char text[TEXT_MAX];
	const int status = watch(program, arg, text);

	if (status == 0)
		return true;
	if (name && WIFEXITED(status) && WEXITSTATUS(status) == REFUSED &&
	    strstr(text, name))
		return false;
	fprintf(stderr, "%s %llu: wait status %#x\n%s", what,
		(unsigned long long)arg, status, text);
	_exit(1);
}

static void files(void)
{
	static const uint64_t bytes[] = {
		0,	 1,	   4 * KIB,  64 * KIB - 1,  64 * KIB,
		1 * MIB, 16 * MIB, 32 * MIB, RLIM_INFINITY,
	};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		tried("RLIMIT_FSIZE", small_files, bytes[i], NULL);
		tried("RLIMIT_FSIZE and SIGXFSZ ignored", small_files_and_eager,
		      bytes[i], NULL);
		tried("RLIMIT_FSIZE, late", small_files_late, bytes[i], NULL);
	}
}

/* From where on does it work? Above that it always does. */
static void grows(const char *name, void (*program)(uint64_t), uint64_t from,
		  uint64_t end, bool doubles, uint64_t must)
{
	uint64_t first = 0;

	for (uint64_t n = from; n < end; n += doubles ? n : 1) {
		const bool works = tried(name, program, n, name);

		if (works && !first)
			first = n;
		REQUIRE(works || !first);
	}
	fprintf(stderr, "%s: %llu is enough\n", name,
		(unsigned long long)first);
	REQUIRE(first ? first <= must : end <= must);
}

/* Up to what may be set here; @most at most. */
static uint64_t settable(int what, uint64_t most)
{
	struct rlimit r;

	REQUIRE(getrlimit(what, &r) == 0);
	if (r.rlim_max >= most)
		return most;
	return setrlimit(what, &(struct rlimit){r.rlim_cur, most}) == 0
		       ? most
		       : r.rlim_max + 1;
}

int main(void)
{
	files();
	grows("RLIMIT_MEMLOCK", all_locked, 256 * KIB,
	      settable(RLIMIT_MEMLOCK, 256 * MIB), true, 8 * MIB);
	/* a sanitizer ends a program that is given no memory */
	if (!BIG)
		grows("RLIMIT_AS", small_space, 4 * MIB, 512 * MIB, true,
		      64 * MIB);
	grows("RLIMIT_NOFILE", few_descriptors, 8, 48, false, 32);
	return 0;
}
