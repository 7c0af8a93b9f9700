/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open.c: a real Linux host: open and close, with all that is in it (design D2, D13). */
#include "base/check.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/page.h"
#include "os/addr.h"
#include "os/atfork.h"
#include "os/doorman.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/fork.h"
#include "os/host.h"
#include "os/kept.h"
#include "os/lane.h"
#include "os/name.h"
#include "os/names.h"
#include "os/net.h"
#include "os/os.h"
#include "os/pager.h"
#include "os/port.h"
#include "os/probe.h"
#include "os/run.h"
#include "os/signal.h"
#include "os/sys.h"
#include "os/sys_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

static int os_open_fds(struct os *os)
{
	os->memory.fd = fd_memory("nopin", 0);
	if (os->memory.fd < 0)
		return os->memory.fd;
	os->kick_fd = fd_high((int)sys_call(
		SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK, 0, 0, 0, 0));
	if (os->kick_fd < 0)
		return os->kick_fd;
	os->ports_ep = fd_high(
		(int)sys_call(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0, 0, 0, 0));
	if (os->ports_ep < 0)
		return os->ports_ep;
	os->libc_fd = fd_high(signals_libc_open());
	return sys_denied(os->libc_fd) ? 0 : MIN(os->libc_fd, 0);
}

/* A child is told by a page of its own that the kernel wipes for it: that
 * works for every kind of fork, also those that run no handlers.
 */
static int os_open_alive(struct os *os)
{
	int ret;

	os->alive = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (os->alive == MAP_FAILED) {
		os->alive = NULL;
		return -ENOMEM;
	}
	ret = sys_madvise((uintptr_t)os->alive, PAGE_BYTES, MADV_WIPEONFORK);
	*os->alive = 1;
	return ret;
}

static void os_init(struct os *os, const struct os_config *cfg)
{
	os->memory.fd = os->kick_fd = os->ports_ep = os->ctl.fd = -1;
	os->libc_fd = -1;
	os->claim.fd = os->claim.port_fd = os->holder.fd = -1;
	os->ctl.client = os->news.fd = -1;
	os->offload.no_gro = cfg->no_gro;
	os->pid = (int)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	os->forks_at_open = fork_count();
	pthread_mutex_init(&os->lock, NULL);
	pthread_mutex_init(&os->door.lock, NULL);
	pthread_mutex_init(&os->ask.lock, NULL);
	for (unsigned i = 0; i < OS_STRIPES; i++)
		pthread_mutex_init(&os->lanes.stripe[i], NULL);
	for (unsigned i = 0; i < OS_PORTS_MAX; i++)
		os->rx.port[i].fd = -1;
	for (unsigned i = 0; i < OS_LANES_MAX; i++)
		os->lanes.lane[i].fd = -1;
}

/* Without lanes memory is copied by two calls that nothing else needs. */
static int os_open_copies(struct os *os)
{
	int lane = lane_get(os), from = 1, to = 0;
	struct iovec a = {&from, sizeof(from)}, b = {&to, sizeof(to)};

	if (lane >= 0) {
		lane_put(os, lane);
		return 0;
	}
	if (sys_vm_readv(os->pid, &b, 1, &a, 1) == sizeof(from) &&
	    sys_vm_writev(os->pid, &b, 1, &a, 1) == sizeof(from))
		return 0;
	return lane;
}

/* @what: fails, if it does */
static int os_open_parts(struct os *os, const struct os_config *cfg,
			 const char **what)
{
	int ret;

	*what = "memory that is empty in a child of fork()";
	ret = os_open_alive(os);
	if (ret < 0)
		return ret;
	*what = "descriptors";
	ret = os_open_fds(os);
	if (ret < 0)
		return ret;
	*what = "a file in memory, or process_vm_readv and process_vm_writev";
	ret = os_open_copies(os);
	if (ret < 0)
		return ret;
	*what = "a UDP socket";
	ret = port_probe(os, cfg->no_gso);
	if (ret < 0)
		return ret;
	*what = "threads (clone3)";
	return pagers_open(&os->pagers, cfg->pagers);
}

static void os_open_failed(const char *what, int ret)
{
	switch (ret) {
	case -EAFNOSUPPORT: /* no network: so no device */
	case -EMFILE: /* the caller tells */
	case -ENFILE:
	case -ENOMEM:
	case -EAGAIN:
		break;
	default:
		log_error("no RDMA: there is no %s: error %d", what, -ret);
	}
}

/**
 * os_open() - Open a host for one NIC.
 * @cfg: borrowed until return
 * Return: 0; -ENOMEM, -EAGAIN (no thread), -EMFILE, -ENFILE, -EAFNOSUPPORT (no IP at
 * all); others, after a line that says what is missing
 */
int os_open(struct os **out, const struct os_config *cfg)
{
	int keep = errno, ret = probe_calls();
	const char *what = "memory";
	struct os *os = NULL;

	if (ret == 0)
		ret = fork_init();
	if (ret < 0)
		return ret;
	os = heap_alloc(sizeof(*os));
	if (!os) {
		errno = keep;
		return -ENOMEM;
	}
	os_init(os, cfg);
	files_begin();
	host_look_now(); /* what that reads stays open, too */
	if (cfg->addr) {
		os->addr_filter = strdup(cfg->addr);
		if (!os->addr_filter)
			ret = -ENOMEM;
	}
	if (ret == 0)
		ret = os_open_parts(os, cfg, &what);
	if (ret < 0)
		os_close(os);
	else
		*out = os;
	if (ret < 0)
		os_open_failed(what, ret);
	errno = keep;
	return ret;
}

void os_close(struct os *os)
{
	int keep = errno;

	pagers_close(os->pagers);
	door_close(os);
	name_close(os);
	net_close(os);
	fd_drop(&os->spares.port);
	os_board_close(os);
	for (int i = 0; i < OS_PORTS_MAX; i++)
		if (os->rx.port[i].fd >= 0)
			os_port_close(os, i);
	lines_close(os);
	lanes_close(os);
	for (unsigned i = 0; i < os->memory.nregions; i++) {
		fork_let_go((uintptr_t)os->memory.region[i].base);
		munmap(os->memory.region[i].base, os->memory.region[i].bytes);
	}
	files_end();
	fd_close(os->memory.fd);
	fd_close(os->kick_fd);
	fd_close(os->ports_ep);
	fd_close(os->libc_fd);
	if (os->alive)
		munmap(os->alive, PAGE_BYTES);
	for (unsigned i = 0; i < OS_STRIPES; i++)
		pthread_mutex_destroy(&os->lanes.stripe[i]);
	pthread_mutex_destroy(&os->lock);
	pthread_mutex_destroy(&os->door.lock);
	pthread_mutex_destroy(&os->ask.lock);
	free(os->addr_filter);
	heap_free(os);
	errno = keep;
}

void os_prepare(struct os *os)
{
	if (!fd_spare())
		return;
	name_prepare(os);
	line_prepare(os);
	lane_prepare(os);
}
