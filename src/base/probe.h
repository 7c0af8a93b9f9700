/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.h: static trace points (USDT): a nop each, and a note in the library that
 * says where it is and where its arguments are, so that a tracer can put a trap
 * there. Without <sys/sdt.h> there are none. probe.def lists them.
 */
#ifndef NOPIN_BASE_PROBE_H
#define NOPIN_BASE_PROBE_H

#ifdef NOPIN_HAVE_SDT
#include <sys/sdt.h>
#define PROBE3(name, a, b, c)	 DTRACE_PROBE3(nopin, name, a, b, c)
#define PROBE4(name, a, b, c, d) DTRACE_PROBE4(nopin, name, a, b, c, d)
#else
#define PROBE3(name, a, b, c)	 ((void)(a), (void)(b), (void)(c))
#define PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

#endif
