/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counter_test.c: two NICs in one process; WRITEs of one raise counters of the
 * other, whose threads wait for that in every way.
 */
#include "nic/completion.h"
#include "nic/event_counter.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/pair.h"
#include "nic/progress.h"
#include "side.h"
#include "wire/aeth.h"
#include "xport/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static struct nic_counter *counter;
static uint64_t handled, last;
static bool stuck, quits;

/* @standard: bit per side: knows no extensions, and says nothing when asked */
static void open_with(unsigned standard, nic_counter_fn handler, void *arg)
{
	struct nic_config cfg = {.os = {.addr = "lo", .pagers = 2},
				 .entries = 1 << 16,
				 .pool_bytes = 1 << 20,
				 .scatter = true,
				 .strategies = 1u << STRATEGY_REDIRECT};

	for (int i = 0; i < SIDES; i++) {
		cfg.standard = standard >> i & 1;
		side_open(&side[i], &cfg);
	}
	for (int i = 0; i < SIDES; i++)
		side_connect(&side[i], &side[!i]);
	assert_int_equal(nic_counter_create(side[1].nic, side[1].pd, handler,
					    arg, &counter),
			 0);
}

static int setup(void **state)
{
	(void)state;
	open_with(0, NULL, NULL);
	return 0;
}

static int setup_standard(void **state)
{
	(void)state;
	open_with(3, NULL, NULL);
	return 0;
}

static int setup_silent(void **state)
{
	(void)state;
	open_with(2, NULL, NULL);
	return 0;
}

static int teardown(void **state)
{
	__atomic_store_n(&stuck, false, __ATOMIC_RELEASE);
	if (counter)
		assert_int_equal(nic_counter_free(counter), 0);
	counter = NULL;
	return sides_close(state);
}

static uint64_t value(void)
{
	return __atomic_load_n(nic_counter_word(counter), __ATOMIC_ACQUIRE);
}

/* @len bytes to the first of side 1, naming @id. */
static void write_as(enum wr_op op, uint32_t imm, uint32_t len)
{
	side_post(&side[0],
		  (struct wqe){.op = op,
			       .imm = imm,
			       .raddr = (uintptr_t)side[1].buf,
			       .rkey = side[1].key},
		  side[0].buf, len);
}

static void notify(uint32_t len)
{
	write_as(WR_WRITE_NOTIFY, nic_counter_id(counter), len);
}

/* For ever: a deadline would make up for a wake-up that is lost. */
static void await(uint64_t target, enum nic_wait how)
{
	assert_int_equal(nic_counter_wait(counter, target, TIME_NEVER, how), 0);
}

/* Sizes around a packet's: who sees the value sees the data, and no receive is
 * consumed (none is posted). */
static void counter__rises_with_data(void **state)
{
	static const uint32_t len[] = {0,    1,	   4095,  4096,	 4097,
				       8191, 8192, 12289, 65537, BUF};
	uint64_t n = 0;

	(void)state;
	for (enum nic_wait how = 0; how < NIC_WAIT_NUM; how++)
		for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
			memset(side[0].buf, (int)++n, len[i]);
			notify(len[i]);
			await(n, how);
			assert_int_equal(value(), n);
			assert_memory_equal(side[0].buf, side[1].buf, len[i]);
			assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
		}
	assert_int_equal(side[1].nic->cnt.v[CNT_notified], n);
}

static void counter__many(void **state)
{
	enum { N = 1000 };
	unsigned done = 0, posted = 0;
	struct cqe e;

	(void)state;
	while (done < N) {
		while (posted < N && posted - done < DEPTH) {
			notify(8);
			posted++;
		}
		if (nic_cq_poll(side[0].cq, 1, &e) == 1) {
			assert_int_equal(e.status, WC_SUCCESS);
			done++;
		}
	}
	await(N, NIC_WAIT_BLOCK);
	assert_int_equal(value(), N);
}

static uint32_t other_pd_id(struct nic_counter **c)
{
	uint32_t pd;

	assert_int_equal(nic_pd_alloc(side[1].nic, &pd), 0);
	assert_int_equal(nic_counter_create(side[1].nic, pd, NULL, NULL, c), 0);
	assert_int_equal(nic_pd_dealloc(side[1].nic, pd), -EBUSY);
	return nic_counter_id(*c);
}

/* As a wrong R_Key, and the data is not placed. */
static void refused(enum wr_op op, uint32_t imm)
{
	side[0].buf[0] = 0x5a;
	write_as(op, imm, 8);
	side_ended(&side[0], WC_REM_ACCESS_ERR,
		   CAUSE_NAK | AETH_NAK | NAK_REMOTE_ACCESS);
	assert_int_equal(side[1].buf[0], 0);
	assert_int_equal(value(), 0);
}

static void counter__wrong(void **state)
{
	(void)state;
	refused(WR_WRITE_NOTIFY, nic_counter_id(counter) ^ 1);
}

static void counter__none(void **state)
{
	(void)state;
	refused(WR_WRITE_NOTIFY, 0);
}

static void counter__rkey(void **state)
{
	(void)state;
	refused(WR_WRITE_NOTIFY, side[1].key);
}

static void counter__stale(void **state)
{
	struct nic_counter *c;
	uint32_t id;

	(void)state;
	assert_int_equal(
		nic_counter_create(side[1].nic, side[1].pd, NULL, NULL, &c), 0);
	id = nic_counter_id(c);
	assert_int_equal(nic_counter_free(c), 0);
	refused(WR_WRITE_NOTIFY, id);
}

static void counter__other_pd(void **state)
{
	struct nic_counter *c;
	uint32_t id = other_pd_id(&c);

	(void)state;
	refused(WR_WRITE_NOTIFY, id);
	assert_int_equal(*nic_counter_word(c), 0);
	assert_int_equal(nic_counter_free(c), 0);
}

static void counter__wrong_imm(void **state)
{
	(void)state;
	assert_int_equal(nic_qp_set_counting(side[1].qp, true), 0);
	refused(WR_WRITE_IMM, nic_counter_id(counter));
}

/* An unmodified sender: immediate data is in network byte order. */
static void counter__imm(void **state)
{
	(void)state;
	assert_int_equal(nic_qp_set_counting(side[1].qp, true), 0);
	memset(side[0].buf, 7, 5000);
	write_as(WR_WRITE_IMM, htonl(nic_counter_id(counter)), 5000);
	await(1, NIC_WAIT_SPIN);
	assert_memory_equal(side[0].buf, side[1].buf, 5000);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(nic_qp_set_counting(side[1].qp, false), 0);
	side_recv(&side[1], side[1].buf, 8, 1);
	write_as(WR_WRITE_IMM, htonl(nic_counter_id(counter)), 8);
	assert_int_equal(side_cqe(&side[1]).op, WR_RECV_IMM);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(value(), 1);
}

/* A standard peer knows no counters: nothing is sent. */
static void counter__standard_peer(void **state)
{
	int err;

	(void)state;
	/* it may be that nobody was there, or that somebody said so */
	while ((err = nic_qp_notifies(side[0].qp)) == -EAGAIN)
		os_relax();
	assert_int_equal(err, -EOPNOTSUPP);
	write_as(WR_WRITE, 0, BUF);
	notify(8);
	notify(8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	side_ended(&side[0], WC_LOC_QP_OP_ERR, CAUSE_OPERATION);
	side_ended(&side[0], WC_WR_FLUSH_ERR, CAUSE_OPERATION);
	assert_int_equal(value(), 0);
}

static void counter__peer_knows(void **state)
{
	int err;

	(void)state;
	while ((err = nic_qp_notifies(side[0].qp)) == -EAGAIN)
		os_relax();
	assert_int_equal(err, 0);
}

/* Nobody says that it is none: after a second it is. */
static void counter__silent_peer(void **state)
{
	(void)state;
	notify(8);
	assert_int_equal(side_cqe(&side[0]).status, WC_LOC_QP_OP_ERR);
	assert_int_equal(nic_qp_notifies(side[0].qp), -EOPNOTSUPP);
	assert_int_equal(value(), 0);
}

/* It did not answer in 60 ms, and was taken for a standard one. */
static void counter__peer_was_slow(void **state)
{
	struct peer *p;
	int err;

	counter__peer_knows(state);
	nic_lock(side[0].nic);
	p = side[0].qp->qp.peer;
	p->kind = PEER_STANDARD;
	p->ep.port = ROCE_PORT;
	side[0].nic->peers.standard++;
	nic_unlock(side[0].nic);
	/* or it has said something by now */
	err = nic_qp_notifies(side[0].qp);
	assert_true(err == -EAGAIN || err == 0);
	notify(8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(value(), 1);
}

/* --- waiting --------------------------------------------------------------- */

/* Waiters that have entered a wait, which asks for its thread. */
static unsigned entered;
static __thread bool enters;

uintptr_t __real_os_self(void);
uintptr_t __wrap_os_self(void);
uintptr_t __wrap_os_self(void)
{
	if (enters)
		__atomic_fetch_add(&entered, 1, __ATOMIC_RELAXED);
	enters = false;
	return __real_os_self();
}

struct waiter_arg {
	struct nic_counter *c;
	uint64_t target;
	enum nic_wait how;
	int result;
	pthread_t thread;
};

static void *waiter_main(void *arg)
{
	struct waiter_arg *w = arg;
	int result;

	enters = true;
	result = nic_counter_wait(w->c, w->target, TIME_NEVER, w->how);

	__atomic_store_n(&w->result, result, __ATOMIC_RELAXED);
	return NULL;
}

static void start(struct waiter_arg *w, uint64_t target, enum nic_wait how)
{
	*w = (struct waiter_arg){
		.c = counter, .target = target, .how = how, .result = 1};
	assert_int_equal(pthread_create(&w->thread, NULL, waiter_main, w), 0);
}

static void expect(struct waiter_arg *w, int result)
{
	pthread_join(w->thread, NULL);
	assert_int_equal(w->result, result);
}

/* Each is woken by its own value, and by no other's. */
static void counter__many_waiters(void **state)
{
	enum { N = 12 };
	struct waiter_arg w[N];

	(void)state;
	for (unsigned i = 0; i < N; i++)
		start(&w[i], i + 1, i % 2 ? NIC_WAIT_BLOCK : NIC_WAIT_FUTEX);
	for (unsigned i = 0; i < N; i++) {
		notify(64);
		assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
		expect(&w[i], 0);
		for (unsigned k = i + 1; k < N; k++)
			assert_int_equal(
				__atomic_load_n(&w[k].result, __ATOMIC_RELAXED),
				1);
	}
}

/* A waiter looked, and has not said yet that it waits: then it rises. */
static bool rises;

int __real_os_event_own(void);
int __wrap_os_event_own(void);
int __wrap_os_event_own(void)
{
	uint64_t v = 0;

	if (rises) {
		rises = false;
		notify(8);
		while (!v)
			assert_int_equal(nic_counter_poll(counter, &v), 0);
	}
	return __real_os_event_own();
}

static void counter__rises_as_one_begins_to_wait(void **state)
{
	(void)state;
	rises = true;
	await(1, NIC_WAIT_BLOCK);
	assert_false(rises);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
}

static void counter__timeout(void **state)
{
	(void)state;
	for (enum nic_wait how = 0; how < NIC_WAIT_NUM; how++) {
		uint64_t from = os_now(side[1].nic->os);

		assert_int_equal(nic_counter_wait(counter, 1, 5 * MS, how),
				 -ETIMEDOUT);
		assert_true(os_now(side[1].nic->os) - from >= 5 * MS);
		assert_int_equal(nic_counter_wait(counter, 1, 0, how),
				 -ETIMEDOUT);
		assert_int_equal(nic_counter_wait(counter, 0, 0, how), 0);
	}
	assert_int_equal(nic_counter_wait(counter, 1, 0, NIC_WAIT_NUM),
			 -EINVAL);
}

static void counter__freed_under_waiters(void **state)
{
	struct waiter_arg w[NIC_WAIT_NUM];

	(void)state;
	entered = 0;
	for (enum nic_wait how = 0; how < NIC_WAIT_NUM; how++)
		start(&w[how], UINT64_MAX - how, how);
	while (__atomic_load_n(&entered, __ATOMIC_RELAXED) < NIC_WAIT_NUM)
		os_relax();
	/* so that they are in its list and asleep */
	assert_int_equal(nic_counter_wait(counter, 1, 20 * MS, NIC_WAIT_BLOCK),
			 -ETIMEDOUT);
	nic_counter_close(counter);
	for (enum nic_wait how = 0; how < NIC_WAIT_NUM; how++)
		expect(&w[how], -ECANCELED);
	assert_int_equal(nic_counter_wait(counter, 1, 0, NIC_WAIT_SPIN),
			 -ENODEV);
}

static void counter__descriptor(void **state)
{
	uint64_t v;
	int fd;

	(void)state;
	assert_int_equal(nic_counter_fd(counter, &fd), 0);
	assert_false(side_readable(fd, 0));
	notify(8);
	assert_true(side_readable(fd, 10000));
	assert_int_equal(nic_counter_poll(counter, &v), 0);
	assert_int_equal(v, 1);
	assert_false(side_readable(fd, 0));
	assert_int_equal(nic_counter_fd(counter, &fd), 0); /* asked again */
	assert_false(side_readable(fd, 0));
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
}

/* --- handlers -------------------------------------------------------------- */

static int handler(void *arg, uint64_t v)
{
	assert_ptr_equal(arg, &handled);
	assert_true(v > last);
	last = v;
	__atomic_store_n(&handled, v, __ATOMIC_RELEASE);
	while (__atomic_load_n(&stuck, __ATOMIC_ACQUIRE))
		usleep(100);
	return quits;
}

static int setup_handler(void **state)
{
	(void)state;
	handled = last = 0;
	stuck = quits = false;
	open_with(0, handler, &handled);
	return 0;
}

static void wait_handled(uint64_t v)
{
	while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) < v)
		usleep(100);
}

static void counter__handler(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 50; i++) {
		notify(8);
		assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
		wait_handled(i);
	}
}

/* Others are raised, and wait, all the same. */
static void counter__handler_stuck(void **state)
{
	struct nic_counter *first = counter;

	(void)state;
	stuck = true;
	notify(8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	wait_handled(1);
	assert_int_equal(nic_counter_create(side[1].nic, side[1].pd, NULL, NULL,
					    &counter),
			 0);
	for (uint64_t i = 1; i <= 100; i++) {
		notify(4096);
		await(i, i % NIC_WAIT_NUM);
		assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	}
	assert_int_equal(nic_counter_free(counter), 0);
	counter = first;
	notify(8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(value(), 2);
	nic_counter_close(counter); /* as a device is closed: does not wait */
	__atomic_store_n(&stuck, false, __ATOMIC_RELEASE);
	assert_int_equal(nic_counter_free(counter), 0);
	assert_int_equal(handled, 1); /* not called any more */
	counter = NULL;
}

static int free_in_handler(void *arg, uint64_t v)
{
	(void)v;
	*(int *)arg = nic_counter_free(counter);
	return 1;
}

static void counter__run_here(void **state)
{
	int err = 0;

	(void)state;
	notify(8);
	assert_int_equal(nic_counter_run(counter, free_in_handler, &err), 0);
	assert_int_equal(err, -EDEADLK);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
}

static int pause_in_handler(void *arg, uint64_t v)
{
	(void)v;
	__atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
	pause();
	return 1;
}

static void *run_and_pause(void *arg)
{
	nic_counter_run(counter, pause_in_handler, arg);
	return NULL;
}

/* A thread that is cancelled in its handler is none of the counter's any more. */
static void counter__run_cancelled(void **state)
{
	pthread_t thread;
	bool called = false;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, run_and_pause, &called),
			 0);
	notify(8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	while (!__atomic_load_n(&called, __ATOMIC_ACQUIRE))
		usleep(100);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(nic_counter_free(counter), 0);
	counter = NULL;
}

/* A handler that could never be called is none. */
static void counter__no_descriptor_for_a_handler(void **state)
{
	struct nic_counter *c;
	struct rlimit was, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(nic_counter_create(side[1].nic, side[1].pd, handler,
					    &handled, &c),
			 -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name, setup) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(counter__rises_with_data, setup),
		T(counter__many, setup),
		T(counter__wrong, setup),
		T(counter__none, setup),
		T(counter__rkey, setup),
		T(counter__stale, setup),
		T(counter__other_pd, setup),
		T(counter__wrong_imm, setup),
		T(counter__imm, setup),
		T(counter__standard_peer, setup_standard),
		T(counter__silent_peer, setup_silent),
		T(counter__imm, setup_standard),
		T(counter__peer_knows, setup),
		T(counter__peer_was_slow, setup),
		T(counter__many_waiters, setup),
		T(counter__rises_as_one_begins_to_wait, setup),
		T(counter__timeout, setup),
		T(counter__freed_under_waiters, setup),
		T(counter__descriptor, setup),
		T(counter__handler, setup_handler),
		T(counter__handler_stuck, setup_handler),
		T(counter__run_here, setup),
		T(counter__run_cancelled, setup),
		T(counter__no_descriptor_for_a_handler, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
