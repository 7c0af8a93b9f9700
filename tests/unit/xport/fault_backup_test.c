/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_backup_test.c: who may keep how many datagrams. In the simulator no sender has more
 * than a ring of receives has room for.
 */
#include "base/check.h"
#include "mem/account.h"
#include "mem/mem.h"
#include "mem/pool.h"
#include "mem/state.h"
#include "memory.h"
#include "wire/opcode.h"
#include "xport/control.h"
#include "xport/fault.h"
#include "xport/fault_backup.h"
#include "xport/kept.h"
#include "xport/qp.h"
#include "xport/transport.h"
#include "xport/window.h"
#include "xport/xport.h"

enum { SLOTS = 200 };

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct qp qp[2];
	psn_t next;
} s;

static int setup(void **state)
{
	const struct qp_config ud = {.transport = &transport_ud, .mtu = 1024};

	*state = open_memory(&s.mem, &s.x, &s.cnt, SLOTS);
	for (int i = 0; i < 2; i++)
		qp_init(&s.qp[i], &s.x, &ud);
	s.next = 0;
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < 2; i++) {
		win_reset(&s.x, &s.qp[i].resp.win, 0);
		mem_account_gone(s.mem, &s.qp[i].account);
	}
	assert_int_equal(slots_free(s.mem), SLOTS);
	for (unsigned i = 0; i < ARRAY_SIZE(s.x.pool.sources); i++)
		assert_int_equal(s.x.pool.sources[i], 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

/* From the host with this number. Return: whether it is kept. */
static bool keep(struct qp *qp, uint8_t host)
{
	uint8_t payload[4] = {host};
	const struct pkt p = {.opcode = OP_UD_SEND_ONLY,
			      .fwd_src.ip.b = {[0] = 0xfd, [15] = host},
			      .payload_len = sizeof(payload)};

	return backup_keep(qp, &p, payload_of_step(payload), s.next++);
}

static unsigned fill(struct qp *qp, uint8_t host)
{
	unsigned n = 0;

	while (keep(qp, host))
		n++;
	return n;
}

static void backup_keep__one_source_leaves_some_to_others(void **state)
{
	const unsigned first = fill(&s.qp[0], 1);
	const unsigned second = fill(&s.qp[0], 2);

	(void)state;
	assert_in_range(first, SLOTS / 2, SLOTS * 7 / 10);
	assert_in_range(second, SLOTS / 20, SLOTS / 4);
	assert_int_equal(s.qp[0].ud.held, first + second);
}

/* Whose address is made up has many sources, and one QP. */
static void backup_keep__one_qp_leaves_some_to_others(void **state)
{
	unsigned all = 0;

	(void)state;
	for (int host = 0; host < 256; host++)
		all += fill(&s.qp[0], (uint8_t)host);
	assert_in_range(all, SLOTS * 7 / 10, SLOTS * 4 / 5 + 1);
	assert_true(fill(&s.qp[1], 255) > 0);
}

static void backup_keep__in_the_order_of_receives(void **state)
{
	struct window *w = &s.qp[0].resp.win;

	(void)state;
	assert_true(keep(&s.qp[0], 1));
	assert_true(keep(&s.qp[0], 2));
	assert_int_equal(win_at(w, 0)->pkt.fwd_src.ip.b[15], 1);
	assert_int_equal(win_at(w, 1)->pkt.fwd_src.ip.b[15], 2);
}

#define BACKUP_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BACKUP_TEST(backup_keep__one_source_leaves_some_to_others),
		BACKUP_TEST(backup_keep__one_qp_leaves_some_to_others),
		BACKUP_TEST(backup_keep__in_the_order_of_receives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
