/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_test.c: a simulated host whose network changes, and what is told of it: events,
 * the port, the table. Which slot is whose is gids_test.c's.
 */
#include "../simhost/pair.h"
#include "nic/async.h"
#include "nic/config.h"
#include "nic/device.h"
#include "nic/events.h"
#include "nic/follow.h"
#include "nic/nic.h"
#include "wire/roce.h"

static struct sim *sim;
static struct os *os;
static struct nic *nic;
static struct nic_async *async;

static int setup(void **state)
{
	const struct nic_config cfg = {.os = {.pagers = PAGERS},
				       .entries = 4096,
				       .pool_bytes = 64 * MTU_MAX,
				       .manual = true};
	int fd;

	(void)state;
	sim = sim_open(1);
	os = sim_host_add(sim, &(struct sim_host_config){
				       .machine = 1, .v6 = true, .mtu = 1500});
	sim_host_use(os);
	assert_int_equal(nic_open(&nic, &cfg), 0);
	assert_int_equal(nic_async_open(nic, &async, &fd), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nic_async_close(async);
	nic_close(nic);
	sim_close(sim);
	return 0;
}

static void told(enum nic_event_type type)
{
	struct nic_event ev;

	assert_int_equal(nic_async_get(async, &ev), 0);
	assert_int_equal(ev.type, type);
}

static void no_more(void)
{
	struct nic_event ev;

	assert_int_equal(nic_async_get(async, &ev), -EAGAIN);
}

static int gid(unsigned index)
{
	struct nic_gid g;

	return nic_gid(nic, index, &g);
}

static struct nic_attr port(void)
{
	struct nic_attr a;

	assert_int_equal(nic_query(nic, &a), 0);
	return a;
}

/* As the background thread does it, when time is. */
static void look(void)
{
	sim_run(sim, sim_now(sim) + 20 * SIM_MS);
	assert_int_equal(net_turn(nic, TIME_NEVER), TIME_NEVER);
}

static void net_turn__addresses(void **state)
{
	(void)state;
	look();
	no_more();
	assert_int_equal(gid(0), 0);
	assert_int_equal(gid(2), 0);
	sim_addr_set(os, false, false);
	look();
	told(NIC_EVENT_GID_CHANGE);
	no_more();
	assert_int_equal(gid(0), -ENODATA);
	assert_int_equal(gid(1), -ENODATA);
	assert_int_equal(gid(2), 0);
	assert_int_equal(gid(NIC_GIDS_MAX), -EINVAL);
	assert_int_equal(port().gids, NIC_GIDS_MAX);
	sim_addr_set(os, false, true);
	look();
	told(NIC_EVENT_GID_CHANGE);
	assert_int_equal(gid(0), 0);
}

static void net_turn__links(void **state)
{
	const struct nic_attr before = port();

	(void)state;
	assert_true(before.active);
	assert_int_equal(before.active_mtu, 1024);
	sim_link_up(os, false, 1500);
	look();
	told(NIC_EVENT_PORT_ERR);
	no_more();
	assert_false(port().active);
	sim_link_up(os, true, 9000);
	look();
	told(NIC_EVENT_PORT_ACTIVE);
	assert_true(port().active);
	assert_int_equal(port().active_mtu, 4096);
	sim_link_up(os, true, 1500);
	look();
	no_more(); /* verbs have none */
	assert_int_equal(port().active_mtu, 1024);
	assert_int_equal(port().guid, before.guid);
}

/* However often something changes. */
static void net_turn__not_all_the_time(void **state)
{
	uint64_t at;

	(void)state;
	sim_addr_set(os, false, false);
	look();
	told(NIC_EVENT_GID_CHANGE);
	sim_addr_set(os, false, true);
	at = net_turn(nic, TIME_NEVER);
	assert_in_range(at, sim_now(sim) + 1, sim_now(sim) + 10 * SIM_MS);
	assert_int_equal(net_turn(nic, 5), 5);
	no_more();
	sim_run(sim, at);
	assert_int_equal(net_turn(nic, TIME_NEVER), TIME_NEVER);
	told(NIC_EVENT_GID_CHANGE);
}

/* A handle that was made keeps its address. */
static void nic_path__is_ours(void **state)
{
	const struct ipaddr v4 = sim_host_ip(os, false),
			    v6 = sim_host_ip(os, true);
	struct wqe_to to;

	(void)state;
	assert_int_equal(nic_path(nic, 0, &v4, &to), 0);
	assert_true(ipaddr_eq(&to.local, &v4) && ipaddr_eq(&to.dgid, &v4));
	assert_int_equal(nic_path(nic, 0, &v6, &to), -EINVAL);
	assert_int_equal(nic_path(nic, 2, &v6, &to), 0);
	sim_addr_set(os, false, false);
	look();
	assert_int_equal(nic_path(nic, 0, &v4, &to), -ENODATA);
	assert_true(ipaddr_eq(&to.local, &v6));
}

#define sim_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		sim_test(net_turn__addresses),
		sim_test(net_turn__links),
		sim_test(net_turn__not_all_the_time),
		sim_test(nic_path__is_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
