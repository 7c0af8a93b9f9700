/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.c: nopin run: starts a program with nopin's libraries in front of the
 * installed ones. It sets three variables and is gone: the program is the same
 * process. Children of the program run on nopin too.
 */
#include "nopin.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRELOAD "libnopin-preload.so"

/* Where the libraries are, seen from the directory of this program: installed
 * (bin/nopin, NOPIN_LIBDIR below the prefix), or in a build tree
 * (tools/nopin/nopin, lib).
 */
static const char *const places[] = {"../" NOPIN_LIBDIR, "../../lib"};

/* The directory of this program; without /proc what it was started as says. */
static bool find_myself(char dir[PATH_MAX])
{
	const char *const started =
		(const char *)(uintptr_t)getauxval(AT_EXECFN);

	if (!realpath("/proc/self/exe", dir) &&
	    (!started || !realpath(started, dir))) {
		complain("cannot tell where I am: %s: %s",
			 started ? started : "/proc/self/exe", strerror(errno));
		return false;
	}
	*strrchr(dir, '/') = '\0';
	return true;
}

/* Return: whether they are there, or true with @ok false: there, but of no use. */
static bool find_at(const char *place, char dir[PATH_MAX], bool *ok)
{
	char path[PATH_MAX + sizeof(PRELOAD) + 1];

	*ok = false;
	if (!realpath(place, dir)) {
		if (errno != ENOENT)
			complain("%s: %s", place, strerror(errno));
		return errno != ENOENT;
	}
	snprintf(path, sizeof(path), "%s/" PRELOAD, dir);
	if (access(path, R_OK) != 0) {
		if (errno != ENOENT)
			complain("%s: %s", path, strerror(errno));
		return errno != ENOENT;
	}
	/* as ld.so(8) separates names */
	*ok = !dir[strcspn(dir, " :;")];
	if (!*ok)
		complain("%s: the loader takes no name with a space, "
			 "a colon or a semicolon",
			 dir);
	return true;
}

static bool find_libraries(char dir[PATH_MAX])
{
	char self[PATH_MAX], place[PATH_MAX + 64];
	bool ok;

	if (!find_myself(self))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(place, sizeof(place), "%s/%s", self, places[i]);
		if (find_at(place, dir, &ok))
			return ok;
	}
	complain("cannot find " PRELOAD " in %s/%s or %s/%s", self, places[0],
		 self, places[1]);
	return false;
}

/* Put @what before (or behind) what a variable holds already. */
static bool extend(const char *name, const char *what, bool before)
{
	const char *old = getenv(name);
	char *joined;
	bool ok;

	if (!old || !*old)
		return setenv(name, what, 1) == 0;
	if (asprintf(&joined, "%s:%s", before ? what : old,
		     before ? old : what) < 0)
		return false;
	ok = setenv(name, joined, 1) == 0;
	free(joined);
	return ok;
}

static bool set_environment(const char *dir)
{
	char preload[PATH_MAX + sizeof(PRELOAD) + 1];

	snprintf(preload, sizeof(preload), "%s/%s", dir, PRELOAD);
	/* The run time of AddressSanitizer insists on being the first library.
	 * It need not be: what we replace is not what it watches for.
	 */
	return extend("LD_LIBRARY_PATH", dir, true) &&
	       extend("LD_PRELOAD", preload, false) &&
	       extend("ASAN_OPTIONS", "verify_asan_link_order=0", false);
}

/* As a shell would find it: a directory of PATH that may not be searched is not
 * one where it is. Return: 0 with @path, or an errno. */
static int find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	int err = ENOENT;

	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return ENAMETOOLONG;
		return access(path, X_OK) == 0 ? 0 : errno;
	}
	if (!dirs)
		dirs = "/bin:/usr/bin";
	while (*name) {
		const int len = (int)strcspn(dirs, ":");

		if (snprintf(path, PATH_MAX, "%.*s%s%s", len, dirs,
			     len ? "/" : "", name) < PATH_MAX) {
			if (access(path, X_OK) == 0)
				return 0;
			if (access(path, F_OK) == 0)
				err = EACCES;
		}
		if (!dirs[len])
			break;
		dirs += len + 1;
	}
	return err;
}

static bool has_interpreter(int fd, const Elf64_Ehdr *eh)
{
	Elf64_Phdr ph;

	for (int i = 0; i < eh->e_phnum; i++)
		if (pread(fd, &ph, sizeof(ph),
			  (off_t)(eh->e_phoff + (Elf64_Off)i * sizeof(ph))) ==
			    sizeof(ph) &&
		    ph.p_type == PT_INTERP)
			return true;
	return false;
}

/* Why the program at @path loads no library of ours: an ELF program without an
 * interpreter loads none, one for another machine none of these. NULL: it does, as
 * far as can be seen, or is a script. */
static const char *no_libraries(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *why = NULL;
	Elf64_Ehdr mine, eh = {.e_phnum = 0};
	const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	/* the fields that are looked at first lie where those of 32 bits do */
	if (fd < 0 || pread(fd, &eh, sizeof(eh), 0) < EI_NIDENT ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0)
		why = NULL;
	else if (eh.e_ident[EI_CLASS] != ELFCLASS64)
		why = "is a 32-bit program";
	else if (self >= 0 && pread(self, &mine, sizeof(mine), 0) > 0 &&
		 eh.e_machine && eh.e_machine != mine.e_machine)
		why = "is for another machine";
	else if (!has_interpreter(fd, &eh))
		why = "is linked statically";
	if (fd >= 0)
		close(fd);
	if (self >= 0)
		close(self);
	return why;
}

/* Programs that would start and never meet our libraries. */
static void warn_about(const char *path)
{
	const char *const why = no_libraries(path);
	struct stat st;

	if (stat(path, &st) == 0 &&
	    ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	     (st.st_mode & S_ISGID && st.st_gid != getegid())))
		complain("warning: %s is set-user-ID or set-group-ID: "
			 "it will ignore LD_LIBRARY_PATH",
			 path);
	if (why)
		complain("warning: %s %s: it will not use nopin", path, why);
}

int run_main(int argc, char **argv)
{
	char dir[PATH_MAX], path[PATH_MAX];
	int at = 1, err;

	if (at < argc && strcmp(argv[at], "--") == 0)
		at++;
	else if (at < argc && argv[at][0] == '-') {
		complain("run: no option '%s'", argv[at]);
		return EXIT_USAGE;
	}
	if (at == argc) {
		complain("run: which program?");
		return EXIT_USAGE;
	}
	err = find_program(argv[at], path);
	if (err) {
		complain("%s: %s", argv[at], strerror(err));
		return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	if (!find_libraries(dir))
		return EXIT_BROKEN;
	if (!set_environment(dir)) {
		complain("%s", strerror(errno));
		return EXIT_BROKEN;
	}
	warn_about(path);
	execvp(argv[at], argv + at);
	err = errno;
	complain("%s: %s", argv[at], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
