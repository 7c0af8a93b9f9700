/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* slow.c: memory each of whose missing pages takes a while to come, as it does
 * from a busy disk, a file server or another machine's memory. What makes it
 * slow is a page handler of the program's own, a thread behind a userfaultfd
 * that serves faults of user mode only: any user may have one (Linux 5.14).
 *
 * The bytes are in a memfd, so dropping a page from the mapping loses none of
 * them; a fault on it is answered DELAY later, however many others wait.
 */
#include "demo.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WAITING_MAX = 1024 };

/** struct fault - A page somebody waits for, and when to let it come. */
struct fault {
	uint64_t addr, due;
};

/**
 * struct slow - There is one such memory, and it is there until the end.
 * @store:	the same bytes, mapped where nothing is slow
 * @waiting:	ring of faults, in the order of @due
 */
static struct slow {
	int uffd;
	uint8_t *mem, *store;
	uint64_t delay_ns;
	unsigned head, tail;
	struct fault waiting[WAITING_MAX];
} slow;

/* --- the page handler --------------------------------------------------------- */

static void bring(uint64_t addr)
{
	struct uffdio_continue here = {.range = {addr, PAGE}};
	volatile uint8_t *byte = slow.store + (addr - (uintptr_t)slow.mem);
	int ret;

	(void)*byte; /* the memfd has this page from now on */
	do /* EAGAIN: the page tables were being evicted */
		ret = ioctl(slow.uffd, UFFDIO_CONTINUE, &here);
	while (ret && errno == EAGAIN);
	if (ret && errno != EEXIST) /* somebody else waited for it, too */
		die(errno, "UFFDIO_CONTINUE");
	if (ret)
		ioctl(slow.uffd, UFFDIO_WAKE, &here.range);
}

static void take_faults(void)
{
	struct uffd_msg msg;

	while (slow.tail - slow.head < WAITING_MAX &&
	       read(slow.uffd, &msg, sizeof(msg)) == sizeof(msg))
		if (msg.event == UFFD_EVENT_PAGEFAULT)
			slow.waiting[slow.tail++ % WAITING_MAX] =
				(struct fault){
					.addr = msg.arg.pagefault.address &
						-PAGE,
					.due = now_ns() + slow.delay_ns,
				};
}

static void bring_due(void)
{
	while (slow.head != slow.tail &&
	       slow.waiting[slow.head % WAITING_MAX].due <= now_ns())
		bring(slow.waiting[slow.head++ % WAITING_MAX].addr);
}

static void *handler(void *unused)
{
	struct pollfd fd = {.fd = slow.uffd, .events = POLLIN};

	for (;;) {
		const struct fault *first =
			&slow.waiting[slow.head % WAITING_MAX];
		uint64_t now = now_ns(), left = 0;
		struct timespec t = {0};

		if (slow.head != slow.tail && first->due > now)
			left = first->due - now;
		t.tv_nsec = (long)left;
		ppoll(&fd, 1, slow.head == slow.tail ? NULL : &t, NULL);
		take_faults();
		bring_due();
	}
	return unused;
}

/* --- setting it up ------------------------------------------------------------ */

/* Return: NULL, or what was refused. */
static const char *map_both(uint64_t bytes)
{
	const int fd = memfd_create("slow", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return "memfd_create";
	slow.mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	slow.store = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (slow.mem == MAP_FAILED || slow.store == MAP_FAILED)
		return "mmap";
	return NULL;
}

static const char *serve(uint64_t bytes)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_MINOR_SHMEM};
	struct uffdio_register all = {
		.range = {(uintptr_t)slow.mem, bytes},
		.mode = UFFDIO_REGISTER_MODE_MISSING |
			UFFDIO_REGISTER_MODE_MINOR,
	};
	pthread_t thread;

	slow.uffd = (int)syscall(SYS_userfaultfd,
				 O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (slow.uffd < 0)
		return "userfaultfd";
	if (ioctl(slow.uffd, UFFDIO_API, &api))
		return "userfaultfd for shared memory";
	if (ioctl(slow.uffd, UFFDIO_REGISTER, &all))
		return "UFFDIO_REGISTER";
	errno = pthread_create(&thread, NULL, handler, NULL);
	return errno ? "pthread_create" : NULL;
}

uint8_t *slow_map(uint64_t bytes, uint64_t delay_us, const char **refused)
{
	slow.delay_ns = delay_us * 1000;
	*refused = map_both(bytes);
	if (!*refused)
		*refused = serve(bytes);
	return *refused ? NULL : slow.mem;
}
