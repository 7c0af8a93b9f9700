/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mounts_test.c: of which files a descriptor may not be closed, by mountinfo as it is
 * and made up.
 */
#include "base/check.h"
#include "host_fixture.h"
#include "os/fd.h"
#include "os/mounts.h"

#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define INFO "/proc/self/mountinfo"

static char listed[] = "/tmp/test-of-mounts-XXXXXX";
static struct statx there; /* of that file, which is number 0 */

/* What is open as 0 is all that is asked about. */
static bool of(int fd)
{
	bool may;

	if (fd != 0) {
		assert_true(fd > 0);
		assert_int_equal(dup2(fd, 0), 0);
		close(fd);
	}
	refuse_none();
	redirect(INFO, listed);
	may = mounts_may_flush(1);
	refuse_none();
	return may;
}

static void list(const char *format, ...)
{
	FILE *f = fopen(listed, "w");
	va_list args;

	assert_non_null(f);
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fclose(f);
}

/* A line as the kernel has it, of that mount or another one. */
static void list_type(const char *type, bool id, bool dev)
{
	list("%llu 1 %u:%u / / rw,relatime - %s /dev/x rw\n",
	     there.stx_mnt_id + !id, there.stx_dev_major + !dev,
	     there.stx_dev_minor, type);
}

static int file_open(void **state)
{
	(void)state;
	close(0);
	if (open(listed, O_RDWR) != 0)
		return -1;
	return statx(0, "", AT_EMPTY_PATH, STATX_MNT_ID, &there);
}

static int file_new(void **state)
{
	const int fd = mkstemp(listed);

	(void)state;
	close(fd);
	return fd < 0;
}

static int file_gone(void **state)
{
	(void)state;
	return unlink(listed);
}

static void mounts_may_flush__types(void **state)
{
	static const char *const plain[] = {"ext4", "xfs", "tmpfs", "overlay",
					    "btrfs"};
	static const char *const others[] = {
		"fuse",
		"fuseblk",
		"fuse.ext4",
		"nfs4",
		"cifs",
		"ext4x",
		"ext",
		"-",
		"tmpfs\\040x",
		"",
		"tmpfsandmuchmorethanisremembered"};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(plain); i++) {
		list_type(plain[i], true, true);
		assert_false(of(0));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
		list_type(others[i], true, true);
		assert_true(of(0));
	}
}

/* Of the mount or of the device: that of a subvolume is in no list, nor is a mount of
 * another namespace. */
static void mounts_may_flush__numbers(void **state)
{
	(void)state;
	list_type("ext4", true, false);
	assert_false(of(0));
	list_type("ext4", false, true);
	assert_false(of(0));
	list_type("ext4", false, false);
	assert_true(of(0));
	list("");
	assert_true(of(0));
}

static void mounts_may_flush__optional_fields(void **state)
{
	static const char *const lines[] = {
		"%llu 1 4095:5 /a /b\\040-\\040nfs rw%s - ext4 /dev/x rw\n",
		"%llu 1 4095:5 /a /b rw shared:1%s - ext4 - rw\n",
		"%llu 1 4095:5 - - - shared:1 master:2 propagate_from:3%s - "
		"xfs\n",
		"9 1 4095:5 / / rw - nfs a rw\n%llu 1 4095:6 / /%s rw - xfs a "
		"rw\n",
	};
	static const char *const worse[] = {
		"%llu 1 4095:5 /a /b\\040-\\040ext4 rw%s - fuse /dev/x rw\n",
		"%llu 1 4095:5 /a /b rw shared:1%s - fuse ext4 - ext4 rw\n",
		"%llu 1 4095:5 - ext4 - ext4%s - fuse x rw\n",
		"%llu 1 4095:5 / / rw - nfs a rw\n9 1 4095:6 / /%s rw - xfs a "
		"rw\n",
	};
	static char longer[3000];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++)
		for (unsigned n = 0; n < sizeof(longer); n += 997) {
			memset(longer, 'n', n);
			longer[n] = 0;
			list(lines[i], there.stx_mnt_id, longer);
			assert_false(of(0));
			list(worse[i], there.stx_mnt_id, longer);
			assert_true(of(0));
		}
}

/* Of these the list need not be asked. */
static void mounts_may_flush__no_files(void **state)
{
	int ends[2];

	(void)state;
	list("");
	assert_int_equal(pipe(ends), 0);
	assert_false(of(ends[0]));
	assert_false(of(ends[1]));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_false(of(ends[0]));
	close(ends[1]);
	assert_false(of(eventfd(0, 0)));
	assert_false(of(epoll_create1(0)));
	assert_false(of(memfd_create("test", 0)));
	assert_false(of(open("/dev/null", O_RDWR)));
	assert_false(of(open("/", O_RDONLY | O_DIRECTORY)));
	assert_int_equal(refuse_calls(SYS_openat), 0);
	close(0);
	assert_false(of(0));
}

/* One that is mounted is no better than one that is not. */
static void mounts_may_flush__message_queue(void **state)
{
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 1};
	char name[64];
	mqd_t q;

	(void)state;
	snprintf(name, sizeof(name), "/nopin-test-%d", (int)getpid());
	q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
	assert_true(q >= 0);
	mq_unlink(name);
	list("");
	assert_true(of((int)q));
	assert_int_equal(statx(0, "", AT_EMPTY_PATH, STATX_MNT_ID, &there), 0);
	list_type("mqueue", true, true);
	assert_true(of(0));
}

static void mounts_may_flush__denied(void **state)
{
	int ends[2];

	(void)state;
	refuse(SYS_openat, -1, 0, EACCES);
	assert_true(mounts_may_flush(1));
	refuse_none();
	refuse(SYS_statx, -1, 0, ENOSYS);
	assert_true(mounts_may_flush(1));
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], 0), 0);
	assert_true(mounts_may_flush(1));
	refuse_none();
	assert_false(mounts_may_flush(1));
	close(ends[0]);
	close(ends[1]);
}

/* Files of this host, where it is a usual one. */
static void mounts_may_flush__as_it_is(void **state)
{
	const int before = dup(0);

	(void)state;
	close(before);
	assert_false(mounts_may_flush(1));
	close(0);
	assert_int_equal(open("/proc/self/maps", O_RDONLY), 0);
	assert_false(mounts_may_flush(1));
	assert_int_equal(dup(0), before); /* nothing is left open */
	close(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mounts_may_flush__types, file_open),
		cmocka_unit_test_setup(mounts_may_flush__numbers, file_open),
		cmocka_unit_test_setup(mounts_may_flush__optional_fields,
				       file_open),
		cmocka_unit_test_setup(mounts_may_flush__no_files, file_open),
		cmocka_unit_test_setup(mounts_may_flush__message_queue,
				       file_open),
		cmocka_unit_test_setup(mounts_may_flush__denied, file_open),
		cmocka_unit_test_setup(mounts_may_flush__as_it_is, file_open),
	};

	return cmocka_run_group_tests(tests, file_new, file_gone);
}
