/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* input.h: the fuzzer's bytes. */
#ifndef NOPIN_TESTS_FUZZ_INPUT_H
#define NOPIN_TESTS_FUZZ_INPUT_H

#include "base/check.h"

#include <stdint.h>
#include <string.h>

/** struct input - What is left of them; then zeros. */
struct input {
	const uint8_t *at;
	size_t left;
};

static inline void eat(struct input *in, void *out, size_t n)
{
	const size_t have = MIN(n, in->left);

	memset(out, 0, n);
	memcpy(out, in->at, have);
	in->at += have;
	in->left -= have;
}

#endif
