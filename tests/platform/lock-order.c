/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock-order.c: ThreadSanitizer reports locks that are taken in two orders, though no
 * thread ever waited: so the tests that are built with it assert the order of locks in
 * doc/threads.md wherever they take two.
 */
#include "fact.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	REPORTED = 66
}; /* exit code of a program about which something was reported */

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER,
				   PTHREAD_MUTEX_INITIALIZER};

static void *take_both(void *first)
{
	pthread_mutex_t *a = first, *b = &locks[a == locks];

	pthread_mutex_lock(a);
	pthread_mutex_lock(b);
	pthread_mutex_unlock(b);
	pthread_mutex_unlock(a);
	return NULL;
}

/* One after the other. */
static int take(const char *order)
{
	for (; *order; order++) {
		pthread_t t;

		if (pthread_create(&t, NULL, take_both, &locks[*order - '0']) !=
		    0)
			return 1;
		pthread_join(t, NULL);
	}
	return 0;
}

static int outcome(char *self, char *order)
{
	char *const argv[] = {self, order, NULL};
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		setenv("TSAN_OPTIONS", "", 1);
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	FACT(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return take(argv[1]);
	SKIP_UNLESS(outcome(argv[0], "000") == 0,
		    "ThreadSanitizer does not run here");
	FACT(outcome(argv[0], "01") == REPORTED);
	return 0;
}
