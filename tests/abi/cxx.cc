// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// cxx.cc: nopin.h in C++, its types and the names that it links to.
#include <nopin.h>

#include <cstring>

int main()
{
	int (*of_cq)(ibv_cq *, uint64_t, nopin_met *) = nopin_cq_met;
	nopin_fault fault = NOPIN_FAULT_DEFAULT;

	return !of_cq || nopin_fault_parse("redirect", &fault) ||
	       fault != NOPIN_FAULT_REDIRECT ||
	       std::strcmp(nopin_fault_name(fault), "redirect") != 0;
}
