/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* slow.c: pages that take a while, by userfaultfd. A page of the range comes
 * with what slow_evict() saved of it, or zeros. Several faults are served at
 * the same time. A page that is not there any more when its time has come is
 * only woken, so that whoever asked meets what is there instead. In a range that
 * hangs no page comes until slow_release() brings them all.
 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { SERVERS = 8 };

static void bring(struct slow *s, size_t offset)
{
	struct uffdio_range where = {(uintptr_t)s->base + offset, PAGE};
	struct uffdio_copy copy = {.dst = where.start,
				   .src = (uintptr_t)s->backing + offset,
				   .len = PAGE};

	if (ioctl(s->uffd, UFFDIO_COPY, &copy) == 0) {
		__atomic_store_n(&s->brought_ns, host_now(), __ATOMIC_RELAXED);
		return;
	}
	/* EEXIST: another server was first. Others: unmapped, truncated. */
	ioctl(s->uffd, UFFDIO_WAKE, &where);
}

static void *serve(void *arg)
{
	struct slow *s = arg;

	for (;;) {
		struct uffd_msg msg;
		size_t offset;

		if (read(s->uffd, &msg, sizeof(msg)) != sizeof(msg)) {
			REQUIRE(errno == EINTR || errno == EAGAIN);
			continue;
		}
		REQUIRE(msg.event == UFFD_EVENT_PAGEFAULT);
		offset = (msg.arg.pagefault.address - (uintptr_t)s->base) &
			 ~(size_t)(PAGE - 1);
		__atomic_fetch_add(&s->faults, 1, __ATOMIC_RELAXED);
		if (s->fetch)
			s->fetch(s, offset);
		if (__atomic_load_n(&s->hang, __ATOMIC_SEQ_CST))
			continue;
		host_sleep(s->delay_ns);
		bring(s, offset);
	}
	return NULL;
}

void slow_open(struct slow *s, enum slow_kind kind, void *base, size_t bytes,
	       uint64_t delay_ns)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {
		.range = {(uintptr_t)base, bytes},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	pthread_t t;

	s->base = base;
	s->bytes = bytes;
	s->delay_ns = delay_ns;
	s->backing = host_map(NULL, bytes);
	s->uffd = (int)syscall(
		SYS_userfaultfd,
		O_CLOEXEC | (kind == SLOW_USER ? UFFD_USER_MODE_ONLY : 0));
	if (s->uffd < 0 && errno == EPERM)
		host_skip("userfaultfd of the kernel's accesses needs root");
	if (s->uffd < 0)
		host_skip("no such userfaultfd");
	REQUIRE(ioctl(s->uffd, UFFDIO_API, &api) == 0);
	REQUIRE(ioctl(s->uffd, UFFDIO_REGISTER, &reg) == 0);
	for (int i = 0; i < SERVERS; i++)
		REQUIRE(pthread_create(&t, NULL, serve, s) == 0);
}

void slow_hang(struct slow *s)
{
	__atomic_store_n(&s->hang, true, __ATOMIC_SEQ_CST);
}

/* Who reads a fault before that is woken by the page. */
void slow_release(struct slow *s)
{
	__atomic_store_n(&s->hang, false, __ATOMIC_SEQ_CST);
	for (size_t at = 0; at < s->bytes; at += PAGE)
		bring(s, at);
}

void slow_evict(struct slow *s, size_t offset, size_t bytes)
{
	memcpy(s->backing + offset, s->base + offset, bytes);
	REQUIRE(madvise(s->base + offset, bytes, MADV_DONTNEED) == 0);
}

void slow_asked(struct slow *s, uint64_t n)
{
	while (__atomic_load_n(&s->faults, __ATOMIC_RELAXED) < n)
		sched_yield();
}
