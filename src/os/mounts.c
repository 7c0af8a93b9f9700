/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mounts.c: may closing a copy of a descriptor do something?
 *
 * The kernel tells the filesystem of each copy that is closed, not only of the last
 * (flush). A server of files is asked then, and waited for without limit (FUSE, NFS,
 * SMB); it may take that for the program's word that a file is complete. A message queue
 * forgets whom to notify. Only regular files, and what looks like one, have that:
 * directories have none, fifos and devices are the kernel's own wherever they lie, and
 * what a few drivers do is soon done.
 *
 * So it matters which filesystem a file is of: mountinfo says that, by the number of
 * the mount and of the device. Either will do: a file may be of another mount namespace,
 * or in a subvolume (btrfs), which has a device number of its own. What is not found is
 * out of reach or unmounted, or a file of the kernel's. Of these, memory (memfd_create())
 * is known by its seals.
 */
#include "os/mounts.h"
#include "base/check.h"
#include "os/fd.h"
#include "os/sys.h"
#include "os/sys_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	MOUNTS_MAX = 16, /* of the files of one program */
	WORD_MAX = 20, /* longer than any that matters */
	WORD_ID = 0, /* where they are in a line */
	WORD_DEV = 2,
	WORD_OPTIONAL = 6, /* from here on, until "-" */
};

/**
 * struct mounts - Those that a file has been found of.
 * @asked:	not known to be harmless yet
 * @word:	which one of the line that is being read
 * @dash:	the one that the type follows, or 0
 * @id, @dev:	of that line
 * @text:	the word, as far as it fits
 */
struct mounts {
	struct {
		uint64_t id, dev;
	} asked[MOUNTS_MAX];
	unsigned n, word, dash;
	uint64_t id, dev;
	char text[WORD_MAX + 1];
	size_t len;
};

/* Filesystems without a flush. That of overlay asks the one below, which is the host's
 * own disk where containers have their root. f2fs and tracefs have one. */
static bool type_is_plain(const char *type)
{
	static const char *const plain[] = {
		"btrfs",   "cgroup",  "cgroup2", "devtmpfs", "erofs",
		"exfat",   "ext2",    "ext3",	 "ext4",     "hugetlbfs",
		"iso9660", "overlay", "proc",	 "ramfs",    "squashfs",
		"sysfs",   "tmpfs",   "vfat",	 "xfs",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(plain); i++)
		if (strcmp(type, plain[i]) == 0)
			return true;
	return false;
}

static uint64_t dev_number(uint64_t major, uint64_t minor)
{
	return major << 32 | minor;
}

/* "major:minor" */
static uint64_t dev_parse(const char *text)
{
	char *end;
	const uint64_t major = strtoul(text, &end, 10);

	return dev_number(major, strtoul(end + (*end == ':'), NULL, 10));
}

static void mounts_answer(struct mounts *m)
{
	for (unsigned i = m->n; i-- > 0;)
		if (m->asked[i].id == m->id || m->asked[i].dev == m->dev)
			m->asked[i] = m->asked[--m->n];
}

/* "id parent major:minor root mountpoint options [optional...] - type source options":
 * blanks in names are escaped. */
static void mounts_word(struct mounts *m)
{
	m->text[m->len] = 0;
	if (m->word == WORD_ID)
		m->id = strtoul(m->text, NULL, 10);
	else if (m->word == WORD_DEV)
		m->dev = dev_parse(m->text);
	else if (m->dash > 0 && m->word == m->dash + 1 &&
		 type_is_plain(m->text))
		mounts_answer(m);
	else if (m->dash == 0 && m->word >= WORD_OPTIONAL &&
		 strcmp(m->text, "-") == 0)
		m->dash = m->word;
	m->word++;
	m->len = 0;
}

/* Lines have any length. */
static void mounts_char(struct mounts *m, char c)
{
	if (c != ' ' && c != '\n') {
		if (m->len < WORD_MAX)
			m->text[m->len++] = c;
		return;
	}
	mounts_word(m);
	if (c == '\n')
		m->word = m->dash = 0;
}

/* It is not kept open (file.c): it would keep the mount namespace. Each read(2) goes on
 * behind the last line, whatever is mounted meanwhile; pread(2) would count bytes anew. */
static void mounts_read(struct mounts *m)
{
	const int fd = fd_high(sys_open("/proc/self/mountinfo", O_RDONLY));
	char buf[1024];
	ssize_t n;

	if (fd < 0)
		return;
	while ((n = sys_read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			mounts_char(m, buf[i]);
	sys_close(fd);
}

static bool mounts_ask(struct mounts *m, const struct statx *x)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->asked[i].id == x->stx_mnt_id)
			return true;
	if (m->n == MOUNTS_MAX)
		return false;
	m->asked[m->n].id = x->stx_mnt_id;
	m->asked[m->n++].dev = dev_number(x->stx_dev_major, x->stx_dev_minor);
	return true;
}

/* Return: false: it remains unknown what @fd is. */
static bool mounts_look(struct mounts *m, int fd)
{
	const unsigned want = STATX_TYPE | STATX_MNT_ID;
	struct statx x = {0};
	/* what the kernel has in memory: fstatfs(2) asks the server */
	const long ret = sys_call(SYS_statx, fd, SYS_PTR(""),
				  AT_EMPTY_PATH | AT_STATX_DONT_SYNC, want,
				  SYS_PTR(&x), 0);

	if (ret == -EBADF)
		return true;
	if (ret < 0 || (x.stx_mask & want) != want)
		return false;
	return !S_ISREG(x.stx_mode) || sys_fcntl(fd, F_GET_SEALS, 0) >= 0 ||
	       mounts_ask(m, &x);
}

bool mounts_may_flush(unsigned end)
{
	struct mounts m = {.n = 0};

	for (unsigned fd = 0; fd < end; fd++)
		if (!mounts_look(&m, (int)fd))
			return true;
	if (m.n > 0)
		mounts_read(&m);
	return m.n > 0;
}
