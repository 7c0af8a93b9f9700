/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verbs.h: the ABI. The installed headers are it. They know no visibility, so what they
 * declare is made visible here; libibverbs.map then decides what is exported.
 */
#ifndef NOPIN_VERBS_VERBS_H
#define NOPIN_VERBS_VERBS_H

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#include <pthread.h>

/* Exported by every libibverbs.so.1, declared by no installed header. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
enum verbs_gid_type { VERBS_GID_IB_OR_V1, VERBS_GID_ROCE_V2 };
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
		       unsigned int index, enum verbs_gid_type *type);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);
#pragma GCC visibility pop

/* Macros of verbs.h that hide the functions we define. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Newer headers append to structs that we allocate; they get zeroes there. */
enum { GROWTH_BYTES = 128 };

#endif
