/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exit.h: in which order what a killed process had is let go: a port, and a connection. */
#ifndef NOPIN_TESTS_EXIT_H
#define NOPIN_TESTS_EXIT_H

#include "fact.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* @child, in a process of its own, binds a port, tells @at by its end of the connection, and
 * does not return. Return: was the end of the connection seen when the port was free?
 */
static bool told_first(void (*child)(int line))
{
	int ends[2], fd;
	bool told;
	pid_t pid;
	char c;

	at.sin_port = 0;
	FACT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		child(ends[1]);
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

#endif
