/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* signals.c: a handler without SA_RESTART ends a call that waits, one with SA_RESTART
 * does not, as with read(2) of a descriptor of the kernel's; of all calls of verbs and
 * of nopin.h that wait. And none is lost: whenever a signal comes, while the NIC's
 * work is done in the call, too.
 *
 *   signals TIMES
 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <nopin.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum {
	ENDS = SIGUSR1, /* is handled without SA_RESTART */
	GOES_ON = SIGUSR2, /* with */
	EVENTS = 8,
	RECVS = 48,
};

static struct host h;
static struct link ends[2]; /* of one connection */
static struct ibv_comp_channel *channel, *arrivals;
static struct ibv_cq *cqs[2];
static struct ibv_qp *dead[2]; /* one CQ each; a receive completes at once */
static struct nopin_counter *counter;
static struct nopin_upcalls *upcalls;
static struct ibv_mr *told;
static uint8_t page[PAGE] __attribute__((aligned(PAGE)));

/* --- handlers ------------------------------------------------------------------- */

static unsigned long handled, let_in;

/* In a sleep that lets signals in the thread's own mask is another. */
static void handler(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	(void)sig;
	(void)info;
	if (sigismember(&uc->uc_sigmask, SIGWINCH))
		__atomic_fetch_add(&let_in, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

static void handle(int sig, int flags)
{
	struct sigaction act = {.sa_flags = flags | SA_SIGINFO};

	act.sa_sigaction = handler;
	REQUIRE(sigaction(sig, &act, NULL) == 0);
}

/* For a millisecond the NIC may count them. */
static void forget(void)
{
	signal(ENDS, SIG_DFL);
	signal(GOES_ON, SIG_DFL);
	host_sleep(2 * MS);
}

/* --- calls that wait --------------------------------------------------------------- */

static void post_flushed(int i)
{
	struct ibv_recv_wr wr = {.wr_id = 0}, *bad;

	REQUIRE(ibv_post_recv(dead[i], &wr, &bad) == 0);
}

static int cq_event_wait(void)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context))
		return errno;
	ibv_ack_cq_events(cq, 1);
	REQUIRE(ibv_poll_cq(cq, 1, &wc) == 1);
	return 0;
}

static void cq_event_fire(void)
{
	REQUIRE(ibv_req_notify_cq(cqs[0], 0) == 0);
	post_flushed(0);
}

static int async_event_wait(void)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(h.ctx, &event))
		return errno;
	ibv_ack_async_event(&event);
	return 0;
}

/* A WRITE with a wrong key: the other end is told. */
static void async_event_fire(void)
{
	struct ibv_sge sge = {(uintptr_t)page, 8, told->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {(uintptr_t)page, 1},
				 };

	REQUIRE(ibv_post_send(ends[0].qp, &wr, &bad) == 0);
	REQUIRE_EQ(host_status(&h), IBV_WC_REM_ACCESS_ERR);
}

static int upcall_wait(void)
{
	struct nopin_upcall event;

	return nopin_upcalls_get(upcalls, &event, sizeof(event));
}

static void upcall_fire(void)
{
	REQUIRE(nopin_mr_suspend(told, 0) == 0);
	REQUIRE(nopin_mr_resume(told) == 0);
}

static void upcalls_drain(void)
{
	const int fd = nopin_upcalls_fd(upcalls);

	REQUIRE(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	while (upcall_wait() == 0)
		;
	REQUIRE(fcntl(fd, F_SETFL, 0) == 0);
}

static uint64_t seen;

static int counter_wait(enum nopin_wait how, uint64_t timeout_ns)
{
	const int rc = nopin_counter_wait(counter, seen + 1, timeout_ns, how);

	seen += rc == 0;
	return rc;
}

static int block_wait(void)
{
	return counter_wait(NOPIN_WAIT_BLOCK, UINT64_MAX);
}

static int futex_wait(void)
{
	return counter_wait(NOPIN_WAIT_FUTEX, UINT64_MAX);
}

static int timed_wait(void)
{
	return counter_wait(NOPIN_WAIT_BLOCK, 3600 * SECOND);
}

static void counter_fire(void)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};

	REQUIRE(nopin_post_write_notify(ends[0].qp, &wr,
					nopin_counter_id(counter), &bad) == 0);
	host_wait(&h, 1);
}

/**
 * struct call - @fire: it returns 0. @timed: it cannot tell handlers apart.
 */
static const struct call {
	const char *name;
	int (*wait)(void);
	void (*fire)(void);
	bool timed;
} calls[] = {
	{"ibv_get_cq_event", cq_event_wait, cq_event_fire, false},
	{"nopin_upcalls_get", upcall_wait, upcall_fire, false},
	{"nopin_counter_wait, BLOCK", block_wait, counter_fire, false},
	{"nopin_counter_wait, FUTEX", futex_wait, counter_fire, false},
	{"nopin_counter_wait, timed", timed_wait, counter_fire, true},
	{"ibv_get_async_event", async_event_wait, async_event_fire, false},
};

/* --- a thread that waits -------------------------------------------------------------- */

static struct waiter {
	pthread_t id;
	pid_t tid;
	const struct call *call;
	int block, result; /* a signal that it blocks, or 0 */
} waiter;

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;
	sigset_t set;

	sigemptyset(&set);
	if (w->block)
		sigaddset(&set, w->block);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	__atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	w->result = w->call->wait();
	return NULL;
}

/* Is it in one of the calls that it sleeps in? */
static bool asleep(const struct waiter *w)
{
	char path[64], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", w->tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return text[0] != 'r' &&
	       (atoi(text) == SYS_ppoll || atoi(text) == SYS_read);
}

static void until_asleep(const struct waiter *w)
{
	while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) || !asleep(w))
		host_sleep(MS / 10);
}

static void waiter_begin(const struct call *call, int block)
{
	upcalls_drain(); /* one fire() is several of them */
	waiter = (struct waiter){.call = call, .block = block};
	REQUIRE(pthread_create(&waiter.id, NULL, waiter_main, &waiter) == 0);
	until_asleep(&waiter);
}

static int waiter_end(void)
{
	REQUIRE(pthread_join(waiter.id, NULL) == 0);
	return waiter.result;
}

/* And it has been handled. */
static void kill_waiter(int sig)
{
	const unsigned long before = __atomic_load_n(&handled,
						     __ATOMIC_ACQUIRE);

	REQUIRE(pthread_kill(waiter.id, sig) == 0);
	while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) == before)
		host_sleep(MS / 20);
}

static void expect(const char *what, int result)
{
	const int is = waiter_end();

	if (is != result)
		fprintf(stderr, "%s, %s: %s\n", waiter.call->name, what,
			strerror(is));
	REQUIRE_EQ((uint64_t)is, (uint64_t)result);
}

static void ends_alone(const struct call *call, int flags)
{
	handle(ENDS, flags);
	waiter_begin(call, 0);
	kill_waiter(ENDS);
	expect("ends", EINTR);
	forget();
}

static void goes_on_alone(const struct call *call)
{
	handle(GOES_ON, SA_RESTART);
	waiter_begin(call, 0);
	for (int i = 0; i < 3; i++)
		kill_waiter(GOES_ON);
	REQUIRE(pthread_kill(waiter.id, SIGWINCH) == 0); /* nobody handles it */
	call->fire();
	expect("goes on", 0);
	forget();
}

static void each_as_it_wants(const struct call *call)
{
	handle(ENDS, 0);
	handle(GOES_ON, SA_RESTART);
	waiter_begin(call, 0);
	for (int i = 0; i < 3 && !call->timed; i++)
		kill_waiter(GOES_ON);
	/* read(2) that is to be restarted is not interrupted: a signal that comes
	 * before it began again ends nothing, also of the kernel's */
	until_asleep(&waiter);
	kill_waiter(ENDS);
	expect("ends among others", EINTR);
	waiter_begin(call, 0);
	for (int i = 0; i < 3 && !call->timed; i++)
		kill_waiter(GOES_ON);
	call->fire();
	expect("goes on among others", 0);
	forget();
}

/* What the thread blocks is not for it, and does not count. */
static void blocked(const struct call *call)
{
	const unsigned long before = handled;

	handle(ENDS, 0);
	handle(GOES_ON, SA_RESTART);
	waiter_begin(call, ENDS);
	REQUIRE(pthread_kill(waiter.id, ENDS) == 0);
	kill_waiter(GOES_ON);
	call->fire();
	expect("blocks it", 0);
	REQUIRE_EQ(handled, before + 1);
	forget();
}

/* Installed while it sleeps. */
static void installed_late(const struct call *call)
{
	waiter_begin(call, 0);
	handle(ENDS, 0);
	kill_waiter(ENDS);
	expect("is new", EINTR);
	forget();
}

#ifdef __SANITIZE_THREAD__ /* keeps handlers back until read(2) returns (gcc 14) */
enum { HELD_BACK = 1 };
#else
enum { HELD_BACK = 0 };
#endif

/* A handler with SA_RESTART does not run there before something else ends the call. */
static bool waits_in_read(const struct call *call)
{
	return call->wait == async_event_wait;
}

static void combinations(const struct call *call)
{
	ends_alone(call, 0);
	ends_alone(call, SA_RESETHAND);
	installed_late(call);
	if (HELD_BACK && waits_in_read(call))
		return;
	goes_on_alone(call);
	if (HELD_BACK || call->wait == async_event_wait)
		return; /* the connection has failed */
	each_as_it_wants(call);
	blocked(call);
}

/* --- descriptors ----------------------------------------------------------------------- */

static bool readable(int ms)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}

/* Who waits in read(2) takes one event, not all that the descriptor tells of. */
static void one_of_two_events(void)
{
	handle(ENDS, 0);
	handle(GOES_ON, SA_RESTART);
	waiter_begin(&calls[0], 0);
	for (int i = 0; i < 2; i++)
		REQUIRE(ibv_req_notify_cq(cqs[i], 0) == 0);
	for (int i = 0; i < 2; i++)
		post_flushed(i);
	expect("takes one", 0);
	/* another thread of the NIC may be about to say so */
	REQUIRE(readable(10000));
	REQUIRE(calls[0].wait() == 0);
	REQUIRE(!readable(0));
	forget();
}

/* --- traffic ------------------------------------------------------------------------------ */

static unsigned long received, interrupted, noticed;
static bool end;

static void post_receive(void)
{
	link_recv(&ends[1], told, page, 64);
}

/* Take all that came. */
static void take_arrivals(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(ends[1].qp->recv_cq, 1, &wc) == 1) {
		REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
		post_receive();
		__atomic_fetch_add(&received, 1, __ATOMIC_RELEASE);
	}
}

/* What programs do: sleep, take all, and sleep again. They have a channel of their own: an
 * event of what was taken already may be left. */
static void *traffic_main(void *arg)
{
	struct ibv_cq *cq, *mine = ends[1].qp->recv_cq;
	void *context;

	__atomic_store_n(&waiter.tid, (pid_t)syscall(SYS_gettid),
			 __ATOMIC_RELEASE);
	while (!__atomic_load_n(&end, __ATOMIC_ACQUIRE)) {
		const int rc = ibv_get_cq_event(arrivals, &cq, &context);

		REQUIRE(rc == 0 || errno == EINTR);
		__atomic_store_n(&noticed,
				 __atomic_load_n(&handled, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
		if (rc) {
			__atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
			continue;
		}
		REQUIRE(cq == mine);
		ibv_ack_cq_events(cq, 1);
		REQUIRE(ibv_req_notify_cq(mine, 0) == 0);
		take_arrivals();
	}
	return arg;
}

static void send_some(unsigned long *sent)
{
	for (uint64_t n = host_random() % 4; n; n--) {
		link_post(&ends[0], IBV_WR_SEND, NULL, page, 8, 0);
		host_wait(&h, 1);
		++*sent;
	}
}

/* One signal; nothing comes after it. What was let in is to be noticed without help;
 * what came before the call, or at its end, another one tells of. */
static void signal_in_traffic(unsigned long *sent, bool is_to_end,
			      bool in_sleep)
{
	const unsigned long was_in = __atomic_load_n(&let_in, __ATOMIC_ACQUIRE);
	uint64_t until;

	send_some(sent);
	until = host_now() + host_random() % (MS / 8);
	while (host_now() < until)
		;
	if (in_sleep)
		until_asleep(&waiter);
	kill_waiter(is_to_end ? ENDS : GOES_ON);
	while (is_to_end &&
	       __atomic_load_n(&noticed, __ATOMIC_ACQUIRE) <
		       __atomic_load_n(&handled, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&let_in, __ATOMIC_ACQUIRE) == was_in &&
		    asleep(&waiter))
			kill_waiter(ENDS);
	}
}

/* Was it in a sleep often enough? When the host lets the threads run decides how many
 * signals that takes. */
static bool often(int times, bool is_to_end)
{
	const unsigned long least = (unsigned long)times / 8;

	return __atomic_load_n(&let_in, __ATOMIC_ACQUIRE) > least &&
	       (!is_to_end ||
		__atomic_load_n(&interrupted, __ATOMIC_ACQUIRE) > least);
}

static void traffic(int times, bool is_to_end)
{
	unsigned long sent = 0;

	received = interrupted = handled = noticed = let_in = 0;
	end = false;
	handle(is_to_end ? ENDS : GOES_ON, is_to_end ? 0 : SA_RESTART);
	REQUIRE(ibv_req_notify_cq(ends[1].qp->recv_cq, 0) == 0);
	waiter.tid = 0;
	REQUIRE(pthread_create(&waiter.id, NULL, traffic_main, NULL) == 0);
	while (!__atomic_load_n(&waiter.tid, __ATOMIC_ACQUIRE))
		host_sleep(MS / 10);
	for (int i = 0; i < times || !often(times, is_to_end); i++)
		signal_in_traffic(&sent, is_to_end, i >= times);
	while (__atomic_load_n(&received, __ATOMIC_ACQUIRE) < sent)
		host_sleep(MS / 10); /* no event is lost either */
	__atomic_store_n(&end, true, __ATOMIC_RELEASE);
	link_post(&ends[0], IBV_WR_SEND, NULL, page, 8, 0);
	host_wait(&h, 1);
	REQUIRE(pthread_join(waiter.id, NULL) == 0);
	take_arrivals();
	printf("%lu messages, %lu signals, of these %lu in a sleep; %lu ended "
	       "it\n",
	       sent, handled, let_in, interrupted);
	if (!is_to_end)
		REQUIRE_EQ(interrupted, 0);
	forget();
}

/* --- beginning and end -------------------------------------------------------------------- */

static struct ibv_qp *qp_create(struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr init = {.send_cq = h.cq,
					.recv_cq = recv_cq,
					.cap = {4, EVENTS, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(h.pd, &init);

	REQUIRE(qp);
	return qp;
}

static void *other_end(void *arg)
{
	struct host to = h;

	/* its receives tell by events */
	to.cq = ibv_create_cq(h.ctx, 2 * DEPTH, NULL, arrivals, 0);
	REQUIRE(to.cq);
	link_open(&ends[1], &to, *(int *)arg, told);
	ends[1].h = &h;
	return NULL;
}

static void connect_ends(void)
{
	int pair[2];
	pthread_t id;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	REQUIRE(pthread_create(&id, NULL, other_end, &pair[1]) == 0);
	link_open(&ends[0], &h, pair[0], NULL);
	REQUIRE(pthread_join(id, NULL) == 0);
	close(pair[0]);
	close(pair[1]);
}

static void open_all(void)
{
	struct nopin_reg_attr reg = {
		.addr = page,
		.length = PAGE,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	host_open(&h);
	REQUIRE(nopin_upcalls_open(h.ctx, EVENTS, &upcalls) == 0);
	reg.upcalls = upcalls;
	told = nopin_reg(h.pd, &reg, sizeof(reg));
	REQUIRE(told);
	channel = ibv_create_comp_channel(h.ctx);
	arrivals = ibv_create_comp_channel(h.ctx);
	REQUIRE(channel && arrivals);
	for (int i = 0; i < 2; i++) {
		cqs[i] = ibv_create_cq(h.ctx, EVENTS, NULL, channel, 0);
		REQUIRE(cqs[i]);
		dead[i] = qp_create(cqs[i]);
		REQUIRE(ibv_modify_qp(dead[i], &err, IBV_QP_STATE) == 0);
	}
	connect_ends();
	REQUIRE(nopin_counter_create(h.pd, NULL, NULL, &counter) == 0);
}

static void close_all(void)
{
	struct ibv_cq *cq = ends[1].qp->recv_cq;

	for (int i = 0; i < 2; i++) {
		REQUIRE(ibv_destroy_qp(dead[i]) == 0);
		REQUIRE(ibv_destroy_cq(cqs[i]) == 0);
		link_close(&ends[i]);
	}
	REQUIRE(ibv_destroy_cq(cq) == 0);
	REQUIRE(ibv_destroy_comp_channel(channel) == 0);
	REQUIRE(ibv_destroy_comp_channel(arrivals) == 0);
	REQUIRE(nopin_counter_destroy(counter) == 0);
	host_dereg(told);
	REQUIRE(nopin_upcalls_close(upcalls) == 0);
	host_close(&h);
}

int main(int argc, char **argv)
{
	const int times = argc == 2 ? atoi(argv[1]) : 0;

	REQUIRE(times > 0);
	host_start();
	open_all();
	one_of_two_events();
	for (int i = 0; i < RECVS; i++)
		post_receive();
	traffic(times, true);
	traffic(times, false);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		combinations(&calls[i]);
	close_all();
	return 0;
}
