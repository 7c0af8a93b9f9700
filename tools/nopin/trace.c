/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace.c: nopin trace PID: prints what the NIC of a running program did last:
 * its counters and, of each QP, the state and the flight recorder.
 */
#include "nopin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int trace_main(int argc, char **argv)
{
	char why[ASK_WHY_MAX], *text;
	bool printed;
	size_t len;
	long pid;

	if (argc != 2 || !parse_pid(argv[1], &pid)) {
		complain("trace: of which process?");
		return EXIT_USAGE;
	}
	text = ask_nic(pid, "trace", ASK_PATIENCE_MS, &len, why);
	if (!text) {
		complain("trace: process %ld: %s", pid, why);
		return EXIT_BROKEN;
	}
	printed = fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0;
	free(text);
	if (printed)
		return 0;
	complain("trace: %s", strerror(errno));
	return EXIT_BROKEN;
}
