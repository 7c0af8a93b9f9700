/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refresh.h: asking the host before pages are looked up. */
#ifndef NOPIN_NIC_REFRESH_H
#define NOPIN_NIC_REFRESH_H

#include <stdint.h>

struct nic;

/** refresh_pages() - Ask the host how it is, before any page is looked up. */
void refresh_pages(struct nic *nic);

#endif
