/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.h: is memory short, and is there swap? */
#ifndef NOPIN_OS_HOST_H
#define NOPIN_OS_HOST_H

#include <stdbool.h>
#include <stdint.h>

/** host_is_short() - Could an allocation have to wait? As last seen. */
bool host_is_short(void);

/** host_has_swap() - Could a page that was there be on disk? As last seen. */
bool host_has_swap(void);

/** host_look() - Look again if it is time. Context: one thread at a time. */
void host_look(uint64_t now_ns);
void host_look_now(void);

#endif
