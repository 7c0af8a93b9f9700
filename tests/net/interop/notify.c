/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notify.c ROUNDS FD: the sender of ../../host/notify.c, on whatever NIC there is. */
#include "notify.h"

int main(int argc, char **argv)
{
	REQUIRE(argc == 3);
	host_start();
	notify_sender(atoi(argv[2]), strtoull(argv[1], NULL, 10));
	return 0;
}
