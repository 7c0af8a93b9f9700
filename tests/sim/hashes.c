/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hashes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const names[SIM_HASHES] = {
	[SIM_HASH_EVENTS] = "events",
	[SIM_HASH_PACKETS] = "packets",
	[SIM_HASH_COMPLETIONS] = "completions",
	[SIM_HASH_COUNTS] = "counters and accounts",
	[SIM_HASH_MEMORY] = "memory",
};

bool hashes_same(const char *scenario, uint64_t seed, const char *what,
		 const struct hashes *a, const struct hashes *b)
{
	bool same = true;

	for (unsigned i = 0; i < SIM_HASHES; i++) {
		if (a->of[i] == b->of[i])
			continue;
		fprintf(stderr, "%s, seed %" PRIu64 ": %s differ in %s\n",
			scenario, seed, what, names[i]);
		same = false;
	}
	return same;
}

void hashes_head(void)
{
	printf("# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only\n");
}

void hashes_print(const char *scenario, uint64_t seed, const struct hashes *h)
{
	printf("%s %" PRIu64, scenario, seed);
	for (unsigned i = 0; i < SIM_HASHES; i++)
		printf(" %016" PRIx64, h->of[i]);
	printf("\n");
}

/* Return: is @line that of this seed? */
static bool line_parse(const char *line, const char *scenario, uint64_t seed,
		       struct hashes *h)
{
	uint64_t number;
	char name[32];
	int at;

	if (sscanf(line, "%31s %" SCNu64 "%n", name, &number, &at) != 2 ||
	    strcmp(name, scenario) != 0 || number != seed)
		return false;
	for (unsigned i = 0; i < SIM_HASHES; i++) {
		int len;

		if (sscanf(line + at, "%" SCNx64 "%n", &h->of[i], &len) != 1)
			return false;
		at += len;
	}
	return true;
}

bool hashes_expect(const char *file, const char *scenario, uint64_t seed,
		   const struct hashes *h)
{
	FILE *f = fopen(file, "re");
	struct hashes before;
	bool found = false;
	char line[160];

	while (f && !found && fgets(line, sizeof(line), f))
		found = line_parse(line, scenario, seed, &before);
	if (f)
		fclose(f);
	if (!found) {
		fprintf(stderr, "%s, seed %" PRIu64 ": nothing in %s\n",
			scenario, seed, file);
		return false;
	}
	return hashes_same(scenario, seed, "this version and the one before", h,
			   &before);
}
