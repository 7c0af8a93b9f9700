/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A write into a memfd whose source page is missing blocks other writes into
 * that memfd, but neither reads from it nor writes into another. So every copy
 * has a lane of its own.
 */
#include "fact.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int shared, other;
static char *missing, source[PAGE];
static volatile int second_done;

static void *blocked(void *arg)
{
	FACT(pwrite(shared, missing, 8, 0) == 8);
	return arg;
}

static void *second(void *arg)
{
	FACT(pwrite(shared, source, 8, PAGE) == 8);
	second_done = 1;
	return arg;
}

int main(void)
{
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_copy cp = {.len = PAGE, .src = (unsigned long)source};
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffd_msg msg;
	pthread_t a, b;

	SKIP_UNLESS(fd >= 0, "no userfaultfd for kernel faults here");
	FACT(ioctl(fd, UFFDIO_API, &api) == 0);
	missing = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (unsigned long)missing;
	reg.range.len = PAGE;
	FACT(ioctl(fd, UFFDIO_REGISTER, &reg) == 0);
	shared = memfd_create("a", 0);
	other = memfd_create("b", 0);
	FACT(pwrite(shared, source, PAGE, 0) == PAGE);
	pthread_create(&a, NULL, blocked, NULL);
	FACT(read(fd, &msg, sizeof(msg)) == sizeof(msg));
	FACT(pread(shared, source + 8, 8, 0) == 8);
	FACT(pwrite(other, source, 8, 0) == 8);
	pthread_create(&b, NULL, second, NULL);
	usleep(50000);
	FACT(!second_done);
	cp.dst = (unsigned long)missing;
	FACT(ioctl(fd, UFFDIO_COPY, &cp) == 0);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
