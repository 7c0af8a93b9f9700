/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* preadv() from a memfd to memory that is not there says EFAULT, or how far it
 * came; it raises no signal, and fills the pieces in order.
 */
#include "fact.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static _Alignas(PAGE) char target[2 * PAGE];

static void *watch(void *arg)
{
	volatile unsigned *first = (void *)target,
			  *last = (void *)&target[PAGE];
	unsigned seen = 0;

	while (seen < 200000) {
		seen = __atomic_load_n(last, __ATOMIC_ACQUIRE);
		FACT(__atomic_load_n(first, __ATOMIC_ACQUIRE) >= seen);
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
	v[0] = (struct iovec){target, 4};
	v[1] = (struct iovec){target + PAGE, 4};
	for (unsigned i = 1; i <= 200000; i++) {
		memcpy(m, &i, 4);
		memcpy(m + 4, &i, 4);
		FACT(preadv(fd, v, 2, 0) == 8);
	}
	pthread_join(t, NULL);
	return 0;
}
