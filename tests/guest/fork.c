/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.c fork|early|first|_Fork|clone|busy: a child has a NIC of its own, once it opens the
 * device; what it inherited answers ENODEV, and its parent notices nothing.
 *  fork    the child opens the device, and so does its child
 *  early   handlers that the program registered before it opened the device close it
 *          and open it again: before the fork, and after it in parent and child
 *  first   so do handlers that were there before any library's
 *  _Fork, clone   no handler runs
 *  busy    while other threads open and close the device
 */
#include "link.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { BUSY_FORKS = 20, BUSY_THREADS = 2 };

static struct link l;

static void use(struct link *link)
{
	for (int i = 0; i < 10; i++)
		link_send(link, i & 1, i % 2 ? LINK_BYTES : 100,
			  (uint8_t)(i | 1));
}

static void inherited(const struct link *link)
{
	struct ibv_device_attr attr;
	struct ibv_wc wc;

	REQUIRE(ibv_poll_cq(link->cq[0], 1, &wc) == -ENODEV);
	REQUIRE(ibv_destroy_qp(link->qp[0]) == ENODEV);
	REQUIRE(ibv_query_device(link->ctx, &attr) == ENODEV ||
		attr.max_qp > 0);
	REQUIRE(ibv_dereg_mr(link->mr) == ENODEV);
	REQUIRE(ibv_close_device(link->ctx) == ENODEV);
}

/* What a child's copy of its parent's NIC pointed at is lost with that, as it should. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void open_in_child(const struct link *parents)
{
	struct link own;

	inherited(parents);
	link_open(&own);
	inherited(parents);
	use(&own);
	link_close(&own);
	/* and again */
	link_open(&own);
	use(&own);
	inherited(parents);
	link_close(&own);
}

static void wait_for(pid_t pid)
{
	int status;

	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void with_grandchild(void)
{
	pid_t pid = fork();
	struct link own;

	if (pid == 0) {
		open_in_child(&l);
		link_open(&own);
		pid = fork();
		if (pid == 0) {
			inherited(&l);
			open_in_child(&own);
			_exit(42);
		}
		use(&own);
		wait_for(pid);
		link_close(&own);
		exit(42); /* destructors, too */
	}
	use(&l);
	wait_for(pid);
}

static pid_t raw_clone(void)
{
	return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
}

static void without_handlers(pid_t (*make)(void))
{
	pid_t pid = make();

	if (pid == 0) {
		open_in_child(&l);
		_exit(42);
	}
	use(&l);
	wait_for(pid);
}

static bool handlers, first;
static int prepared, in_parent, in_child;

static void reopen(void)
{
	if (!first) /* data may have to wait */
		use(&l);
	link_close(&l);
	link_open(&l);
	if (!first)
		use(&l);
}

static void before_fork(void)
{
	if (handlers)
		reopen();
	prepared += handlers;
}

static void after_in_parent(void)
{
	if (handlers)
		reopen();
	in_parent += handlers;
}

static void after_in_child(void)
{
	if (handlers) {
		inherited(&l);
		link_open(&l);
		use(&l);
	}
	in_child += handlers;
}

static void install(void)
{
	REQUIRE(pthread_atfork(before_fork, after_in_parent, after_in_child) ==
		0);
}

static void install_first(int argc, char **argv, char **env)
{
	(void)env;
	first = argc > 1 && strcmp(argv[1], "first") == 0;
	if (first)
		install();
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const preinit)(int argc, char **argv,
						   char **env) = install_first;

static void with_handlers(void)
{
	pid_t pid;

	handlers = true;
	pid = fork();
	handlers = false;
	if (pid == 0) {
		REQUIRE(in_child == 1);
		use(&l); /* what the handler opened */
		pid = fork();
		if (pid == 0) {
			open_in_child(&l);
			_exit(42);
		}
		wait_for(pid);
		use(&l);
		link_close(&l);
		_exit(42);
	}
	REQUIRE(prepared == 1 && in_parent == 1);
	use(&l);
	wait_for(pid);
	use(&l);
}

static bool stop;

static void *open_and_close(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct ibv_context *ctx = link_device();
		struct ibv_cq *cq;

		REQUIRE(ctx);
		cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
		REQUIRE(cq && ibv_destroy_cq(cq) == 0);
		REQUIRE(ibv_close_device(ctx) == 0);
	}
	return arg;
}

static void while_busy(void)
{
	pthread_t t[BUSY_THREADS];
	struct link own;

	for (int i = 0; i < BUSY_THREADS; i++)
		REQUIRE(!pthread_create(&t[i], NULL, open_and_close, NULL));
	for (int i = 0; i < BUSY_FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(PATIENCE);
			link_open(&own);
			link_send(&own, 0, 100, 1);
			link_close(&own);
			_exit(42);
		}
		wait_for(pid);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < BUSY_THREADS; i++)
		REQUIRE(pthread_join(t[i], NULL) == 0);
}

int main(int argc, char **argv)
{
	const char *how = argv[1];

	REQUIRE(argc == 2);
	alarm(5 * PATIENCE);
	if (!first)
		install();
	if (strcmp(how, "busy") == 0) {
		while_busy();
		return 0;
	}
	REQUIRE(ibv_fork_init() == 0);
	link_open(&l);
	use(&l);
	if (strcmp(how, "fork") == 0)
		with_grandchild();
	else if (strcmp(how, "early") == 0 || first)
		with_handlers();
	else if (strcmp(how, "_Fork") == 0)
		without_handlers(_Fork);
	else if (strcmp(how, "clone") == 0)
		without_handlers(raw_clone);
	else
		REQUIRE(!"no such way");
	use(&l);
	link_close(&l);
	return 0;
}
