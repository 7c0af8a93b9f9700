/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.c: what fork() means to a NIC (design D7, D13, D21). The parent counts it,
 * because every private page has become copy-on-write. The child, which gets
 * ENODEV for all that it inherited, gives up its copies of our sockets: a port or
 * a name must be free when the parent dies, also if the child lives on. And it may
 * open a NIC of its own: what else it forgets, and when, is in atfork.c.
 */
#include "os/fork.h"
#include "os/fd.h"
#include "os/mapping.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_memory.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

enum {
	FORK_FDS_MAX = 512,
	FORK_RANGES_MAX = 64,
	FORK_STEPS_LOOKS = 50, /* for steps that began before, at ... */
	FORK_STEPS_LOOK_NS = 50 * 1000, /* ... intervals of this */
};

/* @ino makes sure that the child closes our socket, and not what the program
 * got under the same number after it closed ours.
 */
struct fork_fd {
	int fd; /* + 1; 0 when free */
	uint64_t dev, ino;
};

static struct fork_fd fork_fds[FORK_FDS_MAX];
static struct range fork_ranges[FORK_RANGES_MAX]; /* start 0 when free */
static pthread_mutex_t fork_table =
	PTHREAD_MUTEX_INITIALIZER; /* of these two */
static pthread_mutex_t fork_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static uint64_t forks;
static uint32_t forking; /* how deep: a handler may fork */
static uint32_t fork_steps; /* that began when no thread forked */

void fork_in_child(void)
{
	fork_table = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	fork_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	for (unsigned i = 0; i < FORK_FDS_MAX; i++) {
		struct fork_fd *f = &fork_fds[i];

		if (f->fd != 0 && fd_is(f->fd - 1, f->dev, f->ino))
			sys_close(f->fd - 1);
		f->fd = 0;
	}
	memset(fork_ranges, 0, sizeof(fork_ranges));
	fork_steps = 0;
	forking = 0;
}

/* A step may sleep for as long as it likes, in a move that blocks against all
 * expectation. */
static void fork_wait_steps(void)
{
	const struct timespec t = {.tv_nsec = FORK_STEPS_LOOK_NS};

	for (int i = 0; i < FORK_STEPS_LOOKS; i++) {
		if (__atomic_load_n(&fork_steps, __ATOMIC_ACQUIRE) == 0)
			break;
		(void)sys_call(SYS_nanosleep, SYS_PTR(&t), 0, 0, 0, 0, 0);
	}
}

/* Every fault waits for the end of fork(), also a first touch of shared memory:
 * there is to be none by the engine.
 */
void fork_begin(void)
{
	pthread_mutex_lock(&fork_lock);
	/* Pairs with os_step_begin(): one of the two sees the other. */
	__atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&fork_table);
	for (unsigned i = 0; i < FORK_RANGES_MAX; i++)
		if (fork_ranges[i].start != 0)
			(void)sys_madvise(fork_ranges[i].start,
					  fork_ranges[i].end -
						  fork_ranges[i].start,
					  MADV_POPULATE_WRITE);
	pthread_mutex_unlock(&fork_table);
	fork_wait_steps();
}

void fork_end(void)
{
	__atomic_fetch_add(&forks, 1, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&forking, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&fork_lock);
}

uint64_t fork_count(void)
{
	return __atomic_load_n(&forks, __ATOMIC_ACQUIRE);
}

bool fork_in_progress(void)
{
	return __atomic_load_n(&forking, __ATOMIC_ACQUIRE) > 0;
}

bool os_step_begin(void)
{
	if (fork_in_progress())
		return false; /* its memory is being made copy-on-write */
	__atomic_fetch_add(&fork_steps, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&forking, __ATOMIC_SEQ_CST) == 0)
		return true;
	os_step_end(true);
	return false;
}

void os_step_end(bool begun)
{
	if (begun)
		__atomic_fetch_sub(&fork_steps, 1, __ATOMIC_RELEASE);
}

void fork_close_in_child(int fd)
{
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return;
	pthread_mutex_lock(&fork_table);
	for (unsigned i = 0; i < FORK_FDS_MAX; i++) {
		struct fork_fd *f = &fork_fds[i];

		if (f->fd != 0)
			continue;
		f->dev = st.st_dev;
		f->ino = st.st_ino;
		__atomic_store_n(&f->fd, fd + 1, __ATOMIC_RELEASE);
		break;
	}
	pthread_mutex_unlock(&fork_table);
}

void fork_stop(void)
{
	pthread_mutex_lock(&fork_lock);
}

void fork_go_on(void)
{
	pthread_mutex_unlock(&fork_lock);
}

static void range_change(struct range from, struct range to)
{
	pthread_mutex_lock(&fork_table);
	for (unsigned i = 0; i < FORK_RANGES_MAX; i++)
		if (fork_ranges[i].start == from.start) {
			fork_ranges[i] = to;
			break;
		}
	pthread_mutex_unlock(&fork_table);
}

void fork_keep_present(uint64_t addr, uint64_t bytes)
{
	range_change((struct range){0, 0}, (struct range){addr, addr + bytes});
}

void fork_let_go(uint64_t addr)
{
	range_change((struct range){addr, addr}, (struct range){0, 0});
}

void fork_forget(int fd)
{
	pthread_mutex_lock(&fork_table);
	for (unsigned i = 0; i < FORK_FDS_MAX; i++)
		if (fork_fds[i].fd == fd + 1)
			fork_fds[i].fd = 0;
	pthread_mutex_unlock(&fork_table);
}
