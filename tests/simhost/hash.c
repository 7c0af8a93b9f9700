/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hash.c: what a run did, in a few numbers by which two versions are compared. The
 * events are always mixed, with their time. Packets, completions, counts and memory are
 * bytes without a time, and are mixed only if a test asks for it: a change of when
 * something is done shows in the first number alone, a change of what is done in the
 * others. No pointer goes into any of them.
 */
#include "base/rand.h"
#include "simhost/impl.h"

void sim_note(struct sim *sim, uint64_t a, uint64_t b)
{
	uint64_t *h = &sim->hash[SIM_HASH_EVENTS];

	*h = siphash_u64(*h, sim->now_ns ^ a << 32, b);
}

uint64_t sim_hash(const struct sim *sim, enum sim_hash which)
{
	return sim->hash[which];
}

void sim_hash_all(struct sim *sim)
{
	sim->hash_all = true;
}

/* Each step is one-to-one in @h and in @word: one change is never lost. */
static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t mix_bytes(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t word;

	h = mix(h, len);
	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = mix(h, word);
	}
	word = 0;
	memcpy(&word, p, len);
	return mix(h, word);
}

void sim_mix(struct sim *sim, enum sim_hash which, const void *bytes,
	     size_t len)
{
	if (sim->hash_all)
		sim->hash[which] = mix_bytes(sim->hash[which], bytes, len);
}

void sim_mix_send(struct os *os, const struct os_tx *tx, uint16_t sport,
		  const uint8_t *bytes, uint32_t len)
{
	const uint64_t words[] = {os->index,	 sport,		  tx->dst.port,
				  tx->dst.scope, tx->mark.tclass, tx->mark.hops,
				  tx->seg};
	struct sim *sim = os->sim;

	sim_mix(sim, SIM_HASH_PACKETS, words, sizeof(words));
	sim_mix(sim, SIM_HASH_PACKETS, &tx->src, sizeof(tx->src));
	sim_mix(sim, SIM_HASH_PACKETS, &tx->dst.ip, sizeof(tx->dst.ip));
	sim_mix(sim, SIM_HASH_PACKETS, bytes, len);
}

static bool page_zero(const struct sim_page *page)
{
	for (unsigned i = 0; i < PAGE_BYTES; i++) {
		if (page->bytes[i])
			return false;
	}
	return true;
}

/* In any order, as they are found by when they were first touched. */
void sim_mix_memory(struct os *os)
{
	struct sim *sim = os->sim;

	if (!sim->hash_all)
		return;
	for (unsigned i = 0; i < SIM_PAGE_HASH; i++) {
		for (const struct sim_page *p = os->page[i]; p; p = p->next) {
			if (!page_zero(p))
				sim->hash[SIM_HASH_MEMORY] +=
					mix_bytes(mix(os->index, p->vpn),
						  p->bytes, PAGE_BYTES);
		}
	}
}
