/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* i_mover.c: gives the regions of a running program new memory from below, one
 * after the other, as `nopin move --recreate` does, but without starting a process
 * each time: that would take the CPU from whoever is measured.
 *
 *   i_mover PID PERIOD_MS KEY...
 *
 * Until standard input ends. Prints of each move "move" and us; then, if one was
 * refused, "refused" and why. Skips where the host does not let regions be moved.
 */
#include "lib.h"

#include "../tools/nopin/nopin.h"
#include "i_move.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { REQUEST = 64, PATIENCE_MS = 10 * 1000 };

/* Return: false if it was refused. */
static bool move(long pid, const char *key)
{
	char request[REQUEST], why[ASK_WHY_MAX], *text, *took;
	size_t len;

	snprintf(request, sizeof(request), "move %s recreate", key);
	text = ask_nic(pid, request, PATIENCE_MS, &len, why);
	if (!text && no_userfaultfd(why))
		host_skip(NO_USERFAULTFD);
	if (!text) {
		out_row("refused", "%s", why);
		return false;
	}
	took = strstr(text, "move_us: ");
	REQUIRE(took);
	out_row("move", "%s", strtok(took + strlen("move_us: "), "\n"));
	free(text);
	return true;
}

int main(int argc, char **argv)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	if (argc < 4) {
		fprintf(stderr, "%s PID PERIOD_MS KEY...\n", argv[0]);
		return 2;
	}
	for (int n = 0; poll(&in, 1, (int)number(argv[2])) == 0; n++)
		if (!move((long)number(argv[1]), argv[3 + n % (argc - 3)]))
			return 0;
	return 0;
}
