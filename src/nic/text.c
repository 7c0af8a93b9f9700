/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* text.c: text that grows: an answer at the control socket. */
#include "nic/text.h"
#include "base/check.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MIN = 64 * 1024 };

static bool text_grow(struct text *t, size_t by)
{
	size_t size = MAX(t->size * 2, TEXT_MIN);
	char *p;

	if (t->size - t->len > by)
		return true;
	size = MAX(size, t->len + by + 1);
	p = realloc(t->p, size);
	if (!p) {
		t->lost = true;
		return false;
	}
	t->p = p;
	t->size = size;
	return true;
}

void text_add(struct text *t, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(line) || !text_grow(t, (size_t)n)) {
		t->lost = true;
		return;
	}
	memcpy(t->p + t->len, line, (size_t)n + 1);
	t->len += (size_t)n;
}

void text_answer(struct text *t, struct ctl_answer *a)
{
	if (t->lost)
		free(t->p);
	else
		*a = (struct ctl_answer){.text = t->p, .len = t->len};
}
