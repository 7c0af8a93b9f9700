/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* threads.h: what threads the process has, and what each does. */
#ifndef NOPIN_TESTS_THREADS_H
#define NOPIN_TESTS_THREADS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Does the name of thread @tid begin with @name, and is its state one of @states? */
static inline bool thread_is(const char *tid, const char *name,
			     const char *states)
{
	char path[300], is[32] = "", state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%31[^)]) %c", is, &state) != 2)
		state = 0;
	fclose(f);
	return state && strncmp(is, name, strlen(name)) == 0 &&
	       strchr(states, state);
}

/** threads_now() - Threads whose name begins with @name and whose state is one of
 * @states: R runs, S sleeps, D waits for a disk (proc(5)). */
static inline unsigned threads_now(const char *name, const char *states)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	unsigned n = 0;

	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.' && thread_is(e->d_name, name, states);
	closedir(d);
	return n;
}

#endif
