/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* watch.h: a child, its end and what it writes to standard error. */
#ifndef NOPIN_TESTS_GUEST_WATCH_H
#define NOPIN_TESTS_GUEST_WATCH_H

#include "link.h"

#include <stdbool.h>
#include <sys/wait.h>

enum { TEXT_MAX = 4096 };

/** watch_fork() - As fork(). The child has PATIENCE; @from: what it writes. */
static inline pid_t watch_fork(int *from)
{
	int fds[2];
	pid_t pid;

	REQUIRE(pipe(fds) == 0);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], 2);
		close(fds[0]);
		alarm(PATIENCE);
	}
	close(fds[1]);
	*from = fds[0];
	return pid;
}

/** watch_end() - @text: of TEXT_MAX; what was written until its end. Return: wait
 * status. */
static inline int watch_end(pid_t pid, int from, char *text)
{
	size_t len = 0;
	int status;
	ssize_t n;

	while ((n = read(from, text + len, TEXT_MAX - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(from);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	return status;
}

/** watch_sanitizer() - Did a sanitizer give up that cannot do without what it was denied?
 * What it finds in a program it says otherwise. */
static inline bool watch_sanitizer(const char *text)
{
	return strstr(text, "Sanitizer: CHECK failed") ||
	       strstr(text, "Sanitizer failed to") ||
	       strstr(text, "ERROR: Failed to mmap");
}

#endif
