/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gids_test.c: which slot an address has as the host's network changes, and what the
 * port says of it.
 */
#include "base/check.h"
#include "nic/gids.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A host: eth0 and eth1, 2 and 3, and lo. */
static struct os_net net;
static struct os_addr addrs[80];
static struct os_link links[3];
static struct gids gids;

enum { LO = 1, ETH0, ETH1 };

static int begin(void **state)
{
	(void)state;
	gids = (struct gids){.used = 0};
	links[0] = (struct os_link){
		.ifindex = LO, .up = true, .running = true, .loopback = true};
	links[1] =
		(struct os_link){.ifindex = ETH0, .up = true, .running = true};
	links[2] =
		(struct os_link){.ifindex = ETH1, .up = true, .running = true};
	net = (struct os_net){.nlinks = 3, .addr = addrs, .link = links};
	return 0;
}

static struct os_addr v4(uint32_t ifindex, uint8_t last)
{
	return (struct os_addr){.ip = {{[10] = 0xff, 0xff, 10, 0, 0, last}},
				.ifindex = ifindex,
				.mtu = ifindex == LO ? 65536 : 1500,
				.up = true,
				.loopback = ifindex == LO};
}

static struct os_addr fe80(uint32_t ifindex)
{
	struct os_addr a = v4(ifindex, 0);

	a.ip = (struct ipaddr){{0xfe, 0x80, [15] = 1}};
	a.link_local = true;
	return a;
}

static void has(unsigned n, const struct os_addr *a)
{
	memcpy(addrs, a, n * sizeof(*a));
	net.naddrs = n;
}

#define HAS(...)                                                               \
	has(sizeof((struct os_addr[]){__VA_ARGS__}) / sizeof(struct os_addr),  \
	    (struct os_addr[]){__VA_ARGS__})

/* The last bytes of the addresses, -1: an empty slot; all behind them are empty. */
static void check_slots(const int *want, unsigned n)
{
	for (unsigned i = 0; i < NIC_GIDS_MAX; i++) {
		const int last = i < n ? want[i] : -1;
		const struct os_addr *a;

		assert_int_equal(gids_at(&gids, i, &a),
				 last < 0 ? -ENODATA : 0);
		if (last >= 0)
			assert_int_equal(a->ip.b[15], last);
	}
}

#define SLOTS(...)                                                             \
	check_slots((const int[]){__VA_ARGS__},                                \
		    sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void table__at_first(void **state)
{
	struct os_addr down = v4(ETH1, 7);
	const struct os_addr *a;

	(void)state;
	down.up = false;
	HAS(v4(ETH0, 5), fe80(ETH0), v4(LO, 127), down);
	assert_true(gids_update(&gids, &net) & GIDS_TABLE);
	SLOTS(5, 5, 1, 127);
	assert_int_equal(gids_at(&gids, NIC_GIDS_MAX, &a), -EINVAL);
	assert_int_equal(gids_update(&gids, &net), 0);
}

/* What goes leaves a hole; what stays, stays where it is. */
static void table__holes(void **state)
{
	const struct os_addr gone = v4(ETH0, 5);

	(void)state;
	HAS(v4(ETH0, 5), v4(ETH0, 6), v4(ETH1, 7));
	gids_update(&gids, &net);
	SLOTS(5, 5, 6, 7);
	HAS(v4(ETH0, 5), v4(ETH1, 7));
	assert_int_equal(gids_update(&gids, &net), GIDS_TABLE);
	SLOTS(5, 5, -1, 7);
	HAS(v4(ETH1, 7));
	assert_int_equal(gids_update(&gids, &net), GIDS_TABLE);
	SLOTS(-1, -1, -1, 7);
	assert_false(gids_has(&gids, &gone.ip));
	assert_true(gids_has(&gids, &addrs[0].ip));
}

/* What comes back finds its slot, if nobody took it. */
static void table__comes_back(void **state)
{
	(void)state;
	HAS(v4(ETH0, 5), v4(ETH0, 6), v4(ETH0, 7));
	gids_update(&gids, &net);
	HAS(v4(ETH0, 5));
	gids_update(&gids, &net);
	SLOTS(5, 5);
	HAS(v4(ETH0, 5), v4(ETH0, 7));
	gids_update(&gids, &net);
	SLOTS(5, 5, -1, 7);
	HAS(v4(ETH0, 5), v4(ETH0, 7), v4(ETH0, 9));
	gids_update(&gids, &net);
	SLOTS(5, 5, 9, 7);
	/* of an interface that was made anew */
	HAS(v4(ETH1, 5), v4(ETH0, 7), v4(ETH0, 6));
	assert_int_equal(gids_update(&gids, &net), GIDS_TABLE);
	SLOTS(5, 5, 6, 7);
}

/* Who does not choose takes the first: loopback would lead nowhere. */
static void table__the_first(void **state)
{
	(void)state;
	HAS(v4(ETH0, 5), v4(LO, 127));
	gids_update(&gids, &net);
	HAS(v4(LO, 127), fe80(ETH0), v4(LO, 126));
	gids_update(&gids, &net);
	SLOTS(-1, -1, 127, 1, 126);
	HAS(v4(ETH1, 8), v4(LO, 127), fe80(ETH0), v4(LO, 126));
	gids_update(&gids, &net);
	SLOTS(8, 8, 127, 1, 126);
}

/* The same on two interfaces is two. */
static void table__link_local_of_two(void **state)
{
	const struct os_addr *a;

	(void)state;
	HAS(v4(ETH0, 5), fe80(ETH0), fe80(ETH1));
	gids_update(&gids, &net);
	SLOTS(5, 5, 1, 1);
	HAS(v4(ETH0, 5), fe80(ETH1));
	gids_update(&gids, &net);
	SLOTS(5, 5, -1, 1);
	assert_int_equal(gids_at(&gids, 3, &a), 0);
	assert_int_equal(a->ifindex, ETH1);
}

static void table__full(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NIC_GIDS_MAX; i++)
		addrs[i] = v4(ETH0, (uint8_t)(i + 1));
	net.naddrs = NIC_GIDS_MAX; /* and the first is there twice */
	gids_update(&gids, &net);
	assert_true(gids.full);
	assert_false(gids_has(&gids, &addrs[NIC_GIDS_MAX - 1].ip));
	addrs[5] = addrs[NIC_GIDS_MAX - 1];
	net.naddrs--;
	assert_int_equal(gids_update(&gids, &net), GIDS_TABLE);
	assert_false(gids.full);
	assert_true(gids_has(&gids, &addrs[5].ip));
}

/* While an interface is down its addresses stay: they are still the host's. */
static void port__down_and_up(void **state)
{
	(void)state;
	HAS(v4(ETH0, 5), v4(ETH1, 7), v4(LO, 127));
	gids_update(&gids, &net);
	assert_true(gids.active);
	links[1].running = false;
	assert_int_equal(gids_update(&gids, &net), 0); /* there is eth1 */
	links[2].running = links[2].up = addrs[1].up = false;
	assert_int_equal(gids_update(&gids, &net), GIDS_STATE);
	assert_false(gids.active);
	SLOTS(5, 5, 7, 127);
	links[1].running = true;
	assert_int_equal(gids_update(&gids, &net), GIDS_STATE);
	assert_true(gids.active);
}

/* An address that is renewed is no link that went down; an interface that is gone
 * is one. */
static void port__links_are_interfaces(void **state)
{
	(void)state;
	HAS(v4(ETH0, 5), v4(LO, 127));
	gids_update(&gids, &net);
	HAS(v4(LO, 127));
	assert_int_equal(gids_update(&gids, &net) & ~GIDS_MTU, GIDS_TABLE);
	assert_true(gids.active);
	net.nlinks = 1;
	assert_int_equal(gids_update(&gids, &net), GIDS_STATE);
	assert_false(gids.active);
}

/* eth1 has no address that is offered: it is nothing to us. Nor is an interface that
 * never could send. */
static void port__loopback_alone(void **state)
{
	(void)state;
	links[1].running = false;
	HAS(v4(LO, 127), v4(ETH0, 5));
	gids_update(&gids, &net);
	assert_true(gids.active);
	links[2].running = false;
	assert_int_equal(gids_update(&gids, &net), 0);
	assert_true(gids.active);
}

static void mtu__of_the_smallest(void **state)
{
	static const struct {
		uint32_t ip, want;
	} rows[] = {{1500, 1024}, {1280, 1024}, {1115, 512}, {1116, 1024},
		    {4200, 4096}, {9000, 4096}, {68, 256},   {2140, 2048}};

	(void)state;
	HAS(v4(ETH0, 5), v4(ETH1, 7), v4(LO, 127));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		addrs[0].mtu = 65536;
		addrs[1].mtu = rows[i].ip;
		gids_update(&gids, &net);
		assert_int_equal(gids.mtu, rows[i].want);
	}
	addrs[1].mtu = 1500;
	assert_int_equal(gids_update(&gids, &net), GIDS_MTU);
	HAS(v4(LO, 127));
	gids_update(&gids, &net);
	assert_int_equal(gids.mtu, 4096);
}

static void path__families(void **state)
{
	const struct ipaddr none = {{0}}, other = v4(ETH0, 9).ip,
			    v6 = {{0xfd, [15] = 1}};
	const struct os_addr *a;

	(void)state;
	HAS(v4(ETH0, 5), fe80(ETH0));
	gids_update(&gids, &net);
	assert_int_equal(gids_path(&gids, 0, &other, &a), 0);
	assert_int_equal(a->ip.b[15], 5);
	assert_int_equal(gids_path(&gids, 2, &v6, &a), 0);
	assert_int_equal(gids_path(&gids, 0, &v6, &a), -EINVAL);
	assert_int_equal(gids_path(&gids, 2, &other, &a), -EINVAL);
	assert_int_equal(gids_path(&gids, 0, &none, &a), -EINVAL);
	assert_int_equal(gids_path(&gids, 2, &none, &a), -EINVAL);
	assert_int_equal(gids_path(&gids, 3, &v6, &a), -ENODATA);
	assert_int_equal(gids_path(&gids, NIC_GIDS_MAX, &v6, &a), -EINVAL);
}

#define gids_unit_test(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		gids_unit_test(table__at_first),
		gids_unit_test(table__holes),
		gids_unit_test(table__comes_back),
		gids_unit_test(table__the_first),
		gids_unit_test(table__link_local_of_two),
		gids_unit_test(table__full),
		gids_unit_test(port__down_and_up),
		gids_unit_test(port__links_are_interfaces),
		gids_unit_test(port__loopback_alone),
		gids_unit_test(mtu__of_the_smallest),
		gids_unit_test(path__families),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
