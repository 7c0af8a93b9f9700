/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reg_test.c: each registration mode does to real pages what it says, and really
 * refuses what may not be locked; and data passes in all of them.
 */
#include "base/page.h"
#include "mem/mr.h"
#include "mem/state.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/suspension.h"
#include "side.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PINNED = 1 << 20, KIB = 1024 };

static struct nic *nic;
static uint32_t pd;
static uint8_t *buf;

static struct nic_config config_of(enum reg_mode mode)
{
	return (struct nic_config){.os = {.addr = "lo", .pagers = 2},
				   .entries = 1 << 16,
				   .reg = mode,
				   .scatter = mode != REG_COPY,
				   .pool_bytes = 1 << 20,
				   .strategies = 1u << STRATEGY_REDIRECT};
}

static void open_as(enum reg_mode mode, uint64_t cache)
{
	struct nic_config cfg = config_of(mode);

	cfg.manual = true;
	cfg.pin_cache = cache;
	assert_int_equal(nic_open(&nic, &cfg), 0);
	assert_int_equal(nic_pd_alloc(nic, &pd), 0);
	buf = mmap(NULL, PINNED, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(buf != MAP_FAILED);
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(nic_pd_dealloc(nic, pd), 0);
	nic_close(nic);
	munmap(buf, PINNED);
	return 0;
}

static unsigned long locked_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long kib = 0;
	char line[256];
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "VmLck: %lu", &kib) == 1;
	fclose(f);
	assert_true(found);
	return kib;
}

static size_t present(void)
{
	unsigned char in[PINNED / PAGE_BYTES];
	size_t n = 0;

	assert_int_equal(mincore(buf, PINNED, in), 0);
	for (size_t i = 0; i < sizeof(in); i++)
		n += in[i] & 1;
	return n;
}

static int reg(uint64_t offset, uint64_t length, uint32_t *key)
{
	const struct mr_attr mr = {.pd = pd,
				   .addr = (uintptr_t)buf + offset,
				   .iova = (uintptr_t)buf,
				   .length = length,
				   .access = ACCESS_LOCAL_WRITE};

	return nic_mr_reg(nic, &mr, key);
}

static void dereg(uint32_t key)
{
	assert_int_equal(nic_mr_dereg(nic, key), 0);
}

/* May this process lock what the tests lock? reg__limit is for those that may
 * not. */
static void need_limit(rlim_t bytes)
{
	struct rlimit lim;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &lim), 0);
	if (geteuid() != 0 && lim.rlim_cur < bytes)
		skip();
}

static void reg__ondemand(void **state)
{
	uint32_t key;

	(void)state;
	open_as(REG_ONDEMAND, 0);
	assert_int_equal(reg(0, PINNED, &key), 0);
	assert_int_equal(locked_kib(), 0);
	assert_int_equal(present(), 0);
	dereg(key);
}

static void reg__pin(void **state)
{
	uint32_t key, half;

	(void)state;
	open_as(REG_PIN, 0);
	need_limit(PINNED);
	assert_int_equal(reg(0, PINNED, &key), 0);
	assert_int_equal(locked_kib(), PINNED / KIB);
	assert_int_equal(present(), PINNED / PAGE_BYTES);
	assert_int_equal(reg(PINNED / 2, PINNED / 4, &half), 0);
	dereg(key);
	assert_int_equal(locked_kib(), PINNED / 4 / KIB);
	dereg(half);
	assert_int_equal(locked_kib(), 0);
	/* a region that is refused for another reason */
	assert_int_equal(reg(0, UINT64_MAX / 2 + 1, &key), -EFAULT);
	assert_int_equal(reg(0, UINT64_MAX - 1, &key), -EINVAL);
	/* all memory at once is demand-paged */
	assert_int_equal(
		nic_mr_reg(nic,
			   &(struct mr_attr){.pd = pd, .length = UINT64_MAX},
			   &key),
		0);
	assert_int_equal(locked_kib(), 0);
	dereg(key);
}

static int update_err;

int __real_mr_update(struct mem *m, uint32_t key, uint64_t addr,
		     uint64_t length);
int __wrap_mr_update(struct mem *m, uint32_t key, uint64_t addr,
		     uint64_t length);

/* Somebody resumed the region just before. */
int __wrap_mr_update(struct mem *m, uint32_t key, uint64_t addr,
		     uint64_t length)
{
	return update_err ? update_err : __real_mr_update(m, key, addr, length);
}

/* The memory it has is locked, whether or not that is what was asked for. */
static void reg__pin_update_refused(void **state)
{
	enum { HALF = PINNED / 2 };
	uint32_t key;

	(void)state;
	open_as(REG_PIN, 0);
	need_limit(PINNED);
	assert_int_equal(reg(0, HALF, &key), 0);
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	update_err = -EINVAL;
	assert_int_equal(nic_mr_update(nic, key, (uintptr_t)buf + HALF, HALF),
			 -EINVAL);
	update_err = 0;
	assert_int_equal(locked_kib(), HALF / KIB);
	assert_int_equal(nic_mr_update(nic, key, (uintptr_t)buf + HALF, HALF),
			 0);
	assert_int_equal(locked_kib(), HALF / KIB);
	assert_int_equal(nic_mr_resume(nic, key), 0);
	dereg(key);
	assert_int_equal(locked_kib(), 0);
}

static void reg__pin_no_such_memory(void **state)
{
	uint32_t key;

	(void)state;
	open_as(REG_PIN, 0);
	need_limit(PINNED);
	assert_int_equal(munmap(buf + PINNED / 2, PAGE_BYTES), 0);
	assert_int_equal(reg(0, PINNED, &key), -EFAULT);
	assert_int_equal(locked_kib(), 0);
	/* unmapped while it is registered: the rest is unlocked nevertheless */
	assert_int_equal(reg(0, PINNED / 2, &key), 0);
	assert_int_equal(munmap(buf + PAGE_BYTES, PAGE_BYTES), 0);
	dereg(key);
	assert_int_equal(locked_kib(), 0);
}

/* What the program itself locked stays locked. */
static void reg__pin_theirs(void **state)
{
	uint32_t key;

	(void)state;
	open_as(REG_PIN, 0);
	need_limit(PINNED);
	/* By system calls: the sanitizers make mlock(3) do nothing. */
	assert_int_equal(syscall(SYS_mlock, buf + PINNED / 2, PAGE_BYTES), 0);
	assert_int_equal(reg(0, PINNED, &key), 0);
	dereg(key);
	assert_int_equal(locked_kib(), PAGE_BYTES / KIB);
	assert_int_equal(syscall(SYS_munlock, buf, PINNED), 0);
}

static void reg__pin_cache(void **state)
{
	struct counters cnt;
	uint32_t key;

	(void)state;
	open_as(REG_PIN_CACHE, PINNED / 2);
	need_limit(PINNED);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(reg(0, PINNED / 4, &key), 0);
		dereg(key);
		assert_int_equal(locked_kib(), PINNED / 4 / KIB);
	}
	for (unsigned i = 1; i < 4; i++) {
		assert_int_equal(reg(i * PINNED / 4, PINNED / 4, &key), 0);
		dereg(key);
		assert_int_equal(locked_kib(), PINNED / 2 / KIB);
	}
	nic_counters(nic, &cnt);
	assert_int_equal(cnt.v[CNT_pin_hits], 2);
	assert_int_equal(cnt.v[CNT_pin_misses], 4);
	assert_int_equal(cnt.v[CNT_pin_evictions], 2);
}

static void reg__prefault(void **state)
{
	uint32_t key;

	(void)state;
	open_as(REG_PREFAULT, 0);
	assert_int_equal(reg(0, PINNED / 2, &key), 0);
	assert_int_equal(present(), PINNED / 2 / PAGE_BYTES);
	assert_int_equal(locked_kib(), 0);
	dereg(key);
	assert_int_equal(mprotect(buf, PAGE_BYTES, PROT_READ), 0);
	assert_int_equal(reg(0, PINNED / 2, &key), -EFAULT);
}

/* Root may lock what it likes: this thread gives that up, or takes it back. */
static void may_lock_all(bool may)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct cap[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &head, cap), 0);
	if (may)
		cap[0].effective |= cap[0].permitted & 1u << CAP_IPC_LOCK;
	else
		cap[0].effective &= ~(1u << CAP_IPC_LOCK);
	assert_int_equal(syscall(SYS_capset, &head, cap), 0);
}

static void set_limit(struct rlimit lim, rlim_t to)
{
	lim.rlim_cur = MIN(lim.rlim_max, to);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &lim), 0);
}

/* Beyond the limit, and where nothing may be locked at all; earlier regions are
 * as they were. */
static void refuses(enum reg_mode mode)
{
	uint32_t key, first = 0;
	struct rlimit lim;

	open_as(mode, 0);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &lim), 0);
	may_lock_all(false);
	set_limit(lim, PINNED / 2);
	if (lim.rlim_max >= PINNED / 2)
		assert_int_equal(reg(PINNED / 2, PINNED / 4, &first), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(reg(0, PINNED / 2, &key), -ENOMEM);
		assert_int_equal(locked_kib(), first ? PINNED / 4 / KIB : 0);
	}
	if (first) {
		assert_int_equal(reg(0, PINNED / 4, &key), 0);
		dereg(key);
		dereg(first);
		/* what is kept makes way */
		assert_int_equal(reg(0, PINNED / 2, &key), 0);
		dereg(key);
	}
	may_lock_all(true);
	set_limit(lim, lim.rlim_cur);
}

static void reg__limit(void **state)
{
	(void)state;
	refuses(REG_PIN);
}

static void reg__limit_of_cache(void **state)
{
	(void)state;
	refuses(REG_PIN_CACHE);
}

/* --- data ------------------------------------------------------------------ */

static void transfer(enum wr_op op, uint32_t len)
{
	struct side *a = &side[0], *b = &side[1];

	memset(a->buf, 'a', BUF);
	memset(b->buf, 'b', BUF);
	if (op == WR_SEND)
		side_recv(b, b->buf, BUF, 3);
	side_post(a,
		  (struct wqe){
			  .op = op, .raddr = (uintptr_t)b->buf, .rkey = b->key},
		  a->buf, len);
	assert_int_equal(side_cqe(a).status, WC_SUCCESS);
	if (op == WR_SEND)
		assert_int_equal(side_cqe(b).status, WC_SUCCESS);
	assert_memory_equal(a->buf, b->buf, len);
	assert_true(len == BUF || a->buf[len] != b->buf[len]);
}

/* Return: what the sender counted of @c. */
static uint64_t data_passes(enum reg_mode mode, enum counter c)
{
	const uint32_t lens[] = {1, 5000, 3 * PAGE_BYTES, BUF};
	const unsigned long kept = mode == REG_PIN || mode == REG_PIN_CACHE
					   ? SIDES * BUF / KIB
					   : 0;
	struct nic_config cfg = config_of(mode);
	struct counters cnt;

	sides_open(&cfg);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		transfer(WR_WRITE, lens[i]);
		transfer(WR_READ, lens[i]);
		transfer(WR_SEND, lens[i]);
		/* a step may not be over when its completion is there */
		if (mode != REG_PIN_OP)
			assert_int_equal(locked_kib(), kept);
	}
	nic_counters(side[0].nic, &cnt);
	sides_close(NULL);
	assert_int_equal(locked_kib(), 0);
	return cnt.v[c];
}

static void data__each_mode(void **state)
{
	(void)state;
	need_limit(4 * BUF);
	assert_int_equal(data_passes(REG_ONDEMAND, CNT_pin_bytes_max), 0);
	assert_int_equal(data_passes(REG_PIN, CNT_pin_bytes_max), BUF);
	assert_int_equal(data_passes(REG_PIN_CACHE, CNT_pin_misses), 1);
	assert_true(data_passes(REG_PIN_OP, CNT_pin_moves) > 0);
	assert_int_equal(data_passes(REG_PREFAULT, CNT_prefault_pages),
			 BUF / PAGE_BYTES);
	assert_true(data_passes(REG_COPY, CNT_bounced_bytes) >= BUF);
	assert_int_equal(data_passes(REG_COPY, CNT_rx_scattered), 0);
}

/* Where nothing may be locked the moves are made nevertheless. */
static void data__pin_op_refused(void **state)
{
	struct rlimit lim;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &lim), 0);
	may_lock_all(false);
	set_limit(lim, 0);
	assert_true(data_passes(REG_PIN_OP, CNT_pin_refused) > 0);
	may_lock_all(true);
	set_limit(lim, lim.rlim_cur);
}

#define TEST(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reg__ondemand),
		TEST(reg__pin),
		TEST(reg__pin_update_refused),
		TEST(reg__pin_no_such_memory),
		TEST(reg__pin_theirs),
		TEST(reg__pin_cache),
		TEST(reg__prefault),
		TEST(reg__limit),
		TEST(reg__limit_of_cache),
		cmocka_unit_test(data__each_mode),
		cmocka_unit_test(data__pin_op_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
