/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl.h: requests at the control socket. */
#ifndef NOPIN_NIC_CTL_H
#define NOPIN_NIC_CTL_H

#include <stddef.h>

struct ctl_answer;
struct nic;

/** ctl_request() - Do what @req says, @len bytes that anybody may have written. */
void ctl_request(struct nic *nic, const char *req, size_t len,
		 struct ctl_answer *a);

/** ctl_serve() - Answer a request, if one has come. Context: the background thread. */
void ctl_serve(struct nic *nic);

#endif
