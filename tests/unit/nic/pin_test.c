/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pin_test.c: NOPIN_REG=pin really locks what is registered, as cards do, and
 * really refuses what may not be locked.
 */
#include "side.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PINNED = 1 << 20 };

static struct nic *nic;
static uint32_t pd;
static uint8_t *buf;

static int setup(void **state)
{
	const struct nic_config cfg = {.os = {.addr = "lo"},
				       .entries = 1 << 10,
				       .pin = true,
				       .manual = true,
				       .pool_bytes = 1 << 20,
				       .strategies = 1u << STRATEGY_REDIRECT};

	(void)state;
	assert_int_equal(nic_open(&nic, &cfg), 0);
	assert_int_equal(nic_pd_alloc(nic, &pd), 0);
	buf = mmap(NULL, PINNED, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(buf != MAP_FAILED);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	munmap(buf, PINNED);
	assert_int_equal(nic_pd_dealloc(nic, pd), 0);
	nic_close(nic);
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

static int reg(uint64_t length, uint32_t *key)
{
	const struct mr_attr mr = {.pd = pd,
				   .addr = (uintptr_t)buf,
				   .iova = (uintptr_t)buf,
				   .length = length,
				   .access = ACCESS_LOCAL_WRITE};

	return nic_mr_reg(nic, &mr, key);
}

static void pin__locks(void **state)
{
	unsigned char present[PINNED / PAGE_BYTES];
	struct rlimit lim;
	uint32_t key;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &lim), 0);
	if (geteuid() != 0 && lim.rlim_cur < PINNED)
		skip(); /* pin__refuses is for us */
	assert_int_equal(reg(PINNED, &key), 0);
	assert_int_equal(locked_kib(), PINNED / 1024);
	assert_int_equal(mincore(buf, PINNED, present), 0);
	for (size_t i = 0; i < sizeof(present); i++)
		assert_true(present[i] & 1);
	assert_int_equal(nic_mr_dereg(nic, key), 0);
	assert_int_equal(locked_kib(), 0);
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

/* Beyond the limit, and where nothing may be locked at all. */
static void pin__refuses(void **state)
{
	struct rlimit lim;
	uint32_t key;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &lim), 0);
	may_lock_all(false);
	set_limit(lim, PINNED / 2);
	assert_int_equal(reg(PINNED, &key), -ENOMEM);
	assert_int_equal(locked_kib(), 0);
	if (lim.rlim_max >= PINNED / 2) {
		assert_int_equal(reg(PINNED / 4, &key), 0);
		assert_int_equal(nic_mr_dereg(nic, key), 0);
	}
	set_limit(lim, 0);
	assert_int_equal(reg(PAGE_BYTES, &key), -ENOMEM);
	may_lock_all(true);
	set_limit(lim, lim.rlim_cur);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pin__locks),
		TEST(pin__refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
