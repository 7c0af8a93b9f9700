/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port_4791.h: two NICs for which all peers are standard ones: one holds UDP port 4791, the
 * other goes by it. Their clock is clock.c's: a second is not over before a test says so.
 */
#ifndef NOPIN_TESTS_NIC_PORT_4791_H
#define NOPIN_TESTS_NIC_PORT_4791_H

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
		assert_true(side_readable(fd, -1)); /* until it speaks */
	else
		pass_ns(guest, 1000000);
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
	*who = OS_HOLDER_UNKNOWN;
	if (stopped)
		return -EAGAIN;
	if (!refusals)
		return __real_os_holder_ask(os, name, who);
	refusals--;
	return -ECONNREFUSED;
}

static inline int setup_roce(void **state)
{
	int h, ret;

	holder = guest = NULL;
	silent = refuses = resets = stopped = false; /* if a test failed */
	nameless = 0;
	refusals = 0;
	ret = setup_standard(state);
	h = side[0].nic->roce.port < 0;
	holder = side[h].nic;
	guest = side[!h].nic;
	assert_true(holder->roce.port >= 0 && guest->roce.port < 0);
	return ret;
}

/* Nobody was asked yet. */
static inline void forget_holder(void)
{
	nic_lock(guest);
	os_holder_leave(guest->os, guest->roce.guest);
	guest->roce.guest = -1;
	guest->roce.told = false;
	guest->roce.try_ns = 0;
	nic_unlock(guest);
}

static inline void connect_one_more(void)
{
	const int g = side[0].nic == holder;
	struct side s = side[g];

	began_ns = os_now(guest->os);
	side_qp(&s, 4, NULL, NULL);
	side_connect(&s, &side[!g]);
	side_qp_close(&s);
}

static inline uint16_t guest_port(void)
{
	return guest->ports[0] ? guest->ports[0]->number
			       : guest->ports[1]->number;
}

/* Something that is passed on, to the guest: that it is believed is seen by the next
 * check, which finds that what is in it is no packet. Return: its length. */
static inline unsigned forward(uint8_t out[256], uint64_t secret)
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
static inline void send_from_port(uint64_t secret, uint8_t last)
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

static inline void send_from_holder(uint64_t secret)
{
	send_from_port(secret, 1);
}

static inline void send_from_anywhere(uint64_t secret)
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
static inline bool believed(void)
{
	const uint64_t yes = guest->cnt.v[CNT_drop_icrc],
		       no = guest->cnt.v[CNT_drop_forward];

	for (int i = 0; i < TRIES; i++) {
		struct step *step = &guest->steps.v[1];

		if (inlet_receive(guest, step))
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

static inline const char *text_of(struct nic *nic)
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

static unsigned warned;

static inline void count_warnings(const char *line, int len)
{
	(void)len;
	warned += strstr(line, "standard peers do not reach") != NULL;
}

/* The background thread does this; here it has no thread. */
static inline void turn(void)
{
	(void)roce_turn(guest, TIME_NEVER);
}

/* The holder ends, and the port is in use. Return: it. */
static inline int port_without_name(void)
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
static inline void port_is_free(int port)
{
	nic_lock(holder);
	os_port_close(holder->os, port);
	nic_unlock(holder);
	guest->roce.try_ns = 0;
	assert_int_equal(roce_turn(guest, TIME_NEVER), TIME_NEVER);
	assert_int_equal(guest->roce.state, ROCE_OURS);
}

static inline void need(uint64_t after_ns)
{
	nic_lock(guest);
	guest->x.now = os_now(guest->os) + after_ns;
	roce_needed(guest);
	nic_unlock(guest);
}

#endif
