/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refresh.h: asking the host before pages are looked up. */
#ifndef NOPIN_NIC_REFRESH_H
#define NOPIN_NIC_REFRESH_H

#include <stdbool.h>
#include <stdint.h>

struct nic;

/**
 * struct host_seen - What the shadow page table knows of the process as a whole.
 * @forks:	os_forks()
 * @forking:	os_forking()
 * @protects:	how often every page became readable only
 */
struct host_seen {
	uint64_t forks, protects;
	bool forking;
};

/** refresh_pages() - Ask the host how it is, before any page is looked up. */
void refresh_pages(struct nic *nic);

#endif
