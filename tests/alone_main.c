/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* alone_main.c: `alone COMMAND...`, after alone.c has done its part. */
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
