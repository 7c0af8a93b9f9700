/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arbiter.c: one NIC memory for all processes of a host and user (design D12): how
 * much of its table, of its redirect pool and of its pagers' time this NIC uses.
 *
 * Theory of operation
 *
 * Each NIC pins up a note (os/board.c) that says what it has, what it would use, and
 * its weight; reads the notes of the others; and computes its own share of the budget
 * (base/fair.c). It uses what its share is, no more: the table shrinks, the pool
 * lends less to peers, fewer tickets go to pagers. No NIC decides for another: a process
 * that lies in its note, or exceeds its share, changes what the others compute within
 * the bounds of fair_shares(), and no more.
 *
 * A NIC would use all that its own configuration allows, if it lately (SHORT_NS) could
 * have done with more; else somewhat more than it has, or twice what its regions are
 * promised, if that is more. Unwanted budget is lent. A NIC that wants its share back
 * takes it at once: the sum is above the budget until the others have looked.
 *
 * A NIC that does something looks every LOOK_NS; one that does nothing when its
 * background thread wakes anyway, once a second, but that first says that it wants
 * no more than it has. The background thread looks; the first time the thread that
 * opens the NIC. No lock is held in its system calls, which wait for no process;
 * measure() and arbiter_apply() take the engine lock.
 *
 * Pagers' time is shared as milliseconds that they work in a second: a NIC that may
 * have 2000 ms has two tickets with pagers at a time. Each process has threads of its
 * own, which the kernel schedules as it likes; this bounds how many of them compete.
 * One there always is, or nothing would go on (I1): with more processes than the
 * budget has pagers there are as many as processes.
 */
#include "nic/arbiter.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/fair.h"
#include "base/log.h"
#include "base/timerq.h"
#include "mem/use.h"
#include "nic/config.h"
#include "nic/device.h"
#include "nic/holder.h"
#include "nic/lock.h"
#include "nic/peers.h"
#include "nic/progress.h"
#include "nic/text.h"
#include "os/names.h"
#include "os/run.h"
#include "xport/lend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	NOTE_VERSION = 0x4e425531, /* "NBU1" */
	LOOK_NS = 10 * 1000 * 1000,
	SHORT_NS = 100 * 1000 * 1000,
	PAGER_MS = 1000, /* of one pager in a second */
	/* At once, under the engine lock: some 6 us; 22 if they are of a region that
	 * is watched, and 4 for each more that has the same pages. */
	RESIZE_SETS = 32,
	RESIZE_TURN = 256, /* of these, between two looks for packets */
	/* A NIC of any weight gets so much, and is given so much to grow into. */
	MINIMUM_ENTRIES = 256,
	MINIMUM_PART = 64, /* or this part of the budget, if that is less */
	MINIMUM_SLOTS = 16,
	/* And what others of the user than this NIC may have, of what has no budget
	 * of its own: as much as one NIC by default. */
	BUDGET_SLOTS = 4096,
	BUDGET_PAGERS = 16,
};

/** struct note - What is pinned up. */
struct note {
	uint32_t version, weight;
	struct {
		uint64_t minimum, demand, used, share;
	} res[ARB_NUM];
	uint32_t rule, rest;
};

static_assert(sizeof(struct note) <= OS_NOTE_BYTES, "a note");

/* --- what we have and would use ------------------------------------------------ */

static uint64_t some_more(uint64_t n, uint64_t floor)
{
	return n + n / 8 + floor;
}

/* Set use and demand of @r. For SHORT_NS after @is_short the demand is all that our
 * configuration allows, else @most. */
static void measure_one(struct arbiter *a, enum arb r, uint64_t used,
			bool is_short, uint64_t most, uint64_t now_ns)
{
	struct fair *f = &a->mine[r];

	if (is_short)
		a->short_ns[r] = now_ns + SHORT_NS;
	f->used = used;
	f->demand = a->short_ns[r] > now_ns ? a->cap[r] : MIN(most, a->cap[r]);
}

/* Measure use of pagers, in ms a second: their work since the last call, or the @asked
 * tickets that they have now, if that is more. Begins the next interval. */
static uint64_t pagers_measure(struct nic *nic, uint32_t asked, uint64_t now_ns)
{
	struct arbiter *a = &nic->arbiter;
	const uint64_t busy = nic->cnt.v[CNT_service_ns] - a->service_ns;
	const uint64_t since = MAX(now_ns - a->measured_ns, (uint64_t)1);
	const uint64_t most = MAX(a->cap[ARB_PAGERS], (uint64_t)PAGER_MS);

	a->service_ns = nic->cnt.v[CNT_service_ns];
	a->measured_ns = now_ns;
	return MAX(MIN(busy * PAGER_MS / since, most),
		   (uint64_t)asked * PAGER_MS);
}

static uint64_t entries_floor(const struct nic *nic)
{
	return MIN(nic->cfg.budget / MINIMUM_PART, (uint64_t)MINIMUM_ENTRIES);
}

/* A NIC is short of room if it lacked some lately, and has used much of its share: that a
 * set of the table, or what one peer was lent, is full by chance is not enough. */
static bool lacks(const struct arbiter *a, enum arb r, uint64_t used,
		  bool lacked)
{
	return lacked && 2 * used >= a->share[r];
}

/* Half of a table is for what regions are promised (upcall.c), so twice as much is
 * wanted, and not to be lent, whatever else there is. */
static void measure_entries(struct nic *nic, const struct mem_use *use,
			    uint64_t now_ns)
{
	struct arbiter *a = &nic->arbiter;
	const uint64_t floor = entries_floor(nic), used = use->entries;
	const uint64_t promised = 2 * use->promised;

	a->mine[ARB_ENTRIES].minimum = MIN(MAX(floor, promised),
					   a->cap[ARB_ENTRIES]);
	measure_one(a, ARB_ENTRIES, used,
		    lacks(a, ARB_ENTRIES, used, use->entries_short),
		    MAX(some_more(used, floor), promised), now_ns);
}

static void measure(struct nic *nic, uint64_t now_ns)
{
	struct arbiter *a = &nic->arbiter;
	struct mem_use use;
	uint64_t pagers;
	bool slots_short;

	nic_lock(nic);
	mem_use(nic->mem, &use);
	slots_short = nic->x.pool.short_of;
	nic->x.pool.short_of = false;
	pagers = pagers_measure(nic, use.asked, now_ns);
	nic_unlock(nic);
	measure_entries(nic, &use, now_ns);
	measure_one(a, ARB_SLOTS, use.slots,
		    lacks(a, ARB_SLOTS, use.slots, slots_short),
		    some_more(use.slots, MINIMUM_SLOTS), now_ns);
	measure_one(a, ARB_PAGERS, pagers, use.pagers_short,
		    some_more(pagers, 0), now_ns);
}

/* --- notes ---------------------------------------------------------------------- */

static int arbiter_post(struct nic *nic)
{
	const struct arbiter *a = &nic->arbiter;
	uint8_t bytes[OS_NOTE_BYTES] = {0};
	struct note n = {.version = NOTE_VERSION,
			 .weight = nic->cfg.weight,
			 .rule = nic->cfg.arbiter};

	for (int r = 0; r < ARB_NUM; r++) {
		n.res[r].minimum = a->mine[r].minimum;
		n.res[r].demand = a->mine[r].demand;
		n.res[r].used = a->mine[r].used;
		n.res[r].share = a->share[r];
	}
	memcpy(bytes, &n, sizeof(n));
	return os_board_post(nic->os, bytes);
}

static struct fair fair_of(const struct note *n, enum arb r)
{
	return (struct fair){.weight = n->weight,
			     .minimum = n->res[r].minimum,
			     .demand = n->res[r].demand,
			     .used = n->res[r].used};
}

/* The notes of others that can be understood. Return: how many, or -errno. */
static int read_others(struct nic *nic)
{
	struct arbiter *a = &nic->arbiter;
	int n = os_board_read(nic->os, a->other), kept = 0;

	for (int i = 0; i < n && kept < FAIR_MAX - 1; i++) {
		struct note note;

		memcpy(&note, a->other[i]->bytes, sizeof(note));
		if (note.version == NOTE_VERSION)
			a->other[kept++] = a->other[i];
	}
	return n < 0 ? n : kept;
}

/* Of all, we being the first. */
static void shares_of(struct nic *nic, enum arb r, unsigned others)
{
	struct arbiter *a = &nic->arbiter;

	a->all[0] = a->mine[r];
	for (unsigned i = 0; i < others; i++) {
		struct note note;

		memcpy(&note, a->other[i]->bytes, sizeof(note));
		a->all[i + 1] = fair_of(&note, r);
	}
	fair_shares(a->all, others + 1, a->budget[r],
		    nic->cfg.arbiter == ARBITER_FIRST ? FAIR_FIRST
						      : FAIR_SHARES,
		    a->shares);
}

/* Do all together want less than there is? Slots are then as configured: what peers
 * were lent is not taken back for nothing, or what they sent meanwhile is asked for
 * again. */
static bool plenty(const struct arbiter *a, enum arb r, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += MIN(a->all[i].demand, a->budget[r]);
	return r == ARB_SLOTS && sum <= a->budget[r];
}

/* --- keeping to it --------------------------------------------------------------- */

/* Peers are told of each change: in steps, and not of little more. */
static uint32_t slots_for(const struct nic *nic)
{
	const uint64_t cap = nic->arbiter.cap[ARB_SLOTS];
	const uint64_t step = MAX(cap / 64, (uint64_t)1);
	const uint32_t now = nic->x.pool.slots;
	uint64_t share = nic->arbiter.share[ARB_SLOTS];

	if (share >= cap)
		return (uint32_t)cap;
	share = MAX(share - share % step, (uint64_t)MINIMUM_SLOTS);
	return share > now + now / 8 || share < now ? (uint32_t)share : now;
}

/* Return: is there more to do? */
static bool arbiter_apply(struct nic *nic)
{
	struct arbiter *a = &nic->arbiter;
	/* 1 at least, as pagers_bound() has it, and so not what it is at first */
	const uint32_t pagers = (uint32_t)MAX(a->share[ARB_PAGERS] / PAGER_MS,
					      UINT64_C(1));
	bool more = true;

	nic_lock(nic);
	entries_bound(nic->mem, a->share[ARB_ENTRIES]);
	if (pagers != a->pagers)
		pagers_bound(nic->mem, pagers);
	a->pagers = pagers;
	if (credit_bound(&nic->x, slots_for(nic)))
		peers_lend(nic);
	for (int i = 0; more && i < RESIZE_TURN; i++) {
		more = entries_resize(nic->mem, RESIZE_SETS);
		if (!more)
			break;
		/* others are not to wait for all of it */
		nic_unlock(nic);
		nic_lock(nic);
	}
	nic_unlock(nic);
	return more;
}

/* We are alone: as configured. */
static void arbiter_give_up(struct nic *nic, int err)
{
	struct arbiter *a = &nic->arbiter;

	log_info("the NIC's memory is not shared any more: error %d", -err);
	os_board_close(nic->os);
	a->on = false;
	memcpy(a->share, a->cap, sizeof(a->share));
	a->resizing = arbiter_apply(nic);
}

static void arbiter_look(struct nic *nic, uint64_t now_ns)
{
	struct arbiter *a = &nic->arbiter;
	int err, others;

	measure(nic, now_ns);
	others = read_others(nic);
	if (others < 0) {
		arbiter_give_up(nic, others);
		return;
	}
	a->wants = false;
	for (int r = 0; r < ARB_NUM; r++) {
		shares_of(nic, (enum arb)r, (unsigned)others);
		a->share[r] = plenty(a, (enum arb)r, (unsigned)others + 1)
				      ? a->cap[r]
				      : a->shares[0];
		a->wants |= a->short_ns[r] > now_ns;
	}
	err = arbiter_post(nic);
	if (err)
		arbiter_give_up(nic, err);
	else
		a->resizing = arbiter_apply(nic);
}

uint64_t arbiter_turn(struct nic *nic, uint64_t until)
{
	struct arbiter *a = &nic->arbiter;
	const uint64_t now = os_now(nic->os);

	if (!a->on && !a->resizing)
		return until;
	if (a->on && now >= a->next_ns) {
		a->next_ns = now + LOOK_NS;
		arbiter_look(nic, now);
	} else if (a->resizing) {
		a->resizing = arbiter_apply(nic);
	}
	if (a->resizing)
		return MIN(until, now + LOOK_NS / 10);
	/* a NIC that wants something is to say when it does not any more */
	return a->wants ? MIN(until, now + 2 * (uint64_t)LOOK_NS) : until;
}

/* --- what each process has --------------------------------------------------- */

static const char *const arb_names[ARB_NUM] = {
	[ARB_ENTRIES] = "entries",
	[ARB_SLOTS] = "slots",
	[ARB_PAGERS] = "pager_ms_per_s",
};

/* The name that a process gives itself may be anything. */
static void plain_name(char out[sizeof(((struct os_note *)0)->name)],
		       const char *name)
{
	size_t n = 0;

	for (; name[n] && n + 1 < sizeof(((struct os_note *)0)->name); n++)
		out[n] = name[n] > ' ' && name[n] < 0x7f && name[n] != '"' &&
					 name[n] != '\\'
				 ? name[n]
				 : '?';
	out[n] = '\0';
}

static void add_process(struct text *t, const struct os_note *o, bool first)
{
	char name[sizeof(o->name)];
	struct note n;

	memcpy(&n, o->bytes, sizeof(n));
	plain_name(name, o->name);
	text_add(t,
		 "%s{\"pid\":%" PRId32 ",\"program\":\"%s\",\"weight\":%" PRIu32
		 ",\"rule\":\"%s\"",
		 first ? "" : ",", o->pid, name, n.weight,
		 n.rule < ARBITER_NUM ? arbiter_names[n.rule] : "?");
	for (int r = 0; r < ARB_NUM; r++)
		/* a note may say anything; many readers of JSON end there */
		text_add(t,
			 ",\"%s\":{\"minimum\":%" PRIu64 ",\"demand\":%" PRIu64
			 ",\"used\":%" PRIu64 ",\"share\":%" PRIu64 "}",
			 arb_names[r],
			 MIN(n.res[r].minimum, (uint64_t)INT64_MAX),
			 MIN(n.res[r].demand, (uint64_t)INT64_MAX),
			 MIN(n.res[r].used, (uint64_t)INT64_MAX),
			 MIN(n.res[r].share, (uint64_t)INT64_MAX));
	text_add(t, "}");
}

void arbiter_text(struct nic *nic, struct ctl_answer *answer)
{
	struct arbiter *a = &nic->arbiter;
	struct text t = {.p = NULL};
	int others = 0;

	if (a->on) {
		arbiter_look(nic, os_now(nic->os));
		others = a->on ? read_others(nic) : -EBADF;
	}
	if (!a->on || others < 0) {
		snprintf(answer->error, sizeof(answer->error),
			 "it shares its memory with no other process");
		return;
	}
	text_add(&t, "{\"format\":1,");
	roce_text(nic, &t);
	text_add(&t, ",\"budget\":{");
	for (int r = 0; r < ARB_NUM; r++)
		text_add(&t, "%s\"%s\":%" PRIu64, r ? "," : "", arb_names[r],
			 a->budget[r]);
	text_add(&t, "},\"processes\":[");
	add_process(&t, os_board_mine(nic->os), true);
	for (int i = 0; i < others; i++)
		add_process(&t, a->other[i], false);
	text_add(&t, "]}\n");
	text_answer(&t, answer);
}

/* --- life ------------------------------------------------------------------------ */

static void why_alone(int err)
{
	const char *why = err == -EBUSY	   ? "another NIC of this process does"
			  : err == -EUSERS ? "too many do"
			  : err == -EPERM  ? "the file is not this user's alone"
			  : err == -EBADMSG ? "the file is something else"
					    : "no shared memory";

	if (err == -EPERM || err == -EBADMSG)
		log_warn("the NIC's memory is not shared with other processes: "
			 "%s",
			 why);
	else
		log_info("the NIC's memory is not shared with other processes: "
			 "%s (error %d)",
			 why, -err);
}

void arbiter_open(struct nic *nic)
{
	struct arbiter *a = &nic->arbiter;
	const struct nic_config *cfg = &nic->cfg;
	int err;

	a->cap[ARB_ENTRIES] = cfg->entries;
	a->cap[ARB_SLOTS] = nic->x.pool.slots;
	a->cap[ARB_PAGERS] = (MAX(2, cfg->os.pagers) - 1) * (uint64_t)PAGER_MS;
	a->budget[ARB_ENTRIES] = cfg->budget;
	a->budget[ARB_SLOTS] = MAX(a->cap[ARB_SLOTS], (uint64_t)BUDGET_SLOTS);
	a->budget[ARB_PAGERS] = MAX(a->cap[ARB_PAGERS],
				    (uint64_t)BUDGET_PAGERS * PAGER_MS);
	a->mine[ARB_ENTRIES].minimum = entries_floor(nic);
	a->mine[ARB_SLOTS].minimum = MINIMUM_SLOTS;
	a->mine[ARB_PAGERS].minimum = PAGER_MS;
	for (int r = 0; r < ARB_NUM; r++)
		a->mine[r].weight = cfg->weight;
	memcpy(a->share, a->cap, sizeof(a->share));
	a->measured_ns = os_now(nic->os);
	if (cfg->arbiter == ARBITER_OFF)
		return;
	err = os_board_open(nic->os, cfg->board);
	if (err) {
		why_alone(err);
		return;
	}
	a->on = true;
	arbiter_turn(nic, TIME_NEVER);
}
