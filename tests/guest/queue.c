/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* queue.c: descriptors of the program's stay its own. The kernel takes the
 * notification of a message queue away when the process closes a descriptor of
 * it, any copy: so does a thread of ours with a table of its own.
 */
#include "link.h"

#include <mqueue.h>
#include <signal.h>

int main(void)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL,
			      .sigev_signo = SIGUSR1};
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 1};
	const struct timespec patience = {.tv_sec = PATIENCE};
	struct link l;
	char name[64];
	sigset_t set;
	mqd_t q;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	snprintf(name, sizeof(name), "/nopin-test-%d", (int)getpid());
	q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
	REQUIRE(q >= 0 && mq_unlink(name) == 0);
	REQUIRE(mq_notify(q, &ev) == 0);
	link_open(&l);
	link_send(&l, 0, LINK_BYTES, 1);
	REQUIRE(mq_send(q, "x", 1, 0) == 0);
	REQUIRE(sigtimedwait(&set, NULL, &patience) == SIGUSR1);
	link_close(&l);
	return 0;
}
