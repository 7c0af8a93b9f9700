/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flight.h: the flight recorder. The last FLIGHT_EVENTS things that happened
 * to one QP, cheap enough to be always on. Written under the engine lock;
 * `nopin trace` gets a copy made under the same lock.
 */
#ifndef NOPIN_BASE_FLIGHT_H
#define NOPIN_BASE_FLIGHT_H

#include <stddef.h>
#include <stdint.h>

enum flight_kind {
	FLIGHT_NONE,
#define FLIGHT(name, a, b, help) FLIGHT_##name,
#include "base/flight.def"
#undef FLIGHT
	FLIGHT_NUM
};

struct flight_info {
	const char *name, *a, *b, *help;
};

extern const struct flight_info flight_info[FLIGHT_NUM];

enum { FLIGHT_EVENTS = 64 };

/**
 * struct flight_event
 * @at_ns:	of the engine's clock
 * @psn:	that it is about, or 0
 * @kind:	enum flight_kind
 * @a, @b:	flight.def gives their meaning for each @kind
 */
struct flight_event {
	uint64_t at_ns;
	uint32_t psn;
	uint16_t kind;
	uint16_t a;
	uint64_t b;
};

/** struct flight - @next counts all events ever; the ring keeps the last. */
struct flight {
	uint64_t next;
	struct flight_event ev[FLIGHT_EVENTS];
};

/**
 * flight_line() - Format an event for people, without a newline.
 * @size:	more than 0
 * Return: length; always terminated, cut at @size - 1.
 */
size_t flight_line(char *buf, size_t size, const struct flight_event *e,
		   uint64_t now_ns);

/** flight_log() - Log the whole ring at debug, oldest first. */
void flight_log(const struct flight *f, uint64_t now_ns);

/** flight_note() - Record an event over the oldest one. Context: engine lock. */
static inline void flight_note(struct flight *f, uint64_t now_ns,
			       enum flight_kind kind, uint32_t psn, uint16_t a,
			       uint64_t b)
{
	f->ev[f->next++ % FLIGHT_EVENTS] =
		(struct flight_event){now_ns, psn, (uint16_t)kind, a, b};
}

#endif
