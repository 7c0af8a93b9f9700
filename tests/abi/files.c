/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* files.c: what a program under `nopin run` finds in the file system, in every
 * way in which known programs look. Started by run_test.py.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEV   "/sys/class/infiniband/nopin0"
#define BOARD DEV "/board_id"
#define CDEV  "/dev/infiniband/uverbs0"
#define TEXT  "nopin\n"

static int failures;

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			printf("line %d: %s (%s)\n", __LINE__, #cond,          \
			       strerror(errno));                               \
			failures++;                                            \
		}                                                              \
	} while (0)
/* The call fails, and so. */
static const char *volatile nowhere;

#define FAILS(call, error) CHECK((errno = 0, (void)(call), errno == (error)))

static bool fd_reads(int fd, const char *text)
{
	char buf[64];
	const ssize_t len = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

	close(fd);
	return len == (ssize_t)strlen(text) &&
	       memcmp(buf, text, (size_t)len) == 0;
}

static void test_open(void)
{
	int fd = open(BOARD, O_RDONLY | O_CLOEXEC);

	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(fd_reads(fd, TEXT));
	CHECK(fd_reads(open64(BOARD, O_RDONLY), TEXT));
	CHECK(fd_reads(openat(AT_FDCWD, BOARD, O_RDONLY), TEXT));
	CHECK(fd_reads(openat64(AT_FDCWD, BOARD, O_RDONLY), TEXT));
	CHECK(fd_reads(
		open("/sys/class/infiniband//nopin0///board_id", O_RDONLY),
		TEXT));
	CHECK(fd_reads(open(DEV "/ports/1/gid_attrs/types/0", O_RDONLY),
		       "RoCE v2\n"));
	FAILS(open(BOARD, O_RDWR), EACCES);
	FAILS(open(BOARD, O_RDONLY | O_DIRECTORY), ENOTDIR);
	FAILS(open(DEV, O_RDONLY), EACCES);
	FAILS(open(DEV "/nothing", O_RDONLY), ENOENT);
	FAILS(open("/sys/class/infiniband/mlx5_0/board_id", O_RDONLY), ENOENT);
	fd = open(CDEV, O_RDWR);
	CHECK(fd >= 0);
	close(fd);
}

static void test_fopen(void)
{
	FILE *file = fopen(BOARD, "r");
	char line[16] = "";

	CHECK(file && fgets(line, sizeof(line), file));
	CHECK(strcmp(line, TEXT) == 0);
	if (file)
		fclose(file);
	FAILS(fopen(BOARD, "w"), EACCES);
	FAILS(fopen(BOARD, "r+"), EACCES);
	FAILS(fopen(DEV, "r"), EACCES);
	FAILS(fopen(DEV "/nothing", "r"), ENOENT);
}

/* UCX wants exactly this of the device. */
static void test_stat(void)
{
	struct statx stx;
	struct stat st;

	CHECK(stat(CDEV, &st) == 0 && S_ISCHR(st.st_mode));
	CHECK(st.st_rdev == makedev(231, 192));
	CHECK(access(CDEV, R_OK | W_OK) == 0);
	FAILS(access(CDEV, X_OK), EACCES);
	CHECK(stat(BOARD, &st) == 0 && S_ISREG(st.st_mode));
	CHECK(lstat(BOARD, &st) == 0 && S_ISREG(st.st_mode));
	CHECK(fstatat(AT_FDCWD, DEV "/ports/", &st, 0) == 0 &&
	      S_ISDIR(st.st_mode));
	CHECK(statx(AT_FDCWD, CDEV, 0, STATX_BASIC_STATS, &stx) == 0 &&
	      S_ISCHR(stx.stx_mode) && stx.stx_rdev_major == 231);
	CHECK(access(BOARD, R_OK) == 0);
	FAILS(access(BOARD, W_OK), EACCES);
	CHECK(access(DEV, R_OK | X_OK) == 0);
	CHECK(eaccess(DEV, F_OK) == 0);
	CHECK(faccessat(AT_FDCWD, BOARD, R_OK, AT_EACCESS) == 0);
	FAILS(stat(DEV "/nothing", &st), ENOENT);
	FAILS(stat("/dev/infiniband/uverbs1", &st), ENOENT);
	FAILS(access("/sys/class/infiniband_mad", F_OK), ENOENT);
}

static void test_links(void)
{
	char buf[PATH_MAX];
	char *path = realpath(DEV "/", NULL);

	CHECK(path && strcmp(path, DEV) == 0);
	free(path);
	CHECK(realpath("/sys/class//infiniband/nopin0/device", buf) == buf);
	CHECK(strcmp(buf, DEV "/device") == 0);
	FAILS(realpath(DEV "/nothing", buf), ENOENT);
	FAILS(readlink(DEV, buf, sizeof(buf)), EINVAL);
	FAILS(readlinkat(AT_FDCWD, DEV, buf, sizeof(buf)), EINVAL);
}

/* The names in a directory, joined. */
static const char *names(DIR *dir)
{
	static char out[256];
	struct dirent *entry;

	out[0] = '\0';
	while (dir && (entry = readdir(dir)))
		strcat(strcat(out, entry->d_name),
		       entry->d_type == DT_DIR ? "/ " : " ");
	return out;
}

static void test_directories(void)
{
	DIR *a = opendir(DEV "/ports/1/gid_attrs");
	DIR *b = opendir("/sys/class/infiniband/");
	DIR *real = opendir("/proc/self");

	CHECK(strcmp(names(a), "ndevs/ types/ ") == 0);
	CHECK(strcmp(names(a), "") == 0);
	CHECK(strcmp(names(b), "nopin0/ ") == 0);
	CHECK(readdir(real) != NULL);
	rewinddir(a);
	CHECK(strcmp(names(a), "ndevs/ types/ ") == 0);
	CHECK(dirfd(a) >= 0);
	CHECK(closedir(a) == 0);
	CHECK(closedir(b) == 0);
	CHECK(closedir(real) == 0);
	b = opendir("/dev/infiniband");
	CHECK(strcmp(names(b), "uverbs0 ") == 0);
	CHECK(closedir(b) == 0);
	FAILS(opendir(BOARD), ENOTDIR);
	FAILS(opendir(DEV "/nothing"), ENOENT);
	for (int i = 0; i < 100; i++)
		closedir(opendir(DEV));
}

static int not_types(const struct dirent *entry)
{
	return strcmp(entry->d_name, "types") != 0;
}

static void test_scandir(void)
{
	struct dirent **list = NULL;
	int n = scandir(DEV "/ports/1/gid_attrs", &list, NULL, alphasort);

	CHECK(n == 2 && strcmp(list[0]->d_name, "ndevs") == 0 &&
	      strcmp(list[1]->d_name, "types") == 0);
	CHECK(list[0]->d_type == DT_DIR);
	while (n > 0)
		free(list[--n]);
	free(list);
	n = scandir("/sys/class/infiniband/nopin0/ports/1/gid_attrs/", &list,
		    not_types, NULL);
	CHECK(n == 1 && strcmp(list[0]->d_name, "ndevs") == 0);
	while (n > 0)
		free(list[--n]);
	free(list);
	FAILS(scandir(BOARD, &list, NULL, NULL), ENOTDIR);
	FAILS(scandir(DEV "/nothing", &list, NULL, NULL), ENOENT);
	n = scandir("/proc/self", &list, NULL, NULL);
	CHECK(n > 10);
	while (n > 0)
		free(list[--n]);
	free(list);
}

/* What is relative to it is ours, or where it would be otherwise. */
static void test_working_directory(void)
{
	char buf[PATH_MAX], was[PATH_MAX];
	struct stat st;
	DIR *dir;

	CHECK(getcwd(was, sizeof(was)) == was);
	FAILS(chdir(BOARD), ENOTDIR);
	FAILS(chdir(DEV "/nothing"), ENOENT);
	CHECK(strcmp(getcwd(buf, sizeof(buf)), was) == 0);
	CHECK(chdir("/sys/class/infiniband") == 0);
	CHECK(strcmp(getcwd(buf, sizeof(buf)), "/sys/class/infiniband") == 0);
	FAILS(getcwd(buf, 21), ERANGE);
	FAILS(getcwd(buf, 0), EINVAL);
	dir = opendir(".");
	CHECK(strcmp(names(dir), "nopin0/ ") == 0);
	CHECK(closedir(dir) == 0);
	CHECK(stat("nopin0", &st) == 0 && S_ISDIR(st.st_mode));
	CHECK(chdir("nopin0/ports/../ports") == 0);
	CHECK(fd_reads(open("../board_id", O_RDONLY), TEXT));
	CHECK(fd_reads(openat(AT_FDCWD, "./1/lid", O_RDONLY), "0x0\n"));
	FAILS(open("1/nothing", O_RDONLY), ENOENT);
	FAILS(openat(0, "1/lid", O_RDONLY), ENOTDIR);
	FAILS(open("", O_RDONLY), ENOENT);
	CHECK(stat("../../../../../etc/passwd", &st) == 0);
	CHECK(chdir("../../../..") == 0);
	CHECK(strcmp(getcwd(buf, sizeof(buf)), "/sys") == 0);
	FAILS(stat("board_id", &st), ENOENT);
	CHECK(chdir(DEV) == 0 && chdir(was) == 0);
	CHECK(strcmp(getcwd(buf, sizeof(buf)), was) == 0);
	FAILS(stat("board_id", &st), ENOENT);
}

static long number(int fd)
{
	char buf[32] = "";

	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(read(fd, buf, sizeof(buf) - 1) > 1);
	return strtol(buf, NULL, 10);
}

/* What is read from its beginning is what it is now, also when others took the
 * numbers of what was closed. */
static void test_read_again(void)
{
	const char *path = DEV "/ports/1/counters/port_xmit_packets";
	int fd = open(path, O_RDONLY), other;
	char byte;

	CHECK(fd >= 0);
	CHECK(ftruncate(fd, 0) == 0); /* of the memfd, that is */
	CHECK(number(fd) >= 0);
	CHECK(ftruncate(fd, 0) == 0);
	CHECK(pread(fd, &byte, 1, 0) == 1 && byte >= '0' && byte <= '9');
	close(fd);
	other = memfd_create("other", 0);
	CHECK(other == fd);
	CHECK(read(other, &byte, 1) == 0);
	close(other);
	for (int i = 0; i < 100; i++)
		close(open(BOARD, O_RDONLY));
}

/* Whoever does not look there does not notice. */
static void test_others(void)
{
	char path[] = "/tmp/test-of-files-XXXXXX";
	struct stat st;
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	close(fd);
	CHECK(fd_reads(open(path, O_RDONLY), "x"));
	CHECK(stat(path, &st) == 0 && st.st_size == 1);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0640);
	CHECK(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0640);
	close(fd);
	unlink(path);
	FAILS(open(path, O_RDONLY), ENOENT);
	/* volatile: the compiler knows that open() wants a path */
	FAILS(open(nowhere, O_RDONLY), EFAULT);
	errno = 77;
	CHECK(access("/", F_OK) == 0 && errno == 77);
	CHECK(access(BOARD, F_OK) == 0 && errno == 77);
}

int main(void)
{
	umask(0);
	test_open();
	test_fopen();
	test_stat();
	test_links();
	test_directories();
	test_scandir();
	test_working_directory();
	test_read_again();
	test_others();
	return failures != 0;
}
