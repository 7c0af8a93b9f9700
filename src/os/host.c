/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.c: could an allocation have to wait here? With little memory left, or near
 * the limit of a memory cgroup (v1 or v2) it could. And is there swap?
 */
#include "os/host.h"
#include "base/check.h"
#include "os/file.h"
#include "os/sys_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB UINT64_C(1048576)

static const uint64_t host_look_ns = 20000000;
static const uint64_t host_near = 64 * MIB;

static uint64_t host_looked;
static bool host_short = true; /* until a thread has looked */
static bool host_swap = true;

bool host_is_short(void)
{
	return __atomic_load_n(&host_short, __ATOMIC_RELAXED);
}

bool host_has_swap(void)
{
	return __atomic_load_n(&host_swap, __ATOMIC_RELAXED);
}

/* Return: bytes of text in @buf (always terminated), or -errno. */
static ssize_t host_read(const char *path, char *buf, size_t size)
{
	int fd = file_share(path);
	ssize_t n;

	buf[0] = 0;
	if (fd < 0)
		return fd;
	n = sys_pread(fd, buf, size - 1, 0);
	file_return(fd);
	if (n >= 0)
		buf[n] = 0;
	return n;
}

/* A number in a file of its own; "max" or no file: @none. */
static uint64_t host_number(const char *dir, const char *file, uint64_t none)
{
	char path[512], text[32], *end;
	uint64_t v;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >=
		    sizeof(path) ||
	    host_read(path, text, sizeof(text)) <= 0)
		return none;
	v = strtoull(text, &end, 10);
	return end == text ? none : v;
}

static bool limit_near(uint64_t limit, uint64_t used)
{
	if (limit == UINT64_MAX)
		return false;
	return used >= limit || limit - used < MAX(limit / 10, host_near);
}

/* @dir and all above it, down to @root characters. */
static bool cgroup_near(char *dir, size_t root)
{
	for (;;) {
		char *slash;
		uint64_t v1 = host_number(dir, "memory.limit_in_bytes",
					  UINT64_MAX);
		uint64_t max = host_number(dir, "memory.max", UINT64_MAX);
		uint64_t high = host_number(dir, "memory.high", UINT64_MAX);

		if (limit_near(v1,
			       host_number(dir, "memory.usage_in_bytes", 0)) ||
		    limit_near(MIN(max, high),
			       host_number(dir, "memory.current", 0)))
			return true;
		slash = strrchr(dir, '/');
		if (!slash || (size_t)(slash - dir) < root)
			return false;
		*slash = 0;
	}
}

/* One line of /proc/self/cgroup: "4:memory:/a/b" (v1), "0::/a/b" (v2). */
static bool cgroup_line_near(const char *line)
{
	static const char v1[] = "/sys/fs/cgroup/memory",
			  v2[] = "/sys/fs/cgroup";
	const char *names = strchr(line, ':'), *path;
	bool memory, unified;
	char dir[400];
	int n;

	path = names ? strchr(names + 1, ':') : NULL;
	if (!path)
		return false;
	unified = path == names + 1;
	memory = strncmp(names, ":memory", 7) == 0 || strstr(names, ",memory");
	if (!unified && !memory)
		return false;
	n = snprintf(dir, sizeof(dir), "%s%s", unified ? v2 : v1, path + 1);
	if (n < 0 || (size_t)n >= sizeof(dir))
		return true; /* we do not know */
	return cgroup_near(dir, unified ? sizeof(v2) - 1 : sizeof(v1) - 1);
}

static bool cgroups_near(void)
{
	char text[768], *save = NULL, *line;

	if (host_read("/proc/self/cgroup", text, sizeof(text)) <= 0)
		return false;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (cgroup_line_near(line))
			return true;
	return false;
}

/* A line of meminfo in bytes; @none if it is not there. */
static uint64_t meminfo_bytes(const char *text, const char *name, uint64_t none)
{
	const char *p = strstr(text, name);

	return p ? strtoull(p + strlen(name), NULL, 10) * 1024 : none;
}

static bool host_meminfo_short(void)
{
	uint64_t total, avail;
	char text[768] = "";

	(void)host_read("/proc/meminfo", text, sizeof(text));
	__atomic_store_n(&host_swap, meminfo_bytes(text, "SwapTotal:", 1) > 0,
			 __ATOMIC_RELAXED);
	total = meminfo_bytes(text, "MemTotal:", 0);
	avail = meminfo_bytes(text, "MemAvailable:", 0);
	return avail < MAX(total / 20, (uint64_t)host_near);
}

void host_look_now(void)
{
	bool is_short = host_meminfo_short() || cgroups_near();

	__atomic_store_n(&host_short, is_short, __ATOMIC_RELAXED);
}

void host_look(uint64_t now_ns)
{
	uint64_t last = __atomic_load_n(&host_looked, __ATOMIC_RELAXED);

	/* One of the pagers looks, the others believe it. */
	if ((last != 0 && now_ns - last < host_look_ns) ||
	    !__atomic_compare_exchange_n(&host_looked, &last, now_ns, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	host_look_now();
}
