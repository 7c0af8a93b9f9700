/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* holder.c: waiting for the holder of UDP port 4791 (roce.c), and telling programs of it. */
#include "nic/holder.h"
#include "base/check.h"
#include "base/log.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/roce.h"
#include "nic/text.h"
#include "os/names.h"
#include "os/run.h"

#include <inttypes.h>

enum {
	WELCOME_MAX_NS = 500 * 1000 * 1000,
	REFUSED_AGAIN_NS = 1000 * 1000,
};

/* Is it still to be seen if the holder passes on to us? */
static bool welcome_due(const struct nic *nic)
{
	if (nic->roce.guest >= 0)
		return !nic->roce.told;
	return nic->roce.begins;
}

void roce_welcome(struct nic *nic)
{
	const uint64_t until = os_now(nic->os) + WELCOME_MAX_NS;
	uint64_t now;
	bool wait;
	int fd;

	do {
		nic_lock(nic);
		now = nic->x.now;
		if (welcome_due(nic)) {
			nic->roce.try_ns = now;
			roce_claim(nic);
		}
		wait = welcome_due(nic);
		nic->roce.late |= wait && now >= until;
		wait = wait && !nic->roce.late;
		fd = nic->roce.guest;
		nic_unlock(nic);
		/* one that does not listen yet has nothing to sleep on */
		if (wait)
			os_holder_wait(nic->os, fd,
				       fd >= 0 ? until
					       : now + REFUSED_AGAIN_NS);
	} while (wait);
}

static void say_news(struct nic *nic)
{
	struct os_holder who;
	enum roce_state state;

	nic_lock(nic);
	__atomic_store_n(&nic->roce.news, false, __ATOMIC_RELAXED);
	nic->roce.said = state = nic->roce.state;
	who = nic->roce.who;
	nic_unlock(nic);
	if (state == ROCE_STRANGER)
		log_warn("standard peers do not reach this NIC: UDP port 4791 "
			 "is held by process %" PRId32 " of user %" PRIu32,
			 who.pid, who.uid);
	else if (state == ROCE_REFUSED && !who.pid)
		log_warn("standard peers do not reach this NIC: the process "
			 "that "
			 "holds UDP port 4791 does not answer");
	else if (state == ROCE_REFUSED)
		log_warn(
			"standard peers do not reach this NIC: process %" PRId32
			" of user %" PRIu32 ", which holds UDP port 4791, "
			"passes nothing on to it",
			who.pid, who.uid);
	else if (state == ROCE_TAKEN)
		log_warn("standard peers do not reach this NIC: UDP port 4791 "
			 "is in use, and not by a nopin");
}

/* The program closed our descriptors: another NIC is to hold the port. */
static void holder_closed(struct nic *nic)
{
	int claim = -1;

	nic_lock(nic);
	if (nic->roce.port >= 0) {
		claim = nic->roce.claim;
		nic->roce.claim = -1;
	}
	nic_unlock(nic);
	if (claim >= 0)
		os_claim_closed(nic->os, claim);
}

uint64_t roce_turn(struct nic *nic, uint64_t until)
{
	const bool orphan = __atomic_load_n(&nic->roce.orphan,
					    __ATOMIC_RELAXED);

	/* the numbers may be somebody else's by now */
	if (__atomic_load_n(&nic->closed, __ATOMIC_RELAXED)) {
		holder_closed(nic);
		return until;
	}
	if (os_holder_spoke(nic->os) || orphan) {
		nic_lock(nic);
		/* what it says is read at once: unread it ends each sleep */
		if (nic->roce.guest >= 0)
			nic->roce.try_ns = nic->x.now;
		roce_claim(nic);
		if (__atomic_load_n(&nic->roce.orphan, __ATOMIC_RELAXED))
			until = MIN(until, nic->roce.try_ns);
		nic_unlock(nic);
	}
	if (__atomic_load_n(&nic->roce.news, __ATOMIC_RELAXED))
		say_news(nic);
	return until;
}

void roce_text(struct nic *nic, struct text *t)
{
	static const char *const names[ROCE_NUM] = {
		[ROCE_UNASKED] = "unasked", [ROCE_OURS] = "ours",
		[ROCE_SERVED] = "served",   [ROCE_STRANGER] = "stranger",
		[ROCE_TAKEN] = "taken",	    [ROCE_REFUSED] = "refused",
	};
	struct os_holder who;
	enum roce_state state;

	nic_lock(nic);
	if (nic->roce.state != ROCE_UNASKED)
		roce_claim(nic);
	state = nic->roce.state;
	who = nic->roce.who;
	nic_unlock(nic);
	text_add(t, "\"port_4791\":{\"state\":\"%s\"", names[state]);
	if (state == ROCE_SERVED || state == ROCE_STRANGER ||
	    (state == ROCE_REFUSED && who.pid))
		text_add(t, ",\"pid\":%" PRId32, who.pid);
	if (state == ROCE_STRANGER || (state == ROCE_REFUSED && who.pid))
		text_add(t, ",\"uid\":%" PRIu32, who.uid);
	text_add(t, "}");
}
