/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.h: events that were handed out and not acknowledged. */
#ifndef NOPIN_VERBS_EVENT_H
#define NOPIN_VERBS_EVENT_H

#include "verbs/object.h"

#include <pthread.h>
#include <stdint.h>

/** tracked_add() - Give @t a cookie for its events. Return: 0, or -ENOMEM. */
int tracked_add(struct tracked *t);
/** tracked_del() - Forget @t: no event is handed out for it any more. */
void tracked_del(struct tracked *t);
/** tracked_wait() - Wait until *@acked reaches @handed_out. */
void tracked_wait(pthread_mutex_t *mutex, pthread_cond_t *cond,
		  const uint32_t *acked, uint32_t handed_out);

#endif
