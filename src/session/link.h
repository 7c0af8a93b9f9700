/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h: a QP that a program made for a session, and what lies in memory at either end
 * of it.
 */
#ifndef NOPIN_SESSION_LINK_H
#define NOPIN_SESSION_LINK_H

#include "base/page.h"
#include "ext/ext.h"
#include "session/blocks.h"
#include "session/news.h"
#include "session/sync.h"

enum { LINK_DEPTH = 8, LINE = 64 };

/** struct box - Of a member at its home: message number n is in msg[n % SYNC_BOX]. */
struct box {
	struct sync_msg msg[SYNC_BOX];
	uint64_t confirmed;
	uint64_t pad[7];
};
static_assert(sizeof(struct box) % LINE == 0, "no two members share a line");

/** enum ask_op - READY: addr..last is to be. LEAVE: the user is to be none any more. */
enum ask_op { ASK_NONE, ASK_READY, ASK_LEAVE };

/**
 * struct ask - Of a user at its owner: a request, which stands until it is answered.
 * @consumed:	records of news that it has read; also written alone
 */
struct ask {
	uint64_t consumed, op, addr, last;
	uint64_t pad[4];
};
static_assert(sizeof(struct ask) == LINE, "no two users share a line");

/** ASK_SENT - Bytes of it. NEWS: records of a row. READY_MAX: bytes of a request, and
 * of a block. */
enum { ASK_SENT = 32, NEWS = 128, READY_MAX = 1 << 30 };

/** is_block() - May a user's blocks have so many bytes? */
static inline bool is_block(uint64_t bytes)
{
	return bytes >= PAGE_BYTES && bytes <= READY_MAX &&
	       !(bytes & (bytes - 1));
}

/**
 * struct link - All requests are signaled.
 * @out:	without a completion
 * @failed:	the connection is over
 */
struct link {
	struct ibv_qp *qp;
	unsigned out;
	bool failed;
};

/** link_check() - Check that @qp can be a link. Return: 0; EINVAL: not what it takes. */
int link_check(struct ibv_qp *qp);
/**
 * link_write() - Post a WRITE of @len bytes at @from, with key @lkey.
 * @counter:	of the peer, to raise; 0: none
 */
int link_write(struct link *l, const void *from, uint32_t len, uint32_t lkey,
	       uint64_t to, uint32_t rkey, uint32_t counter);
/** link_atomic() - Post @wr, an atomic without flags and SGEs. @old: 8 bytes. */
int link_atomic(struct link *l, struct ibv_send_wr wr, void *old,
		uint32_t lkey);
/** link_reap() - Take completions. */
void link_reap(struct link *l);
/** link_probe() - Look, after a while, whether the peer is there; ask if nothing is under
 * way. Return: 0; ENOTCONN: no. */
int link_probe(struct link *l);
/** link_ask() - Ask whether the peer lives, by a WRITE of nothing. */
int link_ask(struct link *l);
/** link_fail() - End the connection: from the return on nothing of the peer arrives. */
void link_fail(struct link *l);

#endif
