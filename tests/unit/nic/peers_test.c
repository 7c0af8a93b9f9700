/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peers_test.c: shares of a receive buffer (design D14): what all who send to a
 * NIC believe that they may have on the way fits into it, whenever they came.
 */
#include "base/heap.h"
#include "base/page.h"
#include "mem/spt.h"
#include "nic/completion.h"
#include "nic/engine.h"
#include "nic/inlet.h"
#include "nic/memory.h"
#include "nic/pair.h"
#include "nic/peers.h"
#include "nic/refresh.h"
#include "nic/step.h"
#include "side.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "xport/attr.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/tx.h"

#include <arpa/inet.h>
#include <unistd.h>

enum { MANY = 20, CROWD = 8, STRANGERS = 65, ROUNDS = 4, HALF = BUF / 2 };

/* to[], stranger[]: QPs of one NIC */
static struct side from[MANY], to[MANY], stranger[STRANGERS];

static void pump(struct nic *nic, bool receive)
{
	struct step *s = &nic->steps.v[1];
	uint64_t now;

	while (receive && inlet_receive(nic, s))
		while (engine_rx_plan(nic, s, os_now(nic->os))) {
			engine_move(nic, s);
			engine_commit(nic, s, os_now(nic->os));
		}
	while (now = os_now(nic->os), engine_plan(nic, s, true, now)) {
		engine_move(nic, s);
		engine_commit(nic, s, os_now(nic->os));
	}
}

static void settle(unsigned n)
{
	for (int k = 0; k < ROUNDS; k++) {
		pump(to->nic, true);
		for (unsigned i = 0; i < n; i++)
			pump(from[i].nic, true);
	}
}

/* One more QP of the receiver. */
static void to_open(struct side *s)
{
	struct nic_qp_init init = to->qp->init;

	*s = to[0];
	assert_int_equal(nic_qp_create(to->nic, NULL, &init, &s->qp, &s->qpn),
			 0);
}

static void connect_to(struct side *s, const struct side *peer,
		       enum qp_state last)
{
	struct qp_attr a = side_attr(s, peer);

	s->nic->roce.late = true; /* a holder without threads says nothing */
	for (enum qp_state state = QPS_INIT; state <= last; state++)
		assert_int_equal(side_next(s, &a, state), 0);
}

/* @last: how far the sender goes */
static void join(unsigned i, const struct nic_config *cfg, enum qp_state last)
{
	side_open(&from[i], cfg);
	if (i)
		to_open(&to[i]);
	if (i % 2) {
		connect_to(&from[i], &to[i], last);
		pump(to->nic, true); /* it asks before we know it */
		connect_to(&to[i], &from[i], QPS_RTS);
	} else {
		connect_to(&to[i], &from[i], QPS_RTS);
		connect_to(&from[i], &to[i], last);
	}
}

static void leave_from(unsigned i)
{
	assert_int_equal(nic_qp_destroy(from[i].qp), 0);
	assert_int_equal(nic_cq_destroy(from[i].cq), 0);
	assert_int_equal(nic_mr_dereg(from[i].nic, from[i].key), 0);
	assert_int_equal(nic_pd_dealloc(from[i].nic, from[i].pd), 0);
	nic_close(from[i].nic);
	free(from[i].buf);
}

static void leave(unsigned i)
{
	assert_int_equal(nic_qp_destroy(to[i].qp), 0);
	leave_from(i);
}

static void close_to(void)
{
	assert_int_equal(nic_cq_destroy(to->cq), 0);
	assert_int_equal(nic_mr_dereg(to->nic, to->key), 0);
	assert_int_equal(nic_pd_dealloc(to->nic, to->pd), 0);
	nic_close(to->nic);
	free(to->buf);
}

static const struct nic_config cfg = {.os = {.addr = "lo"},
				      .entries = 1 << 16,
				      .scatter = true,
				      .manual = true,
				      .pool_bytes = 256 << 20,
				      .strategies = 1u << STRATEGY_REDIRECT};

static void close_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		leave(i);
	close_to();
}

/* What the senders believe, not what the receiver remembers. */
static uint64_t believed(unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += from[i].qp->qp.peer->flow.budget;
	return sum;
}

static void share__idle_peers(void **state)
{
	uint64_t all;

	(void)state;
	side_open(to, &cfg);
	all = os_rcvbuf(to->nic->os) / 100 * 45;
	for (unsigned n = 1; n <= MANY; n++) {
		join(n - 1, &cfg, n % 3 ? QPS_RTS : QPS_RTR);
		do /* the kernel may deliver a little later */
			settle(n);
		while (from[n - 1].qp->qp.peer->kind == PEER_PROBING);
		assert_int_equal(from[n - 1].qp->qp.peer->kind, PEER_NOPIN);
		assert_in_range(believed(n), 0, all);
	}
	close_all(MANY);
}

/* What is said to a HELLO without the nonce may never be heard of: it counts as what
 * was said before, whoever asked. */
static void share__hello_of_anybody(void **state)
{
	struct peer *p;
	struct os_rx rx;
	const struct pkt hello = {
		.opcode = OP_X_HELLO, .version = WIRE_VERSION, .my_nonce = 1};
	uint32_t granted;
	uint64_t all;

	(void)state;
	side_open(to, &cfg);
	join(0, &cfg, QPS_RTS);
	settle(1);
	p = to->qp->qp.peer;
	granted = p->flow.granted;
	all = to->nic->x.budget.granted;
	assert_true(granted > 0);
	rx = (struct os_rx){.src = p->asked, .dst = p->local, .port = p->port};
	to->nic->x.budget.push /= 2;
	nic_tick(to->nic);
	peers_hello(to->nic, &hello, &rx);
	assert_int_equal(p->flow.granted, granted);
	assert_int_equal(to->nic->x.budget.granted, all);
	to->nic->x.budget.push *= 2;
	close_all(1);
}

static void post_write(unsigned i)
{
	side_post(&from[i],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)to->buf,
			       .rkey = to->key},
		  from[i].buf, HALF);
}

static void know_pages(struct side *s)
{
	nic_tick(s->nic);
	refresh_pages(s->nic);
	spt_map(s->nic->mem, page_of((uintptr_t)s->buf), BUF >> PAGE_SHIFT,
		true, os_now(s->nic->os));
}

/* Every one sends all that it may, and the receiver does not run. */
static void share__crowd(void **state)
{
	struct cqe e;

	(void)state;
	side_open(to, &cfg);
	for (unsigned n = 1; n <= CROWD; n++) {
		join(n - 1, &cfg, QPS_RTS);
		settle(n);
	}
	for (unsigned i = 0; i < CROWD; i++) {
		for (unsigned k = 0; k < DEPTH; k++)
			post_write(i);
		know_pages(&from[i]);
		pump(from[i].nic, false);
	}
	pump(to->nic, true);
	for (unsigned i = 0; i < CROWD; i++) {
		know_pages(&from[i]);
		know_pages(to);
		pump(from[i].nic, true);
		pump(to->nic, true);
		(void)nic_cq_poll(from[i].cq, 1, &e);
		assert_int_equal(from[i].qp->qp.state, QPS_RTS);
	}
	/* as the packets say that came after those */
	assert_int_equal(to->nic->cnt.v[CNT_kernel_drops], 0);
	close_all(CROWD);
}

/* Who came last gets as much as the others once it has something to send, and
 * more when they are gone. */
static void share__of_the_last(void **state)
{
	uint32_t all;

	(void)state;
	side_open(to, &cfg);
	all = (uint32_t)(os_rcvbuf(to->nic->os) / 100 * 45);
	for (unsigned n = 1; n <= 3; n++) {
		join(n - 1, &cfg, QPS_RTS);
		settle(n);
	}
	post_write(2);
	for (int i = 0; i < 100; i++) {
		know_pages(&from[2]);
		know_pages(to);
		settle(3);
	}
	assert_in_range(from[2].qp->qp.peer->flow.budget, all / 4, all / 3);
	assert_in_range(believed(3), all / 4, all);
	leave(0);
	leave(1);
	post_write(2);
	for (int i = 0; i < 100; i++) {
		know_pages(&from[2]);
		know_pages(to);
		pump(from[2].nic, true);
		pump(to->nic, true);
	}
	assert_int_equal(from[2].qp->qp.peer->flow.budget, all);
	from[0] = from[2];
	to[0].qp = to[2].qp;
	close_all(1);
}

/* Who holds the port of all standard peers goes; somebody takes it over. */
static void port_4791__passes_on(void **state)
{
	struct nic_config standard = cfg;
	uint64_t end;

	(void)state;
	standard.standard = true;
	side_open(to, &standard);
	for (unsigned i = 0; i < 2; i++)
		join(i, &standard, QPS_RTS);
	end = os_now(to->nic->os) + UINT64_C(10000000000);
	while (from[0].qp->qp.peer->kind != PEER_STANDARD ||
	       from[1].qp->qp.peer->kind != PEER_STANDARD) {
		assert_in_range(os_now(to->nic->os), 0, end);
		settle(2);
	}
	assert_true(to->nic->roce.port >= 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(from[i].nic->roce.port < 0);
		assert_int_equal(nic_qp_destroy(to[i].qp), 0);
	}
	close_to();
	while (from[0].nic->roce.port < 0 && from[1].nic->roce.port < 0) {
		assert_in_range(os_now(from->nic->os), 0, end);
		pump(from[0].nic, true);
		pump(from[1].nic, true);
	}
	leave_from(0);
	leave_from(1);
}

/* A port where everybody is asked and nobody answers. */
static int deaf_port(uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	*port = UINT16_MAX;
	do
		a.sin_port = htons(--*port);
	while (bind(fd, (const struct sockaddr *)&a, sizeof(a)));
	return fd;
}

/* Peers of the receiver's that do not answer, and are taken for standard ones. */
static void strangers_come(uint16_t port)
{
	for (uint32_t i = 0; i < STRANGERS; i++) {
		struct qp_attr a = side_attr(to, to);

		a.dgid.b[15] = (uint8_t)(2 + i); /* 127.0.0.2 and so on */
		a.dest_qpn = (uint32_t)(port - QPN_PORT_BASE) << 10 | 1;
		to_open(&stranger[i]);
		for (enum qp_state s = QPS_INIT; s <= QPS_RTR; s++)
			assert_int_equal(side_next(&stranger[i], &a, s), 0);
	}
}

static void strangers_leave(void)
{
	for (unsigned i = 0; i < STRANGERS; i++) {
		assert_int_not_equal(stranger[i].qp->qp.peer->kind, PEER_NOPIN);
		assert_int_equal(nic_qp_destroy(stranger[i].qp), 0);
	}
}

/* Each has a socket, until there are enough of them; strangers have none. */
static void paths__bounded(void **state)
{
	enum { PATHS = 8, SPRAYED = 64 };
	struct nic_config many = cfg;
	unsigned lines = 0;
	uint16_t port;
	int deaf = deaf_port(&port);

	(void)state;
	many.paths = PATHS;
	side_open(to, &many);
	strangers_come(port);
	for (unsigned n = 1; n <= MANY; n++) {
		join(n - 1, &cfg, QPS_RTS);
		do
			settle(n);
		while (to[n - 1].qp->qp.peer->kind == PEER_PROBING);
		assert_in_range(to[n - 1].qp->qp.peer->path.lines, 1, PATHS);
		assert_int_equal(from[n - 1].qp->qp.peer->path.lines, 1);
		lines += to[n - 1].qp->qp.peer->path.lines;
	}
	assert_int_equal(lines, MANY + SPRAYED);
	assert_int_equal(to->nic->peers.sprayed, SPRAYED);
	assert_int_equal(to->nic->cnt.v[CNT_paths_missing],
			 MANY * PATHS - lines);
	leave(0);
	assert_int_equal(to->nic->peers.sprayed, SPRAYED - PATHS + 1);
	for (unsigned i = 1; i < MANY; i++)
		leave(i);
	assert_int_equal(to->nic->peers.sprayed, 0);
	assert_int_equal(to->nic->peers.lined, 0);
	strangers_leave();
	close_to();
	close(deaf);
}

/* Who comes when no descriptor is left has one path, and that is counted. */
static void paths__no_line_left(void **state)
{
	enum { PATHS = 3, LINES = 64 };
	struct nic_config many = cfg;

	(void)state;
	many.paths = PATHS;
	side_open(to, &many);
	to->nic->peers.lined = LINES - 1; /* as after so many peers */
	for (unsigned n = 1; n <= 2; n++) {
		join(n - 1, &cfg, QPS_RTS);
		do
			settle(n);
		while (to[n - 1].qp->qp.peer->kind == PEER_PROBING);
		assert_int_equal(to[n - 1].qp->qp.peer->path.lines,
				 n == 1 ? PATHS : 0);
		assert_int_equal(to->nic->peers.lined, LINES);
		assert_int_equal(to->nic->cnt.v[CNT_paths_missing],
				 n == 1 ? 0 : PATHS - 1);
	}
	close_all(2);
}

/* Data is sprayed, what is only said is not. */
static void paths__in_turn(void **state)
{
	enum { PATHS = 3 };
	struct burst *b = heap_alloc(sizeof(*b));
	struct nic_config many = cfg;
	struct peer *p;

	(void)state;
	assert_non_null(b);
	many.paths = PATHS;
	side_open(to, &cfg);
	join(0, &many, QPS_RTS);
	do
		settle(1);
	while (from->qp->qp.peer->kind == PEER_PROBING);
	p = from->qp->qp.peer;
	assert_int_equal(p->path.lines, PATHS);
	p->path.next = 0;
	for (unsigned i = 1; i <= 2 * PATHS; i++) {
		post_write(0);
		know_pages(&from[0]);
		nic_tick(from->nic);
		assert_true(qp_tx(&from->qp->qp, b));
		assert_int_equal(b->way.line, p->path.line[i % PATHS]);
		nic_tick(from->nic);
		qp_tx_commit(b, 0);
	}
	ack_say(&from->qp->qp, XACK_PROBE);
	assert_true(peer_ack_burst(&from->nic->x, p, b));
	assert_int_equal(b->way.line, p->path.line[0]);
	p->acks.out--;
	from->qp->qp.resp.ack.out--;
	heap_free(b);
	close_all(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__idle_peers),
		cmocka_unit_test(share__hello_of_anybody),
		cmocka_unit_test(share__crowd),
		cmocka_unit_test(share__of_the_last),
		cmocka_unit_test(port_4791__passes_on),
		cmocka_unit_test(paths__bounded),
		cmocka_unit_test(paths__no_line_left),
		cmocka_unit_test(paths__in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
