/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MADV_WIPEONFORK: a child finds zeros, its parent what it wrote; also when no
 * fork handlers run. MADV_DONTFORK: a child finds nothing.
 */
#include "fact.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	volatile char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *q = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	long pid;

	FACT(madvise((void *)p, PAGE, MADV_WIPEONFORK) == 0);
	FACT(madvise(q, PAGE, MADV_DONTFORK) == 0);
	*p = *q = 1;
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(*p == 0 && madvise(q, PAGE, MADV_NORMAL) == -1 &&
				      errno == ENOMEM
			      ? 0
			      : 1);
	FACT(waitpid((pid_t)pid, &status, 0) == pid && status == 0);
	FACT(*p == 1 && *q == 1);
	return 0;
}
