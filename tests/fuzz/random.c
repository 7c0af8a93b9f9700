/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* random.c: drives a fuzzer without libFuzzer: COUNT inputs from SEED. The
 * same seed gives the same inputs; a failing one is found again by its number.
 *
 *	parse_random [COUNT [SEED]]
 */
#include "base/check.h"
#include "base/log.h"
#include "base/rand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4300 };

/* Mostly about as long as headers; at times longer than any packet. */
static size_t some_size(struct rnd *rnd)
{
	const uint64_t r = rnd_next(rnd);

	return 1 + (r >> 8) % (r % 8 ? 320 : INPUT_MAX);
}

static void fill(struct rnd *rnd, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		const uint64_t r = rnd_next(rnd);

		memcpy(out + i, &r, MIN(n - i, sizeof(r)));
	}
}

/* Random bytes hardly ever pass for a packet; let some of the first ones. */
static void make_plausible(struct rnd *rnd, uint8_t *p, size_t n)
{
	static const uint8_t groups[] = {0x00, 0x00, 0x10, 0x60,
					 0xc0, 0xe0, 0xe0, 0xf0};

	if (n < 6 || rnd_next(rnd) % 4 == 0)
		return;
	p[1] = groups[rnd_next(rnd) % sizeof(groups)] | (p[1] & 0xf);
	p[2] &= rnd_next(rnd) % 2 ? 0xc0 : 0xf0;
}

static void line_write(const char *line, int len)
{
	fwrite(line, 1, (size_t)len, stderr);
}

int main(int argc, char **argv)
{
	const uint64_t num = argc > 1 ? strtoull(argv[1], NULL, 0) : 200000;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	static uint8_t buf[INPUT_MAX];

	log_set(LOG_WARN, line_write);
	printf("%llu inputs, seed %llu\n", (unsigned long long)num,
	       (unsigned long long)seed);
	for (uint64_t i = 0; i < num; i++) {
		struct rnd rnd = {seed, i, 0};
		const size_t n = some_size(&rnd);
		uint8_t *input = malloc(n);

		CHECK(input);
		fill(&rnd, buf, n);
		make_plausible(&rnd, buf, n);
		memcpy(input, buf, n);
		LLVMFuzzerTestOneInput(input, n);
		free(input);
	}
	return 0;
}
