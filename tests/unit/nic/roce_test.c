/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_test.c: whose word counts for where a packet came from, and who says that
 * nobody passes on. Two NICs for which all peers are standard ones: one holds UDP port
 * 4791, the other goes by it.
 */
#include "nic/ctl.h"
#include "nic/demux.h"
#include "nic/holder.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/stat.h"
#include "nic/step.h"
#include "nic/text.h"
#include "os/os.h"
#include "steps.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* The two: who holds the port, and who is passed on to; NULL until they are known. */
static struct nic *holder, *guest;

/* Why no name can be had; 0: one can. */
static int nameless;

int __real_os_claim(struct os *os, const char *name);
int __wrap_os_claim(struct os *os, const char *name);
int __wrap_os_claim(struct os *os, const char *name)
{
	return nameless ? nameless : __real_os_claim(os, name);
}

static unsigned kicks; /* for the guest's background thread */

void __real_os_kick(struct os *os);
void __wrap_os_kick(struct os *os);
void __wrap_os_kick(struct os *os)
{
	kicks += guest && os == guest->os;
	__real_os_kick(os);
}

static int setup_roce(void **state)
{
	int h, ret;

	holder = guest = NULL;
	ret = setup_standard(state);
	h = side[0].nic->roce.port < 0;
	holder = side[h].nic;
	guest = side[!h].nic;
	assert_true(holder->roce.port >= 0 && guest->roce.port < 0);
	return ret;
}

/* The holder has not said anything, until it was waited for so often; or it ends the
 * connection instead, before it let us in or after. */
static bool silent, refuses, resets;
static unsigned asked;
static unsigned waited, until_waited;
static uint64_t began_ns; /* to connect */

int __real_os_holder_says(struct os *os, int fd, uint64_t *secret);
int __wrap_os_holder_says(struct os *os, int fd, uint64_t *secret);
int __wrap_os_holder_says(struct os *os, int fd, uint64_t *secret)
{
	if (refuses)
		return -EPIPE;
	if (resets)
		return -ECONNRESET;
	if (!silent)
		return __real_os_holder_says(os, fd, secret);
	silent = waited < until_waited;
	*secret = holder->roce.secret;
	return !silent;
}

void __real_os_holder_wait(struct os *os, int fd, uint64_t until_ns);
void __wrap_os_holder_wait(struct os *os, int fd, uint64_t until_ns);
void __wrap_os_holder_wait(struct os *os, int fd, uint64_t until_ns)
{
	if (!guest) {
		__real_os_holder_wait(os, fd, until_ns);
		return;
	}
	assert_ptr_equal(os, guest->os);
	assert_int_equal(fd, guest->roce.guest);
	assert_in_range(until_ns, began_ns, os_now(os) + 1000000000);
	waited++;
	if (fd >= 0 && !silent)
		__real_os_holder_wait(os, fd, until_ns); /* until it speaks */
	else
		usleep(1000);
}

/* It has the name, and does not listen yet, until it was asked so often; or lets nobody
 * in. */
static unsigned refusals;
static bool stopped;

int __real_os_holder_ask(struct os *os, const char *name,
			 struct os_holder *who);
int __wrap_os_holder_ask(struct os *os, const char *name,
			 struct os_holder *who);
int __wrap_os_holder_ask(struct os *os, const char *name, struct os_holder *who)
{
	asked++;
	*who = (struct os_holder){0, 0};
	if (stopped)
		return -EAGAIN;
	if (!refusals)
		return __real_os_holder_ask(os, name, who);
	refusals--;
	return -ECONNREFUSED;
}

/* Nobody was asked yet. */
static void forget_holder(void)
{
	nic_lock(guest);
	os_holder_leave(guest->os, guest->roce.guest);
	guest->roce.guest = -1;
	guest->roce.told = false;
	guest->roce.try_ns = 0;
	nic_unlock(guest);
}

static void connect_one_more(void)
{
	const int g = side[0].nic == holder;
	struct side s = side[g];

	began_ns = os_now(guest->os);
	side_qp(&s, 4, NULL, NULL);
	side_connect(&s, &side[!g]);
	side_qp_close(&s);
}

/* Packets may come as soon as a QP is connected. */
static void roce_welcome__before_the_first_packet(void **state)
{
	(void)state;
	assert_true(guest->roce.told);
	guest->roce.told = false;
	silent = true;
	waited = 0;
	until_waited = 3;
	connect_one_more();
	assert_int_equal(waited, 3);
	assert_true(guest->roce.told);
}

/* One that does not run is waited for once. */
static void roce_welcome__not_for_ever(void **state)
{
	unsigned before;

	(void)state;
	guest->roce.told = false;
	silent = true;
	until_waited = UINT_MAX;
	connect_one_more();
	before = waited;
	connect_one_more();
	assert_int_equal(waited, before);
	silent = false;
}

/* The QP is made while the holder begins, and connected at once. */
static void roce_welcome__of_one_that_begins(void **state)
{
	(void)state;
	forget_holder();
	refusals = 4; /* the first when the QP is made */
	waited = 0;
	connect_one_more();
	assert_int_equal(refusals, 0);
	assert_int_equal(waited, 3 + 1); /* and for what it says */
	assert_true(guest->roce.told);
}

static void roce_welcome__of_one_that_never_begins(void **state)
{
	(void)state;
	forget_holder();
	refusals = UINT_MAX;
	waited = 0;
	guest->roce.late = true; /* it was waited for */
	connect_one_more();
	assert_int_equal(waited, 0);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	guest->roce.doubt_ns -= 2000000000;
	guest->roce.late = false;
	connect_one_more();
	assert_int_equal(waited, 0);
	assert_int_equal(guest->roce.state, ROCE_TAKEN);
	refusals = 0;
}

static uint16_t guest_port(void)
{
	return guest->ports[0] ? guest->ports[0]->number
			       : guest->ports[1]->number;
}

/* Something that is passed on, to the guest: that it is believed is seen by the next
 * check, which finds that what is in it is no packet. Return: its length. */
static unsigned forward(uint8_t out[256], uint64_t secret)
{
	const struct ipaddr far = {{[10] = 0xff, [11] = 0xff, 10, 9, 8, 7}};
	struct pkt fwd = {.opcode = OP_X_FORWARD,
			  .ext = true,
			  .pkey = PKEY_DEFAULT,
			  .qpn = (uint32_t)(guest_port() - QPN_PORT_BASE) << 10,
			  .fwd_src = {.ip = far, .port = 60000},
			  .fwd_dst = guest->gids.slot[0].ip,
			  .fwd_secret = secret,
			  .payload_len = 32};
	const unsigned n = pkt_build(&fwd, out);

	memset(out + n, 0x40, fwd.payload_len);
	out[n] = OP_SEND_ONLY;
	out[n + 1] = 0;
	icrc_store(xcrc(out, n), out + n + fwd.payload_len);
	return n + fwd.payload_len + ICRC_BYTES;
}

/* @last: of the address that it comes from, 127.0.0.0/24 */
static void send_from_port(uint64_t secret, uint8_t last)
{
	const struct ipaddr lo = {{[10] = 0xff, [11] = 0xff, 127, [15] = 1}};
	const struct ipaddr from = {
		{[10] = 0xff, [11] = 0xff, 127, [15] = last}};
	uint8_t bytes[256];
	struct iovec iov = {bytes, forward(bytes, secret)};
	const struct os_tx tx = {.dst = {.ip = lo, .port = guest_port()},
				 .src = from,
				 .port = holder->roce.port,
				 .iov = &iov,
				 .niov = 1};

	assert_int_equal(os_send(holder->os, &tx), 0);
}

static void send_from_holder(uint64_t secret)
{
	send_from_port(secret, 1);
}

static void send_from_anywhere(uint64_t secret)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(guest_port()),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	uint8_t bytes[256];
	const unsigned n = forward(bytes, secret);

	assert_int_equal(
		sendto(fd, bytes, n, 0, (struct sockaddr *)&to, sizeof(to)), n);
	close(fd);
}

/* Return: was it believed? */
static bool believed(void)
{
	const uint64_t yes = guest->cnt.v[CNT_drop_icrc],
		       no = guest->cnt.v[CNT_drop_forward];

	for (int i = 0; i < TRIES; i++) {
		struct step *step = &guest->steps[1];

		if (engine_receive(guest, step))
			finish_receive(guest, step);
		else
			idle(guest);
		if (guest->cnt.v[CNT_drop_icrc] != yes)
			return true;
		if (guest->cnt.v[CNT_drop_forward] != no)
			return false;
	}
	fail_msg("it did not come");
	return false;
}

static void roce_trusts__port_and_secret(void **state)
{
	const uint64_t secret = holder->roce.secret;

	(void)state;
	assert_int_not_equal(secret, 0);
	send_from_holder(secret);
	assert_true(believed());
	send_from_holder(secret ^ 1);
	assert_false(believed());
	/* there another process may have the port, or of the other family */
	send_from_port(secret, 2);
	assert_false(believed());
	send_from_anywhere(secret);
	assert_false(believed());
	send_from_anywhere(0);
	assert_false(believed());
}

/* The port may be anybody's from then on, and the secret was told to others. */
static void roce_trusts__nobody_after_its_end(void **state)
{
	const uint64_t secret = holder->roce.secret;

	(void)state;
	os_claim_unshare(holder->os);
	send_from_holder(secret);
	assert_false(believed());
	assert_true(guest->roce.guest < 0);
}

/* Who holds the port is not told anything by others. */
static void roce_trusts__not_the_holder_itself(void **state)
{
	struct pkt p = {.fwd_secret = holder->roce.secret};
	const struct os_rx from = {
		.src = {.ip = holder->gids.slot[0].ip, .port = ROCE_PORT}};

	(void)state;
	assert_false(roce_trusts(holder, &p, &from));
}

static const char *text_of(struct nic *nic)
{
	static char said[128];
	struct ctl_answer a = {.text = NULL};
	struct text t = {.p = NULL};

	roce_text(nic, &t);
	text_answer(&t, &a);
	snprintf(said, sizeof(said), "%s", a.text);
	free(a.text);
	return said;
}

static void roce_text__states(void **state)
{
	(void)state;
	assert_non_null(strstr(text_of(holder), "\"state\":\"ours\""));
	assert_non_null(strstr(text_of(guest), "\"state\":\"served\""));
	guest->roce.state = ROCE_STRANGER;
	guest->roce.who = (struct os_holder){12, 1001};
	assert_non_null(strstr(text_of(guest), "\"stranger\",\"pid\":12,"
					       "\"uid\":1001"));
}

static unsigned warned;

static void count_warnings(const char *line, int len)
{
	(void)len;
	warned += strstr(line, "standard peers do not reach") != NULL;
}

/* It is said once, and only where it matters. */
static void roce_turn__says_that_nobody_passes_on(void **state)
{
	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	(void)roce_turn(guest, TIME_NEVER);
	assert_int_equal(warned, 0);
	guest->roce.wanted = false;
	guest->roce.state = ROCE_TAKEN;
	(void)roce_turn(guest, TIME_NEVER);
	assert_int_equal(warned, 0);
	for (int i = 0; i < 3; i++) {
		roce_needed(guest);
		(void)roce_turn(guest, TIME_NEVER);
		assert_int_equal(warned, 1);
	}
	log_set(LOG_WARN, NULL);
}

/* The background thread does this; here it has no thread. */
static void turn(void)
{
	(void)roce_turn(guest, TIME_NEVER);
}

/* The connection ends before anything was told: then nothing is passed on, which is
 * said once, and tried again in a second. */
static void roce_claim__refused(void **state)
{
	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = asked = 0;
	roce_needed(guest);
	forget_holder();
	refuses = true;
	connect_one_more();
	assert_int_equal(guest->roce.state, ROCE_REFUSED);
	assert_non_null(strstr(text_of(guest), "\"refused\",\"pid\":"));
	for (int i = 0; i < 3; i++)
		turn();
	assert_int_equal(warned, 1);
	assert_int_equal(asked, 1);
	assert_in_range(guest->roce.try_ns, began_ns + 1000000000,
			os_now(guest->os) + 1000000000);
	refuses = false;
	guest->roce.try_ns = 0; /* the second is over */
	turn();
	assert_int_equal(asked, 2);
	for (int i = 0; i < TRIES && !guest->roce.told; i++) {
		guest->roce.try_ns = 0;
		turn();
		idle(guest);
	}
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	assert_int_equal(warned, 1);
	log_set(LOG_WARN, NULL);
}

/* The program of the holder closed all that it has: the name is the next one's. */
static void roce_turn__of_a_closed_holder(void **state)
{
	int claim;

	(void)state;
	holder->closed = true;
	(void)roce_turn(holder, TIME_NEVER);
	claim = os_claim(guest->os, "nopin-roce-4791");
	assert_true(claim >= 0);
	os_unclaim(guest->os, claim);
	send_from_holder(holder->roce.secret);
	assert_false(believed());
	holder->closed = false;
}

/* Where no names can be had the port is for one NIC. */
static void roce_claim__without_a_name(void **state)
{
	(void)state;
	forget_holder();
	/* the guest has no thread that runs now */
	nic_lock(holder);
	roce_release(holder);
	nameless = -EAFNOSUPPORT;
	holder->roce.try_ns = 0;
	guest->roce.state = ROCE_UNASKED;
	holder->x.now = 1;
	roce_claim(holder);
	guest->x.now = 1;
	roce_claim(guest);
	nic_unlock(holder);
	nameless = 0;
	assert_true(holder->roce.claim < 0 && holder->roce.port >= 0);
	assert_int_equal(holder->roce.state, ROCE_OURS);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	guest->roce.try_ns = 0;
	nic_lock(holder);
	guest->x.now = 1 + 1000000000;
	roce_claim(guest);
	nic_unlock(holder);
	assert_int_equal(guest->roce.state, ROCE_TAKEN);
}

/* A moment without descriptors is none: neither the port without a name, nor for ever
 * without the port. */
static void roce_claim__short_of_descriptors(void **state)
{
	uint64_t now, until;

	(void)state;
	forget_holder();
	nic_lock(holder);
	roce_release(holder);
	holder->roce.state = ROCE_UNASKED;
	holder->roce.try_ns = 0;
	nameless = -EMFILE;
	holder->x.now = 1;
	roce_claim(holder);
	nic_unlock(holder);
	assert_true(holder->roce.port < 0);
	assert_int_equal(holder->roce.state, ROCE_UNASKED);
	now = os_now(holder->os);
	until = roce_turn(holder, TIME_NEVER);
	assert_in_range(until, now + 1000000000,
			os_now(holder->os) + 1000000000);
	nameless = 0;
	holder->roce.try_ns = 0; /* the second is over */
	assert_int_equal(roce_turn(holder, TIME_NEVER), TIME_NEVER);
	assert_int_equal(holder->roce.state, ROCE_OURS);
	assert_true(holder->roce.claim >= 0 && holder->roce.port >= 0);
}

/* One that was asked again, and ends the connection again, is heard at once: what it
 * leaves in the descriptor ends each sleep. */
static void roce_turn__refused_again(void **state)
{
	(void)state;
	roce_needed(guest);
	forget_holder();
	refuses = true;
	connect_one_more();
	assert_int_equal(guest->roce.state, ROCE_REFUSED);
	guest->roce.try_ns = 0; /* the second is over */
	turn();
	assert_true(guest->roce.guest >= 0);
	guest->roce.try_ns = TIME_NEVER; /* not on account of that */
	guest->os->holder.spoke = true;
	turn();
	assert_true(guest->roce.guest < 0);
	refuses = false;
}

/* It ends with a packet on its way to us, and the packet finds that out. */
static void roce_turn__of_a_holder_found_dead(void **state)
{
	const uint64_t secret = holder->roce.secret;

	(void)state;
	nic_lock(guest);
	guest->roce.try_ns = 0;
	roce_needed(guest); /* as each turn of the engine */
	nic_unlock(guest);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	send_from_holder(secret);
	nic_lock(holder);
	roce_release(holder);
	nic_unlock(holder);
	assert_false(believed());
	assert_true(guest->roce.guest < 0);
	turn();
	assert_int_equal(guest->roce.state, ROCE_OURS);
}

/* The holder ends, and the port is in use. Return: it. */
static int port_without_name(void)
{
	uint16_t number;
	int port;

	nic_lock(holder);
	roce_release(holder);
	port = os_port_open(holder->os, ROCE_PORT, &number);
	nic_unlock(holder);
	assert_true(port >= 0);
	return port;
}

/* It ends, and is found free when it is time to look again. */
static void port_is_free(int port)
{
	nic_lock(holder);
	os_port_close(holder->os, port);
	nic_unlock(holder);
	guest->roce.try_ns = 0;
	assert_int_equal(roce_turn(guest, TIME_NEVER), TIME_NEVER);
	assert_int_equal(guest->roce.state, ROCE_OURS);
}

/* A process that dies closes the port last: it is in use a moment longer. */
static void roce_turn__of_a_holder_that_is_dying(void **state)
{
	uint64_t until;
	int port;

	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	nic_tick(guest);
	roce_needed(guest);
	port = port_without_name();
	guest->os->holder.spoke = true; /* its connection ended */
	until = roce_turn(guest, TIME_NEVER);
	assert_in_range(until, 1, os_now(guest->os) + CLAIM_AGAIN_NS);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	port_is_free(port);
	assert_int_equal(warned, 0);
	log_set(LOG_WARN, NULL);
}

static void need(uint64_t after_ns)
{
	nic_lock(guest);
	guest->x.now = os_now(guest->os) + after_ns;
	roce_needed(guest);
	nic_unlock(guest);
}

/* What is no nopin has the port for a second and longer. When it ends is not told. */
static void roce_turn__of_a_port_that_is_taken(void **state)
{
	uint64_t now, until;
	int port;

	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	port = port_without_name();
	guest->roce.state = ROCE_UNASKED;
	guest->roce.wanted = false;
	forget_holder();
	nic_lock(guest);
	roce_claim(guest);
	nic_unlock(guest);
	/* it does not matter */
	assert_int_equal(roce_turn(guest, TIME_NEVER), TIME_NEVER);
	need(0);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	until = roce_turn(guest, TIME_NEVER);
	assert_in_range(until, 1, os_now(guest->os) + CLAIM_AGAIN_NS);
	need(1000000000);
	assert_int_equal(guest->roce.state, ROCE_TAKEN);
	guest->roce.try_ns = 0;
	now = guest->x.now = os_now(guest->os);
	until = roce_turn(guest, TIME_NEVER);
	assert_in_range(until, now + 1000000000,
			os_now(guest->os) + 1000000000);
	assert_int_equal(warned, 1);
	port_is_free(port);
	log_set(LOG_WARN, NULL);
}

/* What was found before it mattered may be long ago. */
static void roce_needed__after_the_port_was_taken(void **state)
{
	int port;

	(void)state;
	port = port_without_name();
	guest->roce.wanted = false;
	forget_holder();
	guest->roce.state = ROCE_TAKEN;
	guest->roce.try_ns = TIME_NEVER;
	need(0);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	port_is_free(port);
}

/* The connection waits to be let in, and the holder ends: that is no refusal. */
static void roce_claim__of_a_holder_that_has_ended(void **state)
{
	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	need(0);
	forget_holder();
	nic_lock(guest);
	roce_claim(guest);
	resets = true;
	guest->roce.try_ns = 0;
	roce_claim(guest);
	resets = false;
	nic_unlock(guest);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	nic_lock(holder);
	roce_release(holder);
	nic_unlock(holder);
	assert_in_range(guest->roce.try_ns, 1,
			os_now(guest->os) + CLAIM_AGAIN_NS);
	guest->os->holder.spoke = true;
	turn();
	assert_int_equal(guest->roce.state, ROCE_OURS);
	assert_int_equal(warned, 0);
	log_set(LOG_WARN, NULL);
}

/* Or it looks, and says what is to be said, up to a second later. */
static void roce_changed__wakes_the_thread_that_looks(void **state)
{
	int port;

	(void)state;
	need(0);
	forget_holder();
	kicks = 0;
	need(0);
	assert_true(guest->roce.guest >= 0);
	assert_int_equal(kicks, 1); /* it does not sleep on that yet */
	port = port_without_name();
	forget_holder();
	kicks = 0;
	need(0);
	assert_true(guest->roce.doubt_ns);
	assert_int_equal(kicks, 1);
	need(0);
	assert_int_equal(kicks, 1);
	turn();
	kicks = 0;
	guest->roce.try_ns = 0;
	need(2000000000);
	assert_int_equal(guest->roce.state, ROCE_TAKEN);
	assert_int_equal(kicks, 1);
	port_is_free(port);
}

/* Datagrams of standard peers may come as soon as there is a QP for them. */
static void roce_needed__by_a_qp_of_datagrams(void **state)
{
	struct nic_qp_init init = {.max_send_wr = 1,
				   .max_recv_wr = 1,
				   .max_send_sge = 1,
				   .max_recv_sge = 1,
				   .ud = true};
	const struct side *s = &side[side[1].nic == guest];
	struct nic_qp *qp;
	uint32_t qpn;

	(void)state;
	guest->roce.wanted = false;
	init.pd = s->pd;
	init.send_cq = init.recv_cq = s->cq;
	assert_int_equal(nic_qp_create(guest, NULL, &init, &qp, &qpn), 0);
	assert_true(guest->roce.wanted);
	assert_int_equal(nic_qp_destroy(qp), 0);
}

/* One that lets nobody in is the one that it was. */
static void roce_claim__of_a_holder_that_is_stopped(void **state)
{
	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	need(0);
	forget_holder();
	guest->roce.state = ROCE_STRANGER;
	guest->roce.who = (struct os_holder){12, 1001};
	stopped = true;
	need(0);
	guest->roce.try_ns = 0;
	need(2000000000);
	assert_int_equal(guest->roce.state, ROCE_STRANGER);
	assert_int_equal(guest->roce.who.pid, 12);
	guest->roce.state = ROCE_UNASKED;
	guest->roce.try_ns = 0;
	need(0);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	need(2000000000);
	assert_int_equal(guest->roce.state, ROCE_REFUSED);
	assert_non_null(strstr(text_of(guest), "\"state\":\"refused\"}"));
	turn();
	assert_int_equal(warned, 1);
	stopped = false;
	log_set(LOG_WARN, NULL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup_roce, sides_close)
	const struct CMUnitTest tests[] = {
		T(roce_welcome__before_the_first_packet),
		T(roce_welcome__not_for_ever),
		T(roce_welcome__of_one_that_begins),
		T(roce_welcome__of_one_that_never_begins),
		T(roce_trusts__port_and_secret),
		T(roce_trusts__nobody_after_its_end),
		T(roce_trusts__not_the_holder_itself),
		T(roce_text__states),
		T(roce_turn__says_that_nobody_passes_on),
		T(roce_claim__refused),
		T(roce_turn__of_a_closed_holder),
		T(roce_claim__without_a_name),
		T(roce_claim__short_of_descriptors),
		T(roce_turn__refused_again),
		T(roce_turn__of_a_holder_found_dead),
		T(roce_turn__of_a_holder_that_is_dying),
		T(roce_turn__of_a_port_that_is_taken),
		T(roce_needed__after_the_port_was_taken),
		T(roce_claim__of_a_holder_that_has_ended),
		T(roce_claim__of_a_holder_that_is_stopped),
		T(roce_changed__wakes_the_thread_that_looks),
		T(roce_needed__by_a_qp_of_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
