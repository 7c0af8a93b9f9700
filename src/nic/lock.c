/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock.c: the engine lock, and telling the threads that wait for a commit. */
#include "nic/lock.h"
#include "nic/device.h"
#include "nic/handoff.h"
#include "os/run.h"

void nic_time(struct nic *nic, uint64_t now_ns)
{
	nic->x.now = MAX(nic->x.now, now_ns);
}

void nic_lock(struct nic *nic)
{
	handoff_lock(&nic->engine);
	nic_time(nic, os_now(nic->os));
}

void nic_wake_idle(struct nic *nic)
{
	if (!nic->idle.waiters)
		return;
	pthread_mutex_lock(&nic->idle.lock);
	nic->idle.events++;
	pthread_cond_broadcast(&nic->idle.committed);
	pthread_mutex_unlock(&nic->idle.lock);
}
