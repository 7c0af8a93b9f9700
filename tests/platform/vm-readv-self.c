/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* process_vm_readv() on oneself copies, says EFAULT where nothing is mapped,
 * and tells with several pieces how far it came.
 */
#include "fact.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

int main(void)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[300] = {0};
	struct iovec to = {buf, 300},
		     from[3] = {{p, 100}, {p + PAGE, 100}, {p + 200, 100}};
	ssize_t n;

	memset(p, 7, PAGE);
	munmap(p + PAGE, PAGE);
	n = process_vm_readv(getpid(), &to, 1, from, 1, 0);
	SKIP_UNLESS(n >= 0 || errno == EFAULT, "process_vm_readv is refused");
	FACT(n == 100 && buf[99] == 7 && buf[100] == 0);
	FACT(process_vm_readv(getpid(), &to, 1, from + 1, 1, 0) == -1);
	FACT(errno == EFAULT);
	FACT(process_vm_readv(getpid(), &to, 1, from, 3, 0) == 100);
	return 0;
}
