/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair_test.c: two NICs in one process, over the host's loopback: the thinnest
 * path through every layer under the verbs edge, and each operation once.
 */
#include "base/page.h"
#include "mem/mr.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "side.h"
#include "xport/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool standard; /* plain RoCEv2 through UDP 4791 */
static bool block; /* the engine sleeps in faults */

static int setup(void **state)
{
	const struct nic_config cfg = {
		.os = {.addr = "lo", .pagers = 4},
		.entries = 1 << 16,
		.scatter = true,
		.pool_bytes = 1 << 20,
		.standard = standard,
		.account = block,
		.strategies = block ? 1u << STRATEGY_BLOCK
				    : 1u << STRATEGY_REDIRECT |
					      1u << STRATEGY_RESUME};

	(void)state;
	sides_open(&cfg);
	return 0;
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

static const uint32_t sizes[] = {0,    1,    8,	   255,	 256,	4095,
				 4096, 4097, 8192, 8193, 65537, BUF / 2};

static void send__every_size(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t n = sizes[i];
		struct cqe e;

		fill(side[0].buf, n, (unsigned)i);
		memset(side[1].buf, 0xee, BUF);
		side_recv(&side[1], side[1].buf + 3, BUF - 3, 1);
		side_post(&side[0], (struct wqe){.op = WR_SEND, .wr_id = i},
			  side[0].buf, n);
		e = side_cqe(&side[1]);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_int_equal(e.byte_len, n);
		assert_int_equal(e.op, WR_RECV);
		assert_memory_equal(side[1].buf + 3, side[0].buf, n);
		assert_int_equal(side[1].buf[3 + n], 0xee);
		e = side_cqe(&side[0]);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_int_equal(e.wr_id, i);
	}
}

static void write__every_size(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t n = sizes[i];
		struct cqe e;

		fill(side[0].buf, n, (unsigned)i + 50);
		memset(side[1].buf, 0xee, BUF);
		side_post(&side[0],
			  (struct wqe){.op = WR_WRITE,
				       .raddr = (uintptr_t)side[1].buf + 5,
				       .rkey = side[1].key},
			  side[0].buf, n);
		e = side_cqe(&side[0]);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_memory_equal(side[1].buf + 5, side[0].buf, n);
		assert_int_equal(side[1].buf[5 + n], 0xee);
	}
}

static void read__every_size(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t n = sizes[i];
		struct cqe e;

		fill(side[1].buf, BUF, (unsigned)i + 90);
		memset(side[0].buf, 0xee, BUF);
		side_post(&side[0],
			  (struct wqe){.op = WR_READ,
				       .raddr = (uintptr_t)side[1].buf + 1,
				       .rkey = side[1].key},
			  side[0].buf + 2, n);
		e = side_cqe(&side[0]);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_int_equal(e.byte_len, n);
		assert_memory_equal(side[0].buf + 2, side[1].buf + 1, n);
		assert_int_equal(side[0].buf[2 + n], 0xee);
	}
}

/* The second part of a request is refused when the first is in the burst that is
 * being made: nothing stays charged to the peer. */
static void send__fails_in_the_middle(void **state)
{
	struct wqe *slot;

	(void)state;
	assert_int_equal(nic_send_begin(side[0].qp), 0);
	slot = nic_send_slot(side[0].qp);
	assert_non_null(slot);
	*slot = (struct wqe){.op = WR_WRITE,
			     .flags = WQE_SIGNALED,
			     .raddr = (uintptr_t)side[1].buf,
			     .rkey = side[1].key,
			     .length = 65536,
			     .num_sge = 2};
	wqe_sge(slot)[0] = (struct sge){(uintptr_t)side[0].buf, 32768,
					side[0].key};
	wqe_sge(slot)[1] = (struct sge){(uintptr_t)side[0].buf, 32768,
					~side[0].key};
	nic_send_publish(side[0].qp);
	nic_send_end(side[0].qp);
	side_ended(&side[0], WC_LOC_PROT_ERR, CAUSE_ACCESS);
	assert_int_equal(side[0].qp->qp.peer->flow.in_flight, 0);
}

static void atomic__counts(void **state)
{
	uint64_t *cell = (uint64_t *)side[1].buf;
	uint64_t *old = (uint64_t *)side[0].buf;

	(void)state;
	*cell = 1000;
	for (uint64_t i = 0; i < 100; i++) {
		side_post(&side[0],
			  (struct wqe){.op = WR_FETCH_ADD,
				       .raddr = (uintptr_t)cell,
				       .rkey = side[1].key,
				       .swap_add = 3},
			  old, 8);
		assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
		assert_int_equal(*old, 1000 + 3 * i);
	}
	side_post(&side[0],
		  (struct wqe){.op = WR_CMP_SWP,
			       .raddr = (uintptr_t)cell,
			       .rkey = side[1].key,
			       .compare = 1300,
			       .swap_add = 5},
		  old, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(*old, 1300);
	assert_int_equal(*cell, 5);
}

/* Whatever room there is for the old value, it is eight bytes. */
static void atomic__is_of_eight_bytes(void **state)
{
	static const enum wr_op ops[] = {WR_FETCH_ADD, WR_CMP_SWP};
	uint64_t *cell = (uint64_t *)side[1].buf;
	uint64_t *old = (uint64_t *)side[0].buf;
	struct cqe e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		*cell = 7;
		old[1] = UINT64_MAX;
		side_post(&side[0],
			  (struct wqe){.op = (uint8_t)ops[i],
				       .raddr = (uintptr_t)cell,
				       .rkey = side[1].key,
				       .compare = 7,
				       .swap_add = 1},
			  old, 64);
		e = side_cqe(&side[0]);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_int_equal(e.byte_len, 8);
		assert_int_equal(old[0], 7);
		assert_int_equal(old[1], UINT64_MAX);
	}
}

static void write__wrong_key_is_remote_access_error(void **state)
{
	(void)state;
	side_post(&side[0],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)side[1].buf,
			       .rkey = side[1].key ^ 0x100},
		  side[0].buf, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

static void write__unmapped_is_remote_access_error(void **state)
{
	uint8_t *page = side[1].buf + 8 * PAGE_BYTES;

	(void)state;
	assert_int_equal(mprotect(page, PAGE_BYTES, PROT_NONE), 0);
	side_post(&side[0],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)page - 8,
			       .rkey = side[1].key},
		  side[0].buf, 16);
	assert_int_equal(side_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
	assert_int_equal(mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE), 0);
}

/* The program polls a receive and gives the QP up before its ACK was due. */
static void modify__says_the_last_ack(void **state)
{
	const struct qp_attr err = {.state = QPS_ERR};
	struct side *s = &side[1];

	(void)state;
	s->nic->x.ack_delay_ns = UINT64_C(3600000000000);
	side_recv(s, s->buf, 64, 1);
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 8);
	assert_int_equal(side_cqe(s).op, WR_RECV);
	assert_int_equal(nic_qp_modify(s->qp, &err, QPA_STATE), 0);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
}

/* --- memory whose faults only user mode may take ------------------------- */

enum { SLOW_MS = 5, SLOW_PAGES = 4 };

static int uffd, no_more;

static void *bring_pages(void *arg)
{
	struct pollfd fd[] = {{.fd = uffd, .events = POLLIN},
			      {.fd = no_more, .events = POLLIN}};
	struct uffd_msg msg;

	while (poll(fd, ARRAY_SIZE(fd), -1) > 0 && !fd[1].revents &&
	       read(uffd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_zeropage z = {
			.range = {msg.arg.pagefault.address & -PAGE_BYTES,
				  PAGE_BYTES}};

		usleep(SLOW_MS * 1000);
		ioctl(uffd, UFFDIO_ZEROPAGE, &z);
	}
	return arg;
}

static uint8_t *slow_open(uint32_t *key, pthread_t *server)
{
	const size_t bytes = SLOW_PAGES * PAGE_BYTES;
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register reg = {.range = {(uintptr_t)p, bytes},
				      .mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};
	struct mr_attr mr = {
		.pd = side[1].pd,
		.addr = (uintptr_t)p,
		.iova = (uintptr_t)p,
		.length = bytes,
		.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			  ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC};

	uffd = (int)syscall(SYS_userfaultfd,
			    O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (uffd < 0)
		skip(); /* before Linux 5.11 and in some containers */
	assert_int_equal(ioctl(uffd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(uffd, UFFDIO_REGISTER, &reg), 0);
	no_more = eventfd(0, EFD_CLOEXEC);
	assert_true(no_more >= 0);
	assert_int_equal(pthread_create(server, NULL, bring_pages, NULL), 0);
	assert_int_equal(nic_mr_reg(side[1].nic, &mr, key), 0);
	return p;
}

static void slow_close(uint8_t *p, uint32_t key, pthread_t server)
{
	assert_int_equal(nic_mr_dereg(side[1].nic, key), 0);
	munmap(p, SLOW_PAGES * PAGE_BYTES);
	assert_int_equal(eventfd_write(no_more, 1), 0);
	pthread_join(server, NULL);
	close(no_more);
	close(uffd);
}

/* A READ, a WRITE of two pages, and an atomic, which happens once. */
static void user_mode_page__every_operation(void **state)
{
	struct counters cnt;
	pthread_t server;
	uint32_t key;
	uint8_t *p;

	(void)state;
	p = slow_open(&key, &server);
	side_post(&side[0],
		  (struct wqe){.op = WR_READ,
			       .raddr = (uintptr_t)p + 100,
			       .rkey = key},
		  side[0].buf, 64);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	fill(side[0].buf, PAGE_BYTES, 1);
	side_post(&side[0],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)p + PAGE_BYTES + 16,
			       .rkey = key},
		  side[0].buf, PAGE_BYTES);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(p + PAGE_BYTES + 16, side[0].buf, PAGE_BYTES);
	side_post(&side[0],
		  (struct wqe){.op = WR_FETCH_ADD,
			       .raddr = (uintptr_t)p + 3 * PAGE_BYTES,
			       .rkey = key,
			       .swap_add = 7},
		  side[0].buf, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(*(uint64_t *)(p + 3 * PAGE_BYTES), 7);
	if (block) {
		nic_counters(side[1].nic, &cnt);
		assert_true(cnt.v[CNT_fault_block] >= 3);
		assert_true(cnt.v[CNT_block_ns] >=
			    SLOW_PAGES * SLOW_MS * UINT64_C(1000000));
		assert_int_equal(cnt.v[CNT_tickets], 0);
	}
	slow_close(p, key, server);
}

/* Larger packets than the interface carries are refused, and nothing is half
 * done; on this host they pass. */
static void modify__path_mtu(void **state)
{
	struct side *s = &side[0];
	struct qp_attr a = side_attr(s, &side[1]), reset = {.state = QPS_RESET};
	const struct ipaddr near = a.dgid;

	(void)state;
	s->nic->iface.mtu = 1024;
	assert_int_equal(nic_qp_modify(s->qp, &reset, QPA_STATE), 0);
	assert_int_equal(side_next(s, &a, QPS_INIT), 0);
	a.dgid.b[12] = 192; /* 192.0.0.1 */
	a.path_mtu = 2048;
	assert_int_equal(side_next(s, &a, QPS_RTR), -EINVAL);
	a.path_mtu = 1024;
	assert_int_equal(side_next(s, &a, QPS_RTR), 0);
	assert_int_equal(nic_qp_modify(s->qp, &reset, QPA_STATE), 0);
	assert_int_equal(side_next(s, &a, QPS_INIT), 0);
	a.dgid = near;
	a.path_mtu = 4096;
	assert_int_equal(side_next(s, &a, QPS_RTR), 0);
}

static int setup_silent(void **state)
{
	struct nic_config cfg = {.os = {.addr = "lo", .pagers = 1},
				 .entries = 1 << 16,
				 .pool_bytes = 1 << 20,
				 .standard = true,
				 .strategies = 1u << STRATEGY_REDIRECT};

	(void)state;
	side_open(&side[0], &cfg);
	cfg.manual = true; /* and nobody calls it */
	side_open(&side[1], &cfg);
	side_connect(&side[0], &side[1]);
	return 0;
}

/* A thread that waits for an event sleeps on a deadline that was later than the
 * one that another thread set meanwhile: timers run all the same. */
static void timer__while_somebody_is_blocked(void **state)
{
	struct nic *nic = side[0].nic;
	uint64_t end = os_now(nic->os) + UINT64_C(5000000000);
	struct counters c;

	(void)state;
	__atomic_fetch_add(&nic->sleepers.blocks, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nic->sleepers.blocked, 1, __ATOMIC_RELAXED);
	side_post(&side[0], (struct wqe){.op = WR_WRITE}, side[0].buf, 8);
	do
		nic_counters(nic, &c);
	while (!c.v[CNT_timeouts] && os_now(nic->os) < end);
	__atomic_fetch_sub(&nic->sleepers.blocked, 1, __ATOMIC_RELAXED);
	assert_int_not_equal(c.v[CNT_timeouts], 0);
}

static int setup_block(void **state)
{
	block = true;
	return setup(state);
}

static int teardown_block(void **state)
{
	block = false;
	return sides_close(state);
}

static int setup_standard(void **state)
{
	standard = true;
	return setup(state);
}

static int teardown_standard(void **state)
{
	standard = false;
	return sides_close(state);
}

#define BLOCK(f)                                                               \
	{                                                                      \
		"block: " #f, f, setup_block, teardown_block, NULL             \
	}

#define BOTH(f)                                                                \
	cmocka_unit_test_setup_teardown(f, setup, sides_close),                \
	{                                                                      \
		"standard: " #f, f, setup_standard, teardown_standard, NULL    \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(send__every_size),
		BOTH(write__every_size),
		BOTH(read__every_size),
		BOTH(send__fails_in_the_middle),
		BOTH(atomic__counts),
		BOTH(atomic__is_of_eight_bytes),
		BOTH(write__wrong_key_is_remote_access_error),
		BOTH(write__unmapped_is_remote_access_error),
		BOTH(user_mode_page__every_operation),
		cmocka_unit_test_setup_teardown(
			timer__while_somebody_is_blocked, setup_silent,
			sides_close),
		BOTH(modify__says_the_last_ack),
		cmocka_unit_test_setup_teardown(modify__path_mtu, setup,
						sides_close),
		BLOCK(send__every_size),
		BLOCK(read__every_size),
		BLOCK(write__unmapped_is_remote_access_error),
		BLOCK(user_mode_page__every_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
