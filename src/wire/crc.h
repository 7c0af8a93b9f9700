/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc.h: ISA-L's CRC-32 (reflected 0xedb88320, init and final xor ones; can be
 * continued). Private to wire/.
 */
#ifndef NOPIN_WIRE_CRC_H
#define NOPIN_WIRE_CRC_H

#include <isa-l/crc.h>
#include <stddef.h>
#include <stdint.h>

/* ISA-L's AVX-512 code (256 bytes and up) returns with the upper halves of
 * vector registers in use. Until they are cleared every phase of SSE code pays
 * for it: measured 190 instead of 30 ns for 1 KiB and a small memset, and the
 * program's own SSE code would go on paying. An #if outside os/ because there
 * is no portable way to say it, and nothing else depends on it.
 */
#ifdef __x86_64__
__attribute__((target("avx"))) static inline void vector_state_clean(void)
{
	__builtin_ia32_vzeroupper();
}
#define VECTOR_STATE_DIRTY() __builtin_cpu_supports("avx")
#else
static inline void vector_state_clean(void)
{
}
#define VECTOR_STATE_DIRTY() 0
#endif

static inline uint32_t crc32_add(uint32_t crc, const void *p, size_t len)
{
	crc = crc32_gzip_refl(crc, p, len);
	if (VECTOR_STATE_DIRTY())
		vector_state_clean();
	return crc;
}

#endif
