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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRELOAD "libnopin-preload.so"

/* Where the libraries are, seen from the directory of this program: installed
 * (bin/nopin, NOPIN_LIBDIR below the prefix), or in a build tree
 * (tools/nopin/nopin, lib).
 */
static const char *const places[] = {"../" NOPIN_LIBDIR, "../../lib"};

static bool find_libraries(char dir[PATH_MAX])
{
	char self[PATH_MAX], path[2 * PATH_MAX];
	const ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return false;
	self[len] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s/%s", self, places[i],
			 PRELOAD);
		if (access(path, R_OK) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		return realpath(path, dir);
	}
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

/* An ELF program without an interpreter loads no libraries. */
static bool is_static(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool has_interpreter = false;
	Elf64_Phdr ph;
	Elf64_Ehdr eh;

	if (fd < 0)
		return false;
	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64)
		has_interpreter = true; /* a script, or none of our business */
	for (int i = 0; !has_interpreter && i < eh.e_phnum; i++)
		has_interpreter = pread(fd, &ph, sizeof(ph),
					(off_t)(eh.e_phoff +
						(Elf64_Off)i * sizeof(ph))) ==
					  sizeof(ph) &&
				  ph.p_type == PT_INTERP;
	close(fd);
	return !has_interpreter;
}

/* Programs that would start and never meet our libraries. */
static void warn_about(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 &&
	    ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	     (st.st_mode & S_ISGID && st.st_gid != getegid())))
		complain("warning: %s is set-user-ID or set-group-ID: "
			 "it will ignore LD_LIBRARY_PATH",
			 path);
	if (is_static(path))
		complain("warning: %s is linked statically: "
			 "it will not use nopin",
			 path);
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
	if (!find_libraries(dir)) {
		complain("cannot find " PRELOAD " near myself");
		return EXIT_BROKEN;
	}
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
