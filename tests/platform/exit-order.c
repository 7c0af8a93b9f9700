/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process that is killed ends with its descriptors from the highest number to the
 * lowest: whenever another process can bind the port of the lower one, the other end
 * of the connection of the higher one has been told already.
 */
#include "exit.h"

#include <sys/prctl.h>

enum { ROUNDS = 100, PORT_FD = 600, LINE_FD = 700 };

static int port_at, line_at;

static void child(int line)
{
	socklen_t len = sizeof(at);
	const int port = port_bind();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	FACT(port >= 0 && getsockname(port, (void *)&at, &len) == 0);
	FACT(dup2(port, port_at) == port_at && dup2(line, line_at) == line_at);
	close(port);
	FACT(write(line, &at, sizeof(at)) == sizeof(at));
	close(line);
	pause();
}

static bool round_of(int port, int line)
{
	port_at = port;
	line_at = line;
	return told_first(child);
}

int main(void)
{
	int other = 0;

	for (int i = 0; i < ROUNDS; i++) {
		FACT(round_of(PORT_FD, LINE_FD));
		other += round_of(LINE_FD, PORT_FD);
	}
	printf("the other way round: told before in %d of %d\n", other, ROUNDS);
	return 0;
}
