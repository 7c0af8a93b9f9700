/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refresh.c: what the host says of all pages at once (fork, time) before any is looked up. */
#include "nic/refresh.h"
#include "mem/spt.h"
#include "mem/use.h"
#include "nic/device.h"
#include "os/pages.h"
#include "os/run.h"
#include "xport/rx.h"

void refresh_pages(struct nic *nic)
{
	uint64_t forks = os_forks(nic->os);
	bool forking = os_forking(nic->os);

	if (!nic->cfg.manual)
		nic->x.fresh_ns = os_fresh_after(nic->os, nic->x.now);
	/* Pages become copy-on-write one by one while fork() goes on, and a
	 * fault waits for its end, however cheap the page is else. */
	mem_inline_budget(nic->mem, forking ? 0 : RUN_PKTS);
	if (forks != nic->host.forks || forking != nic->host.forking) {
		/* every page is copy-on-write now, or becomes so */
		nic->host.forks = forks;
		nic->host.forking = forking;
		nic->host.protects++;
		spt_protect_all(nic->mem);
	}
}
