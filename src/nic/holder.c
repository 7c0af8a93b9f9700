/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* holder.c: waiting for the holder of UDP port 4791 (roce.c), and telling programs of it. */
#include "nic/holder.h"
#include "base/check.h"
#include "base/log.h"
#include "nic/closed.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/roce.h"
#include "nic/text.h"
#include "os/names.h"
#include "os/run.h"

#include <inttypes.h>
#include <stdio.h>

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

/* Say of which process @who is, in @buf. */
static const char *who_text(const struct os_holder *who, char *buf, size_t size)
{
	if (who->pid)
		snprintf(buf, size, "process %" PRId32 " of user %" PRIu32,
			 who->pid, who->uid);
	else if (who->uid != OS_NO_USER)
		snprintf(buf, size, "a process of user %" PRIu32, who->uid);
	else
		snprintf(buf, size, "a process");
	return buf;
}

static void say_news(struct nic *nic)
{
	static const char *const what[ROCE_NUM] = {
		[ROCE_STRANGER] = "",
		[ROCE_REFUSED] = ", which passes nothing on to it",
		[ROCE_SILENT] = ", which does not answer",
	};
	struct os_holder who;
	enum roce_state state;
	char buf[64];

	nic_lock(nic);
	__atomic_store_n(&nic->roce.news, false, __ATOMIC_RELAXED);
	nic->roce.said = state = nic->roce.state;
	who = nic->roce.who;
	nic_unlock(nic);
	if (what[state])
		log_warn("standard peers do not reach this NIC: UDP port 4791 "
			 "is held by %s%s",
			 who_text(&who, buf, sizeof(buf)), what[state]);
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
	roce_leave(nic); /* its end would end each sleep */
	nic_unlock(nic);
	if (claim >= 0)
		os_claim_closed(nic->os, claim);
}

uint64_t roce_turn(struct nic *nic, uint64_t until)
{
	const bool orphan = __atomic_load_n(&nic->roce.orphan,
					    __ATOMIC_RELAXED);

	/* the numbers may be somebody else's by now */
	if (closed_noted(nic)) {
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
		[ROCE_SILENT] = "silent",
	};
	static const bool holds[ROCE_NUM] = {[ROCE_SERVED] = true,
					     [ROCE_STRANGER] = true,
					     [ROCE_REFUSED] = true,
					     [ROCE_SILENT] = true};
	struct os_holder who;
	enum roce_state state;

	nic_lock(nic);
	if (nic->roce.state != ROCE_UNASKED)
		roce_claim(nic);
	state = nic->roce.state;
	who = nic->roce.who;
	nic_unlock(nic);
	text_add(t, "\"port_4791\":{\"state\":\"%s\"", names[state]);
	if (holds[state] && who.pid)
		text_add(t, ",\"pid\":%" PRId32, who.pid);
	if (holds[state] && who.uid != OS_NO_USER)
		text_add(t, ",\"uid\":%" PRIu32, who.uid);
	text_add(t, "}");
}
