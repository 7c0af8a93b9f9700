/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys_memory.h: system calls on memory; as sys.h says. */
#ifndef NOPIN_OS_SYS_MEMORY_H
#define NOPIN_OS_SYS_MEMORY_H

#include "os/sys.h"

#include <stdint.h>
#include <sys/uio.h>

/** sys_vm_readv() - Call process_vm_readv(2). */
static inline ssize_t sys_vm_readv(int pid, const struct iovec *local,
				   unsigned nlocal, const struct iovec *remote,
				   unsigned nremote)
{
	return sys_call(SYS_process_vm_readv, pid, SYS_PTR(local), nlocal,
			SYS_PTR(remote), nremote, 0);
}

/** sys_vm_writev() - Call process_vm_writev(2). */
static inline ssize_t sys_vm_writev(int pid, const struct iovec *local,
				    unsigned nlocal, const struct iovec *remote,
				    unsigned nremote)
{
	return sys_call(SYS_process_vm_writev, pid, SYS_PTR(local), nlocal,
			SYS_PTR(remote), nremote, 0);
}

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static inline int sys_madvise(uint64_t addr, uint64_t len, int advice)
{
	return (int)sys_call(SYS_madvise, (long)addr, (long)len, advice, 0, 0,
			     0);
}

#endif
