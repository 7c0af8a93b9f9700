/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* news.h: the row of news in which the owner of memory tells a user of it what is ready
 * to be written to. Nothing here does I/O, waits or knows the time.
 *
 * Theory of operation. All that an owner tells a user is in one row and in one
 * order: the answer to a request, "these bytes are ready", and what was lost, "these
 * are not any more". A user that reads the row from the beginning knows of nothing that was
 * lost before the record it read last. The row is a ring that the owner never
 * overwrites: as the room ends it says "all is lost" once, which is true of whatever
 * the user may believe then, and from there until the next answer there is nothing
 * to add. Room for an answer and another "all is lost" is kept: a user asks for one
 * thing at a time, when it has read the answer before.
 *
 * What is lost while the owner works at a request may have been ready for it
 * already: it is told again behind the answer. Being told twice costs a request; not
 * being told would be wrong.
 */
#ifndef NOPIN_SESSION_NEWS_H
#define NOPIN_SESSION_NEWS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * enum news_kind -
 * NEWS_LOST:	addr..last
 * NEWS_ALL_LOST: everything
 * NEWS_ANSWER:	@result
 */
enum news_kind { NEWS_NONE, NEWS_LOST, NEWS_ALL_LOST, NEWS_ANSWER, NEWS_NUM };

/**
 * enum news_result - Of a request. READY. NO_REGION: it is not in one. FAILED: its
 * pages cannot be had.
 */
enum news_result {
	RESULT_NONE,
	RESULT_READY,
	RESULT_NO_REGION,
	RESULT_FAILED,
	RESULT_NUM
};

/**
 * struct news - A record, in host byte order.
 * @batch:	of the first of those that were sent together: how many they are
 * @last:	the last byte, so that there is no 2^64
 */
struct news {
	uint32_t kind, batch;
	uint64_t addr, last, result;
};
static_assert(sizeof(struct news) == 32, "two in a line");

/** NEWS_ROOM_MIN - Lost, all lost, an answer, all lost. */
enum { NEWS_ROOM_MIN = 4 };

/**
 * struct news_row - The owner's side; record n is in slot[n % cap].
 * consumed <= sent <= written <= consumed + cap
 * @consumed:	what the user says it has read
 * @silent:	all is lost, and nothing was answered since
 * @asked:	the owner works at a request for addr..last
 * @doubt:	some of it was lost since
 */
struct news_row {
	struct news *slot;
	uint32_t cap;
	uint64_t written, sent, consumed;
	bool silent, asked, doubt;
	uint64_t addr, last;
};

/** row_init() - Initialize the row of a user that knows nothing.
 * @slot: of @cap >= NEWS_ROOM_MIN. */
void row_init(struct news_row *r, struct news *slot, uint32_t cap);
/** row_consumed() - Note how many records the user says it has read. That may be nonsense:
 * then it does not count. */
void row_consumed(struct news_row *r, uint64_t consumed);
/** row_lost() - Note, for the user, that addr..last is not ready any more. */
void row_lost(struct news_row *r, uint64_t addr, uint64_t last);
/** row_ask() - Note that the owner begins to work at a request for addr..last. */
void row_ask(struct news_row *r, uint64_t addr, uint64_t last);
/** row_answer() - Answer that request. Return: false: no user asks that has not read. */
bool row_answer(struct news_row *r, enum news_result result);
/**
 * row_send() - Find what is to be sent next: @num slots from @at on are contiguous, and
 * count as sent.
 * Return: false: nothing.
 */
bool row_send(struct news_row *r, uint32_t *at, uint32_t *num);

/**
 * struct news_reader - The user's side.
 * @slot:	that the owner writes to
 * @batches:	begun; @left: records of the last one
 */
struct news_reader {
	const struct news *slot;
	uint32_t cap, left;
	uint64_t consumed, batches;
};

/**
 * reader_next() - Copy the next record to @out.
 * @arrived:	batches
 * Return: 1; 0: there is none; -EPROTO: no owner writes that.
 */
int reader_next(struct news_reader *r, uint64_t arrived, struct news *out);

#endif
