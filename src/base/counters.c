/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counters.c: names, units and help of the counters. */
#include "base/counters.h"

const struct counter_info counter_info[CNT_NUM] = {
#define COUNTER(name, unit, help) {#name, unit, help},
#include "base/counters.def"
#undef COUNTER
};
