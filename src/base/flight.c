/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flight.c: names of the flight recorder's events. */
#include "base/base.h"

const struct flight_info flight_info[FLIGHT_NUM] = {
	[FLIGHT_NONE] = {"none", "", "", ""},
#define FLIGHT(name, a, b, help) [FLIGHT_##name] = {#name, a, b, help},
#include "base/flight.def"
#undef FLIGHT
};
