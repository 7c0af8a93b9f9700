/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dlopen.c LIBRARY [TIMES]: a plugin host loads libibverbs, uses it and lets it
 * go, TIMES times: no thread and no descriptor stays behind.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUIRE(c)                                                             \
	do {                                                                   \
		if (!(c)) {                                                    \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__,     \
				__LINE__, #c);                                 \
			exit(1);                                               \
		}                                                              \
	} while (0)

static char memory[8192];

static void *symbol(void *lib, const char *name)
{
	void *p = dlsym(lib, name);

	REQUIRE(p);
	return p;
}

static int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	REQUIRE(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void use(void *lib)
{
	struct ibv_device **(*list)(int *) = symbol(lib, "ibv_get_device_list");
	void (*free_list)(struct ibv_device **) =
		symbol(lib, "ibv_free_device_list");
	struct ibv_context *(*open)(struct ibv_device *) =
		symbol(lib, "ibv_open_device");
	int (*close)(struct ibv_context *) = symbol(lib, "ibv_close_device");
	struct ibv_pd *(*pd)(struct ibv_context *) = symbol(lib,
							    "ibv_alloc_pd");
	int (*pd_end)(struct ibv_pd *) = symbol(lib, "ibv_dealloc_pd");
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t,
			      int) = symbol(lib, "ibv_reg_mr");
	int (*dereg)(struct ibv_mr *) = symbol(lib, "ibv_dereg_mr");
	int n = 0;
	struct ibv_device **devices = list(&n);
	struct ibv_context *ctx;
	struct ibv_pd *domain;
	struct ibv_mr *mr;

	REQUIRE(devices && n > 0);
	ctx = open(devices[0]);
	REQUIRE(ctx);
	free_list(devices);
	domain = pd(ctx);
	REQUIRE(domain);
	mr = reg(domain, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	REQUIRE(mr);
	REQUIRE(dereg(mr) == 0 && pd_end(domain) == 0 && close(ctx) == 0);
}

/* A thread that was joined is seen for a moment longer. */
static void wait_alone(void)
{
	for (int i = 0; entries("/proc/self/task") != 3; i++) { /* ., .., we */
		REQUIRE(i < 1000);
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	const int times = argc > 2 ? atoi(argv[2]) : 100;
	int fds = 0;

	REQUIRE(argc > 1);
	for (int i = 0; i < times; i++) {
		void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

		if (!lib)
			fprintf(stderr, "%s\n", dlerror());
		REQUIRE(lib);
		use(lib);
		REQUIRE(dlclose(lib) == 0);
		if (i == 0)
			fds = entries("/proc/self/fd");
		REQUIRE(entries("/proc/self/fd") == fds);
		wait_alone();
	}
	return 0;
}
