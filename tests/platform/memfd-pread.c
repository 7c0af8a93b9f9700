/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* preadv() from a memfd to memory that is not there says EFAULT, or how far it
 * came; it raises no signal, and fills the pieces in order.
 */
#include "fact.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ROUNDS = 100000, SPINS = 1000 };

static _Alignas(PAGE) uint8_t target[2 * PAGE];
static unsigned seen; /* rounds that the watcher saw */

/* Single bytes, and a round only after the last: the kernel copies a few bytes
 * one by one, so a longer number is for a moment what it never was.
 */
static void *watch(void *arg)
{
	for (unsigned i = 1; i <= ROUNDS; i++) {
		for (unsigned n = 1;
		     __atomic_load_n(&target[PAGE], __ATOMIC_ACQUIRE) !=
		     (uint8_t)i;
		     n++)
			if (n % SPINS == 0)
				sched_yield();
		FACT(__atomic_load_n(&target[0], __ATOMIC_ACQUIRE) ==
		     (uint8_t)i);
		__atomic_store_n(&seen, i, __ATOMIC_RELEASE);
	}
	return arg;
}

int main(void)
{
	int fd = memfd_create("fact", 0);
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     *m;
	struct iovec v[3];
	pthread_t t;

	FACT(ftruncate(fd, 1 << 20) == 0);
	m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	munmap(p + PAGE, PAGE);
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	FACT(pread(fd, p + PAGE, 8, 0) == -1 && errno == EFAULT);
	FACT(pread(fd, p + 2 * PAGE, 8, 0) == -1 && errno == EFAULT);
	FACT(pread(fd, p + PAGE - 100, 200, 0) == 100);
	v[0] = (struct iovec){p, 10};
	v[1] = (struct iovec){p + PAGE - 5, 10};
	v[2] = (struct iovec){p + 20, 10};
	FACT(preadv(fd, v, 3, 0) == 15);
	/* writing into a memfd from there: the same */
	FACT(pwrite(fd, p + PAGE, 8, 0) == -1 && errno == EFAULT);
	FACT(pwrite(fd, p + PAGE - 100, 200, 0) == 100);

	pthread_create(&t, NULL, watch, NULL);
	v[0] = (struct iovec){target, 1};
	v[1] = (struct iovec){target + PAGE, 1};
	for (unsigned i = 1; i <= ROUNDS; i++) {
		m[0] = m[1] = (char)i;
		FACT(preadv(fd, v, 2, 0) == 2);
		for (unsigned n = 1;
		     __atomic_load_n(&seen, __ATOMIC_ACQUIRE) != i; n++)
			if (n % SPINS == 0)
				sched_yield();
	}
	pthread_join(t, NULL);
	return 0;
}
