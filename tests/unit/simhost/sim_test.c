/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim_test.c: the simulated world: events, dice, hosts, small calls. */
#include "base/page.h"
#include "pair.h"

static char order[16];

static void note_event(void *arg, uint64_t val)
{
	(void)arg;
	order[strlen(order)] = (char)val;
}

static void sim_at__in_order_of_time_then_number(void **state)
{
	struct sim *sim = sim_open(1);
	const uint64_t t0 = sim_now(sim);

	(void)state;
	memset(order, 0, sizeof(order));
	assert_true(t0 > 0);
	sim_at(sim, t0 + 30, note_event, NULL, 'd');
	sim_at(sim, t0 + 10, note_event, NULL, 'b');
	sim_at(sim, t0 + 10, note_event, NULL, 'c');
	sim_at(sim, 0, note_event, NULL, 'a');
	sim_at(sim, t0 + 40, note_event, NULL, 'e');
	sim_run(sim, t0 + 30);
	assert_string_equal(order, "abcd");
	assert_int_equal(sim_now(sim), t0 + 30);
	sim_run(sim, t0 + 100);
	assert_string_equal(order, "abcde");
	assert_int_equal(sim_now(sim), t0 + 100);
	sim_close(sim);
}

static void sim_between__covers_its_ends(void **state)
{
	struct sim *sim = sim_open(7);
	unsigned seen = 0, yes = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		const uint64_t v = sim_between(sim, 3, 5);

		assert_in_range(v, 3, 5);
		seen |= 1u << v;
		yes += sim_chance(sim, 100000);
		assert_false(sim_chance(sim, 0));
		assert_true(sim_chance(sim, SIM_PPM));
	}
	assert_int_equal(seen, 7u << 3);
	assert_in_range(yes, 60, 140);
	sim_close(sim);
}

static void os_open__only_the_host_named(void **state)
{
	const struct os_config cfg = {0};
	struct sim *sim = sim_open(1);
	struct os *os, *host;

	(void)state;
	assert_int_equal(os_open(&os, &cfg), -ENODEV);
	host = open_host(sim, (struct sim_host_config){.machine = 3}, cfg);
	sim_host_use(host);
	assert_int_equal(os_open(&os, &cfg), -ENODEV);
	os_close(host);
	sim_close(sim);
}

static void os_memory__zeroed_and_aligned(void **state)
{
	struct pair p = open_pair(1);
	uint8_t *m = os_memory(p.a, PAGE_BYTES + 1);

	(void)state;
	assert_int_equal((uintptr_t)m % PAGE_BYTES, 0);
	for (unsigned i = 0; i <= PAGE_BYTES; i++)
		assert_int_equal(m[i], 0);
	os_close(p.a);
	sim_close(p.sim);
}

static void os_net_read__v4_first(void **state)
{
	struct sim *sim = sim_open(1);
	struct os *os = open_host(
		sim, (struct sim_host_config){.machine = 3, .v6 = true},
		(struct os_config){0});
	struct os_net net;

	(void)state;
	assert_int_equal(os_net_read(os, &net), 0);
	assert_int_equal(net.naddrs, 2);
	assert_true(ipaddr_is_v4(&net.addr[0].ip));
	assert_false(ipaddr_is_v4(&net.addr[1].ip));
	assert_true(net.addr[0].default_route);
	os_net_free(&net);
	sim_close(sim);
}

static void os_net_read__follows(void **state)
{
	struct sim *sim = sim_open(1);
	struct os *os = open_host(
		sim, (struct sim_host_config){.machine = 3, .v6 = true},
		(struct os_config){0});
	struct os_net net;

	(void)state;
	assert_false(os_net_changed(os));
	sim_addr_set(os, false, false);
	sim_link_up(os, false, 9000);
	assert_true(os_net_changed(os));
	assert_false(os_net_changed(os));
	assert_int_equal(os_net_read(os, &net), 0);
	assert_int_equal(net.naddrs, 1);
	assert_false(ipaddr_is_v4(&net.addr[0].ip));
	assert_int_equal(net.addr[0].mtu, 9000);
	assert_false(net.link[0].running);
	os_net_free(&net);
	sim_close(sim);
}

static void os_claim__one_holder_a_machine(void **state)
{
	struct sim *sim = sim_open(1);
	struct os *a = open_host(sim, (struct sim_host_config){.machine = 1},
				 (struct os_config){0});
	struct os *b = open_host(sim, (struct sim_host_config){.machine = 1},
				 (struct os_config){0});
	struct os *c = open_host(sim, (struct sim_host_config){.machine = 2},
				 (struct os_config){0});
	const int fd = os_claim(a, "4791");
	uint16_t port;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(os_claim(b, "4791"), -EADDRINUSE);
	assert_true(os_claim(c, "4791") >= 0);
	assert_true(os_port_open(a, 4791, &port) >= 0);
	assert_int_equal(os_port_open(b, 4791, &port), -EADDRINUSE);
	assert_true(os_port_open(c, 4791, &port) >= 0);
	os_unclaim(a, fd);
	assert_true(os_claim(b, "4791") >= 0);
	sim_kill(b);
	assert_true(os_claim(a, "4791") >= 0);
	sim_close(sim);
}

static struct os *open_of(struct sim *sim, unsigned user)
{
	return open_host(sim,
			 (struct sim_host_config){.machine = 1, .user = user},
			 (struct os_config){0});
}

/* As on a real host: our user's or root's, told once, until it ends. */
static void os_holder_ask__whose(void **state)
{
	struct sim *sim = sim_open(1);
	struct os *root = open_of(sim, 0), *a = open_of(sim, 7);
	struct os *b = open_of(sim, 8);
	int roots = os_claim(root, "root's"), as = os_claim(a, "a's"), fd;
	struct os_holder who;
	uint64_t secret = 0;

	(void)state;
	assert_int_equal(os_holder_ask(b, "nobody's", &who), -ECONNREFUSED);
	assert_int_equal(os_holder_ask(b, "root's", &who), -ECONNREFUSED);
	assert_int_equal(os_claim_share(root, roots, 0, 11), 0);
	assert_int_equal(os_claim_share(a, as, 0, 12), 0);
	assert_int_equal(os_holder_ask(b, "a's", &who), -EPERM);
	assert_int_equal(who.uid, 7);
	assert_true(os_holder_ask(a, "a's", &who) >= 0);
	fd = os_holder_ask(b, "root's", &who);
	assert_int_equal(os_holder_says(b, fd, &secret), 1);
	assert_int_equal(secret, 11);
	assert_int_equal(os_holder_says(b, fd, &secret), 0);
	sim_kill(root);
	assert_int_equal(os_holder_says(b, fd, &secret), -EPIPE);
	os_holder_leave(b, fd);
	sim_close(sim);
}

static uint64_t busy_run(uint64_t seed)
{
	struct pair p = open_pair(seed);
	const uint64_t m = sim_mmap(p.b, 8 * PAGE_BYTES, SIM_FILE,
				    SIM_READ | SIM_WRITE);
	uint8_t *nic = os_memory(p.b, PAGE_BYTES);
	struct mover *move[50];
	uint64_t hash;

	link_all(&p, (struct sim_link_config){.loss = 50000,
					      .dup = 50000,
					      .reorder = 50000,
					      .corrupt = 50000,
					      .reorder_ns = 9000});
	for (unsigned i = 0; i < 50; i++) {
		send_bytes(&p, (uint8_t)i, 3000, 500);
		move[i] = start_move(p.b, MOVE_SCATTER, m + i * 600, nic, 700);
		sim_run(p.sim, sim_now(p.sim) + 1000);
		sim_evict(p.b, m + i % 8 * PAGE_BYTES, true);
		recv_all(&p);
	}
	sim_run(p.sim, sim_now(p.sim) + 100 * SIM_MS);
	hash = sim_hash(p.sim, SIM_HASH_EVENTS);
	sim_close(p.sim);
	for (unsigned i = 0; i < 50; i++)
		free(move[i]);
	return hash;
}

static void sim_hash__same_seed_same_run(void **state)
{
	(void)state;
	assert_true(busy_run(11) == busy_run(11));
	assert_true(busy_run(11) != busy_run(12));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_at__in_order_of_time_then_number),
		cmocka_unit_test(sim_between__covers_its_ends),
		cmocka_unit_test(os_open__only_the_host_named),
		cmocka_unit_test(os_memory__zeroed_and_aligned),
		cmocka_unit_test(os_net_read__v4_first),
		cmocka_unit_test(os_net_read__follows),
		cmocka_unit_test(os_claim__one_holder_a_machine),
		cmocka_unit_test(os_holder_ask__whose),
		cmocka_unit_test(sim_hash__same_seed_same_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
