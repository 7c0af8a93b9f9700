/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* token.c: the receive token: one thread takes packets from the sockets, in their order. */
#include "nic/token.h"
#include "base/counters.h"
#include "nic/device.h"

enum {
	/* The scheduler took the holder off its CPU. What is received before
	 * it comes back looks as if its burst were lost. */
	TOKEN_STALE_NS = 200 * 1000 * 1000,
};

/* nic.rx.token: 0, or the time it was taken at << 1, | TOKEN_MOVES. One word: whoever
 * overtakes takes the mark with it, so nobody finds the new holder's token with
 * the old one's mark (model: tests/model/token.pml). */
enum { TOKEN_MOVES = 1 };

static uint64_t token_limit_ns(uint64_t token)
{
	return token & TOKEN_MOVES ? TOKEN_MOVING_NS : TOKEN_STALE_NS;
}

bool token_held(uint64_t token, uint64_t now_ns)
{
	uint64_t since = token >> 1;

	return token &&
	       (now_ns < since || now_ns - since < token_limit_ns(token));
}

uint64_t token_take(struct nic *nic, uint64_t now_ns)
{
	uint64_t held = __atomic_load_n(&nic->rx.token, __ATOMIC_RELAXED);
	uint64_t mine = now_ns << 1;

	if (token_held(held, now_ns) ||
	    !__atomic_compare_exchange_n(&nic->rx.token, &held, mine, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	if (held)
		count_atomic(&nic->cnt,
			     held & TOKEN_MOVES ? CNT_token_moving
						: CNT_token_stale,
			     1);
	return mine;
}

/* Only between a plan and its commit may the token be taken over soon: then the
 * QP is known to be moving. Before, our burst is out of the socket and known to
 * nobody, and whoever overtook us would take it for lost. */
void token_moves(struct nic *nic, uint64_t mine, bool moves)
{
	uint64_t from = mine | (moves ? 0 : TOKEN_MOVES);

	__atomic_compare_exchange_n(&nic->rx.token, &from, from ^ TOKEN_MOVES,
				    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void token_give(struct nic *nic, uint64_t mine)
{
	__atomic_compare_exchange_n(&nic->rx.token, &mine, 0, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}
