/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stat.h: what is accounted, as text. */
#ifndef NOPIN_NIC_STAT_H
#define NOPIN_NIC_STAT_H

#include "base/base.h"

struct ctl_answer;
struct nic;

/** struct text - Grows; @lost: there was no memory for all of it. */
struct text {
	char *p;
	size_t len, size;
	bool lost;
};

/** text_add() - At most 255 bytes. */
__attribute__((format(printf, 2, 3))) void text_add(struct text *t,
						    const char *fmt, ...);

/** text_answer() - Consumes @t. */
void text_answer(struct text *t, struct ctl_answer *a);

/** stat_text() - JSON: what is accounted of the NIC, its QPs and regions. */
void stat_text(struct nic *nic, struct ctl_answer *a);

#endif
