/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* talk.c [MESSAGES]: a pingpong with itself. Built also with sanitizers (which
 * the library is not) and run under valgrind.
 */
#include "link.h"

int main(int argc, char **argv)
{
	const uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 500;
	static const uint32_t sizes[] = {1,    8,    1023,  1024, 1025,
					 4095, 4096, 16384, 65536};
	struct link l;

	link_open(&l);
	for (uint32_t i = 0; i < n; i++)
		link_send(&l, i & 1, sizes[i % (sizeof(sizes) / 4)],
			  (uint8_t)(i | 1));
	link_close(&l);
	return 0;
}
