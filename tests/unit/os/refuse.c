/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refuse.c: see refuse.h. */
#include "refuse.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rules may change while an idle pager looks at them; it does not matter. */
#define RACY __attribute__((no_sanitize("thread")))
/* An argument that was not passed is read from the caller's frame, and thrown away. */
#define READS_SIX __attribute__((no_sanitize("address")))

enum { RULES_MAX = 16, CALLS_MAX = 600 };

struct rule {
	long nr, value;
	int arg, err;
	unsigned nth; /* 0: every call */
};

static struct rule rules[RULES_MAX];
static unsigned nrules;
static unsigned calls[CALLS_MAX];
static const char *redirects[RULES_MAX][2];
static unsigned nredirects;
static void (*meanwhile_what)(void);
static long meanwhile_nr;

RACY void refuse(long nr, int arg, long value, int err)
{
	rules[nrules++] = (struct rule){nr, value, arg, err, 0};
}

RACY void refuse_nth(long nr, unsigned n, int err)
{
	rules[nrules++] = (struct rule){nr, 0, -1, err, n};
}

RACY void meanwhile(long nr, void (*what)(void))
{
	meanwhile_nr = nr;
	meanwhile_what = what;
}

RACY void redirect(const char *path, const char *to)
{
	redirects[nredirects][0] = path;
	redirects[nredirects++][1] = to;
}

RACY void refuse_none(void)
{
	nrules = nredirects = 0;
	meanwhile_what = NULL;
	for (unsigned i = 0; i < CALLS_MAX; i++)
		__atomic_store_n(&calls[i], 0, __ATOMIC_RELAXED);
}

unsigned refuse_calls(long nr)
{
	return __atomic_load_n(&calls[nr], __ATOMIC_RELAXED);
}

RACY static int verdict(long nr, const long *a)
{
	for (unsigned i = 0; i < nrules; i++) {
		struct rule *r = &rules[i];

		if (r->nr != nr || (r->arg >= 0 && a[r->arg] != r->value))
			continue;
		if (r->nth == 0)
			return r->err;
		if (__atomic_sub_fetch(&r->nth, 1, __ATOMIC_RELAXED) == 0) {
			r->nr = -1;
			return r->err;
		}
	}
	return 0;
}

static long (*real)(long nr, ...);

/* Early: some calls are made in signal handlers. */
__attribute__((constructor)) static void find_real(void)
{
	*(void **)&real = dlsym(RTLD_NEXT, "syscall");
}

RACY READS_SIX long syscall(long nr, ...)
{
	va_list ap;
	const bool named = nr == SYS_openat || nr == SYS_newfstatat;
	long a[6];
	int err;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!real)
		find_real();
	if (nr >= 0 && nr < CALLS_MAX)
		__atomic_fetch_add(&calls[nr], 1, __ATOMIC_RELAXED);
	if (meanwhile_what && nr == meanwhile_nr) {
		void (*what)(void) = meanwhile_what;

		meanwhile_what = NULL;
		what();
	}
	err = verdict(nr, a);
	if (err) {
		errno = err;
		return -1;
	}
	for (unsigned i = 0; named && i < nredirects; i++)
		if (strcmp((const char *)a[1], redirects[i][0]) == 0)
			a[1] = (long)redirects[i][1];
	return real(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
