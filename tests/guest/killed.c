/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* killed.c TIMES: a peer that is killed (SIGKILL) at any moment of its life: at
 * any time after its fork, as every second one is, or while both sides READ and
 * write. Who is left gets IBV_WC_RETRY_EXC_ERR, then flushes, and goes on with
 * the next one. killed.sh looks at what was left behind.
 */
#include "link.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* A second and more with all retries, also towards a peer that did not answer
 * yet whether it is a nopin: it may wait for a CPU for as long. */
enum { TIMEOUT = 16 };

/* What the two tell each other. */
struct hello {
	uint32_t qpn, rkey;
	uint64_t addr;
};

/* Half a link: only end 0 is used, and its peer is another process. */
static void half_open(struct link *l)
{
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = LINK_DEPTH,
						.max_recv_wr = LINK_DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1},
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1};

	l->ctx = link_device();
	REQUIRE(l->ctx);
	l->pd = ibv_alloc_pd(l->ctx);
	l->buf = aligned_alloc(4096, LINK_BYTES);
	l->mr = ibv_reg_mr(l->pd, l->buf, LINK_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	init.send_cq = init.recv_cq = l->cq[0] = ibv_create_cq(l->ctx, 64, NULL,
							       NULL, 0);
	l->qp[0] = ibv_create_qp(l->pd, &init);
	REQUIRE(l->mr && l->qp[0]);
}

static void half_close(struct link *l)
{
	REQUIRE(ibv_destroy_qp(l->qp[0]) == 0);
	REQUIRE(ibv_destroy_cq(l->cq[0]) == 0);
	REQUIRE(ibv_dereg_mr(l->mr) == 0 && ibv_dealloc_pd(l->pd) == 0);
	REQUIRE(ibv_close_device(l->ctx) == 0);
	free(l->buf);
}

static int half_post(struct link *l, const struct hello *to, int i)
{
	struct ibv_sge s = {(uintptr_t)l->buf, LINK_BYTES / 2, l->mr->lkey};
	struct ibv_send_wr w = {
		.sg_list = &s,
		.num_sge = 1,
		.opcode = i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = to->addr, .rkey = to->rkey}};
	struct ibv_send_wr *bad;

	return ibv_post_send(l->qp[0], &w, &bad);
}

/* Return: 0: the peer was gone before it said who it is. */
static int exchange(struct link *l, int fd, struct hello *to)
{
	struct hello me = {l->qp[0]->qp_num, l->mr->rkey, (uintptr_t)l->buf};
	struct ibv_qp peer;

	if (send(fd, &me, sizeof(me), MSG_NOSIGNAL) != sizeof(me) ||
	    recv(fd, to, sizeof(*to), MSG_WAITALL) != sizeof(*to))
		return 0;
	peer.qp_num = to->qpn;
	l->qp[1] = &peer;
	link_connect(l, 0, TIMEOUT);
	return 1;
}

static void victim(int fd)
{
	struct hello to;
	struct ibv_wc wc;
	struct link l;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	half_open(&l);
	if (!exchange(&l, fd, &to))
		_exit(1);
	for (int i = 0;; i++) {
		half_post(&l, &to, i);
		while (ibv_poll_cq(l.cq[0], 1, &wc) == 1)
			;
	}
}

/* The killer is a process of its own, so that it comes at any moment. */
static void kill_after(pid_t pid, useconds_t us)
{
	if (fork() == 0) {
		usleep(us);
		kill(pid, SIGKILL);
		_exit(0);
	}
}

/* @dying:  the peer is to be killed already. If not, it is when an operation
 *          has succeeded.
 * Return:  how it ended, IBV_WC_SUCCESS if it never began.
 */
static enum ibv_wc_status survivor(struct link *l, int fd, pid_t peer,
				   bool dying)
{
	enum ibv_wc_status first = IBV_WC_SUCCESS;
	struct hello to;
	int out = 0;

	if (!exchange(l, fd, &to))
		return first;
	for (int i = 0; i < 4; i++)
		out += half_post(l, &to, i) == 0;
	for (int i = 4; out; i++) {
		const struct ibv_wc wc = link_wait(l->cq[0]);

		out--;
		if (first == IBV_WC_SUCCESS)
			first = wc.status;
		else
			REQUIRE(wc.status == IBV_WC_WR_FLUSH_ERR);
		if (wc.status != IBV_WC_SUCCESS) {
			REQUIRE(dying);
			continue;
		}
		if (!dying)
			kill_after(peer, (useconds_t)(rand() % 200000));
		dying = true;
		out += half_post(l, &to, i) == 0;
	}
	return first;
}

int main(int argc, char **argv)
{
	const int times = argc > 1 ? atoi(argv[1]) : 50;
	int retried = 0;

	srand((unsigned)time(NULL) * 1000 + (unsigned)getpid());
	for (int i = 0; i < times; i++) {
		const bool starting = i % 2;
		const int within = i % 4 == 1 ? 20000 : 300000;
		enum ibv_wc_status how;
		struct link l;
		int fd[2];
		pid_t pid;

		REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				   fd) == 0);
		pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			close(fd[0]);
			victim(fd[1]);
		}
		close(fd[1]);
		if (starting)
			kill_after(pid, (useconds_t)(rand() % within));
		half_open(&l);
		how = survivor(&l, fd[0], pid, starting);
		REQUIRE(how == IBV_WC_RETRY_EXC_ERR ||
			(starting && how == IBV_WC_SUCCESS));
		retried += how == IBV_WC_RETRY_EXC_ERR;
		half_close(&l);
		close(fd[0]);
		while (wait(NULL) > 0)
			;
	}
	fprintf(stderr, "%d of %d met the peer's end\n", retried, times);
	return 0;
}
