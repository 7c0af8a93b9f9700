/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Making a page writable does not write to it: neither MADV_POPULATE_WRITE nor
 * FUTEX_WAKE_OP with OR 0 (which is atomic) loses a concurrent change; and
 * both, and a one-byte process_vm_readv(), make it present.
 */
#include "fact.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define POPULATE_READ  22
#define POPULATE_WRITE 23

enum { ROUNDS = 100000 };

static unsigned *word;
static volatile bool stop;

static void *changer(void *arg)
{
	unsigned n = 0;

	while (!stop) {
		FACT(__atomic_load_n(word, __ATOMIC_RELAXED) == n);
		__atomic_store_n(word, ++n, __ATOMIC_RELAXED);
	}
	return arg;
}

static long or_zero(void *p)
{
	static unsigned dummy;

	return syscall(SYS_futex, &dummy, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0,
		       0, p, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0));
}

static bool present(const char *p)
{
	unsigned char v = 0;

	FACT(mincore((void *)(unsigned long)p, PAGE, &v) == 0);
	return v & 1;
}

int main(void)
{
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     c;
	struct iovec to = {&c, 1}, from = {p + 2 * PAGE, 1};
	bool populate = madvise(p + 3 * PAGE, PAGE, POPULATE_WRITE) == 0;
	pthread_t t;

	madvise(p, 4 * PAGE, MADV_NOHUGEPAGE);
	FACT(!present(p + PAGE) && or_zero(p + PAGE) >= 0 && present(p + PAGE));
	FACT(!present(p + 2 * PAGE));
	FACT(process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1);
	FACT(present(p + 2 * PAGE));
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	FACT(or_zero(p + 2 * PAGE) == -1 && errno == EFAULT);
	word = (unsigned *)p;
	pthread_create(&t, NULL, changer, NULL);
	for (int i = 0; i < ROUNDS; i++)
		FACT(populate ? madvise(p, PAGE, POPULATE_WRITE) == 0
			      : or_zero(p) >= 0);
	stop = true;
	pthread_join(t, NULL);
	SKIP_UNLESS(populate, "no MADV_POPULATE_WRITE before Linux 5.14");
	FACT(present(p + 3 * PAGE));
	FACT(madvise(p + 2 * PAGE, PAGE, POPULATE_WRITE) == -1);
	return 0;
}
