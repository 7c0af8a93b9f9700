/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stubs.c: the symbols that the installed libibverbs.so.1 exports and nopin
 * does not implement: verbs that are not done yet, the interface of providers,
 * and the ABI of 2006 (IBVERBS_1.0, whose structs nobody uses any more). They
 * are there so that programs load; called, they refuse.
 *
 * Not even verbs.h is included: it declares some of them with their real types.
 * gen-symbols writes which there are into stubs.inc, from the installed library
 * and symbols.txt.
 */
#include <errno.h>
#include <stddef.h>

static int stub_err(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

static void *stub_null(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static int stub_neg(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

/* Nothing to do, e.g. for a provider that registers itself. */
static long stub_none(void)
{
	return 0;
}

/* STUB(KIND, name, node, "name@@node"): an alias of one of the above under a
 * name of its own, and the assembler's word for what it is exported as. Only
 * its address counts, so it needs no true type.
 */
#define STUB_TYPE_ERR  int
#define STUB_TYPE_NULL void *
#define STUB_TYPE_NEG  int
#define STUB_TYPE_NONE long
#define STUB_OF_ERR    "stub_err"
#define STUB_OF_NULL   "stub_null"
#define STUB_OF_NEG    "stub_neg"
#define STUB_OF_NONE   "stub_none"

#define STUB(kind, name, node, exported)                                       \
	extern STUB_TYPE_##kind stub_##name##_##node(void)                     \
		__attribute__((alias(STUB_OF_##kind), visibility("default"))); \
	__asm__(".symver stub_" #name "_" #node "," exported);

#define STUB_DATA(name)                                                        \
	extern unsigned char name __attribute__((visibility("default")));      \
	unsigned char name;

#include "verbs/stubs.inc"
