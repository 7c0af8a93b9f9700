/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.h: two simulated hosts that can send to each other, for the tests of
 * tests/simhost.
 */
#ifndef NOPIN_TESTS_SIMHOST_PAIR_H
#define NOPIN_TESTS_SIMHOST_PAIR_H

#include "os/copy.h"
#include "os/names.h"
#include "os/net.h"
#include "os/pages.h"
#include "os/run.h"
#include "os/wait.h"
#include "simhost/sim.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PAGERS = 2 };

/** struct pair - Two open hosts with a port each. */
struct pair {
	struct sim *sim;
	struct os *a, *b;
	uint16_t pa, pb;
	int ia, ib;
};

static inline struct os *open_host(struct sim *sim, struct sim_host_config host,
				   struct os_config cfg)
{
	struct os *os = sim_host_add(sim, &host), *same;

	sim_host_use(os);
	assert_int_equal(os_open(&same, &cfg), 0);
	assert_ptr_equal(os, same);
	return os;
}

static inline struct pair open_pair_as(uint64_t seed, struct os_config ca,
				       struct os_config cb)
{
	struct pair p = {.sim = sim_open(seed)};

	p.a = open_host(p.sim, (struct sim_host_config){.machine = 1}, ca);
	p.b = open_host(p.sim, (struct sim_host_config){.machine = 2}, cb);
	p.ia = os_port_open(p.a, 0, &p.pa);
	p.ib = os_port_open(p.b, 0, &p.pb);
	assert_true(p.ia >= 0 && p.ib >= 0);
	return p;
}

static inline struct pair open_pair(uint64_t seed)
{
	const struct os_config cfg = {.pagers = PAGERS};

	return open_pair_as(seed, cfg, cfg);
}

static inline void link_all(struct pair *p, struct sim_link_config cfg)
{
	cfg.latency_min_ns = 1000;
	cfg.latency_max_ns = 2000;
	sim_link_default(p->sim, &cfg);
}

static inline int send_iov(struct pair *p, struct iovec *iov, unsigned n,
			   uint32_t seg)
{
	struct os_tx tx = {
		.dst = {.ip = sim_host_ip(p->b, false), .port = p->pb},
		.src = sim_host_ip(p->a, false),
		.port = p->ia,
		.iov = iov,
		.niov = n,
		.seg = seg,
	};

	return os_send(p->a, &tx);
}

static inline int send_bytes(struct pair *p, uint8_t first, uint32_t len,
			     uint32_t seg)
{
	uint8_t *buf = malloc(len + 1);
	struct iovec iov = {buf, len};
	int err;

	for (uint32_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i + i / 251);
	buf[0] = first;
	err = send_iov(p, &iov, 1, seg);
	free(buf);
	return err;
}

/* Return: bytes received, or -1. */
static inline int recv_one(struct pair *p, uint8_t *buf, size_t room,
			   uint32_t *seg)
{
	struct iovec iov = {buf, room};
	struct os_rx rx = {.port = -1};

	if (os_recv(p->b, &iov, 1, &rx, OS_TAKE) != 1)
		return -1;
	if (seg)
		*seg = rx.seg;
	return (int)rx.len;
}

static inline unsigned recv_all(struct pair *p)
{
	static uint8_t buf[65536];
	unsigned num = 0;

	while (recv_one(p, buf, sizeof(buf), NULL) >= 0)
		num++;
	return num;
}

static inline void fill(struct os *os, uint64_t addr, uint64_t len,
			uint8_t salt)
{
	for (uint64_t i = 0; i < len; i++) {
		const uint8_t byte = (uint8_t)(i * 7 + salt);

		assert_int_equal(sim_write(os, addr + i, &byte, 1), 0);
	}
}

static inline void check_filled(const uint8_t *buf, uint64_t len, uint8_t salt)
{
	for (uint64_t i = 0; i < len; i++)
		assert_int_equal(buf[i], (uint8_t)(i * 7 + salt));
}

/** struct mover - A thread that executes one move. */
struct mover {
	struct os *os;
	struct moves mv;
	uint64_t ended_ns;
};

static inline void mover_thread(void *arg)
{
	struct mover *m = arg;

	os_moves(m->os, &m->mv);
	m->ended_ns = os_now(m->os);
}

static inline struct mover *start_move(struct os *os, enum move_kind kind,
				       uint64_t addr, void *nic, uint32_t len)
{
	struct mover *m = calloc(1, sizeof(*m));

	m->os = os;
	m->mv.num = 1;
	m->mv.m[0] = (struct move){
		.kind = kind, .addr = addr, .nic = nic, .len = len};
	sim_spawn(os, mover_thread, m, 0);
	return m;
}

#endif
