/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* text.h: text that grows: an answer at the control socket. */
#ifndef NOPIN_NIC_TEXT_H
#define NOPIN_NIC_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct ctl_answer - To a request at the control socket.
 * @error:	if not empty, the answer is this
 * @text:	else @len bytes from malloc(), the caller's to free; NULL: there was
 *		no memory
 */
struct ctl_answer {
	char error[192];
	char *text;
	size_t len;
};

/** struct text - Grows; @lost: there was no memory for all of it. */
struct text {
	char *p;
	size_t len, size;
	bool lost;
};

/** text_add() - Append at most 255 bytes; if there are more, @t is lost. */
__attribute__((format(printf, 2, 3))) void text_add(struct text *t,
						    const char *fmt, ...);

/** text_answer() - Make @t the answer, if it is not lost. Consumes @t. */
void text_answer(struct text *t, struct ctl_answer *a);

#endif
