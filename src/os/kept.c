/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kept.c: descriptors that stay open until they are needed, and of which a child of fork()
 * gets none. The program may have closed them meanwhile.
 */
#include "os/kept.h"
#include "os/fd.h"
#include "os/fork.h"
#include "os/sys_file.h"

#include <sys/stat.h>

bool fd_keep(struct fd_kept *k, int fd)
{
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return false;
	*k = (struct fd_kept){true, fd, st.st_dev, st.st_ino};
	fork_close_in_child(fd);
	return true;
}

int fd_take(struct fd_kept *k)
{
	if (!k->kept)
		return -1;
	k->kept = false;
	fork_forget(k->fd);
	return fd_is(k->fd, k->dev, k->ino) ? k->fd : -1;
}

int fd_kept(struct fd_kept *k, bool keep, int (*open)(int arg), int arg)
{
	int fd;

	if (k->kept && fd_is(k->fd, k->dev, k->ino))
		return k->fd;
	if (k->kept)
		fork_forget(k->fd);
	k->kept = false;
	fd = open(arg);
	if (fd >= 0 && keep)
		(void)fd_keep(k, fd);
	return fd;
}

void fd_unkept(const struct fd_kept *k, int fd)
{
	if (!k->kept)
		fd_close(fd);
}

void fd_drop(struct fd_kept *k)
{
	if (!k->kept)
		return;
	fork_forget(k->fd);
	if (fd_is(k->fd, k->dev, k->ino))
		sys_close(k->fd);
	k->kept = false;
}
