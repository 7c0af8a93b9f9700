/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_test.c: datagrams arrive as they were sent, but for the mischief that
 * was asked for.
 */
#include "base/check.h"
#include "pair.h"

static void os_send__arrives_whole(void **state)
{
	static const uint32_t sizes[] = {0, 1, 255, 1024, 4095, 4096, 4097};
	struct pair p = open_pair(1);
	uint8_t buf[8192];
	uint32_t seg;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_int_equal(send_bytes(&p, 7, sizes[i], 0), 0);
		assert_int_equal(recv_one(&p, buf, sizeof(buf), &seg), -1);
		sim_run(p.sim, sim_now(p.sim) + SIM_MS);
		assert_int_equal(recv_one(&p, buf, sizeof(buf), &seg),
				 sizes[i]);
		assert_int_equal(seg, sizes[i]);
		for (uint32_t k = 1; k < sizes[i]; k++)
			assert_int_equal(buf[k], (uint8_t)(k + k / 251));
	}
	assert_int_equal(recv_one(&p, buf, sizeof(buf), NULL), -1);
	sim_close(p.sim);
}

static void os_send__refuses(void **state)
{
	struct pair p = open_pair(1);
	struct iovec iov = {"x", 1};
	struct os_tx tx = {
		.dst = {.ip = {{[10] = 0xff, [11] = 0xff, 10, 0, 9, 1}}},
		.src = sim_host_ip(p.a, false),
		.port = p.ia,
		.iov = &iov,
		.niov = 1,
	};

	(void)state;
	assert_int_equal(send_bytes(&p, 0, 9000 - 28, 0), 0);
	assert_int_equal(send_bytes(&p, 0, 9000 - 27, 0), -EMSGSIZE);
	assert_int_equal(send_bytes(&p, 0, 9000 - 27, 9000 - 28), 0);
	assert_int_equal(send_bytes(&p, 0, 65000, 1200), 0);
	assert_int_equal(send_bytes(&p, 0, 65001, 1200), -EMSGSIZE);
	assert_int_equal(send_bytes(&p, 0, 64 * 100, 100), 0);
	assert_int_equal(send_bytes(&p, 0, 64 * 100 + 1, 100), -EINVAL);
	assert_int_equal(os_send(p.a, &tx), -ENETUNREACH);
	tx.src = sim_host_ip(p.b, false);
	assert_int_equal(os_send(p.a, &tx), -EINVAL);
	sim_close(p.sim);
}

static void os_recv__burst_is_one(void **state)
{
	struct pair p = open_pair(1);
	static uint8_t buf[65536];
	uint32_t seg;

	(void)state;
	send_bytes(&p, 0, 10 * 1000 + 1, 1000);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS);
	assert_int_equal(recv_one(&p, buf, sizeof(buf), &seg), 10001);
	assert_int_equal(seg, 1000);
	assert_int_equal(sim_stats(p.sim)->sent, 11);
	sim_close(p.sim);
}

static void os_recv__burst_without_gso_or_gro(void **state)
{
	const struct os_config plain = {0};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const struct os_config less = {.no_gso = i == 0,
					       .no_gro = i == 1};
		struct pair p = i == 0 ? open_pair_as(1, less, plain)
				       : open_pair_as(1, plain, less);
		uint8_t buf[65536];
		uint32_t seg;

		assert_int_equal(os_gso(p.a), i == 1);
		send_bytes(&p, 0, 2001, 1000);
		sim_run(p.sim, sim_now(p.sim) + SIM_MS);
		assert_int_equal(recv_one(&p, buf, 65536, &seg), 1000);
		assert_int_equal(recv_one(&p, buf, 65536, &seg), 1000);
		assert_int_equal(recv_one(&p, buf, 65536, &seg), 1);
		assert_int_equal(seg, 1);
		assert_int_equal(recv_one(&p, buf, 65536, &seg), -1);
		sim_close(p.sim);
	}
}

static void os_recv__peek_leaves_it(void **state)
{
	struct pair p = open_pair(1);
	uint8_t buf[100] = {0};
	struct iovec iov = {buf, 4};
	struct os_rx rx = {.port = -1};

	(void)state;
	send_bytes(&p, 9, 100, 0);
	send_bytes(&p, 8, 50, 0);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS);
	assert_int_equal(os_recv(p.b, &iov, 1, &rx, OS_PEEK), 1);
	assert_int_equal(rx.len, 100);
	assert_int_equal(rx.port, p.ib);
	assert_int_equal(rx.dport, p.pb);
	assert_int_equal(rx.src.port, p.pa);
	assert_int_equal(buf[0], 9);
	assert_int_equal(buf[4], 0);
	iov.iov_len = 100;
	assert_int_equal(os_recv(p.b, &iov, 1, &rx, OS_TAKE), 1);
	assert_int_equal(rx.len, 100);
	assert_int_equal(buf[99], 99);
	assert_int_equal(recv_one(&p, buf, 100, NULL), 50);
	sim_close(p.sim);
}

/* The figures of design D14: three bursts, 25 lone 4 KiB, 256 small. */
static void os_recv__buffer_holds_what_linux_holds(void **state)
{
	static const struct {
		uint32_t len, seg, holds, segs;
	} row[] = {
		{15 * 4152, 4152, 3, 15},
		{4152, 0, 25, 1},
		{40, 0, 256, 1},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct pair p = open_pair(1);
		uint8_t first;
		struct iovec iov = {&first, 1};
		struct os_rx rx = {.port = -1};
		const uint32_t extra = 3;

		for (unsigned n = 0; n < row[i].holds + extra; n++)
			send_bytes(&p, 0, row[i].len, row[i].seg);
		sim_run(p.sim, sim_now(p.sim) + SIM_MS);
		os_recv(p.b, &iov, 1, &rx, OS_PEEK);
		assert_int_equal(rx.kernel_drops, extra * row[i].segs);
		assert_int_equal(recv_all(&p), row[i].holds);
		send_bytes(&p, 0, row[i].len, row[i].seg);
		sim_run(p.sim, sim_now(p.sim) + SIM_MS);
		assert_int_equal(recv_all(&p), 1);
		sim_close(p.sim);
	}
}

static void link__loses_single_packets(void **state)
{
	struct pair p = open_pair(5);
	struct sim_stats *st = sim_stats(p.sim);

	(void)state;
	link_all(&p, (struct sim_link_config){.loss = 100000});
	for (unsigned i = 0; i < 100; i++) {
		send_bytes(&p, 0, 10000, 1000);
		sim_run(p.sim, sim_now(p.sim) + SIM_MS);
		recv_all(&p);
	}
	assert_in_range(st->lost, 60, 140);
	assert_true(st->bursts_split > 50);
	assert_int_equal(st->bursts_lost, 0);
	sim_close(p.sim);
}

static void link__loses_bursts_whole(void **state)
{
	struct pair p = open_pair(5);
	unsigned got = 0;

	(void)state;
	link_all(&p, (struct sim_link_config){.burst_loss = 300000});
	for (unsigned i = 0; i < 100; i++) {
		send_bytes(&p, 0, 10000, 1000);
		sim_run(p.sim, sim_now(p.sim) + SIM_MS);
		got += recv_all(&p);
	}
	assert_int_equal(sim_stats(p.sim)->bursts_lost, 100 - got);
	assert_in_range(got, 50, 90);
	sim_close(p.sim);
}

/* Send numbered packets; count those doubled and those overtaken. */
static void number_packets(struct pair *p, unsigned *twice, unsigned *late)
{
	uint8_t buf[8], seen[200] = {0};
	unsigned newest = 0;

	for (unsigned i = 0; i < 200; i++) {
		send_bytes(p, (uint8_t)i, 8, 0);
		sim_run(p->sim, sim_now(p->sim) + 100);
	}
	sim_run(p->sim, sim_now(p->sim) + SIM_MS);
	while (recv_one(p, buf, sizeof(buf), NULL) >= 0) {
		*twice += seen[buf[0]]++;
		*late += buf[0] < newest;
		newest = MAX(newest, buf[0]);
	}
	for (unsigned i = 0; i < 200; i++)
		assert_true(seen[i] != 0);
}

static void link__keeps_order_unless_told(void **state)
{
	unsigned twice = 0, late = 0;
	struct pair p = open_pair(5);

	(void)state;
	link_all(&p, (struct sim_link_config){.reorder_ns = 50000});
	number_packets(&p, &twice, &late);
	assert_int_equal(twice, 0);
	assert_int_equal(late, 0);
	link_all(&p, (struct sim_link_config){.reorder = 100000,
					      .reorder_ns = 50000});
	number_packets(&p, &twice, &late);
	assert_int_equal(twice, 0);
	assert_true(late > 5);
	late = 0;
	link_all(&p,
		 (struct sim_link_config){.dup = 50000, .reorder_ns = 50000});
	number_packets(&p, &twice, &late);
	assert_in_range(twice, 2, 30);
	sim_close(p.sim);
}

/* Payload of extension packets never changes: the UDP checksum covers it. */
static void link__corrupts_where_it_shows(void **state)
{
	static const uint8_t first[] = {0xe0, 0x0a};
	struct pair p = open_pair(9);

	(void)state;
	link_all(&p, (struct sim_link_config){.corrupt = SIM_PPM});
	for (unsigned i = 0; i < ARRAY_SIZE(first); i++) {
		unsigned head = 0, tail = 0;
		uint8_t buf[200];

		for (unsigned n = 0; n < 100; n++) {
			send_bytes(&p, first[i], 200, 0);
			sim_run(p.sim, sim_now(p.sim) + SIM_MS);
			if (recv_one(&p, buf, sizeof(buf), NULL) < 0)
				continue;
			buf[0] ^= first[i];
			for (unsigned k = 0; k < 200; k++) {
				if (buf[k] != (k ? (uint8_t)k : 0))
					*(k < 12 ? &head : &tail) += 1;
			}
		}
		assert_true(head > 0);
		assert_int_equal(tail > 0, i == 1);
	}
	assert_true(sim_stats(p.sim)->checksum_drops > 20);
	sim_close(p.sim);
}

static void link__bandwidth(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t t0 = sim_now(p.sim);

	(void)state;
	link_all(&p, (struct sim_link_config){.bytes_per_us = 1000});
	for (unsigned i = 0; i < 10; i++)
		send_bytes(&p, 0, 1000, 0);
	sim_run(p.sim, t0 + 9 * SIM_US);
	assert_in_range(recv_all(&p), 6, 9);
	sim_run(p.sim, t0 + 13 * SIM_US);
	assert_true(recv_all(&p) > 0);
	sim_close(p.sim);
}

static void sim_partition__both_ways(void **state)
{
	struct pair p = open_pair(1);

	(void)state;
	sim_partition(p.sim, 2, 1, true);
	send_bytes(&p, 0, 10, 0);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS);
	assert_int_equal(recv_all(&p), 0);
	sim_partition(p.sim, 1, 2, false);
	send_bytes(&p, 0, 10, 0);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS);
	assert_int_equal(recv_all(&p), 1);
	sim_close(p.sim);
}

static bool pass_even(void *arg, const uint8_t *bytes, uint32_t len)
{
	assert_ptr_equal(arg, &pass_even);
	assert_int_equal(len, 10);
	return bytes[0] % 2 == 0;
}

static void sim_filter__only_what_passes(void **state)
{
	struct pair p = open_pair(1);
	uint8_t buf[10];

	(void)state;
	sim_filter(p.sim, pass_even, &pass_even);
	send_bytes(&p, 1, 10, 0);
	send_bytes(&p, 2, 10, 0);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS);
	assert_int_equal(recv_one(&p, buf, sizeof(buf), NULL), 10);
	assert_int_equal(buf[0], 2);
	assert_int_equal(recv_all(&p), 0);
	sim_close(p.sim);
}

static void os_recv_error__port_unreachable(void **state)
{
	struct pair p = open_pair(1);
	struct endpoint dst;
	uint32_t mtu;
	int err;

	(void)state;
	send_bytes(&p, 0, 10, 0);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS);
	assert_int_equal(os_recv_error(p.a, &dst, &err, &mtu), 0);
	os_port_close(p.b, p.ib);
	send_bytes(&p, 0, 10, 0);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS);
	assert_int_equal(os_recv_error(p.a, &dst, &err, &mtu), 1);
	assert_int_equal(err, ECONNREFUSED);
	assert_int_equal(dst.port, p.pb);
	assert_int_equal(os_recv_error(p.a, &dst, &err, &mtu), 0);
	sim_kill(p.b);
	send_bytes(&p, 0, 10, 0);
	sim_run(p.sim, sim_now(p.sim) + SIM_MS);
	assert_int_equal(os_recv_error(p.a, &dst, &err, &mtu), 1);
	sim_close(p.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(os_send__arrives_whole),
		cmocka_unit_test(os_send__refuses),
		cmocka_unit_test(os_recv__burst_is_one),
		cmocka_unit_test(os_recv__burst_without_gso_or_gro),
		cmocka_unit_test(os_recv__peek_leaves_it),
		cmocka_unit_test(os_recv__buffer_holds_what_linux_holds),
		cmocka_unit_test(link__loses_single_packets),
		cmocka_unit_test(link__loses_bursts_whole),
		cmocka_unit_test(link__keeps_order_unless_told),
		cmocka_unit_test(link__corrupts_where_it_shows),
		cmocka_unit_test(link__bandwidth),
		cmocka_unit_test(sim_partition__both_ways),
		cmocka_unit_test(sim_filter__only_what_passes),
		cmocka_unit_test(os_recv_error__port_unreachable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
