/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process that is killed ends with its descriptors from the highest number to the
 * lowest: whenever another process can bind the port of the lower one, the other end
 * of the connection of the higher one has been told already.
 */
#include "fact.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 100, PORT_FD = 600, LINE_FD = 700 };

static struct sockaddr_in at = {.sin_family = AF_INET};

static int port_bind(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	FACT(fd >= 0);
	if (bind(fd, (void *)&at, sizeof(at)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void child(int line, int port_at, int line_at)
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

/* Return: was the end of the connection seen when the port was free? */
static int round_of(int port_at, int line_at)
{
	int ends[2], fd, told;
	pid_t pid;
	char c;

	at.sin_port = 0;
	FACT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		child(ends[1], port_at, line_at);
	}
	close(ends[1]);
	FACT(read(ends[0], &at, sizeof(at)) == sizeof(at));
	FACT(port_bind() < 0);
	kill(pid, SIGKILL);
	do
		fd = port_bind();
	while (fd < 0);
	told = recv(ends[0], &c, 1, MSG_DONTWAIT) == 0;
	close(fd);
	close(ends[0]);
	FACT(waitpid(pid, NULL, 0) == pid);
	return told;
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
