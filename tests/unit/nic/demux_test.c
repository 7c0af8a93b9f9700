/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* demux_test.c: a QPN names its port, is found as long as its QP lives, and comes back
 * late.
 */
#include "nic/demux.h"
#include "nic/lock.h"
#include "nic/pair.h"
#include "nic/progress.h"
#include "side.h"

enum { PER_PORT = 1024, ROOM = PER_PORT * 3 / 4 };

static struct nic_qp_init init;
static uint16_t next_port; /* to be opened, or 0: any */

int __real_os_port_open(struct os *os, uint16_t want, uint16_t *port);
int __wrap_os_port_open(struct os *os, uint16_t want, uint16_t *port);

int __wrap_os_port_open(struct os *os, uint16_t want, uint16_t *port)
{
	if (!want) {
		want = next_port;
		next_port = 0;
	}
	return __real_os_port_open(os, want, port);
}

static int setup(void **state)
{
	const struct nic_config cfg = {.os = {.addr = "lo"},
				       .entries = 1 << 10,
				       .manual = true,
				       .pool_bytes = 1 << 20,
				       .strategies = 1u << STRATEGY_REDIRECT};

	(void)state;
	sides_open(&cfg);
	init = (struct nic_qp_init){.max_send_wr = 1,
				    .max_recv_wr = 1,
				    .pd = side[0].pd,
				    .send_cq = side[0].cq,
				    .recv_cq = side[0].cq};
	return 0;
}

static int setup_lowest_port(void **state)
{
	next_port = QPN_PORT_BASE;
	return setup(state);
}

static struct nic_qp *found(uint32_t qpn)
{
	struct nic_qp *qp;

	nic_lock(side[0].nic);
	qp = demux_find(side[0].nic, qpn);
	nic_unlock(side[0].nic);
	return qp;
}

static unsigned ports(void)
{
	unsigned n = 0;

	nic_lock(side[0].nic);
	for (int i = 0; i < OS_PORTS_MAX; i++)
		n += side[0].nic->ports[i] != NULL;
	nic_unlock(side[0].nic);
	return n;
}

static void demux__a_qpn_names_its_port(void **state)
{
	struct nic_qp *qp;
	uint32_t qpn;

	(void)state;
	assert_int_equal(nic_qp_create(side[0].nic, NULL, &init, &qp, &qpn), 0);
	assert_int_equal(QPN_PORT_BASE + (qpn >> 10), qp->port->number);
	assert_ptr_equal(found(qpn), qp);
	assert_null(found(qpn ^ 1 << 23));
	assert_int_equal(nic_qp_destroy(qp), 0);
	assert_null(found(qpn));
}

/* What was given back takes no room, and is given again last. */
static void demux__qpns_come_back_late(void **state)
{
	struct nic_qp *qp;
	uint32_t first, qpn;

	(void)state;
	assert_int_equal(nic_qp_create(side[0].nic, NULL, &init, &qp, &first),
			 0);
	assert_int_equal(nic_qp_destroy(qp), 0);
	for (int i = 0; i < 2 * PER_PORT; i++) {
		assert_int_equal(
			nic_qp_create(side[0].nic, NULL, &init, &qp, &qpn), 0);
		if (i < ROOM)
			assert_int_not_equal(qpn, first);
		assert_int_equal(nic_qp_destroy(qp), 0);
	}
	assert_int_equal(ports(), 1);
}

/* All QPNs of the lowest port come in turn, but for 0 and 1 (IBTA 3.5.3). */
static void demux__none_is_of_management(void **state)
{
	struct nic_qp *qp;
	uint32_t qpn;

	(void)state;
	for (int i = 0; i < 2 * PER_PORT; i++) {
		assert_int_equal(
			nic_qp_create(side[0].nic, NULL, &init, &qp, &qpn), 0);
		assert_in_range(qpn, 2, PER_PORT - 1);
		assert_int_equal(nic_qp_destroy(qp), 0);
	}
}

/* A quarter of a port's QPNs stays free; then there is another port. */
static void demux__more_ports_for_more_qps(void **state)
{
	static struct nic_qp *qp[ROOM];
	uint32_t qpn;

	(void)state;
	for (int i = 0; i < ROOM; i++) { /* one more is the side's own */
		assert_int_equal(ports(), 1);
		assert_int_equal(
			nic_qp_create(side[0].nic, NULL, &init, &qp[i], &qpn),
			0);
		assert_ptr_equal(found(qpn), qp[i]);
	}
	assert_int_equal(ports(), 2);
	for (int i = 0; i < ROOM; i++)
		assert_int_equal(nic_qp_destroy(qp[i]), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, sides_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(demux__a_qpn_names_its_port),
		TEST(demux__qpns_come_back_late),
		TEST(demux__more_ports_for_more_qps),
		cmocka_unit_test_setup_teardown(demux__none_is_of_management,
						setup_lowest_port, sides_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
