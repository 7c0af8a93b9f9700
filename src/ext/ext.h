/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ext.h: façade of ext/, the edge of nopin.h: it turns the program's verbs objects
 * into the NIC's and checks nothing that nic/ checks. The contract of each
 * function is in nopin.h and its manual page.
 */
#ifndef NOPIN_EXT_EXT_H
#define NOPIN_EXT_EXT_H

#include "verbs/object.h"

#include "ext/nopin.h"

struct nopin_upcalls {
	struct vupcalls v;
};

#endif
