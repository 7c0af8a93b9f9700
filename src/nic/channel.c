/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* channel.c: completion channels: a program's thread takes what events.c left there. */
#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/timerq.h"
#include "nic/attend.h"
#include "nic/completion.h"
#include "nic/cq.h"
#include "nic/device.h"
#include "nic/events.h"
#include "os/wait.h"

#include <errno.h>

int nic_channel_open(struct nic *nic, struct nic_channel **out, int *fd)
{
	struct nic_channel *ch;

	if (nic_child(nic))
		return -ENODEV;
	ch = heap_alloc(sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	ch->fd = os_event_open();
	if (ch->fd < 0) {
		int err = ch->fd;

		heap_free(ch);
		return err;
	}
	ch->nic = nic;
	pthread_mutex_init(&ch->lock, NULL);
	list_init(&ch->ready);
	*fd = ch->fd;
	*out = ch;
	return 0;
}

void nic_channel_close(struct nic_channel *ch)
{
	if (nic_child(ch->nic))
		return; /* it is not there */
	CHECK(list_empty(&ch->ready));
	os_event_close(ch->fd);
	pthread_mutex_destroy(&ch->lock);
	heap_free(ch);
}

static bool channel_take(struct nic_channel *ch, void **cookie)
{
	bool found = false;

	pthread_mutex_lock(&ch->lock);
	if (!list_empty(&ch->ready)) {
		struct nic_cq *cq = list_entry(ch->ready.next, struct nic_cq,
					       ready);

		list_del(&cq->ready);
		if (--cq->pending)
			list_add_tail(&ch->ready, &cq->ready);
		*cookie = cq->cookie;
		found = true;
	}
	channel_quiet(ch);
	pthread_mutex_unlock(&ch->lock);
	return found;
}

/* Return: 1: the caller is to wait. */
static int channel_try(struct nic_channel *ch, void **cq_cookie)
{
	if (nic_child(ch->nic))
		return -ENODEV;
	if (channel_take(ch, cq_cookie))
		return 0;
	return os_event_nonblock(ch->fd) || ch->nic->cfg.manual ? -EAGAIN : 1;
}

int nic_channel_get(struct nic_channel *ch, void **cq_cookie)
{
	struct os_signals sig = {.blocked = false};
	int rc = 0, err = 0;

	while (!err && (rc = channel_try(ch, cq_cookie)) > 0)
		err = attend_block(ch->nic, ch->fd, &ch->woken, TIME_NEVER,
				   &sig);
	os_signals_restore(&sig);
	return err ? err : rc;
}
