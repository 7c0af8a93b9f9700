/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* token.h: the receive token. */
#ifndef NOPIN_NIC_TOKEN_H
#define NOPIN_NIC_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct step;

/**
 * struct nic_rx - Taking packets from the sockets.
 * @token:	which thread takes, since when (token.c)
 * @rest:	the step that moves while part of its burst is not planned yet (inlet.c)
 * @heard:	all that had come by then has been taken from the sockets and
 *		committed; timers run no further (relaxed; inlet.c)
 * @hear_from, @hear_bytes: what becomes @heard when so much was taken that
 *		nothing older can be left (token)
 * @peek:	a large transfer is in progress (relaxed)
 */
struct nic_rx {
	uint64_t token;
	struct step *rest;
	uint64_t heard, hear_from, hear_bytes;
	uint32_t peek;
};

/* A move of its holder that takes longer lets another thread take it over. */
enum { TOKEN_MOVING_NS = 50 * 1000 };

/** token_held() - True if a thread has @token (nic.rx.token) at @now_ns. */
bool token_held(uint64_t token, uint64_t now_ns);

/**
 * token_take() - Take the token, if it is free or may be taken over.
 * Return: the token as it is while no thread overtakes us and nothing moves; 0:
 * another thread has it.
 */
uint64_t token_take(struct nic *nic, uint64_t now_ns);

/** token_moves() - Mark the token: its holder, which has @mine, begins to move (@moves) or
 * has ended. Does nothing if it was taken over. */
void token_moves(struct nic *nic, uint64_t mine, bool moves);

/** token_give() - Give it back, unless it was taken over. */
void token_give(struct nic *nic, uint64_t mine);

#endif
