/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* base.h: façade of base/, the layer that everybody may include. */
#ifndef NOPIN_BASE_BASE_H
#define NOPIN_BASE_BASE_H

#include "base/account.h"
#include "base/addr.h"
#include "base/be.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/fair.h"
#include "base/flight.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/log.h"
#include "base/moves.h"
#include "base/page.h"
#include "base/probe.h"
#include "base/rand.h"
#include "base/range.h"
#include "base/strategy.h"
#include "base/timerq.h"
#include "base/verdict.h"

#endif
