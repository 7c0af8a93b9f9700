/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* board.c: fuzzes what other processes may say of themselves (nic/arbiter.c): a NIC
 * on the simulated host shares its memory with some that are there only in the
 * fuzzer's bytes, which write anything at any time, come and go. Whatever they say,
 * each look ends, nothing is above what this NIC may have alone, what it uses of the
 * table is what its share is, and it is no less than its part of half the budget (of
 * all of it, if all weigh the same), or what it wants. And arbiter_text() stays JSON.
 */
#include "input.h"
#include "mem/mem.h"
#include "mem/spt.h"
#include "mem/state.h"
#include "mem/table.h"
#include "nic/arbiter.h"
#include "nic/config.h"
#include "nic/ctl.h"
#include "nic/device.h"
#include "nic/text.h"
#include "os/names.h"
#include "os/run.h"
#include "simhost/impl.h"
#include "simhost/sim.h"
#include "wire/roce.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	OTHERS = 9,
	BUDGET = 4096,
	ENTRIES = 8192,
	SLOTS = 256,
	LOOKS_MAX = 64,
	WEIGHT = 100,
	NOTE_VERSION = 0x4e425531,
	LOOK_NS = 10 * SIM_MS,
};

struct rig {
	struct sim *sim;
	struct os *os, *other[OTHERS];
	struct nic *nic;
};

static uint64_t eat_u64(struct input *in)
{
	uint64_t v;

	eat(in, &v, sizeof(v));
	return v;
}

static uint8_t eat_u8(struct input *in)
{
	uint8_t v;

	eat(in, &v, sizeof(v));
	return v;
}

static void rig_open(struct rig *r)
{
	const struct sim_host_config host = {.machine = 1, .mtu = 1500};
	const struct nic_config cfg = {.os = {.pagers = 4},
				       .manual = true,
				       .entries = ENTRIES,
				       .pool_bytes = SLOTS * MTU_MAX,
				       .arbiter = ARBITER_FAIR,
				       .budget = BUDGET,
				       .weight = WEIGHT};

	r->sim = sim_open(1);
	r->os = sim_host_add(r->sim, &host);
	for (int i = 0; i < OTHERS; i++)
		r->other[i] = sim_host_add(r->sim, &host);
	sim_host_use(r->os);
	CHECK(nic_open(&r->nic, &cfg) == 0);
}

/* Anything; half of the time something that is understood, with numbers at the edges. */
static void scribble(struct rig *r, struct input *in)
{
	struct os *o = r->other[eat_u8(in) % OTHERS];
	const uint8_t how = eat_u8(in);
	const uint32_t version = NOTE_VERSION;
	uint8_t bytes[OS_NOTE_BYTES];

	o->posted = how & 1;
	o->note.pid = (int32_t)eat_u64(in);
	eat(in, o->note.name, sizeof(o->note.name) - 1);
	eat(in, bytes, sizeof(bytes));
	if (how & 2)
		memcpy(bytes, &version, sizeof(version));
	if (how & 4)
		memset(bytes + 8, how & 8 ? 0xff : 0, sizeof(bytes) - 8);
	if (how & 16)
		memset(bytes + 4, 0xff, 4);
	if (how & 32) {
		const uint32_t weight = WEIGHT;

		memcpy(bytes + 4, &weight, sizeof(weight));
	}
	memcpy(o->note.bytes, bytes, sizeof(bytes));
}

/* The program touches pages, or does not. */
static void use(struct rig *r, struct input *in)
{
	const uint64_t vpn = eat_u8(in) * UINT64_C(256);

	spt_map(r->nic->mem, vpn, eat_u8(in) * UINT64_C(16), true,
		os_now(r->os));
	r->nic->x.pool.short_of |= eat_u8(in) & 1;
}

static void check(const struct rig *r)
{
	const struct arbiter *a = &r->nic->arbiter;
	const struct spt *s = &r->nic->mem->spt;
	uint64_t weights = WEIGHT, others = 0;
	bool equal = true;

	for (int i = 0; i < OTHERS; i++) {
		const struct os_note *n = &r->other[i]->note;
		uint32_t version, weight;

		memcpy(&version, n->bytes, 4);
		memcpy(&weight, n->bytes + 4, 4);
		if (!r->other[i]->posted || version != NOTE_VERSION)
			continue;
		weight = MIN(MAX(weight, 1u), (uint32_t)FAIR_WEIGHT_MAX);
		weights += weight;
		equal &= weight == WEIGHT;
		others++;
	}
	for (int k = 0; k < ARB_NUM; k++) {
		const uint64_t half = a->budget[k] / 2;
		uint64_t least = equal ? a->budget[k] / (others + 1)
				       : half * WEIGHT / weights;

		least = MAX(least,
			    MIN(a->mine[k].minimum, half / (others + 1)));
		CHECK(a->share[k] <= a->budget[k]);
		CHECK(a->share[k] + 1 >= MIN(least, a->mine[k].demand));
	}
	CHECK(s->sets.used * SPT_WAYS <= ENTRIES &&
	      s->live <= s->sets.used * SPT_WAYS);
	CHECK(a->resizing || s->sets.used == s->sets.wanted);
	CHECK(s->sets.wanted * SPT_WAYS <=
	      MAX(a->share[ARB_ENTRIES], (uint64_t)SPT_ENTRIES_MIN));
	CHECK(r->nic->mem->tickets.pagers >= 1 &&
	      r->nic->mem->tickets.pagers <= r->nic->mem->cfg.pagers);
	CHECK(r->nic->mem->tickets.pagers <=
	      MAX(a->share[ARB_PAGERS] / 1000, (uint64_t)1));
	CHECK(r->nic->mem->pool.bound <= SLOTS && r->nic->mem->pool.bound > 0);
	CHECK(r->nic->x.pool.slots <= MAX(a->share[ARB_SLOTS], (uint64_t)16));
}

/* No character but those of JSON, and as many brackets. */
static void check_text(struct rig *r)
{
	struct ctl_answer answer = {.text = NULL};
	int depth = 0, quotes = 0;

	arbiter_text(r->nic, &answer);
	CHECK(answer.text);
	for (size_t i = 0; i < answer.len; i++) {
		const char c = answer.text[i];

		CHECK((c >= ' ' && c < 0x7f && c != '\\') || c == '\n');
		quotes += c == '"';
		if (quotes % 2)
			continue;
		depth += (c == '{' || c == '[') - (c == '}' || c == ']');
		CHECK(depth >= 0);
	}
	CHECK(depth == 0 && quotes % 2 == 0);
	free(answer.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct rig r = {0};

	rig_open(&r);
	for (int i = 0; i < LOOKS_MAX && in.left; i++) {
		const uint8_t what = eat_u8(&in);

		if (what & 3)
			scribble(&r, &in);
		else
			use(&r, &in);
		if (what & 4)
			sim_run(r.sim, sim_now(r.sim) + LOOK_NS);
		(void)arbiter_turn(r.nic, TIME_NEVER);
		if (what & 4 && !r.nic->arbiter.resizing)
			check(&r);
		if (what == 0xff)
			check_text(&r);
	}
	check_text(&r);
	check(&r);
	nic_close(r.nic);
	sim_close(r.sim);
	return 0;
}
