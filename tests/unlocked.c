/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unlocked.c: part of test programs. Locked memory that is left at the end of
 * one is a failure; that nothing but NOPIN_REG=pin locks any for a time is
 * lint.sh's.
 */
#include <stdio.h>
#include <unistd.h>

__attribute__((destructor)) static void nothing_is_locked(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long kib = 1;
	char line[256];

	if (!f) {
		perror("/proc/self/status");
		_exit(1);
	}
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %lu", &kib) == 1)
			break;
	fclose(f);
	if (kib) {
		fprintf(stderr, "VmLck is %lu kB\n", kib);
		_exit(1);
	}
}
