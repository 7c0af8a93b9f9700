/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory under a user-mode-only userfaultfd gives EFAULT to the kernel, at
 * once, and yet is legal to load: EFAULT is not yet the verdict. smaps says
 * "um" of it.
 */
#include "fact.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char source[PAGE] = {7};
static int fd;

static void *server(void *arg)
{
	struct uffdio_copy cp = {.len = PAGE, .src = (unsigned long)source};
	struct uffd_msg msg;

	FACT(read(fd, &msg, sizeof(msg)) == sizeof(msg));
	cp.dst = msg.arg.pagefault.address & -PAGE;
	FACT(ioctl(fd, UFFDIO_COPY, &cp) == 0);
	return arg;
}

static bool smaps_says_um(const char *p)
{
	char line[512], at[32];
	FILE *f = fopen("/proc/self/smaps", "r");
	bool mine = false, um = false;

	snprintf(at, sizeof(at), "%lx-", (unsigned long)p);
	while (f && fgets(line, sizeof(line), f)) {
		mine |= strncmp(line, at, strlen(at)) == 0;
		if (mine && strncmp(line, "VmFlags:", 8) == 0) {
			um = strstr(line, " um") != NULL;
			break;
		}
	}
	fclose(f);
	return um;
}

int main(void)
{
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int m = memfd_create("fact", 0);
	pthread_t t;

	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	SKIP_UNLESS(fd >= 0, "no user-mode-only userfaultfd before 5.11");
	FACT(ioctl(fd, UFFDIO_API, &api) == 0);
	reg.range.start = (unsigned long)p;
	reg.range.len = PAGE;
	FACT(ioctl(fd, UFFDIO_REGISTER, &reg) == 0);
	FACT(ftruncate(m, PAGE) == 0);
	FACT(pread(m, p, 8, 0) == -1 && errno == EFAULT);
	FACT(pwrite(m, p, 8, 0) == -1 && errno == EFAULT);
	FACT(madvise(p, PAGE, 23 /* MADV_POPULATE_WRITE */) == -1);
	FACT(smaps_says_um(p));
	pthread_create(&t, NULL, server, NULL);
	FACT(*(volatile char *)p == 7);
	pthread_join(t, NULL);
	return 0;
}
