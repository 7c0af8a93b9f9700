/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notes_test.c: what a NIC makes of the notes of others (arbiter.c). Another process of
 * its machine pins up what the test likes; what is written to the file of a real board
 * is os/board_test.c's.
 */
#include "../simhost/pair.h"
#include "mem/spt.h"
#include "mem/state.h"
#include "mem/table.h"
#include "nic/arbiter.h"
#include "nic/config.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "os/names.h"
#include "os/run.h"
#include "wire/roce.h"

enum {
	BUDGET = 4096,
	ENTRIES = 4 * BUDGET,
	SLOTS = 4096, /* the budget of those */
	VERSION = 0x4e425531,
	LOOK_NS = 10 * 1000 * 1000,
	OFTEN = 50,
};

/** struct note - As NICs of other versions of us read it, too. */
struct note {
	uint32_t version, weight;
	struct {
		uint64_t minimum, demand, used, share;
	} res[ARB_NUM];
	uint32_t rule, rest;
};

static struct sim *sim;
static struct nic *nic;
static struct os *other;
static bool broken;

int __real_os_board_read(struct os *os, const struct os_note **out);
int __wrap_os_board_read(struct os *os, const struct os_note **out);

int __wrap_os_board_read(struct os *os, const struct os_note **out)
{
	return broken ? -EBADF : __real_os_board_read(os, out);
}

static void open_nic(enum arbiter_rule rule, unsigned pagers)
{
	const struct nic_config cfg = {.os = {.pagers = pagers},
				       .log = LOG_WARN,
				       .entries = ENTRIES,
				       .pool_bytes = (uint64_t)SLOTS * MTU_MAX,
				       .tickets = 64,
				       .arbiter = rule,
				       .budget = BUDGET,
				       .weight = 100};

	sim_host_use(
		sim_host_add(sim, &(struct sim_host_config){.machine = 1}));
	assert_int_equal(nic_open(&nic, &cfg), 0);
}

static int setup_rule(enum arbiter_rule rule)
{
	const struct sim_host_config host = {.machine = 1};
	const struct os_config cfg = {.pagers = PAGERS};

	sim = sim_open(1);
	broken = false;
	open_nic(rule, PAGERS);
	other = open_host(sim, host, cfg);
	return os_board_open(other, NULL);
}

static int setup(void **state)
{
	(void)state;
	return setup_rule(ARBITER_FAIR);
}

static int setup_first(void **state)
{
	(void)state;
	return setup_rule(ARBITER_FIRST);
}

static int teardown(void **state)
{
	(void)state;
	nic_close(nic);
	os_close(other);
	sim_close(sim);
	return 0;
}

/* One that wants all of the table, and has most of it. */
static struct note greedy(void)
{
	return (struct note){
		.version = VERSION,
		.weight = 100,
		.res[ARB_ENTRIES] = {.demand = BUDGET, .used = BUDGET / 4 * 3}};
}

static void post(const struct note *n)
{
	uint8_t bytes[OS_NOTE_BYTES] = {0};

	memcpy(bytes, n, sizeof(*n));
	assert_int_equal(os_board_post(other, bytes), 0);
}

/* Return: until when it need not look again, from now on. */
static uint64_t look(void)
{
	sim_run(sim, sim_now(sim) + LOOK_NS);
	return arbiter_turn(nic, TIME_NEVER) - sim_now(sim);
}

static void look_often(void)
{
	for (int i = 0; i < OFTEN; i++)
		(void)look();
}

static uint64_t table(void)
{
	assert_false(nic->arbiter.resizing);
	return (uint64_t)nic->mem->spt.sets.wanted * SPT_WAYS;
}

static void look__slots_short_by_chance(void **state)
{
	const struct arbiter *a = &nic->arbiter;

	(void)state;
	nic->x.pool.short_of = true;
	(void)look();
	assert_false(nic->x.pool.short_of);
	assert_in_range(a->mine[ARB_SLOTS].demand, 1, SLOTS / 2);
}

/* What another version says may mean anything. */
static void look__note_of_another_version(void **state)
{
	struct note n = greedy();

	(void)state;
	n.version++;
	post(&n);
	look_often();
	assert_int_equal(nic->arbiter.share[ARB_ENTRIES], BUDGET);
	n.version--;
	post(&n);
	look_often();
	assert_in_range(nic->arbiter.share[ARB_ENTRIES], 1, BUDGET / 4);
}

/* First come: what the other one has, not what it wants, is what we may not have. */
static void look__first_come(void **state)
{
	const struct note n = greedy();

	(void)state;
	post(&n);
	look_often();
	assert_int_equal(nic->arbiter.share[ARB_ENTRIES], BUDGET / 4);
	assert_int_equal(table(), BUDGET / 4);
}

/* Where there is enough for both, peers keep what they were lent. */
static void look__plenty_of_slots(void **state)
{
	struct note n = greedy();

	(void)state;
	n.res[ARB_SLOTS].demand = 20;
	post(&n);
	look_often();
	assert_int_equal(nic->x.pool.slots, SLOTS);
	n.res[ARB_SLOTS].demand = SLOTS;
	post(&n);
	look_often();
	assert_in_range(nic->x.pool.slots, 1, SLOTS / 2);
}

/* It is opened where others have all pagers: one is left to it from the beginning. */
static void look__first_share_is_none(void **state)
{
	struct note n = greedy();

	(void)state;
	n.weight = 1000;
	n.res[ARB_PAGERS].demand = n.res[ARB_PAGERS].used = 1000 * 1000;
	post(&n);
	nic_close(nic);
	open_nic(ARBITER_FAIR, 8);
	look_often();
	assert_in_range(nic->arbiter.share[ARB_PAGERS], 0, 999);
	assert_int_equal(nic->mem->tickets.pagers, 1);
}

/* Nobody shares with us any more: we have what we are configured to. */
static void look__board_is_lost(void **state)
{
	const struct note n = greedy();

	(void)state;
	post(&n);
	look_often();
	assert_in_range(table(), 1, BUDGET / 4);
	broken = true;
	look_often();
	assert_int_equal(nic->arbiter.share[ARB_ENTRIES], ENTRIES);
	assert_int_equal(table(), ENTRIES);
}

/* Or others would keep for us what we do not need. */
static void arbiter_turn__who_wanted_looks_again(void **state)
{
	(void)state;
	post(&(struct note){.version = VERSION, .weight = 100});
	look_often();
	assert_true(look() > OFTEN * LOOK_NS);
	nic_lock(nic);
	spt_map(nic->mem, BUDGET, ENTRIES, true, os_now(nic->os));
	nic_unlock(nic);
	assert_in_range(look(), 1, 2 * LOOK_NS);
	assert_false(nic->arbiter.resizing);
	assert_true(nic->arbiter.wants);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(look__slots_short_by_chance),
		T(look__note_of_another_version),
		cmocka_unit_test_setup_teardown(look__first_come, setup_first,
						teardown),
		T(look__plenty_of_slots),
		T(look__first_share_is_none),
		T(look__board_is_lost),
		T(arbiter_turn__who_wanted_looks_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
