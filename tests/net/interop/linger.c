/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* linger.c: preloaded into rxe's side: a QP stays for a second after its program
 * is done with it. A program that leaves at once is silent to a peer that lost
 * its last ACK, and asks in vain until its retries are spent; with a packet of a
 * hundred lost that happens, and says nothing about either.
 */
#include <dlfcn.h>
#include <errno.h>
#include <time.h>

struct ibv_qp;

int ibv_destroy_qp(struct ibv_qp *qp);

int ibv_destroy_qp(struct ibv_qp *qp)
{
	const struct timespec second = {.tv_sec = 1};
	int (*destroy)(struct ibv_qp *) = NULL;

	*(void **)&destroy = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	nanosleep(&second, NULL);
	return destroy ? destroy(qp) : ENOSYS;
}
