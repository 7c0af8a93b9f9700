/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_model_test.c: all that can happen to a home and a few members: every order of
 * their steps, messages, timeouts and broken connections, also in the middle of
 * what the home does. Who times out may also go without an answer. Each state that can be reached is looked at once.
 *
 * A unit has an owner from the moment that the word or the home says so; what a
 * member believes to have must be its own (never more holders than units), and free
 * ones and owned ones are always as many as there were (none is lost or doubled).
 */
#include "base/check.h"
#include "session/sync.h"
#include "session/sync_home.h"
#include "session/sync_member.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, OPS = 5, NONE = 255 };

/* What a program does: TAKE: wait until there is an item, and take it. HOPE: the
 * same, but not for long. */
enum act {
	ACT_END,
	ACT_WAIT,
	ACT_TIMED,
	ACT_POST,
	ACT_TAKE,
	ACT_HOPE,
	ACT_GIVE
};

struct config {
	enum sync_kind kind;
	unsigned units, breaks;
	uint64_t num; /* that GIVE wakes; if not 1, TAKE leaves the item */
	enum act script[N][OPS];
};
static const struct config *cfg;

enum phase {
	PH_IDLE,
	PH_SWAP,
	PH_OWED, /* it has to hear what it did not wait for, and asks then */
	PH_ASKED,
	PH_CONFIRM,
	PH_CONFIRMED, /* it is in the box, and the member does not know */
	PH_OVER
};

struct who {
	enum phase phase;
	unsigned pc, sent, owed, believes, owns;
	bool prepared, woken, timed, cancelled, broken, gone;
	struct sync_call c;
	struct sync_step step;
	int64_t guess;
	uint64_t ticket, confirmed, asked;
	struct sync_msg box[SYNC_BOX];
	enum sync_result answer;
};

struct state {
	int64_t word;
	struct sync_seat seat[N];
	struct sync_object object;
	struct who who[N];
	unsigned items, breaks, queued;
	uint8_t queue[N];
	bool excused;
};
static struct state *now;
static uint64_t states;

/* In the middle of the home's work, after its add number @after, @who steps. */
static struct {
	unsigned after, who, adds;
} meanwhile;

/* --- what the model knows better -------------------------------------------- */

static void queue_leave(uint32_t i, bool first)
{
	for (unsigned k = 0; k < now->queued; k++) {
		if (now->queue[k] != i)
			continue;
		assert_true(k == 0 || !first);
		memmove(&now->queue[k], &now->queue[k + 1], --now->queued - k);
		return;
	}
}

static void step(unsigned i, struct sync_step s);

static void swap(unsigned i)
{
	struct who *w = &now->who[i];
	const int64_t old = now->word;

	if (old == w->step.compare) {
		now->word = w->step.swap;
		w->owns += w->c.kind == CALL_SEM_WAIT;
		w->owns -= w->c.kind == CALL_SEM_POST;
	}
	w->c.guess = &w->guess;
	step(i, call_swapped(&w->c, old));
}

static int64_t port_add(void *arg, uint32_t object, int64_t delta)
{
	const int64_t old = now->word;

	(void)arg;
	assert_int_equal(object, 0);
	now->word = (int64_t)((uint64_t)old + (uint64_t)delta);
	if (++meanwhile.adds == meanwhile.after) {
		meanwhile.after = 0;
		swap(meanwhile.who);
	}
	return old;
}

static void port_answer(void *arg, uint32_t i, enum sync_result result)
{
	struct who *w = &now->who[i];

	(void)arg;
	queue_leave(i, result == SYNC_OK);
	if (w->gone)
		return;
	w->owns += result == SYNC_OK &&
		   w->box[now->seat[i].taken % SYNC_BOX].op == SYNC_WAIT &&
		   cfg->kind == SYNC_SEM;
	if (w->owed) {
		w->owed--;
		return;
	}
	assert_int_equal(w->answer, SYNC_PENDING);
	w->answer = result;
}

static struct sync_home home(void)
{
	return (struct sync_home){
		.seat = now->seat,
		.object = &now->object,
		.members = N,
		.objects = 1,
		.port = {NULL, port_add, port_answer},
	};
}

/* --- members ------------------------------------------------------------------ */

static void say(unsigned i, struct sync_msg msg)
{
	struct who *w = &now->who[i];

	w->box[++w->sent % SYNC_BOX] = msg;
	assert_in_range(w->sent - now->seat[i].taken, 1, SYNC_BOX);
}

static void ask(unsigned i)
{
	struct who *w = &now->who[i];

	w->phase = PH_ASKED;
	w->cancelled = false;
	say(i, w->step.msg);
	w->asked = w->sent;
}

static void call_done(struct who *w, enum sync_result result)
{
	w->phase = PH_IDLE;
	assert_true(result == SYNC_OK || (result == SYNC_LATE && w->timed));
	if (w->c.kind == CALL_PREPARE) {
		w->prepared = true;
		w->ticket = w->c.value;
		if (now->items) {
			now->items -= cfg->num == 1;
			w->prepared = w->woken = false;
			w->pc++;
		}
		return;
	}
	w->prepared = false;
	w->woken = w->c.kind == CALL_WAIT && result == SYNC_OK;
	if (w->c.kind == CALL_SEM_WAIT)
		w->believes += result == SYNC_OK;
	/* who did not get a unit has none to give back */
	if (w->c.kind == CALL_SEM_WAIT && result != SYNC_OK)
		w->pc++;
	w->pc += w->c.kind != CALL_WAIT || result != SYNC_OK;
}

static void step(unsigned i, struct sync_step s)
{
	struct who *w = &now->who[i];

	w->step = s;
	w->c.guess = NULL;
	switch (s.kind) {
	case TODO_SWAP:
		w->phase = PH_SWAP;
		break;
	case TODO_ASK:
		w->phase = PH_OWED;
		if (!w->owed)
			ask(i);
		break;
	case TODO_CONFIRM:
		w->phase = PH_CONFIRM;
		break;
	default:
		call_done(w, s.result);
	}
}

static void begin(unsigned i)
{
	struct who *w = &now->who[i];
	enum call_kind kind = CALL_NONE;
	uint64_t value = 0;

	switch (cfg->script[i][w->pc]) {
	case ACT_WAIT:
	case ACT_TIMED:
		kind = CALL_SEM_WAIT;
		break;
	case ACT_POST:
		kind = CALL_SEM_POST;
		w->believes--;
		break;
	case ACT_TAKE:
	case ACT_HOPE:
		kind = w->prepared ? CALL_WAIT : CALL_PREPARE;
		value = w->ticket;
		break;
	case ACT_GIVE:
		kind = CALL_WAKE;
		value = cfg->num;
		now->items++;
		break;
	default:
		break;
	}
	w->timed = cfg->script[i][w->pc] == ACT_TIMED ||
		   cfg->script[i][w->pc] == ACT_HOPE;
	step(i,
	     call_begin(&w->c, kind, sync_id(cfg->kind, 0), value, &w->guess));
}

/* --- transitions --------------------------------------------------------------- */

static bool can_take(unsigned i)
{
	const struct who *w = &now->who[i];

	return !w->broken && now->seat[i].taken < w->sent;
}

static void take(unsigned i)
{
	struct who *w = &now->who[i];
	struct sync_home h = home();
	const struct sync_msg *msg =
		&w->box[(now->seat[i].taken + 1) % SYNC_BOX];

	if (cfg->kind == SYNC_SEM)
		w->owns -= msg->op == SYNC_WAKE ||
			   (msg->op == SYNC_GIVE_UP &&
			    now->seat[i].state == SEAT_GRANTED);
	meanwhile.adds = 0;
	assert_true(home_take(&h, i, msg));
	if (now->seat[i].state == SEAT_WAITING && msg->op == SYNC_WAIT)
		now->queue[now->queued++] = (uint8_t)i;
}

static void hear(unsigned i)
{
	struct who *w = &now->who[i];
	const enum sync_result result = w->answer;

	w->answer = SYNC_PENDING;
	step(i, call_answered(&w->c, result));
}

/* Its answer may just have come. */
static void give_up(unsigned i)
{
	struct who *w = &now->who[i];

	say(i, (struct sync_msg){.op = SYNC_GIVE_UP});
	w->owed = w->answer == SYNC_PENDING ? 2 : 1;
	w->answer = SYNC_PENDING;
	call_done(w, SYNC_LATE);
}

/* Nothing gets through any more; an atomic that was under way may have. */
static void sever(unsigned i, bool swaps)
{
	struct who *w = &now->who[i];

	if (swaps)
		swap(i);
	/* who was woken and dies, or dies before he wakes, leaves the item */
	now->excused |= w->woken || w->phase == PH_CONFIRMED ||
			(cfg->script[i][w->pc] == ACT_GIVE &&
			 w->phase != PH_IDLE);
	w->phase = PH_OVER;
	w->broken = true;
	now->breaks++;
}

static void learn(unsigned i)
{
	struct who *w = &now->who[i];
	struct sync_home h = home();
	const struct sync_seat *s = &now->seat[i];

	w->gone = true;
	if (s->state == SEAT_GRANTED && w->confirmed != s->wait &&
	    cfg->kind == SYNC_SEM)
		w->owns--;
	if (s->state == SEAT_WAITING)
		queue_leave(i, false);
	meanwhile.adds = 0;
	home_gone(&h, i, w->confirmed);
}

/* --- what must be -------------------------------------------------------------- */

static void check(void)
{
	unsigned owned = 0, waiting = 0;

	for (unsigned i = 0; i < N; i++) {
		const struct who *w = &now->who[i];

		assert_true(w->believes <= w->owns);
		owned += w->owns;
		waiting += now->seat[i].state == SEAT_WAITING;
	}
	assert_int_equal(waiting, now->queued);
	assert_int_equal(waiting, now->object.num);
	assert_int_equal(now->word<0, waiting> 0);
	if (cfg->kind == SYNC_SEM) {
		assert_true(now->word >= -1);
		assert_int_equal(owned + (unsigned)MAX(now->word, 0),
				 cfg->units);
	}
}

/* Nothing can happen by itself any more. */
static void check_end(void)
{
	unsigned waiting = 0, owned = 0;

	for (unsigned i = 0; i < N; i++) {
		const struct who *w = &now->who[i];

		owned += w->owns;
		if (w->phase == PH_OVER || w->phase == PH_IDLE)
			continue;
		assert_int_equal(w->phase, PH_ASKED);
		assert_int_equal(now->seat[i].state, SEAT_WAITING);
		waiting++;
	}
	if (!waiting)
		return;
	if (cfg->kind == SYNC_SEM)
		assert_int_equal(owned, cfg->units);
	else
		assert_true(!now->items || now->excused);
}

/* --- all of it ------------------------------------------------------------------ */

enum { SEEN = 1 << 23 };
static uint64_t seen[SEEN];

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t hash_who(uint64_t h, const struct who *w)
{
	h = mix(h, w->phase | w->pc << 4 | w->sent << 8 | w->believes << 16 |
			   w->owns << 20 | (unsigned)w->answer << 24);
	h = mix(h, w->prepared | w->timed << 1 | w->cancelled << 2 |
			   w->broken << 3 | w->gone << 4 | w->woken << 5 |
			   (unsigned)w->step.kind << 8 | w->c.tries << 12 |
			   (unsigned)w->c.kind << 16);
	h = mix(h, (uint64_t)w->guess);
	h = mix(h, (uint64_t)w->step.compare);
	h = mix(h, w->ticket << 32 | w->confirmed);
	h = mix(h, w->asked << 32 | w->c.value);
	h = mix(h, w->owed);
	for (int k = 0; k < SYNC_BOX; k++)
		h = mix(h, (uint64_t)w->box[k].op << 32 | w->box[k].arg);
	return h;
}

static uint64_t hash(const struct state *s)
{
	uint64_t h = mix(1, (uint64_t)s->word);

	h = mix(h, (uint64_t)s->object.wakes);
	h = mix(h, s->object.head | (uint64_t)s->object.tail << 32);
	h = mix(h,
		s->items | s->breaks << 8 | s->queued << 16 | s->excused << 24);
	for (unsigned i = 0; i < N; i++) {
		const struct sync_seat *t = &s->seat[i];

		h = mix(h, t->state | t->taken << 8 | t->wait << 24);
		h = mix(h, t->next | (uint64_t)t->prev << 32);
		h = mix(h, i < s->queued ? s->queue[i] : NONE);
		h = hash_who(h, &s->who[i]);
	}
	return h | 1;
}

static bool is_new(const struct state *s)
{
	const uint64_t h = hash(s);
	uint64_t i = h % SEEN;

	for (; seen[i]; i = (i + 1) % SEEN)
		if (seen[i] == h)
			return false;
	seen[i] = h;
	assert_true(++states < SEEN / 4 * 3);
	return true;
}

static void explore(const struct state *from);

/* What was done to the copy. Return: true, it can be done. */
static bool then(struct state *next, const struct state *from)
{
	meanwhile.after = 0;
	check();
	if (is_new(next))
		explore(next);
	*next = *from;
	now = next;
	return true;
}

/* The home works, and after its first or second add somebody else does. */
static bool home_works(struct state *next, const struct state *from, unsigned i,
		       void (*fn)(unsigned i))
{
	fn(i);
	then(next, from);
	for (unsigned k = 0; k < N; k++) {
		for (unsigned after = 1; after <= 2; after++) {
			if (from->who[k].phase != PH_SWAP)
				continue;
			meanwhile.after = after;
			meanwhile.who = k;
			fn(i);
			if (!meanwhile.after)
				then(next, from);
			*next = *from;
			meanwhile.after = 0;
		}
	}
	return true;
}

static bool member_steps(struct state *next, const struct state *from,
			 unsigned i)
{
	struct who *w = &next->who[i];

	switch (w->phase) {
	case PH_IDLE:
		if (cfg->script[i][w->pc] == ACT_END)
			return false;
		begin(i);
		return then(next, from);
	case PH_SWAP:
		swap(i);
		return then(next, from);
	case PH_OWED:
		if (w->owed)
			return false;
		ask(i);
		return then(next, from);
	case PH_ASKED:
		if (!w->answer)
			return false;
		hear(i);
		return then(next, from);
	case PH_CONFIRM:
		w->confirmed = w->asked;
		w->phase = PH_CONFIRMED;
		return then(next, from);
	case PH_CONFIRMED:
		step(i, call_confirmed(&w->c));
		return then(next, from);
	default:
		return false;
	}
}

/* What need not happen. */
static void mishaps(struct state *next, const struct state *from, unsigned i)
{
	struct who *w = &next->who[i];

	if (w->phase == PH_OWED && w->timed) {
		call_done(w, SYNC_LATE);
		then(next, from);
	}
	if (w->phase == PH_ASKED && w->timed) {
		if (w->cancelled) {
			give_up(i);
		} else {
			w->cancelled = true;
			say(i, (struct sync_msg){.op = SYNC_CANCEL});
		}
		then(next, from);
	}
	if (w->broken || next->breaks == cfg->breaks)
		return;
	if (w->phase == PH_SWAP) {
		sever(i, true);
		then(next, from);
	}
	sever(i, false);
	then(next, from);
}

static void explore(const struct state *from)
{
	struct state next = *from;
	bool moved = false;

	now = &next;
	for (unsigned i = 0; i < N; i++) {
		moved |= member_steps(&next, from, i);
		if (can_take(i))
			moved |= home_works(&next, from, i, take);
		if (next.who[i].broken && !next.who[i].gone)
			moved |= home_works(&next, from, i, learn);
	}
	if (!moved)
		check_end();
	for (unsigned i = 0; i < N; i++)
		mishaps(&next, from, i);
	now = NULL;
}

static void run(const struct config *c)
{
	struct state s = {.word = c->units};
	struct sync_home h;

	cfg = c;
	now = &s;
	memset(seen, 0, sizeof(seen));
	states = 0;
	h = home();
	home_object(&h, 0, c->kind);
	for (unsigned i = 0; i < N; i++)
		home_join(&h, i);
	explore(&s);
	print_message("%lu states\n", (unsigned long)states);
	assert_true(states > 100);
}

/* --- programs ------------------------------------------------------------------- */

static void model__mutex(void **state)
{
	static const struct config c = {.kind = SYNC_SEM,
					.units = 1,
					.breaks = 1,
					.script = {{ACT_WAIT, ACT_POST},
						   {ACT_TIMED, ACT_POST},
						   {ACT_WAIT, ACT_POST}}};

	(void)state;
	run(&c);
}

static void model__again(void **state)
{
	static const struct config c = {
		.kind = SYNC_SEM,
		.units = 1,
		.breaks = 1,
		.script = {{ACT_TIMED, ACT_POST, ACT_WAIT},
			   {ACT_TIMED, ACT_POST, ACT_WAIT}}};

	(void)state;
	run(&c);
}

/* Who posts has no unit; two wait for the two that there will be. */
static void model__two_units(void **state)
{
	static const struct config c = {
		.kind = SYNC_SEM,
		.units = 2,
		.breaks = 1,
		.script = {{ACT_WAIT, ACT_WAIT, ACT_POST, ACT_POST},
			   {ACT_WAIT},
			   {ACT_WAIT}}};

	(void)state;
	run(&c);
}

static void model__all_die(void **state)
{
	static const struct config c = {
		.kind = SYNC_SEM,
		.units = 1,
		.breaks = 3,
		.script = {{ACT_WAIT, ACT_POST}, {ACT_WAIT}, {ACT_TIMED}}};

	(void)state;
	run(&c);
}

static void model__items(void **state)
{
	static const struct config c = {
		.kind = SYNC_WAITQ,
		.num = 1,
		.breaks = 1,
		.script = {{ACT_TAKE}, {ACT_TAKE}, {ACT_GIVE, ACT_GIVE}}};

	(void)state;
	run(&c);
}

static void model__items_for_all(void **state)
{
	static const struct config c = {
		.kind = SYNC_WAITQ,
		.num = UINT32_MAX,
		.breaks = 1,
		.script = {{ACT_TAKE}, {ACT_TAKE}, {ACT_GIVE, ACT_GIVE}}};

	(void)state;
	run(&c);
}

static void model__two_give(void **state)
{
	static const struct config c = {
		.kind = SYNC_WAITQ,
		.num = 1,
		.breaks = 1,
		.script = {{ACT_TAKE, ACT_TAKE}, {ACT_GIVE}, {ACT_GIVE}}};

	(void)state;
	run(&c);
}

static void model__hope(void **state)
{
	static const struct config c = {.kind = SYNC_WAITQ,
					.num = 1,
					.breaks = 1,
					.script = {{ACT_HOPE, ACT_TAKE},
						   {ACT_TAKE},
						   {ACT_GIVE, ACT_GIVE}}};

	(void)state;
	run(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(model__mutex),
		cmocka_unit_test(model__again),
		cmocka_unit_test(model__two_units),
		cmocka_unit_test(model__all_die),
		cmocka_unit_test(model__items),
		cmocka_unit_test(model__items_for_all),
		cmocka_unit_test(model__two_give),
		cmocka_unit_test(model__hope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
