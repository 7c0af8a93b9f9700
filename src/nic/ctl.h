/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl.h: requests at the control socket. */
#ifndef NOPIN_NIC_CTL_H
#define NOPIN_NIC_CTL_H

#include "base/base.h"

struct nic;

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

/** ctl_answer() - Do what @req says, @len bytes that anybody may have written. */
void ctl_answer(struct nic *nic, const char *req, size_t len,
		struct ctl_answer *a);

/** ctl_serve() - Answer who asked. Context: the background thread. */
void ctl_serve(struct nic *nic);
/* suspend.c: commands */
void ctl_move(struct nic *nic, int argc, char **argv, struct ctl_answer *a);
void ctl_resume(struct nic *nic, int argc, char **argv, struct ctl_answer *a);
void ctl_suspend(struct nic *nic, int argc, char **argv, struct ctl_answer *a);

#endif
