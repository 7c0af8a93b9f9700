// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* stock.c: preloaded, makes a host of which nobody has raised
 * net.core.rmem_max (there is one for all network namespaces, so that a test
 * must not set it) and on which nobody may exceed it. The NIC makes its system
 * calls by syscall().
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STOCK_RMEM_MAX = 212992, ARGS = 6 };

/* An argument that was not passed is read from the caller's frame, and thrown away. */
__attribute__((no_sanitize("address"))) long syscall(long sysno, ...)
{
	long (*real)(long, ...);
	long a[ARGS];
	va_list args;
	int bytes;

	va_start(args, sysno);
	for (int i = 0; i < ARGS; i++)
		/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
		a[i] = va_arg(args, long);
	va_end(args);
	*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	if (sysno != SYS_setsockopt || a[1] != SOL_SOCKET)
		return real(sysno, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (a[2] == SO_RCVBUFFORCE) {
		errno = EPERM;
		return -1;
	}
	bytes = *(const int *)a[3];
	if (a[2] == SO_RCVBUF && bytes > STOCK_RMEM_MAX)
		bytes = STOCK_RMEM_MAX;
	return real(sysno, a[0], a[1], a[2], &bytes, sizeof(bytes), 0L);
}
