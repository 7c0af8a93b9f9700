/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.c: files of the program's stay its own. For each copy of a descriptor that is
 * closed the kernel asks a server of files (FUSE) to write back what it has, and waits
 * for it: the device is opened without, whether or not the files are still mounted.
 */
#include "link.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { FILE_NODE = 2 };

/** struct served - What server and program share. All are atomic.
 * @deaf:	nothing may be asked from now on
 * @asked:	what was asked all the same
 */
struct served {
	bool deaf;
	uint32_t asked;
};

/* --- the server ------------------------------------------------------------------- */

static void answer(int dev, const struct fuse_in_header *to, int error,
		   void *body, size_t len)
{
	struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + len),
				       .error = -error,
				       .unique = to->unique};
	struct iovec v[] = {{&head, sizeof(head)}, {body, len}};

	REQUIRE(writev(dev, v, 2) == (ssize_t)head.len);
}

/* Nothing that is said may be remembered. */
static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr){.ino = node,
				  .nlink = 1,
				  .mode = node == FILE_NODE ? S_IFREG | 0600
							    : S_IFDIR | 0700};
}

static void serve_one(int dev, const struct fuse_in_header *in)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	struct fuse_entry_out entry = {.nodeid = FILE_NODE,
				       .attr = attr_of(FILE_NODE)};
	struct fuse_attr_out attr = {.attr = attr_of(in->nodeid)};
	struct fuse_open_out open = {.fh = 1};

	switch (in->opcode) {
	case FUSE_INIT:
		answer(dev, in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(dev, in, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(dev, in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(dev, in, 0, &open, sizeof(open));
		break;
	case FUSE_FORGET:
		break;
	default:
		answer(dev, in, ENOSYS, NULL, 0);
	}
}

/* Where it would leave a question without an answer it ends, which is an error for all
 * that wait: the test fails, and does not hang. */
static void serve(int dev, struct served *served)
{
	static union {
		struct fuse_in_header head;
		char space[1 << 16];
	} in;

	for (;;) {
		ssize_t n = read(dev, &in, sizeof(in));

		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < (ssize_t)sizeof(in.head))
			_exit(0);
		if (__atomic_load_n(&served->deaf, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&served->asked, in.head.opcode,
					 __ATOMIC_RELEASE);
			_exit(0);
		}
		serve_one(dev, &in.head);
	}
}

/* --- the program ------------------------------------------------------------------ */

static void skip_unless(bool there, const char *why)
{
	if (there)
		return;
	printf("SKIP: %s\n", why);
	exit(77);
}

static int mount_at(const char *dir)
{
	const int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char how[80];

	skip_unless(dev >= 0, "no FUSE");
	snprintf(how, sizeof(how), "fd=%d,rootmode=40000,user_id=0,group_id=0",
		 dev);
	REQUIRE(mount("nopin-test", dir, "fuse", MS_NOSUID | MS_NODEV, how) ==
		0);
	return dev;
}

static void works(const struct served *served)
{
	struct link l;

	link_open(&l);
	link_send(&l, 0, LINK_BYTES, 1);
	link_close(&l);
	errno = (int)__atomic_load_n(&served->asked, __ATOMIC_ACQUIRE);
	REQUIRE(errno == 0); /* else the FUSE_* that was asked */
}

int main(void)
{
	struct served *served = mmap(NULL, sizeof(*served),
				     PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char dir[] = "/tmp/nopin-flush-XXXXXX", path[sizeof(dir) + 2];
	int dev, file;
	pid_t pid;

	REQUIRE(served != MAP_FAILED);
	skip_unless(unshare(CLONE_NEWNS) == 0, "no mount namespace");
	REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	REQUIRE(mkdtemp(dir));
	dev = mount_at(dir);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0)
		serve(dev, served);
	close(dev);
	snprintf(path, sizeof(path), "%s/f", dir);
	file = open(path, O_RDWR | O_CLOEXEC);
	REQUIRE(file >= 0);
	__atomic_store_n(&served->deaf, true, __ATOMIC_RELEASE);
	works(served);
	REQUIRE(umount2(dir, MNT_DETACH) == 0 && rmdir(dir) == 0);
	works(served);
	REQUIRE(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	close(file);
	return 0;
}
