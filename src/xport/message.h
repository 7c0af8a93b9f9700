/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* message.h: the place of a responder within a message. */
#ifndef NOPIN_XPORT_MESSAGE_H
#define NOPIN_XPORT_MESSAGE_H

#include "base/account.h"
#include "ring/receive.h"

/**
 * struct message - Where the responder is within a message, at window.head (or
 * at the end of what is being moved).
 * @op:		OPF_SEND or OPF_WRITE while inside a message, 0 between two
 * @source:	where it takes a receive, if it needs one, and @recv: that it has
 * @msn:	messages completed (24 bits)
 * @done:	bytes so far
 * @met:	faults so far
 * @va,@rkey,@left: WRITE: next address, key, bytes still to come
 */
struct message {
	uint32_t op;
	uint32_t rkey;
	uint32_t msn;
	struct receive_source *source;
	struct receive recv;
	uint64_t done;
	struct met met;
	uint64_t va, left;
};

#endif
