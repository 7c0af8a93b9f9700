/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* setuid() has the C library interrupt all threads by a signal of its own. One that
 * blocks it in ppoll(2), and there only, hears of it by a signalfd(2) instead: the call
 * returns without EINTR, and the thread that called setuid() does not wait for long.
 */
#include "fact.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t setid = UINT64_C(1) << (33 - 1);
static unsigned told, interrupted;
static bool enough;

static void *sleeper(void *arg)
{
	struct pollfd fd = {.fd = *(int *)arg, .events = POLLIN};
	sigset_t mask;

	sigemptyset(&mask);
	memcpy(&mask, &setid, sizeof(setid));
	while (!__atomic_load_n(&enough, __ATOMIC_ACQUIRE)) {
		if (ppoll(&fd, 1, NULL, &mask) > 0)
			__atomic_add_fetch(&told, 1, __ATOMIC_RELEASE);
		else
			interrupted++;
	}
	return NULL;
}

int main(void)
{
	int fd = (int)syscall(SYS_signalfd4, -1, &setid, sizeof(setid),
			      SFD_CLOEXEC);
	pthread_t t;

	SKIP_UNLESS(fd >= 0 || errno != EPERM, "signalfd is denied here");
	FACT(fd >= 0);
	FACT(pthread_create(&t, NULL, sleeper, &fd) == 0);
	while (__atomic_load_n(&told, __ATOMIC_ACQUIRE) < 100)
		FACT(setgid(getgid()) == 0);
	__atomic_store_n(&enough, true, __ATOMIC_RELEASE);
	/* it may have looked at that, and sleeps only now */
	do
		FACT(setgid(getgid()) == 0);
	while (pthread_tryjoin_np(t, NULL) != 0);
	FACT(interrupted == 0);
	return 0;
}
