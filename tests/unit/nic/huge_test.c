/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* huge_test.c: the largest message at the smallest path MTU takes half of all
 * PSNs. Apart from pair_test.c because eight million packets take their time;
 * the memory is a small file that is mapped time and again.
 */
#include "mem/mr.h"
#include "nic/completion.h"
#include "nic/memory.h"
#include "nic/post.h"
#include "side.h"

#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES (UINT64_C(1) << 31)

enum { FILE_BYTES = 4 << 20 };

static uint8_t *mem[SIDES];
static uint32_t key[SIDES];

static uint8_t *map_often(void)
{
	uint8_t *p = mmap(NULL, HUGE_BYTES, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = memfd_create("huge", MFD_CLOEXEC);

	assert_true(p != MAP_FAILED && fd >= 0);
	assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
	for (uint64_t off = 0; off < HUGE_BYTES; off += FILE_BYTES)
		assert_true(mmap(p + off, FILE_BYTES, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	close(fd);
	return p;
}

static int setup(void **state)
{
	const struct nic_config cfg = {.os = {.addr = "lo", .pagers = 4},
				       .entries = 1 << 16,
				       .scatter = true,
				       .pool_bytes = 1 << 20,
				       .strategies = 1u << STRATEGY_REDIRECT |
						     1u << STRATEGY_RESUME};

	(void)state;
	side_mtu = 256;
	sides_open(&cfg);
	for (int i = 0; i < SIDES; i++) {
		struct mr_attr mr = {.pd = side[i].pd,
				     .length = HUGE_BYTES,
				     .access = ACCESS_LOCAL_WRITE |
					       ACCESS_REMOTE_WRITE |
					       ACCESS_REMOTE_READ};

		mem[i] = map_often();
		mr.addr = mr.iova = (uintptr_t)mem[i];
		assert_int_equal(nic_mr_reg(side[i].nic, &mr, &key[i]), 0);
	}
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(nic_mr_dereg(side[i].nic, key[i]), 0);
	sides_close(state);
	for (int i = 0; i < SIDES; i++)
		munmap(mem[i], HUGE_BYTES);
	return 0;
}

static void post(enum wr_op op, uint64_t bytes)
{
	struct side *s = &side[0];
	struct wqe *slot;

	assert_int_equal(nic_send_begin(s->qp), 0);
	slot = nic_send_slot(s->qp);
	assert_non_null(slot);
	*slot = (struct wqe){.op = op,
			     .flags = WQE_SIGNALED,
			     .raddr = (uintptr_t)mem[1],
			     .rkey = key[1],
			     .length = bytes,
			     .num_sge = 1};
	wqe_sge(slot)[0] = (struct sge){(uintptr_t)mem[0], (uint32_t)bytes,
					key[0]};
	nic_send_publish(s->qp);
	nic_send_end(s->qp);
}

static void done(uint64_t least_packets, const struct side *sender)
{
	uint64_t before = sender->nic->cnt.v[CNT_tx_packets];
	struct cqe e;

	while (nic_cq_poll(side[0].cq, 1, &e) == 0)
		;
	assert_int_equal(e.status, WC_SUCCESS);
	assert_true(sender->nic->cnt.v[CNT_tx_packets] - before >=
		    least_packets);
}

/* A small one before it: its ACK must not complete what is behind it. */
static void message__half_of_all_psns(void **state)
{
	uint64_t packets = HUGE_BYTES / 256 - 1000000;

	(void)state;
	memset(mem[0], 0x40, FILE_BYTES);
	post(WR_WRITE, 8);
	done(0, &side[0]);
	post(WR_WRITE, HUGE_BYTES);
	done(packets, &side[0]);
	assert_memory_equal(mem[1], mem[0], FILE_BYTES);
	memset(mem[0], 0, FILE_BYTES);
	post(WR_READ, HUGE_BYTES);
	done(packets, &side[1]);
	assert_memory_equal(mem[1], mem[0], FILE_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__half_of_all_psns),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
